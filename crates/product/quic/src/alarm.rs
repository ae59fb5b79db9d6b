//! How a handle ends the sleep of the driver.

#[cfg(feature = "tokio")]
use core::task::Waker;
#[cfg(feature = "tokio")]
use std::sync::{Mutex, PoisonError};

/// What wakes the driver.
#[derive(Debug)]
pub(crate) enum Alarm {
    /// The data path's wait, in a thread or a loop of the program's own.
    Port(Option<datapath::Waker>),
    /// The task that the driver is. Handles on its thread wake it without a system call.
    #[cfg(feature = "tokio")]
    Task(Mutex<Option<Waker>>),
}

impl Alarm {
    /// Of a driver that will be a task.
    #[cfg(feature = "tokio")]
    pub(crate) fn of_task() -> Alarm {
        Alarm::Task(Mutex::default())
    }

    /// The driver's task is polled with this waker.
    #[cfg(feature = "tokio")]
    pub(crate) fn set_task(&self, waker: &Waker) {
        if let Alarm::Task(task) = self {
            let mut task = task.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *task {
                Some(known) => known.clone_from(waker),
                None => *task = Some(waker.clone()),
            }
        }
    }

    pub(crate) fn ring(&self) {
        match self {
            Alarm::Port(waker) => {
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            #[cfg(feature = "tokio")]
            Alarm::Task(task) => {
                let task = task.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(waker) = task {
                    waker.wake();
                }
            }
        }
    }
}
