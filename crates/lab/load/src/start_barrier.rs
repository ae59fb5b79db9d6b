//! What the threads of a run share whatever they ask for: when all are ready, when measuring began, and the server's CPU time
//! at both ends.
//!
//! Nothing here is touched for a request. Threads look while they wait for each other; none blocks, because a thread that is ready must
//! still answer its server.

use base::time::Instant;
use cpu::times::{ProcessTimes, Times};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Shared by the threads of one run.
#[derive(Debug)]
pub(super) struct StartBarrier {
    threads: usize,
    arrived: AtomicUsize,
    /// Nanoseconds of the ports' clock; 0 before the start.
    start: AtomicU64,
    measuring: AtomicBool,
    server: Option<u32>,
    samples: Mutex<[Option<ProcessTimes>; 2]>,
}

impl StartBarrier {
    /// For this many threads. `server` is the process whose CPU time is taken at the beginning and at the end.
    pub(super) fn new(threads: usize, server: Option<u32>) -> StartBarrier {
        StartBarrier {
            threads,
            arrived: AtomicUsize::new(0),
            start: AtomicU64::new(0),
            measuring: AtomicBool::new(false),
            server,
            samples: Mutex::new([None, None]),
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

    /// What each of the server's threads used while measuring.
    pub(super) fn server_times(&self) -> Option<Vec<Times>> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let [Some(before), Some(after)] = &*samples else { return None };
        Some(after.since(before))
    }
}
