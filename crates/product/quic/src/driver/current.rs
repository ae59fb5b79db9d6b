//! A task on a tokio runtime: tokio sleeps, and the worker turns when the task is polled.
//!
//! A poll is one turn. While there is more to do the task yields after it, so that tasks that the turn has woken run before the
//! next one. `tokio::task::yield_now` costs an `epoll_wait` without a wait, and lets the root future of a current-thread runtime
//! run too. Rejected: `wake_by_ref`, which saves the call, but the runtime polls its root future once for 61 tasks then: a program
//! that reads in it found up to 61 turns' bytes, streams were paused, and their bytes copied once more.
//! Then the task waits for its descriptors and for a timer of the kernel's (tokio's own timers round up to a millisecond).
//!
//! `AsyncFd` is edge-triggered, and a turn may leave datagrams in the socket. So the task clears the readiness, then asks the
//! kernel once more before it sleeps: what came before is seen then, what comes later makes an edge.

use super::Engine;
use base::time::Instant;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use datapath::Port;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

/// Starts the task.
///
/// # Errors
/// There is no runtime here, or the system has no descriptors left.
pub(crate) fn spawn_task<P: Port + Send + Unpin + 'static>(engine: Engine<P>) -> io::Result<()> {
    let runtime = Handle::try_current().map_err(io::Error::other)?;
    let task = Task::new(engine)?;
    runtime.spawn(task);
    Ok(())
}

struct Task<P: Port> {
    engine: Engine<P>,
    /// Copies of the port's descriptors, but for its waker: handles wake the task (alarm.rs).
    watched: Vec<AsyncFd<OwnedFd>>,
    timer: AsyncFd<OwnedFd>,
    /// When the timer will fire.
    armed: Option<Instant>,
}

/// Whether the task may sleep.
enum Sleep {
    Sound,
    /// Something has come meanwhile.
    Interrupted,
}

fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(
        deprecated,
        reason = "its successor is unsafe; an OwnedFd stays open as long as it is registered"
    )]
    AsyncFd::new(descriptor)
}

/// Wakes the task once the runtime has polled every other task that is ready, its root future and its descriptors.
fn yield_now(context: &mut Context<'_>) {
    let _ = pin!(tokio::task::yield_now()).poll(context);
}

/// Lets the task be woken by the next edge.
fn await_edge(watched: &AsyncFd<OwnedFd>, context: &mut Context<'_>) -> io::Result<()> {
    while let Poll::Ready(guard) = watched.poll_read_ready(context) {
        guard?.clear_ready();
    }
    Ok(())
}

impl<P: Port> Task<P> {
    fn new(engine: Engine<P>) -> io::Result<Task<P>> {
        let waker = engine.worker.waker();
        let is_waker = |fd: &BorrowedFd<'_>| {
            waker.as_ref().is_some_and(|waker| waker.as_fd().as_raw_fd() == fd.as_raw_fd())
        };
        let descriptors = engine.worker.descriptors().into_iter().filter(|fd| !is_waker(fd));
        let copies = descriptors.map(|descriptor| descriptor.try_clone_to_owned());
        let copies: Vec<OwnedFd> = copies.collect::<io::Result<_>>()?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Task {
            watched: copies.into_iter().map(watch).collect::<io::Result<_>>()?,
            timer: watch(timerfd_create(TimerfdClockId::Monotonic, flags)?)?,
            armed: None,
            engine,
        })
    }

    fn turn(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let (now, deadline) = self.engine.turn_once()?;
        if deadline.is_some_and(|at| at <= now)
            || matches!(self.sleep(now, deadline, context)?, Sleep::Interrupted)
        {
            yield_now(context);
        }
        Ok(())
    }

    fn sleep(
        &mut self,
        now: Instant,
        deadline: Option<Instant>,
        context: &mut Context<'_>,
    ) -> io::Result<Sleep> {
        for watched in &self.watched {
            await_edge(watched, context)?;
        }
        let mut events: Vec<PollFd<'_>> =
            self.watched.iter().map(|watched| PollFd::new(watched.get_ref(), PollFlags::IN)).collect();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut events, Some(&at_once)) {
            Ok(0) => {}
            Ok(_) | Err(rustix::io::Errno::INTR) => return Ok(Sleep::Interrupted),
            Err(error) => return Err(error.into()),
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

impl<P: Port + Unpin> Future for Task<P> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let task = self.get_mut();
        // Before the orders are looked at: what comes later wakes this task again.
        task.engine.hub().calls.alarm().set_task(context.waker());
        // An error means that the socket is broken: the engine ends, and with it all connections.
        if !task.engine.obey() || task.turn(context).is_err() {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::poll_fn;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::Waker;

    const TURNS: u32 = 100;

    /// A program that reads in the root future of its runtime is woken by a turn. Deleted, the runtime could poll the driver 61
    /// times before it, and the transport would pause a fast stream meanwhile.
    #[test]
    fn the_root_future_is_polled_between_turns() {
        let turns = Arc::new(AtomicU32::new(0));
        let reader: Arc<Mutex<Option<Waker>>> = Arc::default();
        let (driver_turns, awaited) = (Arc::clone(&turns), Arc::clone(&reader));
        let driver = poll_fn(move |context| {
            if let Some(waker) = awaited.lock().unwrap().take() {
                waker.wake();
            }
            if driver_turns.fetch_add(1, Ordering::Relaxed) + 1 >= TURNS {
                return Poll::Ready(());
            }
            yield_now(context);
            Poll::Pending
        });
        let mut polls = 0;
        let root = poll_fn(|context| {
            polls += 1;
            *reader.lock().unwrap() = Some(context.waker().clone());
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
