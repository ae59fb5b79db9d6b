//! The tercel command.

mod bench_command;
mod doctor;
mod get;
mod options;
mod path_options;
mod serve;
mod serving;
mod signals;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A QUIC and HTTP/3 server, client and laboratory for Linux.
#[derive(Parser)]
#[command(
    version,
    about,
    after_help = "Begin with:  tercel serve .   and in another terminal   tercel get --help"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve files and generated bodies over HTTP/3.
    Serve(Box<serve::ServeArgs>),
    /// Download over HTTP/3.
    Get(Box<get::GetArgs>),
    /// Say what this machine allows to a data path, and what to do about the rest.
    Doctor(doctor::DoctorArgs),
    /// Measure: against another implementation, against the machine.
    Bench(Box<bench_command::BenchArgs>),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Bench(args) => bench_command::run(&args),
    }
}

/// Says what is wrong in one line.
fn complain(what: impl core::fmt::Display) -> ExitCode {
    eprintln!("tercel: {what}");
    ExitCode::FAILURE
}
