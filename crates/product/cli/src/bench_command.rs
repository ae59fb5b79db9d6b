//! `tercel bench`: measurements that anyone can repeat.

mod compare;
mod datapaths;
mod floor;
mod idle;
mod library;
mod method;
mod report;
mod soak;
mod study;
mod workers;

use crate::print_error;
use crate::signals::stop_flag;
use bench::peers;
use bench::roofline::{self, Roofline, Work};
use clap::{Args, Subcommand, ValueEnum};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};

/// Flags of `tercel bench`.
#[derive(Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// Every study below, one after the other, into one report.
    All(study::AllArgs),
    /// E1: one large download over every data path of the server, kernel UDP against AF_XDP; needs root.
    E1(study::StudyArgs),
    /// E2: five downloads with packets of several sizes, and how long the search for the size takes (DPLPMTUD).
    E2(study::StudyArgs),
    /// E3: requests per second against latency, over kernel UDP and over AF_XDP; needs root.
    E3(study::StudyArgs),
    /// E4: many requests for a small file over HTTP/3, tercel beside quinn, quiche, s2n-quic, quic-go and Caddy; see peers/build.
    E4(study::StudyArgs),
    /// E5: a few large files over HTTP/1.1, HTTP/2 and HTTP/3, tercel beside nginx, Caddy and others.
    E5(study::StudyArgs),
    /// E6: what each technique is worth, by leaving it out, and HTTP/3 beside HTTP/1.1 and HTTP/2.
    E6(study::StudyArgs),
    /// E7: full, resumed and 0-RTT handshakes, tercel beside other servers, with and without the post-quantum key exchange and Retry.
    E7(study::StudyArgs),
    /// E8: downloads over links that lose, reorder, delay, police and fall silent, tercel's controllers beside the kernel's TCP, quinn,
    /// quiche, s2n-quic, quic-go and Caddy; needs root.
    ///
    /// Real processes in namespaces that an emulated link joins: thirty-eight cells of the simulator's study (`cargo xtask networks`), with
    /// the same link model, and the simulator's times beside. The client is tercel's for all; what differs is who sends. Beside times
    /// stand how long packets waited in the bottleneck's queue and, in three cells, what small requests take beside a download. A page
    /// and 1 MB are downloaded once more by a client that comes again, which shows what a sender remembers of a path. A cell in which
    /// the emulator has missed frames is marked and not counted. A round takes twenty minutes, and three are made; --quick has seven cells and one round.
    /// --profile is refused: the servers wait for the network nearly all of the time.
    E8(study::CellsArgs),
    /// Shares: a download by tercel and one by the kernel's TCP through the same bottleneck, and who gets what of it; needs root and nginx.
    ///
    /// Real processes in namespaces that an emulated link of 20 Mbit/s and 40 ms joins, with queues of a quarter, one and four
    /// bandwidth-delay products. tercel's auto, CUBIC and BBR meet nginx on the kernel's CUBIC and BBR, as do the kernel's two each other
    /// and themselves: what is told of tercel is to be read beside those. The second download begins half a second after the first; shares are what
    /// both files grow in 15 s, and Jain's index says how evenly: 1 is evenly, 0.5 is one alone. Five rounds take twenty minutes;
    /// --quick has the queue of one product and two rounds. --profile is refused: such a link gives servers little to do.
    Shares(study::StudyArgs),
    /// Acks: a download whose receiver acknowledges more or less often, and what that costs both ends.
    Acks(study::StudyArgs),
    /// Every client with every server, tercel's, quinn's and quiche's, with large and with default socket buffers.
    ///
    /// One connection and one stream over loopback, HTTP/3. Goodput and CPU time of each pair are a table; below it stand ratios with
    /// 95 % intervals: tercel's server beside the others for the same client, and what is left of the goodput when the client's
    /// socket has the buffer of a socket that asks for nothing (212,992 bytes) instead of a large one. tests/setup builds
    /// quinn-peer, peers/build quiche-peer, without which quiche is left out.
    Peers(PeersArgs),
    /// What the library costs: axum beside the native handler, async streams beside the sans-IO transport, and both beside quinn.
    ///
    /// Over loopback, the server on one core and the client on another. hello: one generator asks for a few bytes over HTTP/3, of
    /// tercel serve, of an axum application on our server, and of the same application on quinn and h3. stream: this many bytes on
    /// one stream, by tercel perf, by the crate quic with two of its drivers, and by quinn. Ratios have 95 % intervals and stand
    /// beside their aims. `cargo build --profile dist --package tercel-bench --example axum_hello` makes the axum application for
    /// target/dist/tercel, tests/setup quinn-peer, peers/build quinn-axum-peer; what is absent is left out.
    Library(library::LibraryArgs),
    /// Measure what a transfer costs without a protocol.
    Roofline(RooflineArgs),
    /// Measure bare system calls per datagram, and beside them the same through our data paths.
    Floor(floor::FloorArgs),
    /// One large transfer over every data path of the server, between two namespaces joined by veth; needs root.
    Datapaths(datapaths::DataPathsArgs),
    /// Measure what an idle server costs, over every data path and in every mode of waiting; needs root.
    Idle(idle::IdleArgs),
    /// Download at full rate over a link that loses datagrams, and look for lost bytes and leaked memory; needs root.
    Soak(soak::SoakArgs),
    /// Request rates of a server with one worker and with two.
    Workers(workers::WorkersArgs),
    /// Show a run that was measured before: in the terminal, as a page, or as Markdown.
    Report(report::ReportArgs),
    /// Two runs side by side: what changed beyond doubt.
    Compare(compare::CompareArgs),
    /// One process of the library's comparison.
    #[command(hide = true)]
    LibraryChild {
        /// What it does, as JSON.
        role: String,
    },
    /// One process of a floor.
    #[command(hide = true)]
    FloorChild {
        /// BenchCommand it does, as JSON.
        role: String,
    },
    /// One side of a roofline.
    #[command(hide = true)]
    Child {
        /// BenchCommand it does, as JSON.
        role: String,
    },
}

