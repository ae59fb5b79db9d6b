//! `tercel bench datapaths`.

use super::text;
use crate::signals::stop_flag;
use bench::datapaths::table::{Colours, Text};
use bench::datapaths::{self, DataPathsPlan};
use bench::site::Site;
use clap::Args;
use std::io::IsTerminal as _;
use std::path::PathBuf;

/// Flags of `tercel bench datapaths`.
#[derive(Args)]
pub(super) struct DataPathsArgs {
    /// Write everything that was measured into this file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Content of one transfer in 10^9 bytes.
    #[arg(long, value_name = "GB", default_value = "2", value_parser = super::size)]
    size: f64,
    /// Counted trials of each path; one more warms up.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    trials: u32,
    /// Bytes of UDP payload in full packets.
    #[arg(long, default_value_t = 1_472, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1_200..=1_472))]
    packet_size: u16,
    /// Only these paths of the server, separated by commas; the first is what the others are compared with.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PATHS")]
    paths: Vec<super::method::MethodArg>,
}

/// Measures and prints.
pub(super) fn run(args: &DataPathsArgs) -> Result<(), String> {
    let stop = stop_flag(|| {}).map_err(text)?;
    let mut plan = DataPathsPlan::new(std::env::current_exe().map_err(text)?);
    plan.bytes = (args.size * 1e9) as u64;
    plan.trials = args.trials as usize;
    plan.packet_size = args.packet_size;
    if !args.paths.is_empty() {
        plan.methods = args.paths.iter().map(|path| path.method()).collect();
    }
    let site = Site::veth(1).map_err(text)?;
    let result = datapaths::run(&plan, &site, &stop, &mut |line| eprintln!("{line}")).map_err(text)?;
    let is_terminal = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let colours = if is_terminal { Colours::Terminal } else { Colours::None };
    println!("\n{}", Text { result: &result, colours });
    super::write_json(args.json.as_deref(), &result)?;
    if result.was_interrupted {
        return Err("interrupted".to_owned());
    }
    let problem = result.rows.iter().find_map(|row| row.problem.clone());
    problem.map_or(Ok(()), Err)
}
