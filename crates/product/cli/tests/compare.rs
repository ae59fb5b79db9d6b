//! `tercel bench compare` and `tercel bench report`: what they print, write and refuse.
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use std::path::Path;
use std::process::{Command, Output};

/// A run with one series of trials.
fn write(directory: &Path, kernel: &str, trials: [f64; 3]) {
    let mean = trials.iter().sum::<f64>() / 3.0;
    let cell =
        serde_json::json!({"trials": [{"values": trials, "mean": mean, "sd": 1.0, "median": mean}, 1]});
    let table = serde_json::json!({
        "title": "Goodput", "corner": "path", "columns": ["MB/s"],
        "rows": [{"name": "plain", "is_published": false, "cells": [cell]}],
    });
    let study = serde_json::json!({
        "id": "e1", "title": "Paths", "question": "", "method": [], "findings": [], "notes": [], "problem": null,
        "blocks": [{"table": table}], "seconds": 1.0, "raw": null,
    });
    let run = serde_json::json!({
        "began": "2026-11-21T18:30:00Z", "seconds": 1.0, "is_quick": false, "was_interrupted": false,
        "environment": [["Kernel", kernel]], "studies": [study],
    });
    std::fs::create_dir_all(directory).unwrap();
    std::fs::write(directory.join("results.json"), run.to_string()).unwrap();
}

fn tercel(args: &[&str], within: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tercel")).arg("bench").args(args).current_dir(within).output().unwrap()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn two_runs_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("old"), "Linux 6.1", [100.0, 101.0, 99.0]);
    write(&folder.path().join("new"), "Linux 6.18", [120.0, 121.0, 119.0]);
    let text = printed(&tercel(&["compare", "old", "new/results.json"], folder.path()));
    for part in ["Linux 6.18", "1 of 1 series differ", "e1, plain, MB/s: 1.20"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let json = printed(&tercel(&["compare", "--json", "old", "new"], folder.path()));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["pairs"][0]["has_changed"], true, "{json}");
    assert_eq!(json["surroundings"][0][0], "Kernel", "{json}");
    printed(&tercel(&["compare", "--html", "both.html", "old", "new"], folder.path()));
    assert!(std::fs::read_to_string(folder.path().join("both.html")).unwrap().contains("1.20"));
    let refused = tercel(&["compare", "old", "missing"], folder.path());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.starts_with("tercel: cannot read missing"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_run_is_shown_again() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("old"), "Linux 6.1", [100.0, 101.0, 99.0]);
    let text = printed(&tercel(&["report", "old"], folder.path()));
    assert!(text.contains("E1 · Paths") && text.contains("100.0 ± 1.0"), "{text}");
    printed(&tercel(&["report", "old", "--html", "a.html", "--markdown", "a.md"], folder.path()));
    assert!(std::fs::read_to_string(folder.path().join("a.html")).unwrap().contains("<!doctype html>"));
    assert!(std::fs::read_to_string(folder.path().join("a.md")).unwrap().contains("| plain | 100.0 ± 1.0 |"));
}
