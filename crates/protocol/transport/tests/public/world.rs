//! Two ends, the wire between them, and the time of both: the loop of an embedder, without sockets.
//!
//! The wire has a delay, a judge that decides the fate of each datagram, and an address translator in front of the client.
//! Datagrams that arrive together reach an endpoint as a train, as a kernel hands them over.

use crate::ends::{End, Memory, Peer, TRAIN, whole};
use base::net::{Addresses, Ecn, Train};
use base::sink::TrainPath;
use base::time::{Duration, Instant};
use core::net::SocketAddr;
use std::collections::BTreeMap;
use transport::{ClientConfig, Connection, Endpoint, EndpointConfig, Event};
use wire::Side;

/// A wait that takes more steps than this makes no progress.
const MOST_STEPS: usize = 200_000;
/// How long a datagram takes, unless a test says otherwise.
pub(crate) const DELAY: Duration = Duration::from_millis(10);

pub(crate) fn at(network: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, network, 1], port))
}

/// The client's own address, and the one that the server sees at first.
pub(crate) fn home() -> SocketAddr {
    at(1, 40_000)
}

pub(crate) fn server_address() -> SocketAddr {
    at(2, 443)
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: Side,
    /// Its number among those of its side, from 0.
    pub(crate) number: usize,
    pub(crate) sent_at: Instant,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: Vec<u8>,
}

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    Lost,
    /// It arrives twice.
    Doubled,
    /// It arrives that much later than others.
    Late(Duration),
    /// A copy arrives from this address, a little before the datagram itself.
    CopiedFrom(SocketAddr),
}

/// Decides about each datagram, and may change it.
pub(crate) type Judge = Box<dyn FnMut(&mut Datagram) -> Fate>;

/// Both ends and what is between them.
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) client: End,
    pub(crate) server: End,
    /// For the client's next connection.
    pub(crate) config: ClientConfig,
    /// The address that the server sees the client at. What it sends elsewhere is lost.
    pub(crate) seen_at: SocketAddr,
    /// Other addresses of the client, which no translator stands before.
    pub(crate) others: Vec<SocketAddr>,
    pub(crate) judge: Judge,
    /// All datagrams that were sent, as the wire saw them before the judge did.
    pub(crate) log: Vec<Datagram>,
    /// By the time of arrival, then in the order of sending.
    on_the_way: BTreeMap<(Instant, usize), Datagram>,
    launched: usize,
    name: &'static str,
}

impl World {
    /// Two ends without connections.
    pub(crate) fn new(client: ClientConfig, server: End, name: &'static str) -> World {
        World {
            now: Instant::from_nanos(1 << 40),
            client: End::new(Endpoint::new(EndpointConfig::default(), [1; 32]), None),
            server,
            config: client,
            seen_at: home(),
            others: Vec::new(),
            judge: Box::new(|_| Fate::Arrives),
            log: Vec::new(),
            on_the_way: BTreeMap::new(),
            launched: 0,
            name,
        }
    }

    /// The client begins another connection.
    pub(crate) fn connect(&mut self) {
        let addresses = Addresses { local: home(), peer: server_address() };
        let (handle, place) = (self.client.peers.next_handle(), (self.name, addresses));
        let begun = self.client.endpoint.connect(self.now, handle, &self.config, place);
        self.client.peers.insert(Peer::new(begun.expect("connects")));
    }

    pub(crate) fn end(&mut self, side: Side) -> &mut End {
        if side.is_client() { &mut self.client } else { &mut self.server }
    }

    /// The connection at one end, of which there is one.
    pub(crate) fn connection(&mut self, side: Side) -> &mut Connection {
        &mut self.end(side).peer().connection
    }

    /// Runs until `done`, for at most two minutes.
    pub(crate) fn run_until(&mut self, what: &str, mut done: impl FnMut(&mut World) -> bool) {
        let deadline = self.now + Duration::from_secs(120);
        for _ in 0..MOST_STEPS {
            self.settle();
            if done(self) {
                return;
            }
            if !self.step(deadline) {
                break;
            }
        }
        panic!("{what}: does not come; client {:?}, server {:?}", self.client.events, self.server.events);
    }

    /// So many arrivals and timeouts.
    pub(crate) fn step_for(&mut self, steps: usize) {
        let deadline = self.now + Duration::from_secs(1);
        let _ = (0..steps).find(|_| !self.step(deadline));
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        let more = (0..MOST_STEPS).find(|_| !self.step(until));
        assert!(more.is_some(), "no progress at {:?}", self.now);
    }

    /// Sends what may go, then moves the time on to the next arrival or timeout; `false` when none is due before `until`.
    fn step(&mut self, until: Instant) -> bool {
        self.settle();
        let arrival = self.on_the_way.keys().next().map(|(at, _)| *at);
        let due = [arrival, self.client.next_timeout(), self.server.next_timeout()];
        let Some(next) = due.into_iter().flatten().min().filter(|next| *next <= until) else {
            self.now = until;
            return false;
        };
        self.now = self.now.max(next);
        while let Some(train) = self.next_train() {
            self.deliver(train);
        }
        self.client.expire(self.now);
        self.server.expire(self.now);
        true
    }

