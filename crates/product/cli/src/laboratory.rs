//! The commands of the laboratory: those that measure. Built with the feature `lab`.

use crate::{
    bench_command, dash_command, interop_command, lab_command, load_command, perf_command, profile_command,
    trace_command,
};
use clap::Subcommand;
use std::process::ExitCode;

#[derive(Subcommand)]
pub(crate) enum Command {
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
    /// One end of an interoperability case: HTTP/0.9 over QUIC. For tests/interop.
    #[command(hide = true)]
    Interop(interop_command::InteropArgs),
    /// Say where a process spends its CPU time: a ledger by what it was for, and a flame graph. Needs perf.
    Profile(profile_command::ProfileArgs),
    /// Say what a connection did: a summary of its trace (qlog, of any implementation), and a page with pictures.
    Qlog(trace_command::TraceArgs),
    /// Measure: against another implementation, against the machine.
    Bench(Box<bench_command::BenchArgs>),
}

pub(crate) fn run(command: &Command) -> ExitCode {
    match command {
        Command::Load(args) => load_command::run(args),
        Command::Dash(args) => dash_command::run(args),
        Command::Perf(args) => perf_command::run(args),
        Command::Lab(args) => lab_command::run(args),
        Command::Interop(args) => interop_command::run(args),
        Command::Profile(args) => profile_command::run(args),
        Command::Qlog(args) => trace_command::run(args),
        Command::Bench(args) => bench_command::run(args),
    }
}
