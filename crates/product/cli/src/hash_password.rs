//! `tercel hash-password`: the hash of a password for a configuration file.

use crate::print_error;
use clap::Args;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use server::access::PasswordHash;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

/// Longer passwords are refused, in bytes: the server takes none.
const LONGEST: usize = 512;

/// Flags of `tercel hash-password`.
#[derive(Args)]
#[command(
    after_help = "Example:  printf %s \"$PASSWORD\" | tercel hash-password\n\nIn the configuration file:\n  auth = { users = { alice = \"$argon2id$…\" } }"
)]
pub(crate) struct HashPasswordArgs {}

/// Asks for a password, or reads the first line of what is piped, and prints its hash.
pub(crate) fn run(_: &HashPasswordArgs) -> ExitCode {
    let password = match if io::stdin().is_terminal() { ask() } else { read() } {
        Ok(password) => password,
        Err(error) => return print_error(format!("cannot read the password: {error}")),
    };
    if password.is_empty() {
        return print_error(
            "the password is empty: type one, or pipe it: printf %s \"$PASSWORD\" | tercel hash-password",
        );
    }
    if password.len() > LONGEST {
        return print_error(format!("the password is longer than {LONGEST} bytes: take a shorter one"));
    }
    match PasswordHash::make(password.as_bytes()) {
        Ok(hash) => {
            println!("{hash}");
            ExitCode::SUCCESS
        }
        Err(error) => print_error(error),
    }
}

fn read() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    line.truncate(line.trim_end_matches(['\r', '\n']).len());
    Ok(line)
}

/// Asks twice, since what is typed is not shown.
fn ask() -> io::Result<String> {
    let hidden = Hidden::new()?;
    let asked = |what: &str| {
        eprint!("{what}: ");
        io::stderr().flush()?;
        let line = read();
        eprintln!();
        line
    };
    let (first, again) = (asked("Password")?, asked("Again")?);
    drop(hidden);
    if first == again { Ok(first) } else { Err(io::Error::other("the two differ: try again")) }
}

/// A terminal that does not show what is typed, until it is dropped.
struct Hidden(rustix::termios::Termios);

impl Hidden {
    fn new() -> io::Result<Hidden> {
        let before = tcgetattr(io::stdin())?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &modes)?;
        Ok(Hidden(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}
