//! What answers the requests of a server, on each of its threads: a service, the handler of files, or a low-level handler.

use crate::handler::{Files, Options};
use crate::low::{Handler, Shared};
use crate::records::WorkerRecord;
use crate::runtime::Runtime;
use crate::service::ServiceHandler;
use crate::tcp::{self, Setup, ThreadCounters};
use crate::worker_thread::{ServingWorker, SharedConfig, WorkerSetup};
use ::http::{Request, Response};
use body::Body;
use bytes::Bytes;
use datapath::Port;
use std::fmt::Display;
use std::io;
use std::net::TcpListener;
use tower_service::Service;

/// The number of a thread of a server, from 0. A worker of HTTP/3 and a thread of HTTP/1.1 and 2 may have the same.
pub type ThreadIndex = usize;

/// What answers requests. Each thread makes its own part.
pub(crate) trait Application: Send + Sync + 'static {
    type Handler: Handler;

    /// The handler of a worker of HTTP/3. Called on the worker's thread.
    fn handler(&self, thread: ThreadIndex, shared: &Shared) -> Self::Handler;

    /// Serves HTTP/3 by a worker on this thread, until the order to stop and to the end of its connections.
    fn work<P: Port>(&self, setup: WorkerSetup<P>, config: &SharedConfig) -> io::Result<WorkerRecord> {
        let handler = |number: u8| self.handler(number.into(), &config.shared);
        ServingWorker::new(setup, config, handler)?.run()
    }

    /// Serves HTTP/1.1 and 2 on this thread until the order to stop.
    fn serve_tcp(
        &self,
        thread: ThreadIndex,
        listener: TcpListener,
        setup: Setup,
    ) -> io::Result<ThreadCounters>;
}

/// A service, made for each thread.
pub(crate) struct Services<M> {
    pub(crate) make: M,
    /// Tasks, timers and sockets of tokio work in it.
    pub(crate) runtime: Runtime,
}

impl<M, S, B> Application for Services<M>
where
    M: Fn(ThreadIndex) -> S + Send + Sync + 'static,
    S: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
    S::Error: Display,
    S::Future: 'static,
    B: http_body::Body<Data = Bytes> + 'static,
    B::Error: Display,
{
    type Handler = ServiceHandler<S>;

    fn handler(&self, thread: ThreadIndex, shared: &Shared) -> ServiceHandler<S> {
        ServiceHandler::new((self.make)(thread), shared.clone())
    }

    fn work<P: Port>(&self, setup: WorkerSetup<P>, config: &SharedConfig) -> io::Result<WorkerRecord> {
        let _entered = self.runtime.enter();
        let handler = |number: u8| self.handler(number.into(), &config.shared);
        ServingWorker::new(setup, config, handler)?.run()
    }

    fn serve_tcp(
        &self,
        thread: ThreadIndex,
        listener: TcpListener,
        setup: Setup,
    ) -> io::Result<ThreadCounters> {
        tcp::serve_application(listener, setup, (self.make)(thread))
    }
}

/// Files and generated bodies.
pub(crate) struct FileServer(pub(crate) Options);

impl FileServer {
    fn files(&self, shared: &Shared) -> Files {
        let Shared { budget, warnings, clock } = shared.clone();
        Files::new(Options { budget, warnings, clock, ..self.0.clone() })
    }
}

impl Application for FileServer {
    type Handler = Files;

    fn handler(&self, _: ThreadIndex, shared: &Shared) -> Files {
        self.files(shared)
    }

    fn serve_tcp(&self, _: ThreadIndex, listener: TcpListener, setup: Setup) -> io::Result<ThreadCounters> {
        let files = self.files(&setup.shared);
        tcp::serve(listener, setup, files)
    }
}

/// A low-level handler, made for each thread. Its server serves HTTP/3 alone.
pub(crate) struct Handlers<M>(pub(crate) M);

impl<M, H> Application for Handlers<M>
where
    M: Fn(ThreadIndex) -> H + Send + Sync + 'static,
    H: Handler,
{
    type Handler = H;

    fn handler(&self, thread: ThreadIndex, _: &Shared) -> H {
        (self.0)(thread)
    }

    fn serve_tcp(&self, _: ThreadIndex, _: TcpListener, _: Setup) -> io::Result<ThreadCounters> {
        Err(io::Error::other("a low-level handler serves HTTP/3 alone"))
    }
}
