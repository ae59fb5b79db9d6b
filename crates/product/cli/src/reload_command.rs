//! `tercel reload`: a server that runs reads its configuration and certificates again.

use crate::print_error;
use crate::serving::reload::{KEPT, RELOADED, restart_warning};
use admin::{Address, DEFAULT, Reload, ask_for_reload};
use clap::Args;
use std::io::{Error, ErrorKind};
use std::process::ExitCode;

/// Flags of `tercel reload`.
#[derive(Args)]
pub(crate) struct ReloadArgs {
    /// The admin address of the server, as tercel serve --admin has it: PORT, ADDRESS:PORT or unix:PATH. One that other machines reach takes
    /// no reload.
    #[arg(long, value_name = "[ADDRESS:]PORT", default_value = DEFAULT)]
    admin: Address,
    /// Print JSON: {"reloaded": true, "with_restart": [KEYS]} or {"reloaded": false, "fault": TEXT}.
    #[arg(long)]
    json: bool,
}

/// Has a server read its files again, and says how that went.
pub(crate) fn run(args: &ReloadArgs) -> ExitCode {
    match ask_for_reload(&args.admin) {
        Ok(outcome) if args.json => {
            println!("{:#}", outcome.to_json());
            if matches!(outcome, Reload::Done { .. }) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Ok(Reload::Done { with_restart }) => {
            println!("{RELOADED}");
            restart_warning(&with_restart).iter().for_each(|warning| eprintln!("tercel: warning: {warning}"));
            ExitCode::SUCCESS
        }
        Ok(Reload::Fault(what)) => {
            let code = print_error(what.trim_end());
            eprintln!("tercel: {KEPT}");
            code
        }
        Err(error) => print_error(explain(&args.admin, &error)),
    }
}

/// Why there was no reload, and what to do.
fn explain(address: &Address, error: &Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => format!(
            "no server answers at {address}: say with --admin where its admin address is; a server that was started without the key \
             \"admin\" (admin = 9433) or --admin has none, and reloads by kill -HUP PID"
        ),
        ErrorKind::PermissionDenied => {
            format!(
                "{address} is for its owner and group: run this as one of them, such as sudo -u USER tercel reload"
            )
        }
        _ => format!("no reload by {address}: {error}"),
    }
}
