//! Middleware that makes any port as bad as a network: a [`Link`] for each direction.
//!
//! Datagrams enter one by one. What a link holds back waits in a queue of events until its time; what has passed the link is rebuilt
//! into trains and goes on. All randomness comes from a seed and all time from the port below, hence a run over a virtual port replays
//! exactly.
//!
//! It copies and allocates for each datagram: it is for tests and diagnosis, not for speed.

use std::io;

use base::net::{Ecn, Train};
use base::rng::Rng;
use base::sink::{PacketSink, TrainPath};
use base::time::Instant;
use datapath::trains::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS, TrainQueue};
use datapath::{Counters, Port, Rx, Tx};

use crate::events::EventQueue;
use crate::link::{Datagram, Link, LinkCounters};
use crate::node::Node;

/// Outgoing bytes that may wait for the port below before `begin` refuses.
const MAX_QUEUED_BYTES: usize = 1 << 20;
/// Datagrams that a direction holds back at most; more are lost, and counted as overflowed.
const MAX_HELD: usize = 4096;

/// A datagram under way.
#[derive(Clone, Debug)]
struct Packet {
    path: TrainPath,
    bytes: Vec<u8>,
}

impl Datagram for Packet {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn ecn(&self) -> Ecn {
        self.path.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.path.ecn = ecn;
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// One direction.
#[derive(Debug)]
struct Direction {
    link: Link,
    began: Instant,
    held: EventQueue<(usize, Packet)>,
    ready: TrainQueue,
}

impl Direction {
    fn new(nodes: Vec<Node>, rng: Rng, began: Instant) -> Direction {
        Direction { link: Link::new(nodes, rng), began, held: EventQueue::new(), ready: TrainQueue::new() }
    }

    fn on_datagram(&mut self, now: Instant, path: TrainPath, datagram: &[u8]) {
        self.link.counters.entered += 1;
        self.travel(0, now, Packet { path, bytes: datagram.to_vec() });
    }

    fn travel(&mut self, first: usize, now: Instant, packet: Packet) {
        let Direction { link, began, held, ready } = self;
        let mut overflowed = 0;
        let arrived = link.travel(first, (now, now.saturating_since(*began)), packet, |at, node, packet| {
            if held.len() < MAX_HELD {
                held.schedule(at, (node, packet));
            } else {
                overflowed += 1;
            }
        });
        link.counters.overflowed += overflowed;
        if let Some(packet) = arrived {
            ready.push(&packet.path, &packet.bytes);
        }
    }

    /// Lets what is held back and due go on, earliest first.
    fn release(&mut self, now: Instant) {
        while let Some((at, (node, packet))) = self.held.take_due(now) {
            self.travel(node, at, packet);
        }
    }
}

/// The train that the layer above is building.
#[derive(Debug, Default)]
struct Open {
    path: Option<TrainPath>,
    bytes: Vec<u8>,
    segment_size: usize,
    packets: usize,
    end: usize,
}

/// A port behind a bad network.
#[derive(Debug)]
pub struct FaultInjector<P> {
    inner: P,
    rx: Direction,
    tx: Direction,
    open: Open,
    now: Instant,
}

impl<P: Port> FaultInjector<P> {
    /// Wraps `inner`; `rx` happens to what arrives, `tx` to what leaves.
    pub fn new(mut inner: P, rx: Vec<Node>, tx: Vec<Node>, seed: u64) -> FaultInjector<P> {
        let mut rng = Rng::from_u64(seed);
        let now = inner.now();
        let (rx, tx) = (Direction::new(rx, rng.fork(), now), Direction::new(tx, rng.fork(), now));
        FaultInjector { inner, rx, tx, open: Open::default(), now }
    }

    /// The port below.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// The port below, to be changed.
    pub fn inner_mut(&mut self) -> &mut P {
        &mut self.inner
    }

    /// What happened to arriving and to leaving datagrams.
    pub fn link_counters(&self) -> (LinkCounters, LinkCounters) {
        (self.rx.link.counters, self.tx.link.counters)
    }

