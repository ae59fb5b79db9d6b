//! Middleware that holds every datagram that arrives for a fixed time: a longer path without a link emulator. For measurements on
//! a machine whose cores are all taken by the two ends.
//!
//! Trains stay trains: one is copied once, into a *chunk* that several trains share, and lent from there when its time has come.
//! Chunks are taken and given back in order, and the one that was given back last is used first, so that memory in use is what a
//! delay's worth of traffic needs and stays in the caches that it fits in.
//!
//! Invariants: trains lie in `queue` in the order of their arrival, the first `ready` of them lent to the layer above; every
//! chunk before that of the first train is spare. What is held is bounded, by bytes and by trains; more is dropped and
//! counted as overflow.
//!
//! The time is that of the last `now`, as a worker asks once per turn; a train is held from the turn that took it in. The release of
//! held trains wakes `wait`, so the worker must sleep there and not in a loop of its own.
//!
//! Rejected: to hold what leaves (the pacer and the round-trip samples of the sender would see another clock), and to hold datagrams one
//! by one as the fault injector does (an allocation each).

use std::collections::VecDeque;
use std::io;

use base::net::{Addresses, Ecn, Train};
use base::sink::{PacketSink, TrainPath};
use base::time::{Duration, Instant};

use datapath::{Counters, Port, Rx, Tx};

/// Bytes of a chunk: a few of the largest trains.
const CHUNK: usize = 256 << 10;
/// Chunks in use at most: 64 MiB.
const MAX_CHUNKS: usize = 256;
/// Trains held at most.
const MAX_TRAINS: usize = 1 << 16;
/// Trains that one `poll` hands up at most.
const MAX_READY: usize = 64;

/// A train that waits.
#[derive(Clone, Copy, Debug)]
struct Held {
    release_at: Instant,
    /// The chunk's number, counted from the first one ever.
    chunk: u64,
    start: usize,
    end: usize,
    segment_size: usize,
    addresses: Addresses,
    ecn: Ecn,
}

#[derive(Debug)]
struct Chunk {
    bytes: Box<[u8]>,
    used: usize,
}

/// Trains in the order of their arrival, and their memory.
#[derive(Debug, Default)]
struct HeldTrains {
    queue: VecDeque<Held>,
    chunks: VecDeque<Chunk>,
    /// The number of the first chunk in use.
    first_chunk: u64,
    spare: Vec<Box<[u8]>>,
}

impl HeldTrains {
    /// Takes a copy. Returns whether there was room.
    fn put(&mut self, train: &Train<'_>, release_at: Instant) -> bool {
        let len = train.bytes.len();
        if self.queue.len() >= MAX_TRAINS || len > CHUNK || !self.make_room(len) {
            return false;
        }
        let chunk = self.first_chunk + self.chunks.len() as u64 - 1;
        let Some(last) = self.chunks.back_mut() else { return false };
        let (start, end) = (last.used, last.used + len);
        last.bytes[start..end].copy_from_slice(train.bytes);
        last.used = end;
        let Train { segment_size, addresses, ecn, .. } = *train;
        self.queue.push_back(Held { release_at, chunk, start, end, segment_size, addresses, ecn });
        true
    }

    /// Sees to it that the last chunk takes `len` bytes more.
    fn make_room(&mut self, len: usize) -> bool {
        if self.chunks.back().is_some_and(|last| last.used + len <= CHUNK) {
            return true;
        }
        if self.chunks.len() >= MAX_CHUNKS {
            return false;
        }
        let bytes = self.spare.pop().unwrap_or_else(|| vec![0; CHUNK].into_boxed_slice());
        self.chunks.push_back(Chunk { bytes, used: 0 });
        true
    }

    /// Forgets the first `trains` trains.
    fn drop_front(&mut self, trains: usize) {
        self.queue.drain(..trains.min(self.queue.len()));
        let Some(first) = self.queue.front() else {
            // Nothing is held: the memory that was written last is used again.
            while self.chunks.len() > 1 {
                self.recycle_first();
            }
            self.chunks.iter_mut().for_each(|chunk| chunk.used = 0);
            return;
        };
        let needed = first.chunk;
        while self.first_chunk < needed && !self.chunks.is_empty() {
            self.recycle_first();
        }
    }

    fn recycle_first(&mut self) {
        self.spare.extend(self.chunks.pop_front().map(|chunk| chunk.bytes));
        self.first_chunk += 1;
    }

    fn train(&mut self, index: usize) -> Train<'_> {
        let Held { chunk, start, end, segment_size, addresses, ecn, .. } = self.queue[index];
        let chunk = &mut self.chunks[(chunk - self.first_chunk) as usize];
        Train { bytes: &mut chunk.bytes[start..end], segment_size, addresses, ecn }
    }
}

/// A port whose datagrams arrive later.
#[derive(Debug)]
pub struct Hold<P> {
    inner: P,
    delay: Duration,
    shelf: HeldTrains,
    /// Trains at the front that are lent at present.
    ready: usize,
    /// Whether the port below may have more that has arrived.
    may_have_more: bool,
    now: Instant,
    dropped: u64,
}

impl<P: Port> Hold<P> {
    /// Wraps `inner`: what arrives there is handed up `delay` later.
    pub fn new(mut inner: P, delay: Duration) -> Hold<P> {
        let now = inner.now();
        Hold { inner, delay, shelf: HeldTrains::default(), ready: 0, may_have_more: false, now, dropped: 0 }
    }

    /// The port below.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// Datagrams for which there was no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl<P: Port> Rx for Hold<P> {
    fn poll(&mut self) -> io::Result<usize> {
        self.shelf.drop_front(core::mem::take(&mut self.ready));
        let arrived = self.inner.poll()?;
        self.may_have_more = arrived > 0;
        for index in 0..arrived {
            let train = self.inner.train(index);
            if !self.shelf.put(&train, self.now + self.delay) {
                self.dropped += train.bytes.len().div_ceil(train.segment_size.max(1)) as u64;
            }
        }
        let due = self.shelf.queue.iter().take(MAX_READY);
        self.ready = due.take_while(|held| held.release_at <= self.now).count();
        Ok(self.ready)
    }

    #[inline]
    fn train(&mut self, index: usize) -> Train<'_> {
        debug_assert!(index < self.ready, "not ready yet");
        self.shelf.train(index)
    }
}

impl<P: Port> PacketSink for Hold<P> {
    #[inline]
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        self.inner.begin(path, segment_size)
    }

    #[inline]
    fn room(&mut self) -> &mut [u8] {
        self.inner.room()
    }

    #[inline]
    fn push(&mut self, len: usize) {
        self.inner.push(len);
    }

    #[inline]
    fn packet(&mut self, index: usize) -> &mut [u8] {
        self.inner.packet(index)
    }

    #[inline]
    fn end(&mut self) {
        self.inner.end();
    }
}

impl<P: Port> Tx for Hold<P> {
    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<P: Port> Port for Hold<P> {
    fn now(&mut self) -> Instant {
        self.now = self.inner.now();
        self.now
    }

    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        if self.may_have_more {
            return Ok(());
        }
        let release = self.shelf.queue.get(self.ready).map(|held| held.release_at);
        self.inner.wait(release.into_iter().chain(deadline).min())
    }

    datapath::ask_inner!();

    fn counters(&self) -> Counters {
        let mut counters = self.inner.counters();
        counters.rx.overflowed += self.dropped;
        counters
    }
}

#[cfg(test)]
mod tests;
