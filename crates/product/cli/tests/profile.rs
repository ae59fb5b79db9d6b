//! `tercel profile`: what it prints and leaves, and what it says when it cannot.
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn tercel(args: &[&str], within: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tercel"));
    command.arg("profile").args(args).current_dir(within).stdin(Stdio::null()).output().unwrap()
}

/// Whether perf works here at all: it is a program of its own, which the kernel may refuse.
fn perf_works(within: &Path) -> bool {
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-e", "cpu-clock", "-o", "try.data", "--", "true"]).current_dir(within);
    let works =
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !works {
        requirements::missing("perf is not installed (tests/setup does that), or the kernel refuses it");
    }
    works
}

#[test]
fn a_command_leaves_a_flame_graph_and_a_ledger() {
    let folder = tempfile::tempdir().unwrap();
    if !perf_works(folder.path()) {
        return;
    }
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done";
    let output = tercel(&["--out", "out", "--", "sh", "-c", busy], folder.path());
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    // The command's own words, and the ledger, which a shell's work does not explain.
    for part in ["done\n", "kernel send", "unexplained", "100.0 %"] {
        assert!(told.contains(part), "{part} is missing in\n{told}");
    }
    let ledger = std::fs::read_to_string(folder.path().join("out/ledger.json")).unwrap();
    let ledger: serde_json::Value = serde_json::from_str(&ledger).unwrap();
    let shares: f64 =
        ledger["lines"].as_array().unwrap().iter().map(|line| line["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{ledger}");
    let svg = std::fs::read_to_string(folder.path().join("out/flame.svg")).unwrap();
    assert!(svg.contains("CPU time of sh") && svg.trim_end().ends_with("</svg>"));
    assert!(std::fs::read_to_string(folder.path().join("out/flame.folded")).unwrap().lines().count() > 0);
}

#[test]
fn what_cannot_be_watched_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    for (args, said) in [
        (&["--pid", "4294967295"][..], "tercel: there is no process 4294967295\n"),
        (&["--pid", "1", "--seconds", "0"], "tercel: --seconds must be from 0.1 to 3600\n"),
    ] {
        let output = tercel(args, folder.path());
        assert!(!output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), said);
    }
    assert!(!tercel(&[], folder.path()).status.success(), "a target is needed");
}
