//! A task on a tokio runtime: tokio sleeps, and the worker turns when the task is polled. See [`worker::task`].
//!
//! The task yields after a turn while there is more to do, so that the tasks that the turn has woken, and the root future of a
//! current-thread runtime, run before the next one. Rejected: `wake_by_ref`, which saves the call, but the runtime polls its root
//! future once for 61 tasks then: a program that reads in it found up to 61 turns' bytes, streams were paused, and their bytes
//! copied once more.

use super::Engine;
use core::pin::Pin;
use core::task::{Context, Poll};
use datapath::Port;
use std::io;
use tokio::runtime::Handle;
use worker::task::{Sleep, TaskSleep, yield_now};

/// Starts the task.
///
/// # Errors
/// There is no runtime here, or the system has no descriptors left.
pub(crate) fn spawn_task<P: Port + Send + Unpin + 'static>(engine: Engine<P>) -> io::Result<()> {
    let runtime = Handle::try_current().map_err(io::Error::other)?;
    let task = Task { sleep: TaskSleep::new(&engine.worker)?, engine };
    runtime.spawn(task);
    Ok(())
}

struct Task<P: Port> {
    engine: Engine<P>,
    sleep: TaskSleep,
}

impl<P: Port> Task<P> {
    fn turn(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let worker = &mut self.engine.worker;
        let (now, deadline) = worker.turn_once()?;
        if self.sleep.begin(worker, now, deadline, context)? == Sleep::Interrupted {
            yield_now(context);
        }
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
