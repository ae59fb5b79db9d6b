//! `cargo xtask memcheck`: the tests of what holds `unsafe`, `udp/src/sys`, `xdp/src/sys` and `aead`, under Valgrind's memcheck.
//!
//! The ordinary test programs run, with the kernel's real system calls: memcheck knows what those read and write, and sees
//! accesses beyond what was allocated or mapped, and uses of memory that was not written.
//! What it does not see is aliasing, which pointer may be used after which borrow: that is for Miri, with a stand-in for the kernel.

use std::process::Command;

/// What cargo runs.
const TESTS: &[&[&str]] = &[
    &["--package", "tercel-udp", "--package", "tercel-xdp", "--lib", "sys::"],
    &["--package", "tercel-aead", "--test", "portable", "--test", "forgeries"],
];

/// Runs them. Where `CI` is set Valgrind must be there: tests/setup installs it.
pub(crate) fn run() -> Result<String, String> {
    let missing = !Command::new("valgrind").arg("--version").output().is_ok_and(|it| it.status.success());
    if missing {
        let what = "memcheck: NOT RUN: there is no valgrind, which tests/setup installs".to_owned();
        let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        return if in_ci { Err(what) } else { Ok(what) };
    }
    for arguments in TESTS {
        let status = Command::new(env!("CARGO"))
            .args(["test", "--locked", "--quiet"])
            .args(*arguments)
            .env(runner(), "valgrind --quiet --error-exitcode=9")
            .current_dir(crate::root())
            .status()
            .map_err(|error| format!("cargo does not start: {error}"))?;
        if !status.success() {
            return Err("memcheck: a test failed, or touched memory that it must not".to_owned());
        }
    }
    Ok("memcheck: the tests of udp/src/sys, xdp/src/sys and aead have run, nothing to report".to_owned())
}

/// The variable that tells cargo what runs the programs it has built.
pub(crate) fn runner() -> String {
    format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER", std::env::consts::ARCH.to_uppercase())
}
