//! `tercel profile`: where a process spends its CPU time.

use crate::print_error;
use crate::signals::stop_flag;
use clap::{ArgGroup, Args};
use profile::{Profile, Target};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Seconds for which a process that runs on is watched.
const SECONDS: f64 = 10.0;

/// Flags of `tercel profile`.
#[derive(Args)]
#[command(
    group(ArgGroup::new("target").required(true).args(["pid", "command"])),
    after_help = "\
The ledger says what CPU time was for: the kernel's sending and receiving, packet and header protection, transport, HTTP, the
application, and what is not explained. Only time on a CPU counts, and only that of the process: work that the kernel does on
its own account, in interrupts or threads of its own, is in no process's time.

Examples:
  tercel profile --pid $(pgrep -f 'tercel serve') --seconds 5
  tercel profile --out before -- tercel get --discard --insecure https://localhost:4433/bytes/2GB"
)]
pub(crate) struct ProfileArgs {
    /// The process to watch.
    #[arg(long)]
    pid: Option<u32>,
    /// For how long: 10 for a process, to its end for a command.
    #[arg(long, value_name = "N")]
    seconds: Option<f64>,
    /// The directory for flame.svg, flame.folded (stacks as other tools read them) and ledger.json.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// The command to start and watch, after --.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Watches, prints and writes.
pub(crate) fn run(args: &ProfileArgs) -> ExitCode {
    profile(args).map_or_else(print_error, |()| ExitCode::SUCCESS)
}

fn profile(args: &ProfileArgs) -> Result<(), String> {
    if args.seconds.is_some_and(|seconds| !(0.1..=3_600.0).contains(&seconds)) {
        return Err("--seconds must be from 0.1 to 3600".to_owned());
    }
    let stop = stop_flag(|| {}).map_err(text)?;
    let (target, seconds) = match args.pid {
        Some(pid) => (Target::Process(pid), Some(args.seconds.unwrap_or(SECONDS))),
        None => (Target::Command(args.command.clone()), args.seconds),
    };
    let profile = profile::record(&target, seconds, &title(args), &stop).map_err(text)?;
    print!("{}", profile.ledger);
    for note in &profile.notes {
        println!("Note: {note}");
    }
    write(&profile, &args.out)
}

fn title(args: &ProfileArgs) -> String {
    match args.pid {
        Some(pid) => {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            format!("CPU time of {} ({pid})", name.trim())
        }
        None => {
            let program = args.command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
            format!("CPU time of {}", program.to_string_lossy())
        }
    }
}

fn write(profile: &Profile, directory: &Path) -> Result<(), String> {
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    let ledger = serde_json::to_string_pretty(&profile.ledger).map_err(text)? + "\n";
    for (name, content) in
        [("flame.svg", &profile.svg), ("flame.folded", &profile.folded), ("ledger.json", &ledger)]
    {
        let file = directory.join(name);
        std::fs::write(&file, content)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    eprintln!("the flame graph is {}", directory.join("flame.svg").display());
    Ok(())
}

fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}
