//! The table of congestion controllers and links: runs the simulator's contests and writes docs/controllers.

use std::process::Command;

/// Builds and runs the contests; what they say goes to the terminal as it comes.
pub(crate) fn run() -> Result<String, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let status = Command::new(cargo)
        .args([
            "run",
            "--profile",
            "quick",
            "-p",
            "tercel-sim",
            "--bin",
            "controllers",
            "--",
            "docs/controllers",
        ])
        .current_dir(crate::root())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok("docs/controllers is made anew".to_owned())
    } else {
        Err(format!("controllers: {status}"))
    }
}
