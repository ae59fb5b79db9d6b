//! `tercel completions` and `tercel man`: what shells and man know of the commands, from their definition.

use crate::print_error;
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell as Generator;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Flags of `tercel completions`.
#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that reads them: bash from /usr/share/bash-completion/completions/tercel, zsh from _tercel in a folder of its fpath, fish
    /// from ~/.config/fish/completions/tercel.fish.
    #[arg(value_enum)]
    shell: Shell,
}

/// Flags of `tercel man`.
#[derive(Args)]
pub(crate) struct ManArgs {
    /// The folder to write to, which is made if need be: tercel.1, and a page for each command.
    folder: PathBuf,
}

/// Prints completions of `command`.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> ExitCode {
    let generator = match args.shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut command, name, &mut script);
    match std::io::stdout().write_all(&script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(format!("cannot write completions: {error}")),
    }
}

/// Writes the pages of `command` and its commands.
pub(crate) fn man(args: &ManArgs, command: Command) -> ExitCode {
    match write(command, &args.folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(format!("cannot write pages to {}: {error}", args.folder.display())),
    }
}

fn write(command: Command, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder)
}
