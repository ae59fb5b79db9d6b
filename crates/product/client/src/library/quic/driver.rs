//! A client whose HTTP/3 connections the program drives, on its own thread.

use super::alarm::FutureAlarm;
use super::engine::Engine;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Drives the HTTP/3 connections of one client. Without it, or between its calls, nothing is sent or received over QUIC; TCP has a
/// thread of its own. Dropped, it leaves all connections to their timeouts; [`ClientDriver::close`] ends them in order.
///
/// Requests, their futures and their sinks run on one thread then, and a request crosses no thread.
pub struct ClientDriver {
    engine: Engine,
}

impl ClientDriver {
    pub(crate) fn new(engine: Engine) -> ClientDriver {
        ClientDriver { engine }
    }

    /// Drives the connections and polls `future` when it was woken, until it is ready.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn block_on<F: Future>(&mut self, future: F) -> io::Result<F::Output> {
        let alarm = Arc::clone(self.engine.alarm());
        let _driving = alarm.drive();
        let future_alarm = FutureAlarm::new(&alarm);
        let waker = Waker::from(Arc::clone(&future_alarm));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            if future_alarm.take()
                && let Poll::Ready(output) = future.as_mut().poll(&mut context)
            {
                return Ok(output);
            }
            // What is left of a client that was dropped ends below.
            let _ = self.engine.obey();
            self.engine.run_turn(None, &|| future_alarm.is_woken())?;
        }
    }

    /// Closes all connections; those that have requests lose them after 20 ms, or after a second where a
    /// session store writes tickets down, which may still come. Each close is sent twice, 5 ms apart, because nothing
    /// is there afterwards to answer a server that has not heard of it.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn close(mut self) -> io::Result<()> {
        let alarm = Arc::clone(self.engine.alarm());
        let _driving = alarm.drive();
        self.engine.close()
    }
}

impl fmt::Debug for ClientDriver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientDriver").finish_non_exhaustive()
    }
}
