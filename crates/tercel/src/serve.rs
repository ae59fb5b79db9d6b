//! `tercel serve`: files and generated bodies over HTTP/3.

use crate::complain;
use crate::options::QuicArgs;
use crate::signals::stop_flag;
use base::time::Duration;
use clap::{Args, ValueEnum};
use core::net::SocketAddr;
use crypto::{Identity, ServerTls};
use datapath::Port as _;
use server::access_log::{AccessLog, Target};
use server::certificate::{self, Development};
use server::files::{DotFiles, Root};
use server::handler::{Handler, Options};
use server::http3::Server;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use transport::{Endpoint, EndpointConfig, RetryPolicy, ServerConfig};
use udp::{BindOptions, UdpPort};
use worker::Worker;

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

/// Flags of `tercel serve`.
#[derive(Args)]
pub(crate) struct ServeArgs {
    /// The folder whose files are served. Without it only generated bodies are: /bytes/2GB, /bytes/512KiB, /2000000000.
    root: Option<PathBuf>,
    /// Where to listen: ADDRESS:PORT; port 0 is any free one.
    #[arg(short, long, default_value = "[::]:4433", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The certificate chain, PEM. Without it a development certificate is made and kept.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The certificate's private key, PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Where requests are logged: a file, - for standard output, or off.
    #[arg(long, default_value = "-", value_name = "FILE|-|off")]
    access_log: String,
    /// Serve files whose names begin with a dot.
    #[arg(long)]
    dot_files: bool,
    /// When clients must prove their address with a Retry first.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    retry: Retry,
    /// Write this file once listening: one JSON object with port, pid and the path of the certificate.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Write this file at the end: one JSON object with bytes, datagrams, system calls and CPU seconds.
    #[arg(long, value_name = "FILE")]
    summary_file: Option<PathBuf>,
    /// Poll so many microseconds for packets before sleeping.
    #[arg(long, default_value_t = 0, value_name = "MICROSECONDS")]
    spin: u64,
    #[command(flatten)]
    quic: QuicArgs,
}

/// Runs the server until SIGINT or SIGTERM.
pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => complain(problem),
    }
}

/// Who the server is, and what clients need to believe it.
struct Credentials {
    tls: Identity,
    /// Where clients find the certificate.
    certificate: PathBuf,
    development: Option<Development>,
}

fn serve(args: &ServeArgs) -> Result<(), String> {
    let root = args.root.as_deref().map(Root::open).transpose().map_err(text)?;
    let credentials = credentials(args)?;
    let tls = ServerTls::new(&credentials.tls, &args.quic.tls()).map_err(text)?;
    let transport = args.quic.transport(wire::Version::V1).map_err(text)?;
    let port = UdpPort::bind(&BindOptions::new(args.listen, args.quic.datapath.variant())).map_err(text)?;
    let log = AccessLog::start(Target::parse(&args.access_log))
        .map_err(|error| format!("cannot write the access log to {}: {error}", args.access_log))?;
    let dot_files = if args.dot_files { DotFiles::Serve } else { DotFiles::Hide };
    let handler = Handler::new(Options { root, dot_files, ..Options::default() });
    let server = Server::new(handler, log.recorder());

    let waker = port.waker();
    let stop = stop_flag(move || waker.iter().for_each(datapath::Waker::wake)).map_err(text)?;
    let listening = port.local_address();
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(text)?;
    let endpoint = Endpoint::new(args.endpoint(), seed);
    let config = worker::Config { spin: Duration::from_micros(args.spin) };
    let tls = ServerConfig { tls, transport: Arc::new(transport) };
    let mut worker = Worker::new(port, server, endpoint, Some(tls), config);
    announce(args, listening, &credentials)?;
    run_worker(&mut worker, &stop).map_err(text)?;
    drop(log);
    summarize(args, &worker)
}

impl ServeArgs {
    fn endpoint(&self) -> EndpointConfig {
        let defaults = EndpointConfig::default();
        let retry = match self.retry {
            Retry::Auto => defaults.retry,
            Retry::Always => RetryPolicy::Always,
            Retry::Never => RetryPolicy::Never,
        };
        EndpointConfig { retry, ..defaults }
    }
}

