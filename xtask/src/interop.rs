//! `cargo xtask interop`: the cases of the public interoperability tests on the link emulator. The work is done by `tests/interop/public`,
//! in Python, whose independent implementation of QUIC reads the traces; this only calls it.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Passes the arguments on; `--help` lists them.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> Result<String, String> {
    let root = crate::root();
    let python = root.join("target/tests/venv/bin/python");
    if !python.exists() {
        return Err(format!("{} is missing: run tests/setup", python.display()));
    }
    let mut command = Command::new(python);
    command.arg("-B").arg(root.join("tests/interop/public/main.py")).args(arguments).current_dir(&root);
    // In its place, so that an interrupt from the terminal meets only what ends its runs in order.
    Err(format!("python does not start: {}", command.exec()))
}
