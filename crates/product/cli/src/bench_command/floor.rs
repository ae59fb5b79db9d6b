//! `tercel bench floor`.

use super::method::MethodArg;
use super::{launch_as, text};
use crate::signals::stop_flag;
use bench::floor::{self, FloorPlan};
use bench::site::Site;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Flags of `tercel bench floor`.
#[derive(Args)]
pub(super) struct FloorArgs {
    /// Write everything that was measured into this file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Bytes of UDP payload in each datagram.
    #[arg(long, default_value_t = 1_472, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(100..=1_472))]
    packet_size: u16,
    /// Seconds of one trial.
    #[arg(long, default_value_t = 0.5, value_name = "SECONDS")]
    seconds: f64,
    /// Trials of the floor and of the port each.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    trials: u32,
    /// Where: on loopback, between two namespaces that veth joins, or both.
    #[arg(long, value_enum, default_value = "both", value_name = "PLACE")]
    on: FloorSite,
    /// Only these, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "METHODS")]
    methods: Vec<MethodArg>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FloorSite {
    /// The loopback interface.
    Loopback,
    /// A veth pair; needs root.
    Veth,
    /// One after the other.
    Both,
}

/// Measures and prints; fails when a row could not be measured.
pub(super) fn run(args: &FloorArgs) -> Result<(), String> {
    if !(0.01..=600.0).contains(&args.seconds) {
        return Err("--seconds must be from 0.01 to 600".to_owned());
    }
    let stop = stop_flag(|| {}).map_err(text)?;
    let mut plan = FloorPlan::new();
    plan.datagram_size = usize::from(args.packet_size);
    plan.seconds = args.seconds;
    plan.trials = args.trials as usize;
    if !args.methods.is_empty() {
        plan.methods = args.methods.iter().map(|method| method.method()).collect();
    }
    let mut sites = Vec::new();
    if args.on != FloorSite::Veth {
        sites.push(Site::Loopback);
    }
    if args.on != FloorSite::Loopback {
        sites.push(Site::veth(1).map_err(text)?);
    }
    let launch = launch_as("floor-child");
    let floor = floor::run(&plan, &sites, &launch, &stop, &mut |line| eprintln!("{line}")).map_err(text)?;
    println!("{floor}");
    super::write_json(args.json.as_deref(), &floor)?;
    floor.problem().map_or(Ok(()), |row| Err(format!("not measured: {row}")))
}

/// One process of a floor.
pub(super) fn child(role: &str) -> Result<(), String> {
    floor::child(role).map_err(text)
}
