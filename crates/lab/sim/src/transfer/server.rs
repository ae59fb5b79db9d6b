//! The server of raw transfers.

use super::header::{HEADER_LEN, Header};
use crate::piece::{Incoming, Outgoing};
use crate::read_behaviour::ReadBehaviour;
use base::pattern;
use base::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use transport::{CloseReason, Connection, Counters, Dir, Event, Fin, MtuReport, StreamId, StreamSink};
use worker::{App, Next};

/// How long a receiver stays in the mood not to take anything.
pub(crate) const PAUSE: Duration = Duration::from_millis(3);

/// The application, and what became of it all.
#[derive(Debug)]
pub struct Server {
    read_behaviour: ReadBehaviour,
    /// Connections that clients began.
    pub accepted: u64,
    /// Connections on which stream data arrived: their handshake is over at both ends.
    pub talked: u64,
    /// Streams that ended as they should.
    pub completed: u64,
    /// Streams that the client gave up.
    pub cancelled: u64,
    /// DATAGRAM frames that arrived.
    pub datagrams: u64,
    /// What the last connection counted.
    pub counters: Counters,
    /// The smoothed round-trip time of the connection that had the last turn.
    pub rtt: Duration,
    /// What its search for larger packets found.
    pub mtu: MtuReport,
    /// Why connections ended.
    pub reasons: Vec<CloseReason>,
    /// Everything that went wrong.
    pub failures: Vec<String>,
}

impl Server {
    /// A server whose receivers have this mood.
    pub fn new(read_behaviour: ReadBehaviour) -> Server {
        Server {
            read_behaviour,
            accepted: 0,
            talked: 0,
            completed: 0,
            cancelled: 0,
            datagrams: 0,
            counters: Counters::default(),
            rtt: Duration::ZERO,
            mtu: MtuReport::default(),
            reasons: Vec::new(),
            failures: Vec::new(),
        }
    }
}

#[derive(Debug)]
enum Stage {
    /// The header is still coming in.
    Header(Vec<u8>),
    /// Bytes come in, bytes go out.
    Body { incoming: Incoming, outgoing: Outgoing, is_ended: bool },
}

/// What the server keeps of a connection.
#[derive(Debug)]
pub struct ServerConnection {
    read_behaviour: ReadBehaviour,
    streams: BTreeMap<StreamId, Stage>,
    cancelled: BTreeSet<StreamId>,
    /// Streams that may have something to send.
    sending: Vec<StreamId>,
    paused: Vec<StreamId>,
    completed: u64,
    datagrams: u64,
    has_talked: bool,
    /// It has talked since the last turn for the first time.
    has_news: bool,
    failures: Vec<String>,
}

impl ServerConnection {
    fn on_bytes(&mut self, id: StreamId, mut bytes: &[u8], fin: Fin) -> Result<(), String> {
        self.has_news |= !core::mem::replace(&mut self.has_talked, true);
        if self.cancelled.contains(&id) {
            return Ok(());
        }
        let stage = self.streams.entry(id).or_insert_with(|| Stage::Header(Vec::new()));
        if let Stage::Header(collected) = stage {
            let (head, rest) = bytes.split_at((HEADER_LEN - collected.len()).min(bytes.len()));
            collected.extend_from_slice(head);
            bytes = rest;
            if let Some(Header { up, down, offset }) = Header::from_bytes(collected) {
                let (incoming, outgoing) = (Incoming::new(offset, up), Outgoing::new(offset, down));
                *stage = Stage::Body { incoming, outgoing, is_ended: false };
                self.sending.push(id);
            }
        }
        match stage {
            Stage::Header(_) if fin == Fin::Open => Ok(()),
            Stage::Header(_) => Err("ended within the header".to_owned()),
            Stage::Body { incoming, is_ended, .. } => {
                if *is_ended {
                    return Err("something after the end".to_owned());
                }
                incoming.on_bytes(bytes)?;
                if fin == Fin::End {
                    *is_ended = true;
                    self.sending.push(id);
                    if !incoming.is_complete() {
                        return Err(format!("ended {} bytes early", incoming.left()));
                    }
                }
                Ok(())
            }
        }
    }

    /// Sends what a stream has to send; `true` when it is complete.
    fn advance(&mut self, connection: &mut Connection, id: StreamId) -> bool {
        let Some(Stage::Body { outgoing, is_ended, .. }) = self.streams.get_mut(&id) else { return false };
        if id.dir() == Dir::Uni {
            return *is_ended;
        }
        if outgoing.write(connection, id, &mut self.read_behaviour).is_err() {
            // The client asked us to stop; the event says so, too.
            return false;
        }
        if !outgoing.is_written() || !*is_ended {
            return false;
        }
        if let Err(error) = connection.finish_stream(id) {
            self.failures.push(format!("stream {}: {error}", id.as_u64()));
        }
        true
    }
}

impl StreamSink for ServerConnection {
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        let taken = self.read_behaviour.takes(bytes.len());
        let fin = if taken == bytes.len() {
            fin
        } else {
            self.paused.push(id);
            Fin::Open
        };
        if let Err(failure) = self.on_bytes(id, bytes.get(..taken).unwrap_or(&[]), fin) {
            self.failures.push(format!("server, stream {}: {failure}", id.as_u64()));
        }
        taken
    }

    fn on_datagram(&mut self, bytes: &[u8]) {
        let wrong = match bytes.split_first_chunk() {
            Some((offset, content)) => {
                pattern::first_difference(u64::from_be_bytes(*offset), content).is_some()
            }
            None => true,
        };
        self.datagrams += 1;
        if wrong {
            self.failures.push(format!("datagram of {} bytes: wrong", bytes.len()));
        }
    }
}

impl App for Server {
    type State = ServerConnection;

    fn on_accept(&mut self, _now: Instant, _connection: &mut Connection) -> ServerConnection {
        self.accepted += 1;
        ServerConnection {
            read_behaviour: self.read_behaviour.fork(),
            streams: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            sending: Vec::new(),
            paused: Vec::new(),
            completed: 0,
            datagrams: 0,
            has_talked: false,
            has_news: false,
            failures: Vec::new(),
        }
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection, visit: &mut ServerConnection) -> Next {
        let is_closed = connection.is_closed();
        for id in core::mem::take(&mut visit.paused) {
            connection.deliver(now, id, visit);
        }
        while let Some(event) = connection.next_event() {
            match event {
                Event::Writable { id } => visit.sending.push(id),
                Event::StreamReset { id, .. } | Event::StopSending { id, .. } => {
                    // Both come for a stream that the client gave up, and data may come between them.
                    self.cancelled += u64::from(visit.cancelled.insert(id));
                    visit.streams.remove(&id);
                    connection.reset(id, 0);
                }
                Event::Closed(reason) => self.reasons.push(reason),
                _ => {}
            }
        }
        for id in core::mem::take(&mut visit.sending) {
            if !is_closed && visit.advance(connection, id) && visit.streams.remove(&id).is_some() {
                visit.completed += 1;
                self.completed += 1;
            }
        }
        self.rtt = connection.rtt();
        self.talked += u64::from(core::mem::take(&mut visit.has_news));
        self.datagrams += core::mem::take(&mut visit.datagrams);
        self.failures.append(&mut visit.failures);
        if visit.paused.is_empty() || connection.is_closed() { Next::Wait } else { Next::At(now + PAUSE) }
    }

    fn on_gone(&mut self, _now: Instant, connection: &Connection, mut visit: ServerConnection) {
        self.counters = *connection.counters();
        self.mtu = connection.mtu_report();
        self.failures.append(&mut visit.failures);
    }
}
