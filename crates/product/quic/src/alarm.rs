//! How a handle ends the sleep of the driver.

#[cfg(feature = "tokio")]
use worker::task::TaskWaker;

/// What wakes the driver.
#[derive(Debug)]
pub(crate) enum Alarm {
    /// The data path's wait, in a thread or a loop of the program's own.
    Port(Option<datapath::Waker>),
    /// The task that the driver is.
    #[cfg(feature = "tokio")]
    Task(TaskWaker),
}

impl Alarm {
    /// Of a driver that will be a task.
    #[cfg(feature = "tokio")]
    pub(crate) fn of_task() -> Alarm {
        Alarm::Task(TaskWaker::default())
    }

    /// The driver's task is polled with this waker.
    #[cfg(feature = "tokio")]
    pub(crate) fn set_task(&self, waker: &core::task::Waker) {
        if let Alarm::Task(task) = self {
            task.set(waker);
        }
    }

    pub(crate) fn ring(&self) {
        match self {
            Alarm::Port(Some(waker)) => waker.wake(),
            Alarm::Port(None) => {}
            #[cfg(feature = "tokio")]
            Alarm::Task(task) => task.wake(),
        }
    }
}
