//! What implements AES-GCM: tercel's own kernel, unless the process says otherwise. Each case needs a process of its own.

use aead::Instructions;
use crypto::{Library, Suite, prefer};
use std::process::Command;

/// The name by which this program starts itself.
const CASE: &str = "TERCEL_TEST_CASE";

fn run(case: &str, aead: Option<&str>) -> bool {
    let program = std::env::current_exe().unwrap_or_default();
    let mut command = Command::new(program);
    command.args(["--exact", "in_a_process_of_its_own"]).env(CASE, case).env_remove("TERCEL_AEAD");
    command.envs(aead.map(|value| ("TERCEL_AEAD", value)));
    command.output().is_ok_and(|output| output.status.success())
}

/// What cannot be switched off could not be suspected either.
#[test]
fn the_kernel_can_be_switched_off() {
    let has_instructions = Instructions::fastest().is_some();
    assert!(run(if has_instructions { "kernel" } else { "library" }, None));
    assert!(run(if has_instructions { "kernel" } else { "library" }, Some("kernel")));
    assert!(run("library", Some("library")));
    assert!(run("preferred", None));
    assert!(run(if has_instructions { "copying" } else { "library" }, None));
}

#[test]
fn in_a_process_of_its_own() {
    let case = std::env::var(CASE).unwrap_or_default();
    match case.as_str() {
        "preferred" => prefer(Library::AwsLc),
        "copying" => prefer(Library::CopyingKernel),
        _ => {}
    }
    let of = [Suite::Aes128Gcm, Suite::Aes256Gcm].map(Library::fastest);
    match case.as_str() {
        "kernel" => assert_eq!(of, [Library::Kernel; 2]),
        "copying" => assert_eq!(of, [Library::CopyingKernel; 2]),
        "library" | "preferred" => assert_eq!(of, [Library::AwsLc; 2]),
        _ => {}
    }
    assert_eq!(Library::fastest(Suite::ChaCha20Poly1305), Library::AwsLc);
}
