//! `tercel bench e7`, begun and interrupted: what was measured is kept. The whole study takes minutes and needs other servers.

use serde_json::Value;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// The machine may be busy; an idle one takes three seconds.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);

/// A study that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Deleted, an interrupted study could lose all that it has measured, and no test would start a server for a row of E7.
#[test]
fn a_study_of_handshakes_that_is_interrupted_keeps_its_trials() {
    let place = TempDir::new().expect("a folder");
    let (said, out) = (place.path().join("said"), place.path().join("out"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tercel"));
    command.args(["bench", "e7", "--quick", "--out"]).arg(&out);
    // Other servers are looked for in the working directory.
    command.current_dir(place.path()).env("PATH", "").env("XDG_DATA_HOME", place.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&said).expect("a file"));
    let mut running = Running(command.spawn().expect("the program starts"));
    let told = || std::fs::read_to_string(&said).unwrap_or_default();
    let mut waited = Duration::ZERO;
    let mut is_asked = false;
    while running.0.try_wait().expect("a status").is_none() {
        assert!(waited < PATIENCE, "{}", told());
        if !is_asked && told().matches("warm-up").count() > 0 {
            let pid = i32::try_from(running.0.id()).ok().and_then(rustix::process::Pid::from_raw);
            let sent = rustix::process::kill_process(pid.expect("an ID"), rustix::process::Signal::INT);
            is_asked = sent.is_ok();
        }
        sleep(STEP);
        waited += STEP;
    }
    assert!(is_asked, "it ended by itself: {}", told());
    let results = std::fs::read_to_string(out.join("results.json")).expect("results");
    let results: Value = serde_json::from_str(&results).expect("JSON");
    let study = &results["studies"][0];
    assert_eq!((&study["id"], &study["problem"]), (&"e7".into(), &"interrupted".into()), "{study}");
    assert!(study["raw"]["floor"]["hybrid_us"].as_f64().is_some_and(|us| us > 1.0), "{study}");
    let rows = study["raw"]["rows"].as_array().expect("rows");
    // Where the programs of peers/ are built, they have rows as well.
    let ours: Vec<&Value> = rows.iter().filter(|row| row["scenario"]["who"] == "Tercel").collect();
    assert_eq!(ours.len(), 10, "tercel offers all rows: {study}");
    assert!(ours.iter().all(|row| row["problem"].is_null()), "{study}");
}
