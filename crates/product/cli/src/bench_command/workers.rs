//! `tercel bench workers`.

use super::text;
use crate::signals::stop_flag;
use bench::workers::{self, WorkersPlan};
use clap::Args;
use std::path::PathBuf;

/// Flags of `tercel bench workers`.
#[derive(Args)]
pub(super) struct WorkersArgs {
    /// Write everything that was measured into this file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Trials of each kind of request with each number of workers.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    trials: u32,
    /// How long each is measured.
    #[arg(long, default_value_t = 4.0, value_name = "SECONDS")]
    seconds: f64,
    /// Connections of the generator.
    #[arg(short = 'c', long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    connections: u32,
    /// Requests at a time on each connection.
    #[arg(short = 'm', long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    streams: u32,
}

/// Measures and prints.
pub(super) fn run(args: &WorkersArgs) -> Result<(), String> {
    if !(0.1..=3_600.0).contains(&args.seconds) {
        return Err("--seconds must be from 0.1 to 3600".to_owned());
    }
    let stop = stop_flag(|| {}).map_err(text)?;
    let plan = WorkersPlan {
        trials: args.trials as usize,
        seconds: args.seconds,
        connections: args.connections as usize,
        streams: args.streams as usize,
        ..WorkersPlan::new(std::env::current_exe().map_err(text)?)
    };
    let result = workers::run(&plan, &stop, &mut |line| eprintln!("{line}")).map_err(text)?;
    println!("\n{result}");
    super::write_json(args.json.as_deref(), &result)?;
    result.problem.map_or(Ok(()), Err)
}
