//! The counters of a server while it runs: each thread publishes its own.

use crate::served::Served;
use std::sync::{Arc, Mutex, PoisonError};
use transport::EndpointCounters;

/// What a server did: a moment ago by [`crate::Handle::counters`], in all by [`crate::Summary::counters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Over HTTP/1.1.
    pub http1: Served,
    /// Over HTTP/2.
    pub http2: Served,
    /// Over HTTP/3.
    pub http3: Served,
    /// Connections that were refused because of [`crate::Limits`], over TCP and QUIC.
    pub refused: u64,
}

impl Counters {
    pub(crate) fn of_worker(http3: Served, endpoint: &EndpointCounters) -> Counters {
        Counters { http3, refused: endpoint.refused_connections, ..Counters::default() }
    }
}

impl core::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.http1 += other.http1;
        self.http2 += other.http2;
        self.http3 += other.http3;
        self.refused += other.refused;
    }
}

/// The counters of all threads, as they last said. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct CounterBoard(Arc<[Mutex<Counters>]>);

impl CounterBoard {
    pub(crate) fn new(threads: usize) -> CounterBoard {
        CounterBoard((0..threads).map(|_| Mutex::default()).collect())
    }

    fn publish(&self, index: usize, counters: Counters) {
        if let Some(entry) = self.0.get(index) {
            *entry.lock().unwrap_or_else(PoisonError::into_inner) = counters;
        }
    }

    /// Where a thread publishes.
    pub(crate) fn entry(&self, index: usize) -> BoardEntry {
        BoardEntry { board: self.clone(), index }
    }

    pub(crate) fn sum(&self) -> Counters {
        let mut sum = Counters::default();
        self.0.iter().for_each(|entry| sum += *entry.lock().unwrap_or_else(PoisonError::into_inner));
        sum
    }
}

/// Where one thread publishes its counters.
#[derive(Clone, Debug, Default)]
pub struct BoardEntry {
    board: CounterBoard,
    index: usize,
}

impl BoardEntry {
    /// What the thread did so far. To be called seldom: it takes a lock.
    pub(crate) fn publish(&self, counters: Counters) {
        self.board.publish(self.index, counters);
    }
}
