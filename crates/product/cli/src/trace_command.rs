//! `tercel qlog`: what a connection did, by its trace.

use crate::print_error;
use clap::Args;
use report::model::{Block, Run, Study};
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use traceview::{Document, Summary, Trace};

/// Flags of `tercel qlog`.
#[derive(Args)]
#[command(after_help = "\
It reads JSON text sequences (.sqlog), which --qlog of serve, get and load writes, and documents \
with all events (.qlog), which other implementations write. It counts the events that it does not \
know. It can read a trace that is still being written.

Examples:
  tercel qlog traces/0123456789abcdef_client.sqlog
  tercel qlog --json traces/*_server.sqlog | jq .lost
  tercel qlog --page connection.html traces/0123456789abcdef_*.sqlog
  tercel qlog --document connection.qlog traces/0123456789abcdef_*.sqlog")]
pub(crate) struct TraceArgs {
    /// Traces of connections.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print a line of JSON for each connection.
    #[arg(long)]
    json: bool,
    /// Write a page with the course of each connection: requests, sequence of packets, content, window, round-trip time.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Write the traces as one document of qlog 0.3, which qvis and other viewers open. They read no later version.
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
}

/// Reads, prints and writes.
pub(crate) fn run(args: &TraceArgs) -> ExitCode {
    show(args).map_or_else(print_error, |()| ExitCode::SUCCESS)
}

fn show(args: &TraceArgs) -> Result<(), String> {
    let mut run = Run { began: report::date::now(), ..Run::default() };
    for file in &args.files {
        for trace in traceview::read(file).map_err(|error| error.to_string())? {
            let summary = Summary::of(&trace);
            if args.json {
                println!("{}", line(file, &trace, &summary)?);
            }
            run.studies.push(traceview::study(&name(file), &trace, &summary));
        }
    }
    if !args.json {
        let is_terminal = std::io::stdout().is_terminal();
        let colours = if is_terminal { report::text::Colours::Terminal } else { report::text::Colours::None };
        for study in &run.studies {
            // A terminal shows no pictures: `--page` has them.
            let blocks = study.blocks.iter().filter(|block| matches!(block, Block::Table(_))).cloned();
            let shown = Study { blocks: blocks.collect(), ..study.clone() };
            println!("{}", report::text::study(&shown, colours).trim_end());
        }
    }
    if let Some(page) = &args.page {
        write(page, &report::html::titled("Connections", &run))?;
    }
    if let Some(path) = &args.document {
        // Viewers tell formats apart by the name, and traces are not written over by a forgotten argument.
        if path.extension().is_some_and(|extension| extension == "sqlog") {
            let told = "a document of qlog 0.3 is no sequence: give it a name that ends in .qlog";
            return Err(format!("{}: {told}", path.display()));
        }
        let mut document = Document::default();
        for file in &args.files {
            document.add(file).map_err(|error| error.to_string())?;
        }
        write(path, &document.to_json()?)?;
    }
    Ok(())
}

/// Writes a file for its owner alone, as traces are: it has their addresses and names.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let opened = File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

fn line(file: &Path, trace: &Trace, summary: &Summary) -> Result<serde_json::Value, String> {
    let mut line = serde_json::to_value(summary).map_err(|error| error.to_string())?;
    if let Some(fields) = line.as_object_mut() {
        fields.insert("file".to_owned(), name(file).into());
        fields.insert("began".to_owned(), trace.began.clone().into());
        fields.insert("notes".to_owned(), trace.notes.clone().into());
    }
    Ok(line)
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
