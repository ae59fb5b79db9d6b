//! Middleware that makes any port as bad as a network: it drops, duplicates, corrupts and delays datagrams.
//!
//! Every direction is a lane: datagrams enter one by one, chance decides what happens to each, survivors are rebuilt into
//! trains and go on. A delayed datagram is held until its time and so overtaken by those behind it. All chance comes from
//! a seeded generator and all time from the port below, hence a run over a virtual port replays exactly. The same number
//! of draws is made for every datagram, so that raising one probability does not reshuffle the others.
//!
//! It copies and, for held datagrams, allocates; it is for tests and diagnosis, not for speed.

use std::io;

use base::net::Train;
use base::rng::Rng;
use base::sink::{PacketSink, TrainPath};
use base::time::{Duration, Instant};

use crate::port::{Counters, Port, Rx, Tx};
use crate::trains::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS, TrainQueue};

/// Outgoing bytes that may wait for the port below before `begin` refuses.
const MAX_QUEUED_BYTES: usize = 1 << 20;
/// Delayed datagrams per direction; with more, none is delayed.
const MAX_HELD: usize = 4096;

/// How bad one direction is. Probabilities are per datagram, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Lost.
    pub drop_ppm: u32,
    /// Delivered twice.
    pub duplicate_ppm: u32,
    /// One byte changed.
    pub corrupt_ppm: u32,
    /// Held back for up to `reorder_delay`.
    pub reorder_ppm: u32,
    /// The longest time that a datagram is held back.
    pub reorder_delay: Duration,
}

/// What was done to one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounters {
    /// Datagrams lost.
    pub dropped: u64,
    /// Datagrams delivered twice.
    pub duplicated: u64,
    /// Datagrams with a changed byte.
    pub corrupted: u64,
    /// Datagrams held back.
    pub reordered: u64,
}

#[derive(Debug)]
struct Held {
    release_at: Instant,
    path: TrainPath,
    bytes: Vec<u8>,
}

/// One direction.
#[derive(Debug)]
struct FaultDirection {
    faults: Faults,
    rng: Rng,
    held: Vec<Held>,
    ready: TrainQueue,
    counters: FaultCounters,
}

impl FaultDirection {
    fn new(faults: Faults, rng: Rng) -> FaultDirection {
        let (held, ready) = (Vec::new(), TrainQueue::new());
        FaultDirection { faults, rng, held, ready, counters: FaultCounters::default() }
    }

    fn chance(&mut self, ppm: u32) -> bool {
        self.rng.below(1_000_000) < u64::from(ppm)
    }

    fn on_datagram(&mut self, now: Instant, path: &TrainPath, datagram: &[u8]) {
        let drop = self.chance(self.faults.drop_ppm);
        let duplicate = self.chance(self.faults.duplicate_ppm);
        let corrupt = self.chance(self.faults.corrupt_ppm);
        let reorder = self.chance(self.faults.reorder_ppm);
        let (place, change, delay) = (self.rng.next_u64(), self.rng.next_u64(), self.rng.next_u64());
        if drop {
            self.counters.dropped += 1;
            return;
        }
        if duplicate {
            self.counters.duplicated += 1;
            self.ready.push(path, datagram);
        }
        let bytes = if reorder && self.held.len() < MAX_HELD {
            self.counters.reordered += 1;
            let delay = Duration::from_nanos(scaled(delay, self.faults.reorder_delay.as_nanos()));
            self.held.push(Held { release_at: now + delay, path: *path, bytes: datagram.to_vec() });
            self.held.last_mut().map_or(&mut [][..], |held| &mut held.bytes)
        } else {
            self.ready.push(path, datagram);
            self.ready.newest_mut(datagram.len())
        };
        if corrupt {
            self.counters.corrupted += 1;
            let place = scaled(place, datagram.len() as u64) as usize;
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 1 + scaled(change, 255) as u8;
            }
        }
    }

    /// Moves held datagrams whose time has come to `ready`, earliest first.
    fn release(&mut self, now: Instant) {
        while let Some((index, _)) = self
            .held
            .iter()
            .enumerate()
            .filter(|(_, held)| held.release_at <= now)
            .min_by_key(|(_, held)| held.release_at)
        {
            let held = self.held.remove(index);
            self.ready.push(&held.path, &held.bytes);
        }
    }

    fn next_release(&self) -> Option<Instant> {
        self.held.iter().map(|held| held.release_at).min()
    }
}

/// A number below `bound` from 64 random bits.
fn scaled(random: u64, bound: u64) -> u64 {
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
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

/// A port that treats datagrams badly.
#[derive(Debug)]
pub struct FaultInjector<P> {
    inner: P,
    rx: FaultDirection,
    tx: FaultDirection,
    open: Open,
    now: Instant,
}

impl<P: Port> FaultInjector<P> {
    /// Wraps `inner`; `rx` happens to what arrives, `tx` to what leaves.
    pub fn new(mut inner: P, rx: Faults, tx: Faults, seed: u64) -> FaultInjector<P> {
        let mut rng = Rng::from_u64(seed);
        let now = inner.now();
        let (rx, tx) = (FaultDirection::new(rx, rng.fork()), FaultDirection::new(tx, rng.fork()));
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

    /// What was done to arriving and to leaving datagrams.
    pub fn fault_counters(&self) -> (FaultCounters, FaultCounters) {
        (self.rx.counters, self.tx.counters)
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
                self.rx.on_datagram(self.now, &path, datagram);
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
            self.tx.on_datagram(self.now, &path, packet);
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
        let releases = [self.rx.next_release(), self.tx.next_release()];
        let earliest = releases.into_iter().chain([deadline]).flatten().min();
        self.inner.wait(earliest)
    }

    crate::port::ask_inner!();

    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}

#[cfg(test)]
mod tests;
