//! `tercel bench report`: a run that was measured before, shown again.

use super::text;
use clap::Args;
use report::model::Run;
use report::text::Colours;
use report::{html, markdown, write};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

/// Flags of `tercel bench report`.
#[derive(Args)]
#[command(after_help = "Example:  tercel bench report results/2026-11-21T18-30Z --html report.html")]
pub(super) struct ReportArgs {
    /// A directory that a run of tercel bench left, or its results.json.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Write the page into this file instead.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write Markdown into this file instead, and its pictures beside it.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Prints, or writes.
pub(super) fn run(args: &ReportArgs) -> Result<(), String> {
    let run = write::read(&args.run).map_err(text)?;
    if let Some(file) = &args.html {
        save(file, &html::report(&run))?;
    }
    if let Some(file) = &args.markdown {
        save_markdown(file, &run)?;
    }
    if args.html.is_none() && args.markdown.is_none() {
        print!("{}", report::text::run(&run, colours()));
    }
    Ok(())
}

fn save_markdown(file: &Path, run: &Run) -> Result<(), String> {
    let pages = markdown::report(run);
    let beside = file.parent().unwrap_or(Path::new(""));
    for (name, svg) in &pages.pictures {
        save(&beside.join(name), svg)?;
    }
    save(file, &pages.text)
}

/// Writes a file.
pub(super) fn save(file: &Path, content: &str) -> Result<(), String> {
    std::fs::write(file, content).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// What the reader's terminal can show.
pub(super) fn colours() -> Colours {
    let is_terminal = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if is_terminal { Colours::Terminal } else { Colours::None }
}
