//! `tercel serve`: files and generated bodies over HTTP/1.1, 2 and 3.
//!
//! This file turns the command line into a server; its workers and reports are in `serving`.

use crate::listen::Listen;
use crate::options::QuicArgs;
use crate::path_options::PathArgs;
use crate::print_error;
use crate::serving::cores::{Pin, Workers};
use crate::serving::credentials::{Credentials, Expired};
use crate::serving::keys;
use crate::serving::limits::LimitArgs;
use crate::serving::listeners::{self, Listeners};
use crate::serving::ready::ReadyFile;
use crate::serving::report::{self, ServerInfo};
use crate::serving::tcp::{self, TcpRecord, TcpSetup};
use crate::serving::threads::{self, Stop, ThreadName};
use crate::serving::versions::Versions;
use crate::serving::worker_thread::{Record, SharedConfig, WorkerSetup, work};
use crate::signals::{ServerDuties, server_stop_flag};
use crate::units;
use base::time::Duration;
use clap::{Args, ValueEnum};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use crypto::{ServerTls, TlsOptions};
use datapath::{Port, Waker};
use ports::{Memory, OpenPorts, PortsVisitor};
use server::access_log::{AccessLog, Target};
use server::budget::Budget;
use server::files::{DotFiles, Root};
use server::handler::{Files, Listing, Options};
use server::memory_trimmer::{MemoryTrimmer, QUIET};
use server::tcp::{Limits, Setup, ShutdownSignal};
use server::warnings::{self, Warnings};
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use transport::{EndpointConfig, RetryPolicy, ServerConfig};
use udp::{SteeringChoice, UdpPort};
use worker::HandOff;

/// When clients must prove their address before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Retry {
    /// When more than a hundred handshakes are under way.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How datagrams find their worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Steering {
    /// The first of the others that this machine allows.
    Auto,
    /// An eBPF program in the kernel reads the connection ID; needs CAP_BPF and CAP_NET_ADMIN.
    Ebpf,
    /// A classic BPF program does; needs nothing.
    Classic,
    /// The worker that gets a datagram passes it on.
    HandOff,
}

/// Flags of `tercel serve`.
#[derive(Args)]
#[command(after_help = MORE, after_long_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The folder whose files are served. Without it only generated bodies are: /bytes/2GB, /bytes/512KiB, /2000000000.
    root: Option<PathBuf>,
    /// Where to listen: PORT, ADDRESS:PORT or localhost:PORT; port 0 is any free one. A port alone means every address.
    #[arg(short, long, default_value = "4433", value_name = "[ADDRESS:]PORT")]
    listen: Listen,
    /// The versions of HTTP to serve: 3 over UDP, 1 (that is 1.1) and 2 over TCP, on the same port number.
    #[arg(long, default_value = "1,2,3", value_name = "VERSIONS")]
    http: Versions,
    /// Do not tell clients of HTTP/1.1 and 2 that HTTP/3 is there.
    #[arg(long, hide_short_help = true)]
    no_alt_svc: bool,
    /// The certificate chain, PEM. Without it a development certificate is made and kept.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The certificate's private key, PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Serve a certificate that has expired or is not valid yet, which clients refuse.
    #[arg(long, requires = "cert")]
    allow_expired_certificate: bool,
    /// The folder for keys that must outlive a restart, so that clients of a server that was killed hear so at once. Default:
    /// $XDG_DATA_HOME/tercel or ~/.local/share/tercel.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Where requests are logged: a file, - for standard output, or off.
    #[arg(long, default_value = "-", value_name = "FILE|-|off")]
    access_log: String,
    /// Serve files whose names begin with a dot.
    #[arg(long)]
    dot_files: bool,
    /// Answer 404 for folders without index.html. Without this flag their entries are listed.
    #[arg(long)]
    no_listing: bool,
    /// When clients must prove their address with a Retry first.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN", hide_short_help = true)]
    retry: Retry,
    /// The memory that connections may hold together, such as 512MiB or 536870912.
    ///
    /// When three quarters are held, receive windows grow no more and less is read ahead; when seven eighths are held, requests
    /// get 503, new connections wait, and connections that make no progress are ended, the largest first. Clients of one address
    /// may hold half of it, those of one network three quarters. Without it: half of what the machine, its control group and
    /// ulimit leave; tercel doctor says how much.
    #[arg(long, value_name = "BYTES", value_parser = units::memory)]
    memory: Option<u64>,
    /// How long running requests may take after SIGTERM or SIGINT. Without it they may take as long as they make progress. A
    /// second signal ends the server at once.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    drain_timeout: Option<u64>,
    /// Write this file once listening: one JSON object with port, pid and the path of the certificate. It is removed at the end.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    ready_file: Option<PathBuf>,
    /// Write this file at the end: one JSON object with bytes, datagrams, system calls and CPU seconds, in all and for each
    /// worker.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    summary_file: Option<PathBuf>,
    /// Threads that serve, each with connections of its own: a number, or auto for one on each core.
    ///
    /// HTTP/3 gets this number of threads, HTTP/1.1 and 2 the same number again. Threads without connections sleep.
    /// With --datapath xdp there can be no more than the interface has queues.
    #[arg(long, default_value = "1", value_name = "N|auto", help_heading = "Cores")]
    workers: Workers,
    /// How a datagram finds the worker that has its connection.
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "HOW",
        help_heading = "Cores",
        hide_short_help = true
    )]
    steering: Steering,
    /// Keep each worker on a core: auto, or cores such as 0,2-5 for the first worker, the second and so on.
    #[arg(long, value_name = "CORES|auto", num_args = 0..=1, default_missing_value = "auto", help_heading = "Cores")]
    pin: Option<Pin>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    quic: QuicArgs,
}