/// The certificate that was given, or the development certificate.
fn credentials(args: &ServeArgs) -> Result<Credentials, String> {
    let (identity, certificate, development) = match (&args.cert, &args.key) {
        (Some(certificate), Some(key)) => {
            (certificate::Identity::load(certificate, key).map_err(text)?, certificate.clone(), None)
        }
        _ => {
            let folder = certificate::default_folder(|name| std::env::var_os(name)).map_err(text)?;
            let made = Development::load_or_make(&folder, server::date::unix_now()).map_err(text)?;
            (made.identity.clone(), made.certificate_path.clone(), Some(made))
        }
    };
    let chain = identity.chain.iter().map(|certificate| certificate.to_vec()).collect();
    let tls = Identity::from_der(chain, identity.key.secret_der().to_vec()).map_err(text)?;
    Ok(Credentials { tls, certificate, development })
}

/// Turns until a signal, then until the last connection has said good-bye or a few seconds have passed.
fn run_worker(worker: &mut Worker<UdpPort, Server>, stop: &AtomicBool) -> std::io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        let log_at = worker.app_mut().next_timeout();
        worker.run_turn(log_at)?;
        let now = worker.now();
        worker.app_mut().on_time(now);
    }
    worker.app_mut().stop();
    worker.refuse_incoming();
    worker.activate_all();
    let deadline = worker.now() + GRACE;
    while worker.open_connections() > 0 && worker.now() < deadline {
        worker.run_turn(Some(deadline))?;
    }
    // Whoever is in the middle of something hears that it is over.
    worker.app_mut().abandon();
    worker.activate_all();
    worker.turn(worker.now())?;
    Ok(())
}

/// Says on standard error where the server listens and how to reach it, and writes the ready file.
fn announce(args: &ServeArgs, listening: SocketAddr, credentials: &Credentials) -> Result<(), String> {
    eprintln!("tercel serves HTTP/3 on {listening}, datapath {}", args.quic.datapath.variant().name());
    if let Some(development) = &credentials.development {
        eprint!("{}", development.how_to_use(listening.port()));
    }
    let ready = serde_json::json!({
        "port": listening.port(),
        "pid": std::process::id(),
        "certificate": credentials.certificate,
    });
    write_json(args.ready_file.as_deref(), &ready)
}

/// What the server did, for people on standard error and for machines in the summary file.
fn summarize(args: &ServeArgs, worker: &Worker<UdpPort, Server>) -> Result<(), String> {
    let counters = worker.counters();
    let cpu_s = bench::cpu::process_seconds();
    let capabilities = worker.port().capabilities();
    let summary = serde_json::json!({
        "cpu_s": cpu_s,
        "datapath": capabilities.name,
        "segments_offloaded": capabilities.segments_offloaded,
        "coalesces": capabilities.coalesces,
        "sent_bytes": counters.tx.bytes,
        "sent_datagrams": counters.tx.datagrams,
        "send_calls": counters.tx.calls,
        "received_bytes": counters.rx.bytes,
        "received_datagrams": counters.rx.datagrams,
        "receive_calls": counters.rx.calls,
        "waits": counters.waits,
        "connections": worker.endpoint().counters().incoming,
    });
    let per_call = |datagrams: u64, calls: u64| datagrams as f64 / calls.max(1) as f64;
    eprintln!(
        "tercel served {} datagrams ({:.1} per system call), heard {} ({:.1} per system call), {:.2} s of CPU",
        counters.tx.datagrams,
        per_call(counters.tx.datagrams, counters.tx.calls),
        counters.rx.datagrams,
        per_call(counters.rx.datagrams, counters.rx.calls),
        cpu_s,
    );
    write_json(args.summary_file.as_deref(), &summary)
}

/// Writes the file whole or not at all, so that whoever waits for it never reads half of it.
fn write_json(path: Option<&Path>, value: &serde_json::Value) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let partial = path.with_extension("partial");
    std::fs::write(&partial, format!("{value}\n"))
        .and_then(|()| std::fs::rename(&partial, path))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}

/// How long connections have to finish after a signal.
const GRACE: Duration = Duration::from_secs(5);
