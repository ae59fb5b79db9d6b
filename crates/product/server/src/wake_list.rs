//! Other threads wake a connection on its worker when its result is ready.
//!
//! A connection that waits makes a [`WakeHandle`], which can be made many times and is in the worker's list once.

use base::slab::Handle;
use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use worker::CallList;

/// Ends a worker's sleep.
pub type WakeWorker = Box<dyn Fn() + Send + Sync>;

/// Connections of one worker that are called.
#[derive(Default)]
pub(crate) struct WakeList {
    list: CallList,
    wake: Option<WakeWorker>,
}

impl fmt::Debug for WakeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").field("list", &self.list).finish_non_exhaustive()
    }
}

impl WakeList {
    pub(crate) fn new(wake: WakeWorker) -> WakeList {
        WakeList { wake: Some(wake), ..WakeList::default() }
    }

    /// Whether a call ends the worker's sleep.
    pub(crate) fn wakes(&self) -> bool {
        self.wake.is_some()
    }

    /// Moves those that were woken to `handles`.
    #[inline]
    pub(crate) fn take(&self, handles: &mut Vec<Handle>) {
        self.list.take(handles);
    }

    fn add(&self, handle: Handle) {
        if self.list.push(handle)
            && let Some(wake) = &self.wake
        {
            wake();
        }
    }
}

/// One connection's.
#[derive(Debug)]
struct WakeHandle {
    /// `None` where it is not known: the connection looks by itself.
    handle: Option<Handle>,
    is_made: AtomicBool,
    /// The connection acts in this turn, and looks at the end whether the call was made.
    is_acting: AtomicBool,
    wake_list: Arc<WakeList>,
}

impl WakeHandle {
    fn new(handle: Option<Handle>, wake_list: &Arc<WakeList>) -> Arc<WakeHandle> {
        Arc::new(WakeHandle {
            handle,
            is_made: AtomicBool::new(false),
            is_acting: AtomicBool::new(false),
            wake_list: Arc::clone(wake_list),
        })
    }

    fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// Whether it was made since the last look.
    fn take(&self) -> bool {
        self.is_made.load(Ordering::Relaxed) && self.is_made.swap(false, Ordering::AcqRel)
    }

    /// Whether the worker calls the connection when it is made.
    fn reaches(&self) -> bool {
        self.handle.is_some() && self.wake_list.wakes()
    }
}

impl Wake for WakeHandle {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// In the order that [`ConnectionCall::on_acted`] needs: it sees the call, or is seen to be over.
    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_made.swap(true, Ordering::SeqCst)
            && !self.is_acting.load(Ordering::SeqCst)
            && let Some(handle) = self.handle
        {
            self.wake_list.add(handle);
        }
    }
}

/// How what one connection waits for calls it back.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCall {
    handle: Option<Handle>,
    /// Made when it is first waited for.
    call: OnceCell<Arc<WakeHandle>>,
}

impl ConnectionCall {
    /// The connection is kept under `handle`.
    pub(crate) fn on_slot(&mut self, handle: Handle) {
        self.handle = Some(handle);
    }

    /// `None` where it is not known.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.handle
    }

    /// WakeList the connection when it is woken.
    pub(crate) fn waker(&self, wake_list: &Arc<WakeList>) -> Waker {
        self.call.get_or_init(|| WakeHandle::new(self.handle, wake_list)).waker()
    }

    /// The connection will act in this turn: a call needs no lock and ends no sleep, as when bytes that arrive wake their reader.
    #[inline]
    pub(crate) fn on_active(&self) {
        if let Some(call) = self.call.get() {
            call.is_acting.store(true, Ordering::Relaxed);
        }
    }

    /// The connection has acted. Whether it was called meanwhile, so that it must act again.
    #[inline]
    pub(crate) fn on_acted(&self) -> bool {
        self.call.get().is_some_and(|call| {
            call.is_acting.store(false, Ordering::SeqCst);
            call.is_made.load(Ordering::SeqCst)
        })
    }

    /// Whether the connection was called since the last look.
    pub(crate) fn take_made(&self) -> bool {
        self.call.get().is_some_and(|call| call.take())
    }

    /// Whether the worker is woken when something comes.
    pub(crate) fn calls_back(&self) -> bool {
        self.call.get().is_some_and(|call| call.reaches())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::slab::Slab;
    use std::sync::Mutex;

    /// Deleted, what a connection waits for could come and not be looked at; or each chunk of an upload could cost a system call.
    #[test]
    fn a_call_wakes_the_worker_unless_the_connection_acts_and_is_never_lost() {
        let woken = Arc::new(Mutex::new(0));
        let ours = Arc::clone(&woken);
        let wake_list = Arc::new(WakeList::new(Box::new(move || *ours.lock().unwrap() += 1)));
        let mut connection = ConnectionCall::default();
        connection.on_slot(Slab::<()>::new().next_handle());
        let waker = connection.waker(&wake_list);
        let called = || {
            let mut handles = Vec::new();
            wake_list.take(&mut handles);
            (handles.len(), std::mem::take(&mut *woken.lock().unwrap()))
        };
        waker.wake_by_ref();
        waker.wake_by_ref();
        assert_eq!(called(), (1, 1), "once, however often it is made");
        assert!(connection.take_made() && !connection.take_made());
        // Between the arrival of bytes and the end of the turn.
        connection.on_active();
        waker.wake_by_ref();
        assert_eq!(called(), (0, 0));
        assert!(connection.take_made());
        assert!(!connection.on_acted());
        connection.on_active();
        assert!(!connection.take_made());
        waker.wake_by_ref();
        assert!(connection.on_acted(), "it acts again");
        assert_eq!(called(), (0, 0));
        assert!(connection.take_made());
        waker.wake_by_ref();
        assert_eq!(called(), (1, 1));
    }
}
