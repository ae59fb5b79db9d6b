//! How handles on other threads make a connection act in the worker's next turn.

use super::alarm::Alarm;
use base::slab::Handle;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Wake;
use worker::CallList;

/// A worker's list of connections that shall act, and what ends its sleep.
#[derive(Debug)]
pub(super) struct Calls {
    list: CallList,
    alarm: Arc<Alarm>,
}

impl Calls {
    pub(super) fn new(alarm: Arc<Alarm>) -> Calls {
        Calls { list: CallList::default(), alarm }
    }

    /// Moves the list to the end of `called`.
    #[inline]
    pub(super) fn take(&self, called: &mut Vec<Handle>) {
        self.list.take(called);
    }
}

/// One connection's. Invariant: it is in the list once, because it is marked until the connection has looked.
#[derive(Debug)]
pub(super) struct Call {
    slot: OnceLock<Handle>,
    is_made: AtomicBool,
    calls: Arc<Calls>,
}

impl Call {
    pub(super) fn new(calls: Arc<Calls>) -> Arc<Call> {
        Arc::new(Call { slot: OnceLock::new(), is_made: AtomicBool::new(false), calls })
    }

    /// The worker keeps the connection here. It acts in the turn that follows, so an earlier call is not lost.
    pub(super) fn set_slot(&self, slot: Handle) {
        let _ = self.slot.set(slot);
    }

    /// Whether it was made since the last look.
    pub(super) fn take(&self) -> bool {
        self.is_made.load(Ordering::Relaxed) && self.is_made.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_made.swap(true, Ordering::AcqRel)
            && let Some(slot) = self.slot.get()
            && self.calls.list.push(*slot)
        {
            self.calls.alarm.raise();
        }
    }
}
