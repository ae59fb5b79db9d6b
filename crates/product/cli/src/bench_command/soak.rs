//! `tercel bench soak`.

use super::method::MethodArg;
use super::text;
use crate::signals::stop_flag;
use bench::site::Site;
use bench::soak::{self, SoakPlan};
use clap::Args;
use std::path::PathBuf;

/// Flags of `tercel bench soak`.
#[derive(Args)]
pub(super) struct SoakArgs {
    /// Write what was found into this file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// For how long downloads are begun.
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS")]
    seconds: f64,
    /// The server's data path.
    #[arg(long, value_enum, default_value = "xdp-driver", value_name = "PATH")]
    datapath: MethodArg,
    /// Share of datagrams that the link loses, each way.
    #[arg(long, default_value_t = 0.01, value_name = "SHARE")]
    loss: f64,
    /// Clients at the same time.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    clients: u8,
    /// Content of one download in 10^9 bytes.
    #[arg(long, value_name = "GB", default_value = "0.02", value_parser = super::size)]
    size: f64,
}

/// Runs and prints; fails when anything was lost or leaked.
pub(super) fn run(args: &SoakArgs) -> Result<(), String> {
    if !(0.1..=1e6).contains(&args.seconds) {
        return Err("--seconds must be from 0.1 to 1000000".to_owned());
    }
    if !(0.0..=0.9).contains(&args.loss) {
        return Err("--loss must be from 0 to 0.9".to_owned());
    }
    let stop = stop_flag(|| {}).map_err(text)?;
    let plan = SoakPlan {
        program: std::env::current_exe().map_err(text)?,
        seconds: args.seconds,
        loss: args.loss,
        method: args.datapath.method(),
        clients: usize::from(args.clients),
        bytes: (args.size * 1e9) as u64,
    };
    let site = Site::lossy(args.loss).map_err(text)?;
    let soak = soak::run(&plan, &site, &stop, &mut |line| eprintln!("{line}")).map_err(text)?;
    println!("\n{soak}");
    super::write_json(args.json.as_deref(), &soak)?;
    soak.problem().map_or(Ok(()), Err)
}
