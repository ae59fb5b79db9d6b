//! `tercel bench idle`.

use super::method::MethodArg;
use super::text;
use crate::signals::stop_flag;
use bench::idle::{self, IdlePlan};
use bench::method::Method;
use bench::site::Site;
use clap::Args;
use std::path::PathBuf;

/// Flags of `tercel bench idle`.
#[derive(Args)]
pub(super) struct IdleArgs {
    /// Write everything that was measured into this file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// How long each server is watched.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    seconds: f64,
    /// Only these paths of the server, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PATHS")]
    paths: Vec<MethodArg>,
}

/// Measures and prints; fails when a server that should sleep does not.
pub(super) fn run(args: &IdleArgs) -> Result<(), String> {
    if !(0.1..=3_600.0).contains(&args.seconds) {
        return Err("--seconds must be from 0.1 to 3600".to_owned());
    }
    let stop = stop_flag(|| {}).map_err(text)?;
    let chosen: Vec<Method> = args.paths.iter().map(|path| path.method()).collect();
    let plan = IdlePlan {
        program: std::env::current_exe().map_err(text)?,
        seconds: args.seconds,
        core: cpu::first_two()[0],
        methods: if chosen.is_empty() { Method::ALL.to_vec() } else { chosen },
    };
    let site = Site::veth(1).map_err(text)?;
    let result = idle::run(&plan, &site, &stop, &mut |line| eprintln!("{line}")).map_err(text)?;
    println!("\n{result}");
    super::write_json(args.json.as_deref(), &result)?;
    let wrong = result.rows.iter().find(|row| !row.is_as_it_should_be());
    wrong.map_or(Ok(()), |row| Err(format!("not as idle as it should be: {row}")))
}
