//! The order to stop, from any thread to one that serves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

/// Rung once, heard at once. Clones are the same bell.
#[derive(Clone, Debug, Default)]
pub struct Bell(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_rung: AtomicBool,
    listener: Mutex<Option<Waker>>,
}

impl Bell {
    /// Tells the thread to stop.
    pub fn ring(&self) {
        self.0.is_rung.store(true, Ordering::Release);
        let listener = self.0.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = listener {
            waker.wake();
        }
    }

    /// Whether it was rung; if not, `waker` is called when it is.
    pub(super) fn is_rung(&self, waker: &Waker) -> bool {
        // The lock orders this with `ring`: either the flag is seen here, or the waker there.
        let mut listener = self.0.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if !listener.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *listener = Some(waker.clone());
        }
        self.0.is_rung.load(Ordering::Acquire)
    }
}
