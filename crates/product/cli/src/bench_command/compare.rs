//! `tercel bench compare`: two runs side by side.

use super::report::{colours, save};
use super::text;
use clap::Args;
use report::compare::Comparison;
use report::{html, write};
use std::path::{Path, PathBuf};

/// Flags of `tercel bench compare`.
#[derive(Args)]
#[command(after_help = "Example:  tercel bench compare results/2026-11-21T18-30Z results/2026-11-22T09-00Z")]
pub(super) struct CompareArgs {
    /// The run that was there before: the directory that tercel bench left, or its results.json.
    #[arg(value_name = "FIRST")]
    first: PathBuf,
    /// The run that is judged.
    #[arg(value_name = "SECOND")]
    second: PathBuf,
    /// Print JSON: every series of both runs, and the ratios.
    #[arg(long)]
    json: bool,
    /// Write a page into this file instead of printing.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
}

/// Compares and prints.
pub(super) fn run(args: &CompareArgs) -> Result<(), String> {
    let [first, second] = [&args.first, &args.second].map(|path| write::read(path));
    let comparison = Comparison::of(&first.map_err(text)?, &second.map_err(text)?);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&comparison).map_err(text)?);
        return Ok(());
    }
    let mut names = [&args.first, &args.second].map(|path| name(path));
    if names[0] == names[1] {
        names = [&args.first, &args.second].map(|path| path.display().to_string());
    }
    let run = comparison.as_run([&names[0], &names[1]]);
    match &args.html {
        Some(file) => save(file, &html::comparison(&run)),
        None => {
            print!("{}", report::text::run(&run, colours()));
            Ok(())
        }
    }
}

/// What a run is called: its directory.
pub(super) fn name(path: &Path) -> String {
    let directory = if path.ends_with(write::RESULTS) { path.parent().unwrap_or(path) } else { path };
    let last = directory.file_name().unwrap_or(directory.as_os_str());
    last.to_string_lossy().into_owned()
}
