//! Connections of a worker that another thread wants to act.
//!
//! Data structure: a list behind a lock and a flag that says whether it holds anything. The worker looks at the flag once in
//! a turn and takes the lock only if it is set.
//!
//! Invariant: the flag is set and cleared under the lock only, so that no call is lost.

use base::slab::Handle;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A worker's list of connections that are called, for [`App::take_called`](crate::App::take_called).
#[derive(Debug, Default)]
pub struct CallList {
    is_waiting: AtomicBool,
    list: Mutex<Vec<Handle>>,
}

impl CallList {
    /// Adds a connection. Whether the worker must be woken: it is if the list was empty. The caller bounds the list by adding
    /// a connection once until it has acted.
    #[must_use]
    pub fn push(&self, connection: Handle) -> bool {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.push(connection);
        !self.is_waiting.swap(true, Ordering::AcqRel)
    }

    /// Moves the list to the end of `called`.
    #[inline]
    pub fn take(&self, called: &mut Vec<Handle>) {
        if self.is_waiting.load(Ordering::Acquire) {
            let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
            self.is_waiting.store(false, Ordering::Release);
            called.append(&mut list);
        }
    }
}
