//! A server of HTTP/3 in a loop of the program's own: one worker, which the program lets turn.

use crate::low::Handler;
use crate::running::Handle;
use crate::worker_thread::ServingWorker;
use ports::AnyPort;
use quic::Progress;
use std::any::Any;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use tokio::runtime;

/// A server that the program drives: [`crate::Bound::drive`]. Dropped, it closes all connections.
///
/// ```no_run
/// # use server::{Server, Versions, service::service_fn};
/// # use std::{convert::Infallible, os::fd::BorrowedFd, time::Duration};
/// # async fn hello(_: http::Request<body::Body>) -> Result<http::Response<body::Body>, Infallible> {
/// #     Ok(http::Response::new("hello".into()))
/// # }
/// # fn wait(_: &[BorrowedFd<'_>], _: Option<Duration>) {}
/// use quic::Progress;
/// let mut server = Server::builder().versions(Versions::HTTP3).bind()?.drive(service_fn(hello))?;
/// loop {
///     match server.turn()? {
///         Progress::Again => {}
///         Progress::Wait(at_most) => {
///             wait(&server.descriptors(), at_most); // poll(2), or a loop of the program's own
///             server.on_woken();
///         }
///         Progress::Ended => break, // after `Handle::stop`
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a server that is dropped ends"]
pub struct ServerDriver {
    /// Until it has ended.
    worker: Option<Box<dyn Drive>>,
    /// The first address, and all.
    addresses: (SocketAddr, Vec<SocketAddr>),
    handle: Handle,
    /// The one in which the driver was made, whose timers and sockets futures use.
    runtime: Option<runtime::Handle>,
    /// The access log and what else the worker uses, for as long.
    _used: Box<dyn Any>,
}

/// A worker of any handler.
trait Drive {
    fn turn(&mut self) -> io::Result<Progress>;
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;
    fn on_woken(&mut self);
    fn finish(self: Box<Self>) -> io::Result<()>;
}

impl<H: Handler> Drive for ServingWorker<AnyPort, H> {
    fn turn(&mut self) -> io::Result<Progress> {
        self.turn_in_loop()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.worker().descriptors()
    }

    fn on_woken(&mut self) {
        self.worker_mut().on_woken();
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        ServingWorker::finish(*self).map(drop)
    }
}

impl ServerDriver {
    pub(crate) fn new<H: Handler>(
        worker: ServingWorker<AnyPort, H>,
        addresses: (SocketAddr, Vec<SocketAddr>),
        handle: Handle,
        used: impl Any,
    ) -> ServerDriver {
        let runtime = runtime::Handle::try_current().ok();
        ServerDriver { worker: Some(Box::new(worker)), addresses, handle, runtime, _used: Box::new(used) }
    }

    /// Where it listens, with the port that the system chose: the first of [`ServerDriver::local_addrs`].
    pub fn local_addr(&self) -> SocketAddr {
        self.addresses.0
    }

    /// All addresses at which it listens, as [`crate::Bound::local_addrs`].
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses.1
    }

    /// What ends it, and its counters, from any thread.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Takes in what has arrived, polls the futures of requests that were woken, lets timers expire, and sends. Never sleeps.
    /// [`Progress::Ended`] once it was stopped and its connections are gone.
    ///
    /// # Errors
    /// The data path has failed.
    pub fn turn(&mut self) -> io::Result<Progress> {
        let Some(worker) = &mut self.worker else { return Ok(Progress::Ended) };
        let _entered = self.runtime.as_ref().map(runtime::Handle::enter);
        let progress = worker.turn()?;
        if progress == Progress::Ended
            && let Some(worker) = self.worker.take()
        {
            worker.finish()?;
        }
        Ok(progress)
    }

    /// What to poll for readability between turns: sockets, and what a future or a [`Handle`] wakes. Empty once it has ended.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.worker.as_ref().map(|worker| worker.descriptors()).unwrap_or_default()
    }

    /// The wait is over: to be called before the turn that follows.
    pub fn on_woken(&mut self) {
        if let Some(worker) = &mut self.worker {
            worker.on_woken();
        }
    }
}

impl Drop for ServerDriver {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            // With a data path that has failed, the clients' idle timeouts end the connections.
            let _ = worker.finish();
        }
    }
}

impl fmt::Debug for ServerDriver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ServerDriver").field("addresses", &self.addresses.1).finish_non_exhaustive()
    }
}
