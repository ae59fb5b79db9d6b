//! A server that runs: its address, its end.

use crate::tcp::ShutdownSignal;
use datapath::Waker;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::oneshot::Receiver;

/// How far the order to end goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    Serving,
    /// What was asked is answered.
    Draining,
    /// Everything closes.
    Over,
}

/// The order to end, and what must hear it. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<Shared>);

struct Shared {
    phase: AtomicU8,
    wakers: Vec<Waker>,
    shutdown_signals: Vec<ShutdownSignal>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stop").field("phase", &self.phase).finish_non_exhaustive()
    }
}

impl Stop {
    pub(crate) fn new(wakers: Vec<Waker>, shutdown_signals: Vec<ShutdownSignal>) -> Stop {
        Stop(Arc::new(Shared { phase: AtomicU8::new(Phase::Serving as u8), wakers, shutdown_signals }))
    }

    /// Orders it. A stricter order stays.
    pub(crate) fn order(&self, phase: Phase) {
        self.0.phase.fetch_max(phase as u8, Ordering::AcqRel);
        self.0.wakers.iter().for_each(Waker::wake);
        self.0.shutdown_signals.iter().for_each(ShutdownSignal::shut_down);
    }

    pub(crate) fn is_ordered(&self, phase: Phase) -> bool {
        self.0.phase.load(Ordering::Acquire) >= phase as u8
    }

    /// What the TCP thread listens to.
    pub(crate) fn shutdown_signal(&self) -> ShutdownSignal {
        self.0.shutdown_signals.first().cloned().unwrap_or_default()
    }
}

/// A thread of the server has failed; the others have ended in good order.
#[derive(Debug)]
pub struct ServeError(io::Error);

impl fmt::Display for ServeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the server has failed: {}", self.0)
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Ends a server, from any thread. Clones are the same.
#[derive(Clone, Debug)]
pub struct Handle(Stop);

impl Handle {
    /// Takes no more requests, answers those that were asked, and ends.
    pub fn stop(&self) {
        self.0.order(Phase::Draining);
    }

    /// Closes everything now. Connections of HTTP/1.1 and 2 have the time that [`crate::Builder::drain`] gives them.
    pub fn abort(&self) {
        self.0.order(Phase::Over);
    }
}

/// A server that runs. Awaited, it is served until it ends; dropped, it ends as by [`Handle::abort`].
#[derive(Debug)]
#[must_use = "a server that is dropped ends"]
pub struct Running {
    address: SocketAddr,
    stop: Stop,
    result: Option<Receiver<io::Result<()>>>,
}

impl Running {
    pub(crate) fn new(address: SocketAddr, stop: Stop, result: Receiver<io::Result<()>>) -> Running {
        Running { address, stop, result: Some(result) }
    }

    /// Where it listens, with the port that the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What ends it.
    pub fn handle(&self) -> Handle {
        Handle(self.stop.clone())
    }

    /// Blocks until the server has ended: for programs without a runtime.
    ///
    /// # Errors
    /// A thread has failed.
    ///
    /// # Panics
    /// In an async function, which must await the server instead.
    pub fn wait(mut self) -> Result<(), ServeError> {
        let result = self.result.take().map(Receiver::blocking_recv);
        ended(result.unwrap_or(Ok(Ok(()))))
    }
}

fn ended(result: Result<io::Result<()>, impl Sized>) -> Result<(), ServeError> {
    // Without a word the thread has panicked.
    result.unwrap_or_else(|_| Err(io::Error::other("a thread has panicked"))).map_err(ServeError)
}

impl IntoFuture for Running {
    type Output = Result<(), ServeError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<(), ServeError>> + Send>>;

    fn into_future(mut self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.result.take() {
                Some(result) => ended(result.await),
                None => Ok(()),
            }
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.order(Phase::Over);
    }
}
