//! A server whose ports are open. Nothing is served before one of the `serve` functions is called.

use crate::access_log::{AccessLog, Style, Target};
use crate::application::{Apart, Application, EachThread, FileServer, SiteServer, ThreadIndex, ThreadSetups};
use crate::bind_error::BindError;
use crate::driver::ServerDriver;
use crate::handler::FileOptions;
use crate::low::{Handler, Shared};
use crate::memory_trimmer::{MemoryTrimmer, QUIET};
use crate::metrics::board::Board;
use crate::readers::Readers;
use crate::report::Report;
use crate::running::{Handle, Running};
use crate::service::{HttpService, OnRuntime, ServiceHandler};
use crate::service_thread::Services;
use crate::sites::LiveSites;
use crate::stop::Stop;
use crate::tcp::{Handshakes, Openings, Setup, ShutdownSignal};
use crate::tcp_thread::TcpSetup;
use crate::threads;
use crate::upgrade::{Handshake, Succession};
use crate::warnings::Printer;
use crate::worker_thread::{ServingWorker, SharedConfig, WorkerSetup};
use crypto::SharedIdentities;
use datapath::Port;
use ports::AnyPort;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use worker::HandOff;

/// A server whose ports are open: [`crate::Builder::bind`].
#[must_use = "nothing is served before `serve`"]
pub struct Bound {
    pub(crate) report: Report,
    pub(crate) ports: Vec<AnyPort>,
    /// Of each thread of HTTP/1.1 and 2, one for each address.
    pub(crate) listeners: Vec<Vec<TcpListener>>,
    /// The cores of the threads, in their order; none if they are not pinned.
    pub(crate) cores: Vec<usize>,
    pub(crate) worker: SharedConfig,
    /// `None` without HTTP/1.1 and 2.
    pub(crate) tcp: Option<TcpConfig>,
    pub(crate) identities: SharedIdentities,
    pub(crate) access_log: (Target, Style),
    pub(crate) printer: Option<Printer>,
    /// None if no process can take the place of this one.
    pub(crate) succession: Option<Succession>,
}

/// What all threads of HTTP/1.1 and 2 have in common.
pub(crate) struct TcpConfig {
    pub(crate) handshakes: Handshakes,
    pub(crate) openings: Openings,
    pub(crate) limits: crate::tcp::Limits,
    /// Whether extended CONNECT is announced over HTTP/2.
    pub(crate) extended_connect: bool,
    /// For how long HTTP/3 is announced, if it is.
    pub(crate) alt_svc: Option<Duration>,
}

impl fmt::Debug for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Bound").field("report", &self.report).finish_non_exhaustive()
    }
}

impl Bound {
    /// Where it listens, with the port that the system chose: the first of [`Bound::local_addrs`].
    pub fn local_addr(&self) -> SocketAddr {
        self.report.address
    }