#[derive(Args)]
struct PeersArgs {
    /// Print JSON: everything that was measured.
    #[arg(long)]
    json: bool,
    /// Three trials of 0.5 GB: a look, no measurement.
    #[arg(long)]
    quick: bool,
    /// Content of one transfer in 10^9 bytes.
    #[arg(long, value_name = "GB", value_parser = size)]
    gb: Option<f64>,
    /// Trials of each pair.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    trials: Option<u32>,
    /// Where quinn-peer is.
    #[arg(long, value_name = "FILE", default_value = "target/peers/release/quinn-peer")]
    quinn_peer: PathBuf,
    /// Where quiche-peer is.
    #[arg(long, value_name = "FILE", default_value = "target/peers/release/quiche-peer")]
    quiche_peer: PathBuf,
}

#[derive(Args)]
struct RooflineArgs {
    /// Print JSON: everything that was measured.
    #[arg(long)]
    json: bool,
    /// Bytes of UDP payload in each datagram.
    #[arg(long, default_value_t = 1_472, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(100..=65_000))]
    packet_size: u16,
    /// UDP payload of one trial in 10^9 bytes.
    #[arg(long, value_name = "GB", default_value = "4", value_parser = size)]
    gb: f64,
    /// Trials; their median is the result.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    trials: u32,
    /// How much of a transfer is done.
    #[arg(long, value_enum, default_value = "whole")]
    work: WorkArg,
    /// How datagrams reach the kernel.
    #[arg(long, value_enum, default_value = "gso", value_name = "PATH")]
    datapath: method::KernelPath,
}

#[derive(Clone, Copy, ValueEnum)]
enum WorkArg {
    /// Copy, encrypt, send; receive, decrypt, copy.
    Whole,
    /// Only send and receive.
    Kernel,
}

