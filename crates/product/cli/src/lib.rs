//! The tercel command, as a library: its compiler need not wait for the code of the crates that it calls, only for their interfaces.

#[cfg(feature = "lab")]
mod bench_command;
mod config_command;
mod configuration;
mod connection_options;
#[cfg(feature = "lab")]
mod dash_command;
mod doctor;
mod get;
mod hash_password;
mod help;
#[cfg(feature = "lab")]
mod interop_command;
#[cfg(feature = "lab")]
mod lab_command;
#[cfg(feature = "lab")]
mod laboratory;
#[cfg(feature = "lab")]
mod load_command;
mod multipath_options;
mod options;
mod pages;
mod path_options;
#[cfg(feature = "lab")]
mod perf_command;
#[cfg(feature = "lab")]
mod profile_command;
mod qlog_options;
mod reload_command;
mod serve;
mod serving;
mod signals;
mod status_command;
mod techniques;
#[cfg(feature = "lab")]
mod trace_command;

use clap::{CommandFactory as _, Parser, Subcommand};
use config::units;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

/// Which build this is, for `--version`: study E6 compares builds of the same sources, and reads it (`studies::e6`).
const BUILD: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nprofile ",
    env!("TERCEL_PROFILE"),
    "\nsources ",
    env!("TERCEL_SOURCES")
);

const ABOUT: &str = if cfg!(feature = "lab") {
    "A QUIC and HTTP/3 server, client and laboratory for Linux."
} else {
    "A QUIC and HTTP/3 server and client for Linux."
};

#[derive(Parser)]
#[command(
    name = "tercel",
    version,
    long_version = BUILD,
    about = ABOUT,
    after_help = "Begin with:  tercel serve .   and in another terminal   tercel get --help"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve files and generated bodies over HTTP/1.1, 2 and 3.
    Serve(Box<serve::ServeArgs>),
    /// Say what is wrong with a configuration file: line, reason, cure.
    Check(config_command::CheckArgs),
    /// Print a configuration as a whole, or the schema of configuration files.
    Config(config_command::ConfigArgs),
    /// Print the state of a server that runs.
    Status(status_command::StatusArgs),
    /// Have a server that runs read its configuration and certificates again, and say what is wrong with them.
    Reload(reload_command::ReloadArgs),
    /// Print the hash of a password, for users in a configuration file.
    HashPassword(hash_password::HashPasswordArgs),
    /// Download over HTTP/3.
    Get(Box<get::GetArgs>),
    /// Say what this machine allows to a data path, and what to do about the rest.
    Doctor(doctor::DoctorArgs),
    /// Print what a shell needs to complete commands and flags.
    Completions(pages::CompletionsArgs),
    /// Write pages for man.
    Man(pages::ManArgs),
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Laboratory(laboratory::Command),
}

/// What the words on the command line ask for.
pub fn run() -> ExitCode {
    let mut typed = std::env::args_os();
    let program = typed.next().unwrap_or_default();
    let typed: Vec<OsString> = typed.collect();
    let words: Vec<String> = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(help) = help::laboratory(Cli::command(), &words) {
        print!("{help}");
        return ExitCode::SUCCESS;
    }
    let (words, sites) = match configuration::expand(typed) {
        Ok(expanded) => expanded,
        Err(faults) => return config_command::print_faults(&faults),
    };
    match Cli::parse_from(std::iter::once(program).chain(words.clone())).command {
        Command::Serve(args) => {
            serve::run(&Arc::from(args), Box::new(move || configuration::read_again(&words)), sites)
        }
        Command::Check(args) => config_command::check(&args),
        Command::Config(args) => config_command::run(&args),
        Command::Status(args) => status_command::run(&args),
        Command::Reload(args) => reload_command::run(&args),
        Command::HashPassword(args) => hash_password::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions(args) => pages::completions(&args, Cli::command()),
        Command::Man(args) => pages::man(&args, Cli::command()),
        #[cfg(feature = "lab")]
        Command::Laboratory(command) => laboratory::run(&command),
    }
}

/// Says what is wrong in one line.
fn print_error(what: impl core::fmt::Display) -> ExitCode {
    eprintln!("tercel: {what}");
    ExitCode::FAILURE
}
