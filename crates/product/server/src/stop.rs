//! The order to end a server, and what it wakes.

use crate::tcp::ShutdownSignal;
use datapath::Waker;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// How far the order goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    Serving,
    /// The requests under way are answered.
    Draining,
    /// Everything closes.
    Over,
}

/// The order to end, and the threads that it wakes. Clones are the same.
#[derive(Clone)]
pub struct Stop(Arc<Shared>);

struct Shared {
    phase: AtomicU8,
    wakers: Vec<Waker>,
    shutdown_signals: Vec<ShutdownSignal>,
}

impl fmt::Debug for Stop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stop").field("phase", &self.0.phase).finish_non_exhaustive()
    }
}

impl Stop {
    /// An order for workers, which `wakers` wake, and for `tcp_threads` threads of TCP.
    pub fn new(wakers: Vec<Waker>, tcp_threads: usize) -> Stop {
        let shutdown_signals = (0..tcp_threads).map(|_| ShutdownSignal::default()).collect();
        Stop(Arc::new(Shared { phase: AtomicU8::new(Phase::Serving as u8), wakers, shutdown_signals }))
    }

    /// Orders the end in good order.
    pub fn drain(&self) {
        self.order(Phase::Draining);
    }

    /// Whether any order was given.
    #[inline]
    pub fn is_ordered(&self) -> bool {
        self.has_reached(Phase::Draining)
    }

    /// Orders it. A stricter order stays.
    pub(crate) fn order(&self, phase: Phase) {
        self.0.phase.fetch_max(phase as u8, Ordering::AcqRel);
        self.0.wakers.iter().for_each(Waker::wake);
        let tell = match phase {
            Phase::Over => ShutdownSignal::abort,
            Phase::Serving | Phase::Draining => ShutdownSignal::shut_down,
        };
        self.0.shutdown_signals.iter().for_each(tell);
    }

    /// Wakes all threads, so that they look at what they are asked.
    pub(crate) fn wake(&self) {
        self.0.wakers.iter().for_each(Waker::wake);
        self.0.shutdown_signals.iter().for_each(ShutdownSignal::wake);
    }

    #[inline]
    pub(crate) fn has_reached(&self, phase: Phase) -> bool {
        self.0.phase.load(Ordering::Acquire) >= phase as u8
    }

    /// The signals of the threads of TCP, in their order.
    pub(crate) fn shutdown_signals(&self) -> &[ShutdownSignal] {
        &self.0.shutdown_signals
    }
}