    /// Both ends send what may go now, and tell what has happened.
    fn settle(&mut self) {
        self.send(Side::Client);
        self.send(Side::Server);
    }

    fn send(&mut self, side: Side) {
        let (now, mut sink) = (self.now, Memory::default());
        self.end(side).transmit(now, &mut sink);
        for (path, bytes) in sink.datagrams {
            self.launch(side, path, bytes);
        }
    }

    /// A datagram enters the wire.
    fn launch(&mut self, from: Side, path: TrainPath, bytes: Vec<u8>) {
        let end = self.end(from);
        let number = end.sent;
        end.sent += 1;
        let is_translated = from.is_client() && path.addresses.local == home();
        let source = if is_translated { self.seen_at } else { path.addresses.local };
        let destination = path.addresses.peer;
        let mut datagram =
            Datagram { from, number, sent_at: self.now, source, destination, ecn: path.ecn, bytes };
        self.log.push(datagram.clone());
        match (self.judge)(&mut datagram) {
            Fate::Lost => {}
            Fate::Arrives => self.arrive_after(DELAY, datagram),
            Fate::Late(by) => self.arrive_after(DELAY + by, datagram),
            Fate::Doubled => {
                self.arrive_after(DELAY, datagram.clone());
                self.arrive_after(DELAY, datagram);
            }
            Fate::CopiedFrom(source) => {
                self.arrive_after(DELAY, Datagram { source, ..datagram.clone() });
                self.arrive_after(DELAY + Duration::from_micros(100), datagram);
            }
        }
    }

    /// A datagram of before comes again.
    pub(crate) fn repeat(&mut self, datagram: Datagram) {
        self.arrive_after(DELAY, datagram);
    }

    fn arrive_after(&mut self, delay: Duration, datagram: Datagram) {
        self.launched += 1;
        self.on_the_way.insert((self.now + delay, self.launched), datagram);
    }

    /// Takes datagrams off the wire that have arrived and make a train.
    fn next_train(&mut self) -> Option<Vec<Datagram>> {
        let mut train: Vec<Datagram> = Vec::new();
        while let Some(entry) = self.on_the_way.first_entry() {
            let (next, is_full) = (entry.get(), train.len() == TRAIN);
            let fits = train.first().is_none_or(|first| {
                let is_same = |of: &Datagram| (of.from, of.source, of.destination, of.ecn);
                let has_ended = train.last().is_some_and(|last| last.bytes.len() < first.bytes.len());
                is_same(first) == is_same(next) && next.bytes.len() <= first.bytes.len() && !has_ended
            });
            if entry.key().0 > self.now || is_full || !fits {
                break;
            }
            train.push(entry.remove());
        }
        (!train.is_empty()).then_some(train)
    }

    fn deliver(&mut self, train: Vec<Datagram>) {
        let Some(Datagram { from, source, destination, ecn, .. }) = train.first().cloned() else { return };
        let is_other = self.others.contains(&destination);
        if from.is_server() && destination != self.seen_at && !is_other {
            return; // no address translator leads there
        }
        let local = if from.is_server() && !is_other { home() } else { destination };
        let segment_size = train.first().map_or(1, |first| first.bytes.len());
        let mut bytes = train.iter().map(|datagram| datagram.bytes.as_slice()).collect::<Vec<_>>().concat();
        let addresses = Addresses { local, peer: source };
        let (now, side) = (self.now, from.other());
        let train = Train { bytes: &mut bytes, segment_size, addresses, ecn };
        for (addresses, answer) in self.end(side).receive(now, train) {
            self.launch(side, TrainPath::new(addresses, Ecn::NotEct), answer);
        }
    }

    /// What one end has sent.
    pub(crate) fn sent(&self, side: Side) -> impl Iterator<Item = &Datagram> {
        self.log.iter().filter(move |datagram| datagram.from == side)
    }

    /// As `transfer`, both ways, as soon as there is a connection.
    pub(crate) fn transfer_when_connected(&mut self, len: usize) {
        self.run_until("the handshake", |world| world.server.events.contains(&Event::Connected));
        self.transfer(Side::Client, len);
        self.transfer(Side::Server, len);
    }

    /// Sends `len` bytes on a new stream of one end, and returns when all has arrived at the other.
    pub(crate) fn transfer(&mut self, side: Side, len: usize) {
        let id = self.connection(side).open(transport::Dir::Uni).expect("a stream");
        self.end(side).peer().send(id, len);
        self.run_until("a transfer", |world| world.end(side.other()).peer().received(id).has_ended);
        assert!(self.end(side.other()).peer().received(id) == &whole(id, len), "{id:?}: bytes differ");
    }
}