/// Runs a measurement.
pub(crate) fn run(args: &BenchArgs) -> ExitCode {
    let done = match &args.what {
        BenchCommand::All(args) => study::all(args),
        BenchCommand::E1(args) => study::run("e1", args),
        BenchCommand::E2(args) => study::run("e2", args),
        BenchCommand::E3(args) => study::run("e3", args),
        BenchCommand::E4(args) => study::run("e4", args),
        BenchCommand::E5(args) => study::run("e5", args),
        BenchCommand::E6(args) => study::run("e6", args),
        BenchCommand::E7(args) => study::run("e7", args),
        BenchCommand::E8(args) => study::run_cells("e8", args),
        BenchCommand::Shares(args) => study::run("shares", args),
        BenchCommand::Acks(args) => study::run("acks", args),
        BenchCommand::Peers(args) => compare_peers(args),
        BenchCommand::Library(args) => library::run(args),
        BenchCommand::Roofline(args) => measure_roofline(args),
        BenchCommand::Floor(args) => floor::run(args),
        BenchCommand::Datapaths(args) => datapaths::run(args),
        BenchCommand::Idle(args) => idle::run(args),
        BenchCommand::Soak(args) => soak::run(args),
        BenchCommand::Workers(args) => workers::run(args),
        BenchCommand::Report(args) => report::run(args),
        BenchCommand::Compare(args) => compare::run(args),
        BenchCommand::LibraryChild { role } => library::child(role),
        BenchCommand::FloorChild { role } => floor::child(role),
        BenchCommand::Child { role } => roofline::child(role).map_err(|error| error.to_string()),
    };
    done.map_or_else(print_error, |()| ExitCode::SUCCESS)
}

fn compare_peers(args: &PeersArgs) -> Result<(), String> {
    let stop = stop_flag(|| {}).map_err(text)?;
    let mut plan = peers::PeersPlan::new(
        std::env::current_exe().map_err(text)?,
        args.quinn_peer.clone(),
        args.quiche_peer.clone(),
    );
    if args.quick {
        (plan.gigabytes, plan.trials) = (0.5, 3);
    }
    plan.gigabytes = args.gb.unwrap_or(plan.gigabytes);
    plan.trials = args.trials.map_or(plan.trials, |trials| trials as usize);
    let result = peers::run(&plan, &launch, &stop, &mut |line| eprintln!("{line}")).map_err(text)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&result).map_err(text)?);
    } else {
        println!("\n{result}");
    }
    result.problem.map_or(Ok(()), Err)
}

fn measure_roofline(args: &RooflineArgs) -> Result<(), String> {
    let stop: &AtomicBool = &*stop_flag(|| {}).map_err(text)?;
    let work = match args.work {
        WorkArg::Whole => Work::Whole,
        WorkArg::Kernel => Work::Kernel,
    };
    let size = usize::from(args.packet_size);
    let mut plan = roofline::RooflinePlan::new(size, args.gb, work, args.datapath.variant());
    plan.trials = args.trials as usize;
    let result = roofline::run(&plan, &launch);
    if stop.load(Ordering::Relaxed) {
        return Err("interrupted".to_owned());
    }
    let result = result.map_err(text)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&result).map_err(text)?);
    } else {
        print_roofline(&result);
    }
    Ok(())
}

fn print_roofline(result: &Roofline) {
    println!(
        "{:.2} Gbit/s of content in datagrams of {} bytes, {} trials, datapath {}",
        result.gbit_per_second, result.plan.datagram_size, result.plan.trials, result.plan.variant
    );
    for (name, core, side) in [("sender", 0, &result.sender), ("receiver", 1, &result.receiver)]
        .map(|(name, index, side)| (name, result.plan.cores[index], side))
    {
        println!(
            "{name:9} {:.3} CPU s/GB, {:.0} ns per datagram, {:.0} datagrams per system call, busy {:.0} % of core {core}",
            side.cpu_seconds_per_gb,
            side.nanoseconds_per_datagram,
            side.datagrams_per_call,
            side.busy * 100.0
        );
    }
}

/// This program again, as one side of a roofline.
fn launch(role: &str) -> io::Result<Command> {
    launch_as("child")(role)
}

/// This program again, as a child of the kind that `word` names.
fn launch_as(word: &'static str) -> impl Fn(&str) -> io::Result<Command> {
    move |role| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", word, role]);
        Ok(command)
    }
}

/// Writes what was measured where the user wants it.
fn write_json(path: Option<&Path>, value: &impl serde::Serialize) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let json = serde_json::to_string_pretty(value).map_err(text)?;
    std::fs::write(path, json + "\n").map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Gigabytes that make sense.
fn size(text: &str) -> Result<f64, String> {
    let size: f64 = text.parse().map_err(|_| "a number of gigabytes is needed".to_owned())?;
    if (0.001..=10_000.0).contains(&size) { Ok(size) } else { Err("from 0.001 to 10000 GB".to_owned()) }
}

fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}
