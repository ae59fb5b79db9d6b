//! `tercel bench library`.

use super::{launch_as, size, text};
use crate::signals::stop_flag;
use bench::library::{self, Part, Settings};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Flags of `tercel bench library`.
#[derive(Args)]
#[command(after_help = "Example:  tercel bench library --only stream --trials 10 --gb 1")]
pub(super) struct LibraryArgs {
    /// Print JSON: everything that was measured.
    #[arg(long)]
    json: bool,
    /// Measure one part only.
    #[arg(long, value_enum, value_name = "PART")]
    only: Option<PartArg>,
    /// Three trials of 1 s and of 0.5 GB: a look, no measurement.
    #[arg(long)]
    quick: bool,
    /// Trials of each program.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    trials: Option<u32>,
    /// How long requests are counted in a trial.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Connections of the generator.
    #[arg(short = 'c', long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Requests at a time on each connection.
    #[arg(short = 'm', long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    streams: u32,
    /// Content of one stream in 10^9 bytes.
    #[arg(long, value_name = "GB", value_parser = size)]
    gb: Option<f64>,
    /// Where axum_hello is [default: examples/axum_hello beside this program].
    #[arg(long, value_name = "FILE")]
    axum_hello: Option<PathBuf>,
    /// Where quinn-peer is.
    #[arg(long, value_name = "FILE", default_value = "target/peers/release/quinn-peer")]
    quinn_peer: PathBuf,
    /// Where quinn-axum-peer is.
    #[arg(long, value_name = "FILE", default_value = "target/peers/release/quinn-axum-peer")]
    quinn_axum_peer: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum PartArg {
    /// Requests for a few bytes over HTTP/3.
    Hello,
    /// One stream without HTTP.
    Stream,
}

/// Measures and prints.
pub(super) fn run(args: &LibraryArgs) -> Result<(), String> {
    if args.seconds.is_some_and(|seconds| !(0.1..=3_600.0).contains(&seconds)) {
        return Err("--seconds must be from 0.1 to 3600".to_owned());
    }
    let stop = stop_flag(|| {}).map_err(text)?;
    let program = std::env::current_exe().map_err(text)?;
    let mut plan = Settings::new(program, args.quinn_peer.clone(), args.quinn_axum_peer.clone());
    plan.axum_hello = args.axum_hello.clone().unwrap_or(plan.axum_hello);
    if args.quick {
        (plan.trials, plan.seconds, plan.gigabytes) = (3, 1.0, 0.5);
    }
    plan.trials = args.trials.map_or(plan.trials, |trials| trials as usize);
    plan.seconds = args.seconds.unwrap_or(plan.seconds);
    plan.gigabytes = args.gb.unwrap_or(plan.gigabytes);
    (plan.connections, plan.streams) = (args.connections as usize, args.streams as usize);
    match args.only {
        Some(PartArg::Hello) => plan.parts = vec![Part::Hello],
        Some(PartArg::Stream) => plan.parts = vec![Part::Stream],
        None => {}
    }
    let launch = launch_as("library-child");
    let result = library::run(&plan, &launch, &stop, &mut |line| eprintln!("{line}")).map_err(text)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&result).map_err(text)?);
    } else {
        println!("\n{result}");
    }
    result.problem.map_or(Ok(()), Err)
}

/// One process of the comparison.
pub(super) fn child(role: &str) -> Result<(), String> {
    library::child(role).map_err(text)
}
