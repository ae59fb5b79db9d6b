//! The tercel command.

mod bench_command;
mod connection_options;
mod dash_command;
mod doctor;
mod get;
mod help;
mod lab_command;
mod listen;
mod load_command;
mod options;
mod path_options;
mod perf_command;
mod profile_command;
mod serve;
mod serving;
mod signals;
mod techniques;

use clap::{CommandFactory as _, Parser, Subcommand};
use std::process::ExitCode;

/// Which build this is, for `--version`: study E6 compares builds of the same sources, and reads it (`studies::e6`).
const BUILD: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nprofile ",
    env!("TERCEL_PROFILE"),
    "\nsources ",
    env!("TERCEL_SOURCES")
);

/// A QUIC and HTTP/3 server, client and laboratory for Linux.
#[derive(Parser)]
#[command(
    version,
    long_version = BUILD,
    about,
    after_help = "Begin with:  tercel serve .   and in another terminal   tercel get --help"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve files and generated bodies over HTTP/1.1, 2 and 3.
    Serve(Box<serve::ServeArgs>),
    /// Download over HTTP/3.
    Get(Box<get::GetArgs>),
    /// Generate load over HTTP/1.1, 2 or 3 and measure rate and latency.
    Load(Box<load_command::LoadArgs>),
    /// Play video over HTTP/3 (DASH) and measure what viewers would see.
    Dash(Box<dash_command::DashArgs>),
    /// Measure the transport without HTTP: requests, latency, transfers, handshakes.
    Perf(Box<perf_command::PerfArgs>),
    /// Make two machines and an emulated network between them.
    ///
    /// Makes a network namespace for a server (server0, 198.18.0.1, fd00::1) and one for a client (client0, 198.18.0.2,
    /// fd00::2), and joins them by an emulated link with the delay, rate and loss you ask for; the kernel needs no netem.
    /// Runs a command on the client's side and ends with its exit code, or stays until Ctrl-C. Nothing is left behind,
    /// whatever happens. Needs root, that is CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW.
    Lab(Box<lab_command::LabArgs>),
    /// Say what this machine allows to a data path, and what to do about the rest.
    Doctor(doctor::DoctorArgs),
    /// Say where a process spends its CPU time: a ledger by what it was for, and a flame graph. Needs perf.
    Profile(profile_command::ProfileArgs),
    /// Measure: against another implementation, against the machine.
    Bench(Box<bench_command::BenchArgs>),
}

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(help) = help::laboratory(Cli::command(), &words) {
        print!("{help}");
        return ExitCode::SUCCESS;
    }
    match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Load(args) => load_command::run(&args),
        Command::Dash(args) => dash_command::run(&args),
        Command::Perf(args) => perf_command::run(&args),
        Command::Lab(args) => lab_command::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Profile(args) => profile_command::run(&args),
        Command::Bench(args) => bench_command::run(&args),
    }
}

/// Says what is wrong in one line.
fn complain(what: impl core::fmt::Display) -> ExitCode {
    eprintln!("tercel: {what}");
    ExitCode::FAILURE
}
