//! `tercel status`: the state of a server that runs, from its admin address.

use crate::print_error;
use admin::{Address, DEFAULT, fetch, report};
use clap::Args;
use serde_json::Value;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

/// Between the two looks from which rates are computed.
const SPAN: Duration = Duration::from_secs(1);

/// Flags of `tercel status`.
#[derive(Args)]
pub(crate) struct StatusArgs {
    /// The admin address of the server, as tercel serve --admin has it: PORT, ADDRESS:PORT or unix:PATH.
    #[arg(long, value_name = "[ADDRESS:]PORT", default_value = DEFAULT)]
    admin: Address,
    /// Print JSON, at once: the numbers since the server was started, without rates.
    #[arg(long)]
    json: bool,
}

/// Prints the state of a server.
pub(crate) fn run(args: &StatusArgs) -> ExitCode {
    match state(&args.admin) {
        Ok(state) if args.json => println!("{state:#}"),
        Ok(before) => {
            sleep(SPAN);
            match state(&args.admin) {
                Ok(now) => print!("{}", report(&before, &now, SPAN.as_secs_f64())),
                Err(why) => return print_error(why),
            }
        }
        Err(why) => return print_error(why),
    }
    ExitCode::SUCCESS
}

fn state(address: &Address) -> Result<Value, String> {
    let content = fetch(address, "/status").map_err(|error| match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => format!(
            "no server answers at {address}: start one with tercel serve --admin, or say where with --admin"
        ),
        _ => format!("cannot ask {address}: {error}"),
    })?;
    serde_json::from_slice(&content)
        .map_err(|_| format!("{address} is not the admin address of a tercel server"))
}
