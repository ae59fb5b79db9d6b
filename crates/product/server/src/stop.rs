//! The order to end a server, and what it wakes.

use crate::tcp::ShutdownSignal;
use datapath::Waker;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use wire::cid::ConnectionId;

/// How far the order goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    Serving,
    /// Workers take nothing in: another process is about to take the place of this one.
    Paused,
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
    /// Another process has the sockets.
    is_retired: AtomicBool,
    /// The server itself ends, and not this process alone.
    is_ended: AtomicBool,
    /// What workers that are paused have under way, by their numbers.
    paused: Mutex<Vec<(u8, Vec<ConnectionId>)>>,
    has_paused: Condvar,
}

/// How long workers have to pause.
const PATIENCE: Duration = Duration::from_secs(5);

impl fmt::Debug for Stop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stop").field("phase", &self.0.phase).finish_non_exhaustive()
    }
}

impl Stop {
    /// An order for workers, which `wakers` wake, and for `tcp_threads` threads of TCP.
    pub fn new(wakers: Vec<Waker>, tcp_threads: usize) -> Stop {
        let shutdown_signals = (0..tcp_threads).map(|_| ShutdownSignal::default()).collect();
        Stop(Arc::new(Shared {
            phase: AtomicU8::new(Phase::Serving as u8),
            wakers,
            shutdown_signals,
            is_retired: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            paused: Mutex::default(),
            has_paused: Condvar::new(),
        }))
    }

    /// Has the workers, of which there are `count`, take nothing in. Returns what they have under way; less, if one does not answer.
    pub(crate) fn pause(&self, count: usize) -> Vec<(u8, Vec<ConnectionId>)> {
        let mut paused = self.0.paused.lock().unwrap_or_else(PoisonError::into_inner);
        paused.clear();
        if !self.change(Phase::Serving, Phase::Paused) {
            return Vec::new();
        }
        self.0.wakers.iter().for_each(Waker::wake);
        let is_waiting = |paused: &mut Vec<_>| paused.len() < count;
        let waited = self.0.has_paused.wait_timeout_while(paused, PATIENCE, is_waiting);
        let (mut paused, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *paused)
    }

    /// A worker has paused.
    pub(crate) fn on_paused(&self, worker: u8, handshakes: Vec<ConnectionId>) {
        self.0.paused.lock().unwrap_or_else(PoisonError::into_inner).push((worker, handshakes));
        self.0.has_paused.notify_one();
    }

    /// Undoes [`Stop::pause`].
    pub(crate) fn resume(&self) {
        if self.change(Phase::Paused, Phase::Serving) {
            self.0.wakers.iter().for_each(Waker::wake);
        }
    }

    /// Another process has the sockets: orders the end in good order.
    pub(crate) fn retire(&self) {
        self.0.is_retired.store(true, Ordering::Release);
        self.0.phase.fetch_max(Phase::Draining as u8, Ordering::AcqRel);
        self.0.wakers.iter().for_each(Waker::wake);
        self.0.shutdown_signals.iter().for_each(ShutdownSignal::leave);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.0.is_retired.load(Ordering::Acquire)
    }

    /// Whether the server itself ends: what has no end of its own does not wait for one.
    pub(crate) fn is_ended(&self) -> bool {
        self.0.is_ended.load(Ordering::Acquire)
    }

    fn change(&self, from: Phase, to: Phase) -> bool {
        let change = self.0.phase.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire);
        change.is_ok()
    }

    /// How far the order goes.
    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        match self.0.phase.load(Ordering::Acquire) {
            0 => Phase::Serving,
            1 => Phase::Paused,
            2 => Phase::Draining,
            _ => Phase::Over,
        }
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
        self.0.is_ended.store(true, Ordering::Release);
        self.0.phase.fetch_max(phase as u8, Ordering::AcqRel);
        self.0.wakers.iter().for_each(Waker::wake);
        let tell = match phase {
            Phase::Over => ShutdownSignal::abort,
            Phase::Serving | Phase::Paused | Phase::Draining => ShutdownSignal::shut_down,
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