/// Stands for the address until a place is chosen.
const UNBOUND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Stands below the short help.
const MORE: &str = "Examples, and what the flags mean in full: tercel serve --help";

const EXAMPLES: &str = "\
Examples:
  tercel serve .                                       this folder, on port 4433, with a development certificate
  tercel serve --listen localhost:8443 .               for this machine alone, on another port
  tercel serve --workers auto --pin                    generated bodies, on every core
  tercel serve --http 3 .                              HTTP/3 and nothing over TCP
  tercel serve --datapath xdp --interface eth0 /srv    past the kernel's network stack; see tercel doctor";

/// Runs the server until SIGINT or SIGTERM, and until running requests are answered.
pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => print_error(problem),
    }
}

fn serve(args: &ServeArgs) -> Result<(), String> {
    args.path.check()?;
    args.quic.techniques().check(args.path.datapath)?;
    let credentials = match (&args.cert, &args.key) {
        (Some(certificate), Some(key)) => {
            let expired = if args.allow_expired_certificate { Expired::Allow } else { Expired::Refuse };
            Credentials::given(certificate, key, expired)?
        }
        _ => Credentials::development()?,
    };
    let threads = match args.paths().workers {
        ports::Workers::Exactly(count) | ports::Workers::OnePerCore(count) => usize::from(count.max(1)),
    };
    let places = args.path.places(args.listen);
    let Listeners { udp, tcp, address, place } = listeners::open(&places, &args.paths(), args.http, threads)?;
    if let Some(udp) = &udp {
        udp.verdict.iter().for_each(|verdict| eprintln!("{verdict}"));
        udp.declined.iter().for_each(|line| eprintln!("{line}"));
    }
    let info = ServerInfo {
        listening: address,
        place,
        versions: args.http,
        datapath: udp.as_ref().map(|udp| udp.choice.name()),
        xdp_mode: udp.as_ref().and_then(|udp| udp.opened.xdp_mode()),
        interface: udp.as_ref().and_then(|udp| udp.interface.clone()),
        workers: udp.as_ref().map_or(threads, |udp| udp.workers),
        steering: udp.as_ref().map(|udp| udp.steering.name()),
    };
    // Dropped last: it prints what was noted until the end.
    let (warnings, _printer) = warnings::start(io::stderr()).map_err(text)?;
    let shared_config = args.shared_config(&credentials, &info, warnings)?;
    let server_context =
        ServerContext { args, shared_config: &shared_config, credentials: &credentials, info };
    let ports = udp.map_or_else(|| OpenPorts::Udp(Vec::new()), |udp| udp.opened);
    ports.run(Serve { context: &server_context, listeners: tcp })
}

/// Serves on ports of any kind.
struct Serve<'a> {
    context: &'a ServerContext<'a>,
    listeners: Vec<TcpListener>,
}

impl PortsVisitor for Serve<'_> {
    type Output = Result<(), String>;

    fn visit<P: Port + Send>(self, ports: Vec<P>) -> Self::Output {
        self.context.serve_on(ports, self.listeners)
    }

    fn visit_udp(self, ports: Vec<UdpPort>) -> Self::Output {
        let path = &self.context.args.path;
        path.visit_held(ports, self)
    }
}

/// What is known when the ports are open, whatever their kind.
struct ServerContext<'a> {
    args: &'a ServeArgs,
    shared_config: &'a SharedConfig,
    credentials: &'a Credentials,
    info: ServerInfo,
}

