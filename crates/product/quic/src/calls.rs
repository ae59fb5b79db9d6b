//! Connections that shall act in the worker's next turn, because a handle has something for them.
//!
//! Data structure: a list behind a lock and a flag that says whether it holds anything. The worker looks at the flag once in
//! a turn and takes the lock only if it is set.
//!
//! Invariants: the flag is set and cleared under the lock only; the thread that sets it wakes the worker. A connection is in
//! the list once (`State::is_called`), so the number of connections bounds the list.

use crate::alarm::Alarm;
use base::slab::Handle;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A worker's list of connections that shall act.
#[derive(Debug)]
pub(crate) struct Calls {
    is_waiting: AtomicBool,
    list: Mutex<Vec<Handle>>,
    alarm: Alarm,
}

impl Calls {
    /// `alarm` ends the worker's sleep.
    pub(crate) fn new(alarm: Alarm) -> Calls {
        Calls { is_waiting: AtomicBool::new(false), list: Mutex::default(), alarm }
    }

    /// The connection shall act in the next turn.
    pub(crate) fn push(&self, connection: Handle) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.push(connection);
        let must_wake = !self.is_waiting.swap(true, Ordering::AcqRel);
        drop(list);
        if must_wake {
            self.alarm.ring();
        }
    }

    /// What ends the worker's sleep.
    pub(crate) fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// Moves the list to the end of `called`.
    #[inline]
    pub(crate) fn take(&self, called: &mut Vec<Handle>) {
        if self.is_waiting.load(Ordering::Acquire) {
            let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
            self.is_waiting.store(false, Ordering::Release);
            called.append(&mut list);
        }
    }
}
