//! What ends the sleep of the thread that drives the worker.
//!
//! Most that makes a worker act happens on its own thread: a task that it wakes there costs no system call, because the driver
//! looks at the flag before it sleeps. From other threads it is the waker of the port.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

thread_local! {
    /// The address of the alarm whose worker this thread drives.
    static DRIVEN: Cell<usize> = const { Cell::new(0) };
}

/// One worker's alarm.
#[derive(Debug)]
pub(super) struct Alarm {
    port: Option<datapath::Waker>,
    /// Raised on the thread of the driver.
    is_raised: AtomicBool,
}

impl Alarm {
    pub(super) fn new(port: Option<datapath::Waker>) -> Arc<Alarm> {
        Arc::new(Alarm { port, is_raised: AtomicBool::new(false) })
    }

    /// Ends the sleep of the driver, or prevents the next one. What it shall find then must be there before.
    pub(super) fn raise(&self) {
        if self.is_driven_here() {
            self.is_raised.store(true, Ordering::Relaxed);
        } else {
            self.port.iter().for_each(datapath::Waker::wake);
        }
    }

    fn is_driven_here(&self) -> bool {
        DRIVEN.get() == ptr::from_ref(self).addr()
    }

    /// Whether it was raised on this thread since the last call. To be called by the driver before a turn, which serves what was
    /// raised until then, and before it sleeps.
    pub(super) fn take(&self) -> bool {
        self.is_raised.swap(false, Ordering::Relaxed)
    }

    /// This thread drives the worker until what is returned is dropped.
    pub(super) fn drive(&self) -> Driving {
        Driving(DRIVEN.replace(ptr::from_ref(self).addr()))
    }
}

/// For as long as a thread drives a worker.
pub(super) struct Driving(usize);

impl Drop for Driving {
    fn drop(&mut self) {
        DRIVEN.set(self.0);
    }
}

/// Wakes a future that the driver polls.
pub(super) struct FutureAlarm {
    alarm: Arc<Alarm>,
    is_woken: AtomicBool,
}

impl FutureAlarm {
    /// The future is to be polled once.
    pub(super) fn new(alarm: &Arc<Alarm>) -> Arc<FutureAlarm> {
        Arc::new(FutureAlarm { alarm: Arc::clone(alarm), is_woken: AtomicBool::new(true) })
    }

    /// Whether the future was woken and not polled.
    pub(super) fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Acquire)
    }

    /// Whether the future was woken since the last call.
    pub(super) fn take(&self) -> bool {
        self.is_woken() && self.is_woken.swap(false, Ordering::AcqRel)
    }
}

impl Wake for FutureAlarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) && !self.alarm.is_driven_here() {
            self.alarm.raise();
        }
    }
}
