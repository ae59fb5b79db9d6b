//! `tercel bench e7` and `e8`, begun and interrupted: what was measured is kept. The whole studies take minutes and need other servers.
#![expect(clippy::expect_used, reason = "a test ends where something is not as it should be")]

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

/// Runs a study until it says `word`, interrupts it, and returns what it has kept.
fn interrupted(id: &str, flags: &[&str], word: &str) -> Value {
    let place = TempDir::new().expect("a folder");
    let (said, out) = (place.path().join("said"), place.path().join("out"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tercel"));
    command.args(["bench", id]).args(flags).arg("--out").arg(&out);
    // Other servers are looked for in the working directory.
    command.current_dir(place.path()).env("PATH", "").env("XDG_DATA_HOME", place.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&said).expect("a file"));
    let mut running = Running(command.spawn().expect("the program starts"));
    let told = || std::fs::read_to_string(&said).unwrap_or_default();
    let mut waited = Duration::ZERO;
    let mut is_asked = false;
    while running.0.try_wait().expect("a status").is_none() {
        assert!(waited < PATIENCE, "{}", told());
        if !is_asked && told().contains(word) {
            let pid = i32::try_from(running.0.id()).ok().and_then(rustix::process::Pid::from_raw);
            let sent = rustix::process::kill_process(pid.expect("an ID"), rustix::process::Signal::INT);
            is_asked = sent.is_ok();
        }
        sleep(STEP);
        waited += STEP;
    }
    assert!(is_asked, "it ended by itself: {}", told());
    let results = std::fs::read_to_string(out.join("results.json")).expect("results");
    let mut results: Value = serde_json::from_str(&results).expect("JSON");
    let study = results["studies"][0].take();
    assert_eq!((&study["id"], &study["problem"]), (&id.into(), &"interrupted".into()), "{study}");
    study
}

/// Deleted, an interrupted study could lose all that it has measured, and no test would start a server for a row of E7.
#[test]
fn a_study_of_handshakes_that_is_interrupted_keeps_its_trials() {
    let study = interrupted("e7", &["--quick"], "warm-up");
    assert!(study["raw"]["floor"]["hybrid_us"].as_f64().is_some_and(|us| us > 1.0), "{study}");
    let rows = study["raw"]["rows"].as_array().expect("rows");
    // Where the programs of peers/ are built, they have rows as well.
    let ours: Vec<&Value> = rows.iter().filter(|row| row["scenario"]["who"] == "Tercel").collect();
    assert_eq!(ours.len(), 10, "tercel offers all rows: {study}");
    assert!(ours.iter().all(|row| row["problem"].is_null()), "{study}");
}

/// Deleted, no test would make a link for a cell of E8 and download over it.
#[test]
fn a_study_of_bad_networks_that_is_interrupted_keeps_its_downloads() {
    if let Err(error) = netns::Lab::new(&netns::LabOptions::default()) {
        return requirements::missing(error);
    }
    let study = interrupted("e8", &["--quick"], "tercel CUBIC   ");
    let lanes = study["raw"]["cells"][0]["lanes"].as_array().expect("lanes");
    let ours = lanes.iter().find(|lane| lane["sender"] == "tercel CUBIC").expect("ours");
    let seconds = ours["attempts"][0]["seconds"].as_f64();
    // 1 MB at 10 Mbit/s.
    assert!(seconds.is_some_and(|seconds| (0.8..20.0).contains(&seconds)), "{study}");
    // The line takes 1.2 ms for each of 690 packets, and some wait for others.
    let wait = ours["attempts"][0]["queue"]["mean_ms"].as_f64();
    assert!(wait.is_some_and(|ms| (0.5..60.0).contains(&ms)), "{study}");
}

/// Deleted, no test would make requests beside a download of E8, on its connection and on another, or read what waited in a long queue.
#[test]
fn requests_are_made_beside_a_download_that_fills_a_queue() {
    if let Err(error) = netns::Lab::new(&netns::LabOptions::default()) {
        return requirements::missing(error);
    }
    let flags = ["--only", "bufferbloat", "--only", "requests beside", "--rounds", "1"];
    let study = interrupted("e8", &flags, "tercel CUBIC   ");
    let lanes = study["raw"]["cells"][0]["lanes"].as_array().expect("lanes");
    let ours = lanes.iter().find(|lane| lane["sender"] == "tercel CUBIC").expect("ours");
    let attempt = &ours["attempts"][0];
    assert!(attempt["fault"].is_null(), "{attempt}");
    // 10 MB at 10 Mbit/s.
    assert!(attempt["seconds"].as_f64().is_some_and(|seconds| (8.0..21.0).contains(&seconds)), "{attempt}");
    for connection in ["same", "other"] {
        let answers = &attempt["requests"][connection];
        let latencies = answers["latencies_ms"].as_array().expect("latencies");
        let unanswered = answers["unanswered"].as_u64().expect("a count") as usize;
        assert_eq!(latencies.len() + unanswered, 100, "{attempt}");
        // The round trip of the link is 40 ms.
        assert!(latencies.iter().all(|ms| ms.as_f64().is_some_and(|ms| ms >= 40.0)), "{attempt}");
    }
    // CUBIC fills some of the queue, which holds 400 ms of the line.
    let wait = attempt["queue"]["mean_ms"].as_f64();
    assert!(wait.is_some_and(|ms| (5.0..401.0).contains(&ms)), "{attempt}");
}
