//! A shutdown signal, sent from any thread to a thread that serves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

/// An order to stop. Clones share one order.
#[derive(Clone, Debug, Default)]
pub struct ShutdownSignal(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    has_left: AtomicBool,
    is_shut_down: AtomicBool,
    is_aborted: AtomicBool,
    listener: Mutex<Option<Waker>>,
}

impl ShutdownSignal {
    /// Tells the thread to close all connections now, and to stop.
    pub fn abort(&self) {
        self.0.is_aborted.store(true, Ordering::Release);
        self.shut_down();
    }

    /// Tells the thread that another process takes new connections: it answers what is asked, and stops.
    pub(crate) fn leave(&self) {
        self.0.has_left.store(true, Ordering::Release);
        self.wake();
    }

    /// Tells the thread to stop.
    pub fn shut_down(&self) {
        self.0.is_shut_down.store(true, Ordering::Release);
        self.wake();
    }

    /// Has the thread look.
    pub fn wake(&self) {
        let listener = self.0.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = listener {
            waker.wake();
        }
    }

    /// Whether connections must not finish. To be asked after [`ShutdownSignal::is_shut_down`].
    pub(super) fn is_aborted(&self) -> bool {
        self.0.is_aborted.load(Ordering::Acquire)
    }

    /// Whether the thread takes no new connections. If it does, `waker` is called when that changes, and when it is to stop.
    pub(super) fn is_over(&self, waker: &Waker) -> bool {
        // The lock orders this with `shut_down`: either the flag is seen here, or the waker there.
        let mut listener = self.0.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if !listener.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *listener = Some(waker.clone());
        }
        self.is_shut_down() || self.0.has_left.load(Ordering::Acquire)
    }

    /// Whether it is to stop. To be asked after [`ShutdownSignal::is_over`].
    pub(crate) fn is_shut_down(&self) -> bool {
        self.0.is_shut_down.load(Ordering::Acquire)
    }
}
