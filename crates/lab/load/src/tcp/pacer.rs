//! Wakes request slots when requests of an open loop are due, to the microsecond.

use super::clock;
use super::thread_state::ThreadState;
use base::time::Instant;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Paces until the end. Only a system without timers fails.
pub(super) async fn pace(thread_state: Rc<ThreadState>) -> io::Result<()> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    #[expect(
        deprecated,
        reason = "its successor is unsafe because of types that close the file early; an OwnedFd does not"
    )]
    let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
    loop {
        let now = clock::now();
        let (overdue, next) = {
            let budget = thread_state.accounts.borrow().budget;
            (budget.overdue(now), budget.next_due_after(now))
        };
        thread_state.call(overdue);
        match next {
            Some(due) => sleep_until(&timer, due).await?,
            // Another budget wakes us; what is overdue is taken by request slots that have room again.
            None => thread_state.paced.notified().await,
        }
    }
}

async fn sleep_until(timer: &AsyncFd<OwnedFd>, due: Instant) -> io::Result<()> {
    let at = due.as_nanos().max(1);
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let spec = Itimerspec {
        it_interval: never,
        it_value: Timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as i64 },
    };
    timerfd_settime(timer.get_ref(), TimerfdTimerFlags::ABSTIME, &spec)?;
    loop {
        let mut guard = timer.readable().await?;
        let mut expirations = [0; 8];
        let outcome = guard
            .try_io(|timer| rustix::io::read(timer.get_ref(), &mut expirations).map_err(io::Error::from));
        // Otherwise it was another's readiness.
        if let Ok(read) = outcome {
            return read.map(|_| ());
        }
    }
}