    /// Hands queued trains to the port below until it has no memory left.
    fn forward(&mut self) {
        let (mut trains, mut datagrams) = (0, 0);
        'queue: while trains < self.tx.ready.len() {
            let train = self.tx.ready.train(trains);
            let path = TrainPath::new(train.addresses, train.ecn);
            let mut rest = train.bytes.chunks(train.segment_size).peekable();
            datagrams = 0;
            while rest.peek().is_some() {
                let Some(room) = self.inner.begin(path, train.segment_size) else { break 'queue };
                for packet in rest.by_ref().take(room.max(1)) {
                    self.inner.room()[..packet.len()].copy_from_slice(packet);
                    self.inner.push(packet.len());
                    datagrams += 1;
                }
                self.inner.end();
            }
            (trains, datagrams) = (trains + 1, 0);
        }
        self.tx.ready.take_front(trains, datagrams);
    }
}

impl<P: Port> Rx for FaultInjector<P> {
    fn poll(&mut self) -> io::Result<usize> {
        self.rx.ready.clear();
        for index in 0..self.inner.poll()? {
            let train = self.inner.train(index);
            let path = TrainPath::new(train.addresses, train.ecn);
            for datagram in train.bytes.chunks(train.segment_size.max(1)) {
                self.rx.on_datagram(self.now, path, datagram);
            }
        }
        self.rx.release(self.now);
        Ok(self.rx.ready.len())
    }

    fn train(&mut self, index: usize) -> Train<'_> {
        self.rx.ready.train(index)
    }
}

impl<P: Port> PacketSink for FaultInjector<P> {
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        debug_assert!(self.open.path.is_none(), "one train is open at a time");
        let capacity = (MAX_TRAIN_BYTES / segment_size.max(1)).min(MAX_TRAIN_SEGMENTS);
        if capacity == 0 || self.tx.ready.size() > MAX_QUEUED_BYTES {
            return None;
        }
        self.open.bytes.resize(capacity * segment_size, 0);
        self.open = Open {
            path: Some(path),
            segment_size,
            packets: 0,
            end: 0,
            bytes: std::mem::take(&mut self.open.bytes),
        };
        Some(capacity)
    }

    fn room(&mut self) -> &mut [u8] {
        let start = self.open.packets * self.open.segment_size;
        &mut self.open.bytes[start..start + self.open.segment_size]
    }

    fn push(&mut self, len: usize) {
        debug_assert!(len >= 1 && len <= self.open.segment_size);
        self.open.end = self.open.packets * self.open.segment_size + len;
        self.open.packets += 1;
    }

    fn packet(&mut self, index: usize) -> &mut [u8] {
        let start = index * self.open.segment_size;
        let end = (start + self.open.segment_size).min(self.open.end);
        &mut self.open.bytes[start..end]
    }

    fn end(&mut self) {
        let Some(path) = self.open.path.take() else { return };
        for packet in self.open.bytes[..self.open.end].chunks(self.open.segment_size) {
            self.tx.on_datagram(self.now, path, packet);
        }
    }
}

impl<P: Port> Tx for FaultInjector<P> {
    fn flush(&mut self) -> io::Result<()> {
        self.tx.release(self.now);
        self.forward();
        self.inner.flush()?;
        if !self.tx.ready.is_empty() {
            // The port below was full; the flush may have made room.
            self.forward();
            self.inner.flush()?;
        }
        Ok(())
    }
}

impl<P: Port> Port for FaultInjector<P> {
    fn now(&mut self) -> Instant {
        self.now = self.inner.now();
        self.now
    }

    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let releases = [self.rx.held.next_at(), self.tx.held.next_at()];
        let earliest = releases.into_iter().chain([deadline]).flatten().min();
        self.inner.wait(earliest)
    }

    datapath::ask_inner!();

    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}

#[cfg(test)]
mod tests;
