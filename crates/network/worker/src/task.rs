//! A worker as a task of a tokio runtime: tokio sleeps, and the worker turns when the task is polled.
//!
//! A poll of the task is one turn. Then the task waits for its descriptors and for a timer of the kernel's (tokio's own timers round
//! up to a millisecond), or has itself polled again: by [`Waker::wake_by_ref`], behind the tasks that are ready, or by
//! [`yield_now`], which costs an `epoll_wait` without a wait and lets the root future and the descriptors of a current-thread
//! runtime have their turn too. By `wake_by_ref` alone such a runtime looks at them once for 61 tasks.
//!
//! `AsyncFd` is edge-triggered, and a turn may leave datagrams in the socket. So the task clears the readiness, then asks the
//! kernel once more before it sleeps: what came before is seen then, what comes later makes an edge.
//!
//! A socket is watched for room only while trains wait for it ([`Port::awaits_room`]), by a copy: each datagram that leaves would wake the
//! runtime otherwise.

use crate::app::App;
use crate::worker::Worker;
use base::time::Instant;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use datapath::{Intake, Port};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::{Mutex, PoisonError};
use tokio::io::Interest;
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
    /// Copies of those that have no room for queued trains, by their places. None but then.
    full: Vec<(usize, AsyncFd<OwnedFd>)>,
    /// The place of the port's waker among them.
    port_waker: Option<usize>,
    timer: AsyncFd<OwnedFd>,
    /// When the timer will fire.
    armed: Option<Instant>,
    /// Of which descriptors the copies are: [`Port::descriptor_changes`].
    changes: u32,
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
            watched: copies.into_iter().map(watch_arrivals).collect::<io::Result<_>>()?,
            full: Vec::new(),
            port_waker,
            timer: watch_arrivals(timerfd_create(TimerfdClockId::Monotonic, flags)?)?,
            armed: None,
            changes: worker.port().descriptor_changes(),
        })
    }

    /// Arranges that the task is polled when the next turn of `worker` is due: at `deadline`, when a descriptor is readable, or when one
    /// for which trains wait is writable. `now` is the time of the last turn.
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
        if worker.port().descriptor_changes() != self.changes {
            *self = TaskSleep::new(worker)?;
        }
        for watched in &self.watched {
            await_edge(watched, context)?;
        }
        let awaits_room = worker.port().awaits_room();
        if awaits_room > 0 || !self.full.is_empty() {
            self.await_room(awaits_room, context)?;
        }
        let ready = self.ready(awaits_room, worker.port().intake())?;
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

    /// Lets the task be woken by room in the descriptors at `places`, and by no others' room.
    #[cold]
    fn await_room(&mut self, places: u32, context: &mut Context<'_>) -> io::Result<()> {
        self.full.retain(|(place, _)| places & (1 << place) > 0);
        for (place, watched) in self.watched.iter().enumerate() {
            if places & (1 << place) > 0 && self.full.iter().all(|(known, _)| *known != place) {
                let copy = watched.get_ref().try_clone()?;
                self.full.push((place, watch(copy, Interest::WRITABLE)?));
            }
        }
        for (_, full) in &self.full {
            while let Poll::Ready(guard) = full.poll_write_ready(context) {
                guard?.clear_ready();
            }
        }
        Ok(())
    }

    /// The places of the descriptors that are readable now, as bits, and of those at `awaits_room` that are writable; all when a signal
    /// came. A port whose `intake` is closed is not asked what it could read.
    fn ready(&self, awaits_room: u32, intake: Intake) -> io::Result<u32> {
        if self.watched.len() > FEW {
            self.ready_of::<MAX_WATCHED>(awaits_room, intake)
        } else {
            self.ready_of::<FEW>(awaits_room, intake)
        }
    }

    fn ready_of<const MOST: usize>(&self, awaits_room: u32, intake: Intake) -> io::Result<u32> {
        // The timer stands for those that are not there.
        let is_closed = |place: usize| intake == Intake::Closed && self.port_waker != Some(place);
        let event = |place: usize| match self.watched.get(place) {
            Some(watched) if is_closed(place) && awaits_room & (1 << place) > 0 => {
                PollFd::new(watched.get_ref(), PollFlags::OUT)
            }
            Some(watched) if is_closed(place) => PollFd::new(watched.get_ref(), PollFlags::empty()),
            Some(watched) if awaits_room & (1 << place) > 0 => {
                PollFd::new(watched.get_ref(), PollFlags::IN | PollFlags::OUT)
            }
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

fn watch_arrivals(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    watch(descriptor, Interest::READABLE)
}

fn watch(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(
        deprecated,
        reason = "its successor is unsafe; an OwnedFd stays open as long as it is registered"
    )]
    AsyncFd::with_interest(descriptor, interest)
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
mod tests;
