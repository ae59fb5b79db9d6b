//! A worker as a task of a tokio runtime: tokio sleeps, and the worker turns when the task is polled.
//!
//! A poll of the task is one turn. Then the task waits for its descriptors and for a timer of the kernel's (tokio's own timers round
//! up to a millisecond), or has itself polled again: by [`Waker::wake_by_ref`], behind the tasks that are ready, or by
//! [`yield_now`], which costs an `epoll_wait` without a wait and lets the root future and the descriptors of a current-thread
//! runtime have their turn too. By `wake_by_ref` alone such a runtime looks at them once for 61 tasks.
//!
//! `AsyncFd` is edge-triggered, and a turn may leave datagrams in the socket. So the task clears the readiness, then asks the
//! kernel once more before it sleeps: what came before is seen then, what comes later makes an edge.

use crate::app::App;
use crate::worker::Worker;
use base::time::Instant;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use datapath::Port;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::{Mutex, PoisonError};
use tokio::io::unix::AsyncFd;

/// Descriptors of a data path that a task can wait for, its waker among them.
const MAX_WATCHED: usize = 32;
/// As many as most data paths have. To ask about more of them costs longer arrays.
const FEW: usize = 4;

/// Wakes the task that a worker is. On the worker's thread that costs no system call.
#[derive(Debug, Default)]
pub struct TaskWaker(Mutex<Option<Waker>>);

impl TaskWaker {
    /// The task is polled with this waker.
    pub fn set(&self, waker: &Waker) {
        let mut task = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *task {
            Some(known) => known.clone_from(waker),
            None => *task = Some(waker.clone()),
        }
    }

    /// Has the task polled.
    pub fn wake(&self) {
        let task = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(waker) = task {
            waker.wake();
        }
    }
}

/// Whether the task may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a task that was interrupted and does not turn again may sleep for ever"]
pub enum Sleep {
    /// The task is woken when the next turn is due.
    Sound,
    /// A turn is due at once.
    Interrupted,
}

/// The sleep of a worker that is a task.
#[derive(Debug)]
pub struct TaskSleep {
    /// Copies of the port's descriptors.
    watched: Vec<AsyncFd<OwnedFd>>,
    /// The place of the port's waker among them.
    port_waker: Option<usize>,
    timer: AsyncFd<OwnedFd>,
    /// When the timer will fire.
    armed: Option<Instant>,
}

impl TaskSleep {
    /// Of a task that `worker` will be.
    ///
    /// # Errors
    /// The system has no descriptors left, or the data path has too many.
    ///
    /// # Panics
    /// Outside a tokio runtime that drives descriptors.
    pub fn new<P: Port, A: App>(worker: &Worker<P, A>) -> io::Result<TaskSleep> {
        let waker = worker.waker().map(|waker| waker.as_fd().as_raw_fd());
        let descriptors = worker.descriptors();
        if descriptors.len() > MAX_WATCHED {
            return Err(io::Error::other("the data path has too many descriptors for a task"));
        }
        let port_waker = descriptors.iter().position(|fd| Some(fd.as_raw_fd()) == waker);
        let copies = descriptors.iter().map(|descriptor| descriptor.try_clone_to_owned());
        let copies: Vec<OwnedFd> = copies.collect::<io::Result<_>>()?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(TaskSleep {
            watched: copies.into_iter().map(watch).collect::<io::Result<_>>()?,
            port_waker,
            timer: watch(timerfd_create(TimerfdClockId::Monotonic, flags)?)?,
            armed: None,
        })
    }

    /// Arranges that the task is polled when the next turn of `worker` is due: at `deadline`, or when a descriptor is readable. `now`
    /// is the time of the last turn.
    ///
    /// # Errors
    /// The data path has failed, or the runtime shuts down.
    pub fn begin<P: Port, A: App>(
        &mut self,
        worker: &mut Worker<P, A>,
        now: Instant,
        deadline: Option<Instant>,
        context: &mut Context<'_>,
    ) -> io::Result<Sleep> {
        if deadline.is_some_and(|at| at <= now) {
            return Ok(Sleep::Interrupted);
        }
        let deadline = deadline.into_iter().chain(worker.port_timeout()?).min();
        if deadline.is_some_and(|at| at <= now) {
            return Ok(Sleep::Interrupted);
        }
        for watched in &self.watched {
            await_edge(watched, context)?;
        }
        let ready = self.readable()?;
        if ready > 0 {
            if self.port_waker.is_some_and(|place| ready & (1 << place) > 0) {
                worker.on_woken();
            }
            return Ok(Sleep::Interrupted);
        }
        self.armed = self.armed.filter(|&at| at > now);
        await_edge(&self.timer, context)?;
        if let Some(deadline) = deadline
            && self.armed.is_none_or(|at| deadline < at)
        {
            self.arm(deadline)?;
        }
        Ok(Sleep::Sound)
    }

