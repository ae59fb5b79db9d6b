//! `cargo xtask miri`: the tests of the folders that hold `unsafe`, under Miri.
//!
//! Miri runs no system calls: the calls of `udp/src/sys` and `xdp/src/sys` go to a stand-in there (`kernel.rs`), which follows every
//! pointer that it is given, as the kernel would. So what is checked is whether those pointers may be followed, and whether
//! the accesses to shared memory are in bounds, aligned and ordered. What the real kernel does is for the ordinary tests.
//!
//! `aead` calls no kernel, but instructions that this machine may not have: Miri knows them all. So the code for all widths runs, and is
//! compared with RustCrypto's, without its assembly.
//!
//! Miri is a component of Rust's nightly toolchain (`rustup toolchain install nightly --component miri,rust-src`). A machine without it
//! is no fault of the code: the step then says that it has not run, also in CI.

use std::process::Command;

/// Packages, and the tests in them.
const TESTS: &[(&str, &[&str])] = &[
    ("tercel-udp", &["--lib", "sys::"]),
    ("tercel-xdp", &["--lib", "sys::"]),
    ("tercel-aead", &["--test", "portable", "--test", "forgeries"]),
];

/// The instructions of `aead`, and RustCrypto without its own.
const FLAGS: &str = "-Ctarget-feature=+aes,+pclmulqdq,+avx2,+vaes,+vpclmulqdq,+avx512f,+avx512bw,+avx512vl \
    --cfg aes_backend=\"soft\" --cfg polyval_backend=\"soft\"";

/// Runs them, if there is a Miri.
pub(crate) fn run() -> Result<String, String> {
    let has_miri = Command::new("cargo")
        .args(["+nightly", "miri", "--version"])
        .env_remove("RUSTUP_TOOLCHAIN")
        .output()
        .is_ok_and(|output| output.status.success());
    if !has_miri {
        return Ok("miri: NOT RUN: there is no nightly toolchain with Miri (rustup toolchain install nightly --component miri,rust-src)"
            .to_owned());
    }
    for (package, tests) in TESTS {
        let status = Command::new("cargo")
            .args(["+nightly", "miri", "test", "--locked", "--quiet", "--package", package])
            .args(*tests)
            // Descriptors of the machine's files name the memory that is shared.
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .env("RUSTFLAGS", FLAGS)
            .env_remove("RUSTUP_TOOLCHAIN")
            .env("CARGO_TARGET_DIR", crate::root().join("target/miri"))
            .current_dir(crate::root())
            .status()
            .map_err(|error| format!("cargo does not start: {error}"))?;
        if !status.success() {
            return Err(format!("miri: {package} failed"));
        }
    }
    Ok("miri: the tests of udp/src/sys, xdp/src/sys and aead have run, nothing to report".to_owned())
}
