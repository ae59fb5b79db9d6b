//! Connections that shall act in the worker's next turn, because a handle has something for them.
//!
//! Invariant: a connection is in the list once (`State::is_called`), so the number of connections bounds the list.

use crate::alarm::Alarm;
use base::slab::Handle;
use worker::CallList;

/// A worker's list of connections that shall act.
#[derive(Debug)]
pub(crate) struct Calls {
    list: CallList,
    alarm: Alarm,
}

impl Calls {
    /// `alarm` ends the worker's sleep.
    pub(crate) fn new(alarm: Alarm) -> Calls {
        Calls { list: CallList::default(), alarm }
    }

    /// The connection shall act in the next turn.
    pub(crate) fn push(&self, connection: Handle) {
        if self.list.push(connection) {
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
        self.list.take(called);
    }
}