impl ServeArgs {
    fn paths(&self) -> ports::OpenOptions {
        let cores = cpu::allowed().len().max(1);
        ports::OpenOptions {
            workers: match self.workers {
                Workers::Exactly(count) => ports::Workers::Exactly(count),
                Workers::Auto => ports::Workers::OnePerCore(u8::try_from(cores).unwrap_or(u8::MAX)),
            },
            steering: match self.steering {
                Steering::Auto => SteeringChoice::Auto,
                Steering::Ebpf => SteeringChoice::Ebpf,
                Steering::Classic => SteeringChoice::Classic,
                Steering::HandOff => SteeringChoice::HandOff,
            },
            ..self.quic.techniques().paths(self.path.options(UNBOUND, self.quic.demanded_payload()))
        }
    }

    /// What all workers have in common.
    fn shared_config(
        &self,
        credentials: &Credentials,
        info: &ServerInfo,
        warnings: Warnings,
    ) -> Result<SharedConfig, String> {
        let root = self.root.as_deref().map(Root::open).transpose().map_err(text)?;
        let tls = ServerTls::new(&credentials.tls, &self.quic.tls()).map_err(text)?;
        let transport = self.quic.transport(wire::Version::V1).map_err(text)?;
        let dot_files = if self.dot_files { DotFiles::Serve } else { DotFiles::Hide };
        let listing = if self.no_listing { Listing::Off } else { Listing::On };
        Ok(SharedConfig {
            handler: Options {
                root,
                dot_files,
                listing,
                warnings,
                budget: self.budget(),
                ..Options::default()
            },
            endpoint: self.endpoint(info)?,
            server: ServerConfig { tls, transport: Arc::new(transport) },
            config: worker::Config { spin: self.path.spin },
            heads: self.quic.techniques().heads(),
            drain_timeout: self.drain_timeout.map(Duration::from_secs),
        })
    }

    fn budget(&self) -> Budget {
        let bytes = self.memory.or_else(|| Memory::available().map(Memory::share));
        bytes.map_or_else(Budget::default, Budget::new)
    }

    /// How the workers treat unknown peers. They share the keys, so each accepts the tokens and resets of all.
    /// The limits for unknown peers are divided among them.
    fn endpoint(&self, info: &ServerInfo) -> Result<EndpointConfig, String> {
        let defaults = EndpointConfig::default();
        let keys = keys::find(self.state_dir.as_deref())?;
        let workers = info.workers;
        let retry = match self.retry {
            Retry::Auto => defaults.retry,
            Retry::Always => RetryPolicy::Always,
            Retry::Never => RetryPolicy::Never,
        };
        let share = |whole: u64| whole.div_ceil(workers as u64);
        Ok(EndpointConfig {
            workers: u8::try_from(workers).unwrap_or(u8::MAX),
            retry,
            token_key: Some(keys.token_key()),
            reset_key: Some(keys.reset_key(info.listening)),
            max_half_open: defaults.max_half_open.div_ceil(workers),
            max_connections: self.limits.in_all(workers),
            max_connections_per_address: self.limits.per_address(workers),
            max_connections_per_prefix: self.limits.per_prefix(workers),
            replies_per_second: share(defaults.replies_per_second),
            retries_per_second: share(defaults.retries_per_second),
            ..defaults
        })
    }
}

/// The setup of one thread.
enum ThreadSetup<P> {
    Quic(WorkerSetup<P>),
    Tcp(Box<TcpSetup>),
}

impl<P> ThreadName for ThreadSetup<P> {
    fn name(&self) -> String {
        match self {
            ThreadSetup::Quic(worker_setup) => worker_setup.name(),
            ThreadSetup::Tcp(worker_setup) => worker_setup.name(),
        }
    }
}

/// What a thread did.
enum Report {
    Quic(Box<Record>),
    Tcp(TcpRecord),
}

