//! What tests need of the machine: privileges, programs, abilities of the kernel, ports.
//!
//! A test that lacks one of them cannot say anything. On a developer's machine it prints why and passes. Where the
//! environment variable `CI` is set it fails: a check that did not run is not a check that passed. All tests use this
//! crate for it, as a dev-dependency; `cargo xtask tests` finds those that print "skipped" on their own.
#![forbid(unsafe_code)]

pub mod ports;

use std::fmt::Display;

/// Says that the running test is skipped, and why. The caller returns afterwards.
///
/// # Panics
/// Where `CI` is set to anything but the empty text.
#[track_caller]
pub fn missing(why: impl Display) {
    if let Err(failure) = judge(std::env::var_os("CI").is_some_and(|value| !value.is_empty()), &why) {
        #[expect(clippy::panic, reason = "used by tests only, where a panic is a failure")]
        {
            panic!("{failure}");
        }
    }
}

/// Whether the process belongs to root; `what` needs that, such as `"loading eBPF programs"`.
///
/// # Panics
/// As [`missing`], where it does not.
#[track_caller]
pub fn root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        missing(format_args!("{what} needs root"));
    }
    root
}

/// The rule itself: in CI an error, elsewhere a line on standard error.
fn judge(in_ci: bool, why: &dyn Display) -> Result<(), String> {
    if in_ci {
        return Err(format!("CI is set, so nothing may be skipped, but {why}"));
    }
    eprintln!("skipped: {why}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, CI could pass without having run what needs root, a program or a kernel's ability.
    #[test]
    fn what_is_missing_fails_in_ci_and_is_told_elsewhere() {
        let failure = judge(true, &"tshark is not installed").unwrap_err();
        assert!(failure.contains("tshark is not installed") && failure.contains("CI"), "{failure}");
        assert_eq!(judge(false, &"tshark is not installed"), Ok(()));
    }
}
