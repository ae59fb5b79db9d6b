//! `tercel check` and `tercel config`: what a configuration file says, and what is wrong with it.

use crate::configuration::file::{File, keys};
use crate::print_error;
use clap::{Args, Subcommand};
use config::print::{to_toml, whole_json};
use config::read::Table;
use config::schema::schema;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Flags of `tercel check`.
#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The file that tercel serve --config would be given.
    file: PathBuf,
}

/// `tercel config`.
#[derive(Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print a configuration as a whole, with what holds by default.
    Show(ShowArgs),
    /// Print the JSON schema of configuration files, by which editors know the keys.
    Schema,
}

#[derive(Args)]
struct ShowArgs {
    /// The file. Without it: what holds by default.
    file: Option<PathBuf>,
    /// Print JSON instead of TOML.
    #[arg(long)]
    json: bool,
}

/// Says what is wrong with a file.
pub(crate) fn check(args: &CheckArgs) -> ExitCode {
    match File::read(&args.file).and_then(|file| file.check()) {
        Ok(()) => {
            println!("{}: nothing is wrong", args.file.display());
            ExitCode::SUCCESS
        }
        Err(faults) => print_faults(&faults),
    }
}

/// Says what is wrong with a configuration, whose lines begin with the name of the file.
pub(crate) fn print_faults(faults: &str) -> ExitCode {
    print_error(faults.trim_end())
}

/// Prints a configuration, or the schema.
pub(crate) fn run(args: &ConfigArgs) -> ExitCode {
    match &args.command {
        Command::Schema => println!("{:#}", schema("Configuration of tercel serve", &keys())),
        Command::Show(show) => match read(show.file.as_deref()) {
            Ok(table) if show.json => println!("{:#}", whole_json(&keys(), &table)),
            Ok(table) => print!("{}", to_toml(&keys(), &table)),
            Err(faults) => return print_faults(&faults),
        },
    }
    ExitCode::SUCCESS
}

fn read(path: Option<&Path>) -> Result<Table, String> {
    let Some(path) = path else { return Ok(Table::default()) };
    let file = File::read(path)?;
    file.check()?;
    Ok(file.table)
}