    /// All addresses at which it listens, in the order in which they were given, without those that others include.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.report.addresses
    }

    /// The data path in use, how datagrams find their worker, and what the system declined.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Serves by a service, such as a `Router` of axum. Its clones serve the threads. Futures run on the thread of their
    /// connection and need not be `Send`.
    ///
    /// Each thread has a current-thread runtime of tokio's, whose tasks its connections are. Tasks that a handler spawns, by
    /// `tokio::spawn` or `spawn_local`, its timers and its sockets belong to that runtime and run on that thread. Tasks that have not
    /// ended when the server ends are dropped; what `spawn_blocking` has begun goes on.
    ///
    /// # Errors
    /// The access log cannot be written, or the system has no threads left.
    pub fn serve(self, service: impl HttpService + Send) -> Result<Running, BindError> {
        let original = Mutex::new(service);
        self.serve_with(move |_| original.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// The same with a service that `make` makes on each thread, in its runtime. It need not be `Send`.
    ///
    /// # Errors
    /// As [`Bound::serve`].
    pub fn serve_with<S: HttpService>(
        self,
        make: impl Fn(ThreadIndex) -> S + Send + Sync + 'static,
    ) -> Result<Running, BindError> {
        self.start(Services(make))
    }

    /// Serves by a service whose futures run as tasks of the runtime `at`, so that they may block, or use many threads for one
    /// request. A panic in one is answered with 500. When the client gives a request up, its task is cancelled. Content of responses
    /// is polled on the thread of the connection, in the runtime of [`Bound::serve`].
    ///
    /// # Errors
    /// As [`Bound::serve`].
    pub fn serve_on<S>(self, at: tokio::runtime::Handle, service: S) -> Result<Running, BindError>
    where
        S: HttpService<Content: Send, Error: Send + 'static, Future: Send> + Send,
    {
        let original = Mutex::new(OnRuntime::new(service, at));
        let make = move |_| original.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.start(Services(make))
    }

    /// Serves files and generated bodies, as `tercel serve` does. Budget, warnings and clock of `options` are those of the server.
    ///
    /// # Errors
    /// As [`Bound::serve`].
    pub fn serve_files(self, options: FileOptions) -> Result<Running, BindError> {
        self.start(Apart(FileServer(options)))
    }

    /// Serves sites: each host by routes of its own, which [`LiveSites::replace`] replaces. Outside semver.
    ///
    /// # Errors
    /// As [`Bound::serve`].
    #[doc(hidden)]
    pub fn serve_sites(self, sites: &LiveSites) -> Result<Running, BindError> {
        self.start(Apart(SiteServer { sites: sites.clone(), readers: Readers::default() }))
    }

    /// These handshakes are under way in the processes before this one: they end there. Outside semver.
    #[doc(hidden)]
    pub fn with_handshakes(mut self, under_way: Vec<Handshake>) -> Bound {
        if let Some(succession) = &mut self.succession {
            self.worker.endpoint.predecessors = Arc::new(succession.hear(under_way));
        }
        self
    }

    /// Changes each port by `wrap`: middleware. Outside semver.
    #[doc(hidden)]
    pub fn wrap_ports(mut self, wrap: impl Fn(AnyPort) -> AnyPort) -> Bound {
        self.ports = self.ports.into_iter().map(wrap).collect();
        self
    }

    /// Serves by a low-level handler, which `make` makes on each thread: a worker of HTTP/3, or a thread of HTTP/1.1 and 2, where
    /// requests reach it by a bridge that costs what [`Handler`] says.
    ///
    /// # Errors
    /// As [`Bound::serve`].
    pub fn serve_handler<H: Handler>(
        self,
        make: impl Fn(ThreadIndex) -> H + Send + Sync + 'static,
    ) -> Result<Running, BindError> {
        self.start(Apart(EachThread(make)))
    }

    /// Serves HTTP/3 by a service in a loop of the program's own, without a thread for requests: futures are polled by
    /// [`ServerDriver::turn`], on any wake. They need not be `Send`. The threads that write the access log, print warnings and give memory
    /// back stay.
    ///
    /// No runtime is needed. Futures that use timers, sockets or tasks of tokio's use those of the runtime in which `drive` is called
    /// (`Handle::enter`), and fail outside of one. Something must run that runtime: threads of its own, or the `block_on` in which the
    /// loop waits.
    ///
    /// # Errors
    /// The builder says more than one worker, or other versions than [`crate::Versions::HTTP3`] alone; else as [`Bound::serve`].
    pub fn drive(self, service: impl HttpService) -> Result<ServerDriver, BindError> {
        self.drive_by(|shared| ServiceHandler::new(service, shared.clone()))
    }

    /// The same by a low-level handler.
    ///
    /// # Errors
    /// As [`Bound::drive`].
    pub fn drive_handler<H: Handler>(self, handler: H) -> Result<ServerDriver, BindError> {
        self.drive_by(|_| handler)
    }

    fn drive_by<H: Handler>(self, handler: impl FnOnce(&Shared) -> H) -> Result<ServerDriver, BindError> {
        let Prepared { mut setups, handle, used, addresses } = self.prepare()?;
        let (Some(setup), None, []) = (setups.workers.pop(), setups.workers.pop(), setups.tcp.as_slice())
        else {
            let text = "a loop of the program's own drives one worker and HTTP/3 alone: say versions(Versions::HTTP3), and no workers";
            return Err(BindError::Setting(text.to_owned()));
        };
        let config = &setups.config;
        let worker = ServingWorker::alone(setup, config, |_| handler(&config.shared));
        Ok(ServerDriver::new(worker.map_err(BindError::System)?, addresses, handle, used))
    }

    /// Starts a worker on each port, and the threads of HTTP/1.1 and 2.
    fn start<A: Application>(self, application: A) -> Result<Running, BindError> {
        let Prepared { setups, handle, used, addresses } = self.prepare()?;
        let stop = setups.stop.clone();
        let ended = threads::start(application.jobs(setups), &stop, used).map_err(BindError::System)?;
        Ok(Running::new(addresses, handle, ended))
    }

    /// What the threads are started with, and what they use until all have ended.
    fn prepare(self) -> Result<Prepared, BindError> {
        let Bound {
            ports,
            report,
            listeners,
            cores,
            worker,
            tcp,
            identities,
            access_log,
            printer,
            succession,
        } = self;
        let shared = worker.shared.clone();
        let (target, style) = access_log;
        let log = AccessLog::start_with(target, style, shared.warnings.clone());
        let log = log.map_err(BindError::AccessLog)?;
        let stop = Stop::new(ports.iter().filter_map(Port::waker).collect(), listeners.len());
        let board = Board::new(ports.len() + listeners.len());
        // Without this thread the server does what it did, and keeps its memory.
        let trimmer = MemoryTrimmer::start(&worker.shared.budget, QUIET, udp::return_freed_memory).ok();
        let succession_ref = succession.as_ref();
        let threads =
            Threads { worker, tcp, cores, log: &log, stop: &stop, board: &board, succession: succession_ref };
        let setups = threads.setups(ports, listeners);
        let reopener = log.reopener();
        let worker = setups.workers.first().and_then(|worker| worker.member.as_ref());
        let upgrades = succession.map(|succession| Arc::new(succession.begin(worker)));
        Ok(Prepared {
            setups,
            handle: Handle::new((stop, board), (reopener, shared), identities, upgrades),
            used: (log, trimmer, printer),
            addresses: (report.address, report.addresses),
        })
    }
}

/// A server before its threads are started.
struct Prepared {
    setups: ThreadSetups<AnyPort>,
    handle: Handle,
    /// Dropped in this order: the printer prints what was noted until the end.
    used: (AccessLog, Option<MemoryTrimmer>, Option<Printer>),
    /// The first, and all.
    addresses: (SocketAddr, Vec<SocketAddr>),
}

/// What the threads of a server are made of.
struct Threads<'a> {
    worker: SharedConfig,
    tcp: Option<TcpConfig>,
    cores: Vec<usize>,
    log: &'a AccessLog,
    stop: &'a Stop,
    board: &'a Board,
    succession: Option<&'a Succession>,
}

