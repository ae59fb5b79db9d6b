//! Of which sources the figures of a study are.

use std::process::Command;

/// The revision of the sources here, and whether the files and folders `sources` differ from it.
pub fn revision(sources: &[&str]) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    let status = [&["status", "--porcelain", "--untracked-files=no", "--"], sources].concat();
    match git(&status) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit} and changes not committed"),
    }
}
