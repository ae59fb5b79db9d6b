//! The studies that the simulator makes: its programs `controllers` and `networks` write the page of the same name under docs.

use std::process::Command;

/// Builds and runs the program of a study; what it says goes to the terminal as it comes.
pub(crate) fn run(study: &str) -> Result<String, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let page = format!("docs/{study}");
    let status = Command::new(cargo)
        .args(["run", "--release", "-p", "tercel-sim", "--bin", study, "--", &page])
        .current_dir(crate::root())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(format!("{page} is made anew")) } else { Err(format!("{study}: {status}")) }
}