    /// The places of the descriptors that are readable now, as bits; all when a signal came.
    fn readable(&self) -> io::Result<u32> {
        if self.watched.len() > FEW { self.readable_of::<MAX_WATCHED>() } else { self.readable_of::<FEW>() }
    }

    fn readable_of<const MOST: usize>(&self) -> io::Result<u32> {
        // The timer stands for those that are not there.
        let event = |place: usize| match self.watched.get(place) {
            Some(watched) => PollFd::new(watched.get_ref(), PollFlags::IN),
            None => PollFd::new(self.timer.get_ref(), PollFlags::empty()),
        };
        let mut events: [PollFd<'_>; MOST] = core::array::from_fn(event);
        ready(events.get_mut(..self.watched.len()).unwrap_or_default())
    }

    /// The data path's clock is the kernel's monotonic one.
    fn arm(&mut self, at: Instant) -> io::Result<()> {
        let nanos = at.as_nanos();
        let seconds = i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX);
        let rest = i64::try_from(nanos % 1_000_000_000).unwrap_or(0);
        let value = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: seconds, tv_nsec: rest },
        };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &value)?;
        self.armed = Some(at);
        Ok(())
    }
}

/// The places of `events` that have come, as bits; all when a signal came.
fn ready(events: &mut [PollFd<'_>]) -> io::Result<u32> {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(events, Some(&at_once)) {
        Ok(0) => Ok(0),
        Ok(_) => {
            let bit = |(place, event): (usize, &PollFd<'_>)| {
                if event.revents().is_empty() { 0 } else { 1 << place }
            };
            Ok(events.iter().enumerate().map(bit).sum())
        }
        Err(rustix::io::Errno::INTR) => Ok(u32::MAX),
        Err(error) => Err(error.into()),
    }
}

fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(
        deprecated,
        reason = "its successor is unsafe; an OwnedFd stays open as long as it is registered"
    )]
    AsyncFd::new(descriptor)
}

/// Lets the task be woken by the next edge.
fn await_edge(watched: &AsyncFd<OwnedFd>, context: &mut Context<'_>) -> io::Result<()> {
    while let Poll::Ready(guard) = watched.poll_read_ready(context) {
        guard?.clear_ready();
    }
    Ok(())
}

/// Wakes the task once the runtime has polled every other task that is ready, its root future and its descriptors.
pub fn yield_now(context: &mut Context<'_>) {
    let _ = pin!(tokio::task::yield_now()).poll(context);
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    const TURNS: u32 = 100;

    /// A program that reads in the root future of its runtime is woken by a turn. Deleted, the runtime could poll the driver 61
    /// times before it, and the transport would pause a fast stream meanwhile.
    #[test]
    fn the_root_future_is_polled_between_turns() {
        let turns = Arc::new(AtomicU32::new(0));
        let reader: Arc<TaskWaker> = Arc::default();
        let (driver_turns, awaited) = (Arc::clone(&turns), Arc::clone(&reader));
        let driver = poll_fn(move |context| {
            awaited.wake();
            if driver_turns.fetch_add(1, Ordering::Relaxed) + 1 >= TURNS {
                return Poll::Ready(());
            }
            yield_now(context);
            Poll::Pending
        });
        let mut polls = 0;
        let root = poll_fn(|context| {
            polls += 1;
            reader.set(context.waker());
            if turns.load(Ordering::Relaxed) < TURNS { Poll::Pending } else { Poll::Ready(()) }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            runtime.spawn(driver);
            root.await;
        });
        assert!(polls >= TURNS - 1, "{polls} polls in {TURNS} turns");
    }
}
