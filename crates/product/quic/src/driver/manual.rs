//! A loop of the program's own.

use super::Engine;
use base::time::Instant;
use ports::AnyPort;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// What the program does before the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Turn again at once: there is more to do.
    Again,
    /// Wait until one of the driver's descriptors is readable, at most for this long; `None` is no limit.
    Wait(Option<Duration>),
    /// It is over: there is no handle of the endpoint and no connection any more, or the server was stopped.
    Ended,
}

impl Progress {
    /// After a turn at `now`, when the next one is due at `deadline`. Outside semver.
    #[doc(hidden)]
    pub fn until(deadline: Option<Instant>, now: Instant) -> Progress {
        match deadline {
            Some(at) if at <= now => Progress::Again,
            Some(at) => Progress::Wait(Some(at.saturating_since(now).into())),
            None => Progress::Wait(None),
        }
    }
}

/// An endpoint that the program drives. See [`crate::EndpointBuilder::build_manual`].
///
/// ```no_run
/// # fn wait(_: Vec<std::os::fd::BorrowedFd<'_>>, _: Option<std::time::Duration>) {}
/// # fn main() -> std::io::Result<()> {
/// use quic::{Endpoint, Progress};
/// let (endpoint, mut driver) = Endpoint::builder(([0, 0, 0, 0], 0).into()).build_manual()?;
/// # drop(endpoint);
/// loop {
///     match driver.turn()? {
///         Progress::Again => {}
///         Progress::Wait(at_most) => {
///             wait(driver.descriptors(), at_most); // poll(2), or a loop of the program's own
///             driver.on_woken();
///         }
///         Progress::Ended => return Ok(()),
///     }
/// }
/// # }
/// ```
pub struct ManualDriver {
    engine: Engine<AnyPort>,
}

impl ManualDriver {
    pub(crate) fn new(engine: Engine<AnyPort>) -> ManualDriver {
        ManualDriver { engine }
    }

    /// Takes in what has arrived, lets timers expire, and sends what may be sent. Never sleeps.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn turn(&mut self) -> io::Result<Progress> {
        if !self.engine.obey() {
            return Ok(Progress::Ended);
        }
        let worker = &mut self.engine.worker;
        let (now, deadline) = worker.turn_once()?;
        // The program polls for readability only, and knows nothing of the data path.
        let deadline = deadline.into_iter().chain(worker.retry_at()).chain(worker.port_timeout()?).min();
        Ok(Progress::until(deadline, now))
    }

    /// What to poll for readability between turns. Handles make one of them readable when they have something to do.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.engine.worker.descriptors()
    }

    /// The wait is over: to be called before the turn that follows.
    pub fn on_woken(&mut self) {
        self.engine.worker.on_woken();
    }
}

impl fmt::Debug for ManualDriver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now: Instant = self.engine.worker.now();
        out.debug_struct("ManualDriver").field("now", &now).finish_non_exhaustive()
    }
}
