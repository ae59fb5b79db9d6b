//! One end: an endpoint, its connections, and applications that keep what arrives.

use base::net::{Addresses, Train};
use base::pattern;
use base::sink::{PacketSink, TrainPath};
use base::slab::{Handle, Slab};
use base::time::Instant;
use bytes::Bytes;
use std::collections::BTreeMap;
use transport::{
    CloseReason, Connection, Endpoint, Event, Fin, Route, ServerConfig, StreamId, StreamSink, Transmitted,
    split_run,
};

/// Most datagrams of a train.
pub(crate) const TRAIN: usize = 64;

/// What came of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    pub(crate) has_ended: bool,
}

/// The application of a connection: keeps what arrives.
pub(crate) struct Inbox {
    pub(crate) streams: BTreeMap<StreamId, Received>,
    pub(crate) datagrams: Vec<Vec<u8>>,
    /// Bytes that it still takes.
    pub(crate) room: usize,
}

impl StreamSink for Inbox {
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        let received = self.streams.entry(id).or_default();
        assert!(!received.has_ended, "{id:?} goes on after its end");
        let taken = bytes.len().min(self.room);
        self.room -= taken;
        received.bytes.extend_from_slice(&bytes[..taken]);
        received.has_ended = fin == Fin::End && taken == bytes.len();
        taken
    }

    fn on_datagram(&mut self, bytes: &[u8]) {
        self.datagrams.push(bytes.to_vec());
    }
}

/// A connection and its application.
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    pub(crate) inbox: Inbox,
}

impl Peer {
    pub(crate) fn new(connection: Connection) -> Peer {
        let inbox = Inbox { streams: BTreeMap::new(), datagrams: Vec::new(), room: usize::MAX };
        Peer { connection, inbox }
    }

    /// What has arrived on a stream.
    pub(crate) fn received(&self, id: StreamId) -> &Received {
        static NOTHING: Received = Received { bytes: Vec::new(), has_ended: false };
        self.inbox.streams.get(&id).unwrap_or(&NOTHING)
    }

    /// Writes the first `len` bytes of the stream's content and ends it.
    pub(crate) fn send(&mut self, id: StreamId, len: usize) {
        self.connection.write(id, content(id, len)).expect("writes");
        self.connection.finish_stream(id).expect("finishes");
    }
}

/// The first `len` bytes of what is written on a stream: other bytes on each.
pub(crate) fn content(id: StreamId, len: usize) -> Bytes {
    let mut bytes = Vec::with_capacity(len + pattern::PERIOD);
    while bytes.len() < len {
        bytes.extend_from_slice(pattern::at(id.as_u64() * 7_919 + bytes.len() as u64));
    }
    bytes.truncate(len);
    Bytes::from(bytes)
}

/// All of a stream of `len` bytes, as it must arrive.
pub(crate) fn whole(id: StreamId, len: usize) -> Received {
    Received { bytes: content(id, len).to_vec(), has_ended: true }
}

/// An endpoint, its connections, and what they have told.
pub(crate) struct End {
    pub(crate) endpoint: Endpoint,
    /// Taken by servers only.
    pub(crate) config: Option<ServerConfig>,
    pub(crate) peers: Slab<Peer>,
    /// What all connections have told, those that are gone included.
    pub(crate) events: Vec<Event>,
    /// Datagrams that it has sent.
    pub(crate) sent: usize,
}

impl End {
    pub(crate) fn new(endpoint: Endpoint, config: Option<ServerConfig>) -> End {
        End { endpoint, config, peers: Slab::new(), events: Vec::new(), sent: 0 }
    }

    /// The first connection.
    pub(crate) fn peer(&mut self) -> &mut Peer {
        self.peers.iter_mut().next().expect("a connection").1
    }

    /// Why connections ended.
    pub(crate) fn ends(&self) -> Vec<CloseReason> {
        let reason = |event: &Event| match event {
            Event::Closed(reason) => Some(reason.clone()),
            _ => None,
        };
        self.events.iter().filter_map(reason).collect()
    }

    pub(crate) fn next_timeout(&mut self) -> Option<Instant> {
        self.peers.iter_mut().filter_map(|(_, peer)| peer.connection.next_timeout()).min()
    }

    pub(crate) fn expire(&mut self, now: Instant) {
        for (_, peer) in self.peers.iter_mut() {
            if peer.connection.next_timeout().is_some_and(|deadline| deadline <= now) {
                peer.connection.on_timeout(now);
            }
        }
    }

    /// Lets all connections send, and forgets those that are gone.
    pub(crate) fn transmit(&mut self, now: Instant, sink: &mut Memory) {
        let handles: Vec<Handle> = self.peers.handles().collect();
        for handle in handles {
            let Some(peer) = self.peers.entry_mut(handle) else { continue };
            self.endpoint.update(handle, &mut peer.connection);
            while peer.connection.transmit(now, sink) == Transmitted::Paused {}
            self.events.extend(core::iter::from_fn(|| peer.connection.next_event()));
            if peer.connection.is_gone() {
                self.endpoint.update(handle, &mut peer.connection);
                self.peers.remove(handle);
                self.endpoint.forget(handle);
            }
        }
    }

    /// A train came in. Returns the endpoint's own answers, with where they go.
    pub(crate) fn receive(&mut self, now: Instant, train: Train<'_>) -> Vec<(Addresses, Vec<u8>)> {
        let (mut rest, mut answers) = (Some(train), Vec::new());
        while let Some(train) = rest {
            let (run, others) = split_run(train);
            rest = others;
            let addresses = run.addresses;
            match self.endpoint.route(now, &run) {
                Route::Connection(handle) => {
                    let peer = self.peers.entry_mut(handle).expect("nothing leads to what is forgotten");
                    peer.connection.receive(now, run, &mut peer.inbox);
                }
                Route::Incoming(incoming) => {
                    let config = self.config.as_ref().expect("only a server is connected to");
                    let handle = self.peers.next_handle();
                    let accepted = self.endpoint.accept(now, handle, incoming, config);
                    let mut peer = Peer::new(accepted.expect("accepts"));
                    peer.connection.receive(now, run, &mut peer.inbox);
                    if peer.connection.counters().received_packets == 0 {
                        // Damaged: nothing of it may stand in the way of the real one.
                        self.endpoint.forget(handle);
                    } else {
                        self.peers.insert(peer);
                    }
                }
                Route::Reply => answers.push((addresses, self.endpoint.reply().to_vec())),
                Route::Drop(_) => {}
                Route::Elsewhere(worker) => panic!("sent to worker {worker}, and there is one only"),
                Route::Predecessor(predecessor) => panic!("sent to {predecessor:?}, and there is none"),
            }
        }
        answers
    }
}

/// Packet memory of an end: keeps datagrams until the wire takes them.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) datagrams: Vec<(TrainPath, Vec<u8>)>,
    path: Option<TrainPath>,
    train: Vec<Vec<u8>>,
    room: Vec<u8>,
}

impl PacketSink for Memory {
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        self.path = Some(path);
        self.room = vec![0; segment_size];
        Some(TRAIN)
    }
    fn room(&mut self) -> &mut [u8] {
        &mut self.room
    }
    fn push(&mut self, len: usize) {
        self.train.push(self.room[..len].to_vec());
    }
    fn packet(&mut self, index: usize) -> &mut [u8] {
        &mut self.train[index]
    }
    fn end(&mut self) {
        let path = self.path.take().expect("a train was begun");
        self.datagrams.extend(self.train.drain(..).map(|bytes| (path, bytes)));
    }
}