impl Threads<'_> {
    fn setups<P: Port>(self, ports: Vec<P>, listeners: Vec<Vec<TcpListener>>) -> ThreadSetups<P> {
        let tcp = self.tcp_setups(listeners, ports.len());
        let workers = self.worker_setups(ports);
        ThreadSetups { config: Arc::new(self.worker), workers, tcp, stop: self.stop.clone() }
    }

    fn worker_setups<P: Port>(&self, ports: Vec<P>) -> Vec<WorkerSetup<P>> {
        // A single worker hands nothing over, but to other processes.
        let wakers = ports.iter().map(P::waker).collect();
        let has_others = ports.len() > 1 || self.succession.is_some();
        let members = if has_others { HandOff::group(wakers) } else { Vec::new() }.into_iter();
        let mut members = members.map(|member| match self.succession {
            Some(succession) => succession.connect(member),
            None => member,
        });
        let setup = |(number, port): (u8, P)| WorkerSetup {
            number,
            port,
            recorder: self.log.recorder(),
            member: members.next(),
            core: self.cores.get(usize::from(number)).copied(),
            stop: self.stop.clone(),
            board: self.board.entry(number.into()),
        };
        (0..).zip(ports).map(setup).collect()
    }

    /// Of threads of HTTP/1.1 and 2, whose counters follow those of `workers` workers.
    fn tcp_setups(&self, listeners: Vec<Vec<TcpListener>>, workers: usize) -> Vec<TcpSetup> {
        let Some(tcp) = &self.tcp else { return Vec::new() };
        let setup = |(number, (listeners, shutdown_signal)): (usize, (Vec<TcpListener>, &ShutdownSignal))| {
            let setup = Setup {
                handshakes: tcp.handshakes.clone(),
                openings: tcp.openings.clone(),
                recorder: self.log.recorder(),
                limits: tcp.limits,
                extended_connect: tcp.extended_connect,
                alt_svc: tcp.alt_svc,
                shutdown_signal: shutdown_signal.clone(),
                shared: self.worker.shared.clone(),
                board: self.board.entry(workers + number),
            };
            TcpSetup { number, core: self.cores.get(number).copied(), listeners, setup }
        };
        (0..).zip(listeners.into_iter().zip(self.stop.shutdown_signals())).map(setup).collect()
    }
}