impl ServerContext<'_> {
    /// Serves on these ports, one worker on each, until a signal.
    fn serve_on<P: Port + Send>(&self, ports: Vec<P>, listeners: Vec<TcpListener>) -> Result<(), String> {
        let args = self.args;
        if let Some(advice) = ports.first().and_then(P::advice) {
            eprintln!("{advice}");
        }
        let wakers: Arc<[Waker]> = ports.iter().filter_map(P::waker).collect();
        let shutdown_signals: Arc<[ShutdownSignal]> =
            listeners.iter().map(|_| ShutdownSignal::default()).collect();
        let warnings = self.shared_config.handler.warnings.clone();
        let log = AccessLog::start_with(Target::parse(&args.access_log), warnings.clone())
            .map_err(|error| format!("cannot write the access log to {}: {error}", args.access_log))?;
        let ready: Arc<OnceLock<ReadyFile>> = Arc::default();
        let to_wake = Stop {
            flag: Arc::default(),
            wakers: Arc::clone(&wakers),
            shutdown_signals: Arc::clone(&shutdown_signals),
        };
        let (reopener, to_remove) = (log.reopener(), Arc::clone(&ready));
        let duties = ServerDuties {
            wake: Box::new(move || to_wake.wake()),
            reopen: Box::new(move || reopener.reopen()),
            tidy: Box::new(move || to_remove.get().into_iter().for_each(ReadyFile::remove)),
            warnings,
        };
        let flag = server_stop_flag(duties).map_err(text)?;
        let stop = Stop { flag, wakers, shutdown_signals };
        let mut thread_setups = self.quic_setups(ports, &log)?;
        thread_setups.extend(self.tcp_setups(listeners, &log, &stop.shutdown_signals)?);
        if let Some(file) = report::announce(&self.info, self.credentials, args.ready_file.as_deref())? {
            let _ = ready.set(file);
        }
        let job = |thread_setup: ThreadSetup<P>| -> io::Result<Report> {
            match thread_setup {
                ThreadSetup::Quic(worker_setup) => {
                    work(worker_setup, self.shared_config, &stop.flag).map(Box::new).map(Report::Quic)
                }
                ThreadSetup::Tcp(worker_setup) => tcp::work(*worker_setup).map(Report::Tcp),
            }
        };
        // Without a thread the server does what it did, and keeps its memory.
        let _surplus =
            MemoryTrimmer::start(&self.shared_config.handler.budget, QUIET, udp::return_freed_memory);
        let (mut records, mut tcp_records) = (Vec::new(), Vec::new());
        let reports = threads::run(thread_setups, &stop, job);
        ready.get().into_iter().for_each(ReadyFile::remove);
        for report in reports? {
            match report {
                Report::Quic(record) => records.push(*record),
                Report::Tcp(record) => tcp_records.push(record),
            }
        }
        drop(log);
        report::summarize(&self.info, &records, &tcp_records, args.summary_file.as_deref())
    }

    fn quic_setups<P: Port>(&self, ports: Vec<P>, log: &AccessLog) -> Result<Vec<ThreadSetup<P>>, String> {
        let cores = self.cores(ports.len())?;
        // A single worker hands nothing over.
        let wakers = ports.iter().map(P::waker).collect();
        let mut members = if ports.len() > 1 { HandOff::group(wakers) } else { Vec::new() }.into_iter();
        let worker_setup = |(number, port): (u8, P)| {
            let core = cores.get(usize::from(number)).copied();
            ThreadSetup::Quic(WorkerSetup {
                number,
                port,
                recorder: log.recorder(),
                member: members.next(),
                core,
            })
        };
        Ok((0..).zip(ports).map(worker_setup).collect())
    }

    fn tcp_setups<P>(
        &self,
        listeners: Vec<TcpListener>,
        log: &AccessLog,
        shutdown_signals: &[ShutdownSignal],
    ) -> Result<Vec<ThreadSetup<P>>, String> {
        if listeners.is_empty() {
            return Ok(Vec::new());
        }
        tcp::raise_descriptors();
        tcp::keep_memory();
        let args = self.args;
        let cores = self.cores(listeners.len())?;
        let options = TlsOptions { alpn: args.http.alpn(), ..args.quic.tls() };
        let tls = crypto::tcp_server(&self.credentials.tls, &options).map_err(text)?;
        let defaults = Limits::default();
        let limits = Limits {
            connections: args.limits.in_all(listeners.len()),
            connections_per_address: args.limits.per_address(listeners.len()),
            connections_per_prefix: args.limits.per_prefix(listeners.len()),
            idle: Duration::from_secs(args.quic.idle_timeout),
            drain: self.shared_config.drain_timeout,
            ..defaults
        };
        let is_announced = args.http.http3 && !args.no_alt_svc;
        let alt_svc = server::tcp::alt_svc(self.info.listening.port());
        let worker_setup =
            |(number, (listener, shutdown_signal)): (usize, (TcpListener, &ShutdownSignal))| {
                let setup = Setup {
                    tls: Arc::clone(&tls),
                    handler: Files::new(self.shared_config.handler.clone()),
                    recorder: log.recorder(),
                    limits,
                    alt_svc: is_announced.then(|| alt_svc.clone()),
                    shutdown_signal: shutdown_signal.clone(),
                };
                ThreadSetup::Tcp(Box::new(TcpSetup {
                    number,
                    listener,
                    setup,
                    core: cores.get(number).copied(),
                }))
            };
        Ok((0..).zip(listeners.into_iter().zip(shutdown_signals)).map(worker_setup).collect())
    }

    /// The cores of so many threads; none where they are not to be kept.
    fn cores(&self, threads: usize) -> Result<Vec<usize>, String> {
        match &self.args.pin {
            Some(pin) => pin.assign(threads, &cpu::allowed()),
            None => Ok(Vec::new()),
        }
    }
}

fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}
