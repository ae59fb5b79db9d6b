//! A task on a tokio runtime: tokio sleeps, and the worker turns when the task is polled.
//!
//! A poll is one turn; the task wakes itself until there is nothing to do, so that other tasks get their turn in between. Then it
//! waits for its descriptors and for a timer of the kernel's (tokio's own timers round up to a millisecond).
//!
//! `AsyncFd` is edge-triggered, and a turn may leave datagrams in the socket. So the task clears the readiness, then asks the
//! kernel once more before it sleeps: what came before is seen then, what comes later makes an edge.

use super::Engine;
use base::time::Instant;
use core::pin::Pin;
use core::task::{Context, Poll};
use datapath::Port;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
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
    /// Copies of the port's descriptors.
    watched: Vec<AsyncFd<OwnedFd>>,
    timer: AsyncFd<OwnedFd>,
    /// When the timer will fire.
    armed: Option<Instant>,
    is_asleep: bool,
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

/// Lets the task be woken by the next edge.
fn await_edge(watched: &AsyncFd<OwnedFd>, context: &mut Context<'_>) -> io::Result<()> {
    while let Poll::Ready(guard) = watched.poll_read_ready(context) {
        guard?.clear_ready();
    }
    Ok(())
}

impl<P: Port> Task<P> {
    fn new(engine: Engine<P>) -> io::Result<Task<P>> {
        let copies =
            engine.worker.descriptors().into_iter().map(|descriptor| descriptor.try_clone_to_owned());
        let copies: Vec<OwnedFd> = copies.collect::<io::Result<_>>()?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Task {
            watched: copies.into_iter().map(watch).collect::<io::Result<_>>()?,
            timer: watch(timerfd_create(TimerfdClockId::Monotonic, flags)?)?,
            armed: None,
            is_asleep: false,
            engine,
        })
    }

    fn turn(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if core::mem::take(&mut self.is_asleep) {
            self.engine.worker.on_woken();
        }
        let (now, deadline) = self.engine.turn_once()?;
        if deadline.is_some_and(|at| at <= now)
            || matches!(self.sleep(now, deadline, context)?, Sleep::Interrupted)
        {
            context.waker().wake_by_ref();
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
        self.is_asleep = true;
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
