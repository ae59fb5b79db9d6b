//! What the threads of a run share: when all are ready, when measuring began, how far each is.
//!
//! Nothing here is touched for a request; a thread looks while it waits for the others, at its ticks, and at the end.

use super::record::Record;
use super::times::ProcessTimes;
use base::time::Instant;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Shared by the threads of one run.
#[derive(Debug)]
pub(super) struct Stage {
    threads: usize,
    arrived: AtomicUsize,
    /// Nanoseconds of the ports' clock; 0 before the start.
    start: AtomicU64,
    measuring: AtomicBool,
    server: Option<u32>,
    samples: Mutex<[Option<ProcessTimes>; 2]>,
    /// One for each thread, when somebody watches.
    boards: Vec<Mutex<Option<Record>>>,
    watched: bool,
}

/// Whether somebody wants to see how far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watching {
    /// Somebody does.
    Yes,
    /// Nobody does.
    No,
}

impl Stage {
    /// For so many threads. `server` is the process whose CPU time is taken at the beginning and at the end.
    pub(super) fn new(threads: usize, server: Option<u32>, watching: Watching) -> Stage {
        Stage {
            threads,
            arrived: AtomicUsize::new(0),
            start: AtomicU64::new(0),
            measuring: AtomicBool::new(false),
            server,
            samples: Mutex::new([None, None]),
            boards: (0..threads).map(|_| Mutex::new(None)).collect(),
            watched: watching == Watching::Yes,
        }
    }

    /// A thread is ready, or will never be. The last one to arrive starts them all.
    pub(super) fn arrive(&self, now: Instant) {
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.start.store(now.as_nanos().max(1), Ordering::Release);
        }
    }

    /// When all began; `None` before.
    pub(super) fn start(&self) -> Option<Instant> {
        Some(self.start.load(Ordering::Acquire)).filter(|at| *at > 0).map(Instant::from_nanos)
    }

    /// A thread begins to measure; the first one looks at the server.
    pub(super) fn on_measuring(&self) {
        if !self.measuring.swap(true, Ordering::AcqRel) {
            self.sample(0);
        }
    }

    /// A thread is done; the last one's look at the server counts.
    pub(super) fn on_done(&self) {
        self.sample(1);
    }

    fn sample(&self, place: usize) {
        let times = self.server.and_then(ProcessTimes::of);
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sample) = samples.get_mut(place) {
            *sample = times;
        }
    }

    /// The server at the beginning and at the end.
    pub(super) fn take_samples(&self) -> [Option<ProcessTimes>; 2] {
        core::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Shows how far thread `index` is, if somebody watches.
    pub(super) fn show(&self, index: usize, record: impl FnOnce() -> Record) {
        if self.watched
            && let Some(board) = self.boards.get(index)
        {
            *board.lock().unwrap_or_else(PoisonError::into_inner) = Some(record());
        }
    }

    /// How far all are; `None` before any has measured anything.
    pub(super) fn seen(&self) -> Option<Record> {
        let mut all: Option<Record> = None;
        for board in &self.boards {
            if let Some(record) = &*board.lock().unwrap_or_else(PoisonError::into_inner) {
                all.get_or_insert_with(Record::new).merge(record);
            }
        }
        all
    }
}
