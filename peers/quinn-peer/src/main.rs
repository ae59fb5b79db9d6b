//! `quinn-peer`: the published quinn and h3 crates as a peer that shares no code with tercel.
//!
//! `serve` and `get` are the two ends of interop tests; `perf-serve` and `perf-get` move N bytes over one connection and
//! one stream, for benchmarks; `ported` runs two of tercel's example programs on quinn. What a program wants
//! to know is printed as one line of JSON on standard output.

mod endpoint;
mod get;
mod interop;
mod perf;
mod ported;
mod serve;
mod tls;
mod usage;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Whatever went wrong, in words: this program only ever prints it and exits.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Parser)]
#[command(version, about = "A QUIC and HTTP/3 peer on the published quinn")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Threads of the runtime
    #[arg(long, value_enum, default_value = "current", global = true)]
    runtime: Runtime,
    #[command(flatten)]
    quic: endpoint::Options,
    #[command(flatten)]
    tls: tls::Options,
}

#[derive(Clone, Copy, ValueEnum)]
enum Runtime {
    /// One thread
    Current,
    /// One thread per core
    Multi,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the files below ROOT, and generated bodies at /bytes/N, over HTTP/3
    Serve(serve::Options),
    /// Download a URL over HTTP/3
    Get(get::Options),
    /// Send as many bytes as each stream asks for: raw streams, or HTTP/3
    PerfServe(perf::ServeOptions),
    /// Ask for BYTES and discard them
    PerfGet(perf::GetOptions),
    /// One end of a case of the public interoperability tests
    Interop(interop::Options),
    /// Run programs of tercel's examples on quinn: a file transfer and remote calls
    Ported(ported::Options),
}

/// Where a server listens, and how it tells.
#[derive(Args)]
pub(crate) struct Listen {
    /// Address and port; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Write {"address", "port", "with"} as JSON here once listening
    #[arg(long)]
    ready_file: Option<PathBuf>,
}

impl Listen {
    /// Tells the process that started us where we listen; by rename, so that it never reads half of it.
    pub(crate) fn announce(&self, address: SocketAddr) -> Result<(), Error> {
        eprintln!("listening on {address}");
        if let Some(path) = &self.ready_file {
            let with = site::versions(&["quinn", "h3"]);
            let ready =
                serde_json::json!({ "address": address.to_string(), "port": address.port(), "with": with });
            write_by_rename(path, &ready.to_string())?;
        }
        Ok(())
    }
}

fn write_by_rename(path: &Path, text: &str) -> std::io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    std::fs::write(&unfinished, text)?;
    std::fs::rename(unfinished, path)
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut builder = match cli.runtime {
        Runtime::Current => tokio::runtime::Builder::new_current_thread(),
        Runtime::Multi => tokio::runtime::Builder::new_multi_thread(),
    };
    match builder.enable_all().build().map_err(Error::from).and_then(|runtime| runtime.block_on(run(cli))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quinn-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<(), Error> {
    let Cli { command, quic, tls, .. } = cli;
    match command {
        Command::Serve(options) => until_stopped(serve::run(options, quic, tls)).await,
        Command::Get(options) => get::run(options, quic, tls).await,
        Command::PerfServe(options) => until_stopped(perf::serve(options, quic, tls)).await,
        Command::PerfGet(options) => perf::get(options, quic, tls).await,
        Command::Interop(options) => interop::run(options, quic, tls).await,
        Command::Ported(options) => ported::run(options).await,
    }
}

/// Runs a server until it is done by itself or somebody interrupts it.
async fn until_stopped(server: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        outcome = server => outcome,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}
