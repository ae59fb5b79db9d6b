//! `cargo xtask ci`: exactly what CI runs, in the order in which it fails fastest.

use std::process::Command;

const STEPS: &[(&str, &[&str])] = &[
    ("format", &["fmt", "--all", "--check"]),
    ("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    ("tests", &["test", "--workspace", "--locked"]),
];

/// Runs every step; the first failure ends it.
pub(crate) fn run() -> Result<String, String> {
    println!("== tidy\n{}", crate::tidy::run()?);
    println!("== rfc\n{}", crate::rfc::run()?);
    println!("== ebpf\n{}", crate::ebpf::run(Some("--check"))?);
    for (name, arguments) in STEPS {
        println!("== {name}: cargo {}", arguments.join(" "));
        let status = Command::new(env!("CARGO"))
            .args(*arguments)
            .current_dir(crate::root())
            .status()
            .map_err(|error| format!("cargo does not start: {error}"))?;
        if !status.success() {
            return Err(format!("ci: {name} failed"));
        }
    }
    Ok("ci: all steps passed".to_owned())
}
