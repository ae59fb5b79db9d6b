//! What answers the requests of a server, on each of its threads: the handler of files, or a low-level handler. Services have
//! threads of another kind (service_thread.rs).

use crate::handler::{FileOptions, Files};
use crate::low::{Handler, Shared};
use crate::readers::Readers;
use crate::records::ThreadRecord;
use crate::sites::{LiveSites, Router};
use crate::stop::Stop;
use crate::tcp::{self, Setup, ThreadCounters};
use crate::tcp_thread::{self, TcpSetup};
use crate::threads::Job;
use crate::worker_thread::{ServingWorker, SharedConfig, WorkerSetup};
use datapath::Port;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

/// The number of a thread of a server, from 0. A worker of HTTP/3 and a thread of HTTP/1.1 and 2 may have the same.
pub type ThreadIndex = usize;

/// What the threads of a server are started with.
pub(crate) struct ThreadSetups<P> {
    pub(crate) config: Arc<SharedConfig>,
    /// Of the workers of HTTP/3.
    pub(crate) workers: Vec<WorkerSetup<P>>,
    /// Of HTTP/1.1 and 2.
    pub(crate) tcp: Vec<TcpSetup>,
    pub(crate) stop: Stop,
}

/// What answers the requests of a server.
pub(crate) trait Application {
    /// The threads that serve.
    fn jobs<P: Port + Send + 'static>(self, setups: ThreadSetups<P>) -> Vec<Job<Vec<ThreadRecord>>>;
}

/// What answers requests by a low-level handler. Each thread makes its own part.
pub(crate) trait Handlers: Send + Sync + 'static {
    type Handler: Handler;

    /// The handler of a worker of HTTP/3. Called on the worker's thread.
    fn handler(&self, thread: ThreadIndex, shared: &Shared) -> Self::Handler;

    /// Serves HTTP/1.1 and 2 on this thread until the order to stop.
    fn serve_tcp(
        &self,
        thread: ThreadIndex,
        listeners: Vec<TcpListener>,
        setup: Setup,
    ) -> io::Result<ThreadCounters>;
}

/// A thread for each worker, and one for each of HTTP/1.1 and 2: nothing of tokio is on the path of HTTP/3.
pub(crate) struct Apart<A>(pub(crate) A);

impl<A: Handlers> Application for Apart<A> {
    fn jobs<P: Port + Send + 'static>(self, setups: ThreadSetups<P>) -> Vec<Job<Vec<ThreadRecord>>> {
        let handlers = Arc::new(self.0);
        let worker = |setup: WorkerSetup<P>| {
            let (handlers, config) = (Arc::clone(&handlers), Arc::clone(&setups.config));
            Job::new(format!("worker {}", setup.number), move || {
                let handler = |number: u8| handlers.handler(number.into(), &config.shared);
                let record = ServingWorker::alone(setup, &config, handler)?.run()?;
                Ok(vec![ThreadRecord::Worker(Box::new(record))])
            })
        };
        let tcp = |TcpSetup { number, core, listeners, setup }: TcpSetup| {
            let handlers = Arc::clone(&handlers);
            Job::new(format!("tcp {number}"), move || {
                let serve = || handlers.serve_tcp(number, listeners, setup);
                Ok(vec![ThreadRecord::Tcp(tcp_thread::run(number, core, serve)?)])
            })
        };
        setups.workers.into_iter().map(worker).chain(setups.tcp.into_iter().map(tcp)).collect()
    }
}

/// Files and generated bodies.
pub(crate) struct FileServer(pub(crate) FileOptions);

impl FileServer {
    fn files(&self, shared: &Shared) -> Files {
        let Shared { budget, warnings, clock } = shared.clone();
        Files::new(FileOptions { budget, warnings, clock, ..self.0.clone() })
    }
}

impl Handlers for FileServer {
    type Handler = Files;

    fn handler(&self, _: ThreadIndex, shared: &Shared) -> Files {
        self.files(shared)
    }

    fn serve_tcp(
        &self,
        _: ThreadIndex,
        listeners: Vec<TcpListener>,
        setup: Setup,
    ) -> io::Result<ThreadCounters> {
        let files = self.files(&setup.shared);
        tcp::serve(listeners, setup, files)
    }
}

/// Sites, whose files are read by the same threads.
pub(crate) struct SiteServer {
    pub(crate) sites: LiveSites,
    pub(crate) readers: Readers,
}

impl Handlers for SiteServer {
    type Handler = Router;

    fn handler(&self, _: ThreadIndex, shared: &Shared) -> Router {
        Router::new(&self.sites, &self.readers, shared)
    }

    fn serve_tcp(
        &self,
        _: ThreadIndex,
        listeners: Vec<TcpListener>,
        setup: Setup,
    ) -> io::Result<ThreadCounters> {
        let router = Router::new(&self.sites, &self.readers, &setup.shared);
        tcp::serve_handler(listeners, setup, router)
    }
}

/// A low-level handler, made for each thread.
pub(crate) struct EachThread<M>(pub(crate) M);

impl<M, H> Handlers for EachThread<M>
where
    M: Fn(ThreadIndex) -> H + Send + Sync + 'static,
    H: Handler,
{
    type Handler = H;

    fn handler(&self, thread: ThreadIndex, _: &Shared) -> H {
        (self.0)(thread)
    }

    fn serve_tcp(
        &self,
        thread: ThreadIndex,
        listeners: Vec<TcpListener>,
        setup: Setup,
    ) -> io::Result<ThreadCounters> {
        tcp::serve_handler(listeners, setup, (self.0)(thread))
    }
}
