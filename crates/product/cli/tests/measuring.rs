//! `tercel perf` and `tercel dash`, as users run them: servers and clients as processes, their JSON, their refusals.
//!
//! Every process has a deadline and is killed at the end of its test, however that ends.

#![expect(clippy::expect_used, reason = "a test ends where something is not as it should be")]

use serde_json::Value;
use std::fs::File;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tercel");
/// The machine may be busy; nothing here takes a second on an idle one.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(10);

/// A server that does not outlive its test.
struct Server {
    child: Child,
    ready: Value,
    place: TempDir,
}

impl Server {
    fn start(arguments: &[&str]) -> Server {
        let place = TempDir::new().expect("a folder");
        let file = |name: &str| place.path().join(name);
        let mut command = Command::new(PROGRAM);
        command.args(arguments).args(["--listen", "127.0.0.1:0"]).arg("--ready-file").arg(file("ready"));
        command.env("XDG_DATA_HOME", file("data")).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(file("said")).expect("a file"));
        let mut child = command.spawn().expect("the program starts");
        let mut waited = Duration::ZERO;
        while !file("ready").exists() {
            let ended = child.try_wait().expect("a status");
            let said = std::fs::read_to_string(file("said")).unwrap_or_default();
            assert!(ended.is_none() && waited < PATIENCE, "it does not start: {said}");
            sleep(STEP);
            waited += STEP;
        }
        let ready = std::fs::read_to_string(file("ready")).expect("a file");
        Server { ready: serde_json::from_str(&ready).expect("JSON"), child, place }
    }

    fn address(&self) -> String {
        format!("localhost:{}", self.ready["port"])
    }

    /// Runs a client that trusts it.
    fn ask(&self, arguments: &[&str]) -> Output {
        let output = self.place.path().join("output");
        let mut command = Command::new(PROGRAM);
        command.args(arguments).args(["-4", "--cacert", self.ready["certificate"].as_str().expect("a path")]);
        command.args(["--server-pid", &self.child.id().to_string()]);
        command.stdin(Stdio::null()).stdout(File::create(&output).expect("a file")).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut waited = Duration::ZERO;
        while child.try_wait().expect("a status").is_none() {
            if waited > PATIENCE {
                let _ = child.kill();
            }
            sleep(STEP);
            waited += STEP;
        }
        let mut ended = child.wait_with_output().expect("its end");
        ended.stdout = std::fs::read(&output).expect("a file");
        ended
    }

    /// The JSON of a client that succeeds.
    fn measure(&self, arguments: &[&str]) -> Value {
        let output = self.ask(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn perf_counts_what_was_asked_for() {
    let server = Server::start(&["perf", "serve", "--workers", "2"]);
    let address = server.address();
    let client = |more: &[&str]| server.measure(&[&["perf", "client", &address, "--json"], more].concat());
    let requests = client(&["-n", "2000", "-c", "2", "-t", "2", "-m", "8", "--warm-up", "0.05"]);
    assert_eq!((&requests["completed"], &requests["failed"]), (&2_000.into(), &0.into()), "{requests}");
    // Answers to requests of the warm-up arrive as well.
    assert!(requests["received_bytes"].as_u64() >= Some(2_000 * 8_192), "{requests}");
    assert!(requests["latency"]["p50_us"].as_f64().is_some_and(|us| us > 0.0), "{requests}");
    assert!(requests["server"]["cpu_s"].as_f64().is_some(), "{requests}");
    let down = client(&["download", "--size", "1MB", "-m", "3"]);
    assert_eq!((&down["completed"], &down["received_bytes"]), (&3.into(), &3_000_000.into()), "{down}");
    let up = client(&["upload", "--size", "1MB", "-m", "3", "--datapath", "plain"]);
    assert_eq!((&up["completed"], &up["received_bytes"]), (&3.into(), &0.into()), "{up}");
    let handshakes = client(&["handshakes", "-n", "10", "-c", "2", "--warm-up", "0"]);
    assert_eq!((&handshakes["completed"], &handshakes["task"]), (&10.into(), &"handshakes".into()));
}

#[test]
fn the_echo_answers_bare_datagrams_and_nothing_else() {
    let server = Server::start(&["perf", "serve", "--echo"]);
    let echoed = server.measure(&["perf", "client", &server.address(), "echo", "--json", "-D", "0.3"]);
    assert!(echoed["completed"].as_u64().is_some_and(|count| count > 0), "{echoed}");
    let perf = Server::start(&["perf", "serve"]);
    let refused = perf.ask(&["perf", "client", &perf.address(), "echo", "-D", "0.3"]);
    assert!(!refused.status.success() && said(&refused).contains("--echo"), "{}", said(&refused));
}

#[test]
fn a_film_is_played_by_all_players() {
    let server = Server::start(&["serve", "--access-log", "off"]);
    let url = format!("https://{}/dash/manifest.mpd", server.address());
    let players = ["--players", "3", "--speed", "20", "-D", "60", "--rule", "buffer", "--json"];
    let report = server.measure(&[&["dash", &url], &players[..]].concat());
    assert_eq!(
        (&report["started"], &report["failures"], &report["rule"]),
        (&3.into(), &0.into(), &"buffer".into())
    );
    assert!(report["server_cpu_s_per_gbit"].as_f64().is_some_and(|seconds| seconds > 0.0), "{report}");
    // A server of one protocol is no server of the other.
    let refused = server.ask(&["perf", "client", &server.address()]);
    assert!(said(&refused).contains("does not speak the perf protocol"), "{}", said(&refused));
}
