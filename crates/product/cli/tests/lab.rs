//! `tercel lab` as users run it: exit codes, both sides' commands, and nothing left behind.
//!
//! Skipped, with a word about it, where network namespaces are not permitted.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tercel");

fn lab() -> Command {
    // whatever happens, no test waits for longer than this
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "60", PROGRAM, "lab"]);
    command
}

/// Runs `tercel lab` with these arguments; `None` where that is not permitted.
fn run(arguments: &[&str]) -> Option<Output> {
    let output = lab().args(arguments).stdin(Stdio::null()).output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("needs CAP_SYS_ADMIN") {
        requirements::missing(String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(output)
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The processes whose network namespace has this number.
fn inhabitants(namespace: u64) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let lives_there =
        |path: &Path| fs::metadata(path.join("ns/net")).is_ok_and(|found| found.ino() == namespace);
    processes.filter(|path| lives_there(path)).map(|path| path.display().to_string()).collect()
}

/// Waits until no process lives in a namespace.
fn becomes_empty(namespace: u64) -> bool {
    (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        inhabitants(namespace).is_empty()
    })
}

#[test]
fn the_exit_code_is_the_commands() {
    for link in ["--direct", "--delay=1ms"] {
        for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
            let Some(output) = run(&[link, "--", "sh", "-c", script]) else { return };
            assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        }
    }
}

#[test]
fn the_command_is_on_the_clients_side_and_leaves_nothing() {
    let script = "cat /proc/self/net/dev; echo $TERCEL_LAB_SERVER_IPV4 $TERCEL_LAB_SIDE; \
                  stat -L -c namespace:%i /proc/self/ns/net; sleep 600 </dev/null >/dev/null 2>&1 &";
    let Some(output) = run(&["--mtu=9000", "--queues=2", "--", "sh", "-c", script]) else { return };
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(text.contains("client0:") && !text.contains("server0:"), "{text}");
    assert!(text.contains("198.18.0.1 client"), "{text}");
    let namespace = text.lines().find_map(|line| line.strip_prefix("namespace:")).unwrap().parse().unwrap();
    assert_eq!(
        inhabitants(namespace),
        Vec::<String>::new(),
        "what the command left in the background is gone"
    );
    assert!(stderr(&output).contains("to_server"), "counters: {}", stderr(&output));
}

#[test]
fn a_server_runs_on_the_other_side_until_the_command_has_ended() {
    let place = tempfile::TempDir::new().unwrap();
    let (ready, ended) = (place.path().join("ready"), place.path().join("ended"));
    fs::write(&ready, "of an earlier run").unwrap();
    let server = format!(
        "trap 'touch {}; exit' TERM; sleep 0.2; echo $TERCEL_LAB_SIDE >{}; while :; do sleep 0.02; done",
        ended.display(),
        ready.display()
    );
    let client = format!("cat {}; ls {}", ready.display(), ended.display());
    let ready = format!("--ready-file={}", ready.display());
    let arguments = ["--json", &ready, "--server", &server, "--", "sh", "-c", &client];
    let Some(output) = run(&arguments) else { return };
    assert_eq!(stdout(&output), "server\n", "ready before the command, not ended: {}", stderr(&output));
    assert!(ended.exists(), "it was told to end");
    let counters = stderr(&output).lines().last().unwrap().to_owned();
    let counters: serde_json::Value = serde_json::from_str(&counters).unwrap();
    assert_eq!(counters["link"]["to_server"]["lost"], 0);
}

#[test]
fn http3_crosses_a_link_with_delay_and_loss_while_the_clients_port_changes() {
    let place = tempfile::TempDir::new().unwrap();
    let ready = place.path().join("ready");
    let server =
        format!("{PROGRAM} serve --access-log off --listen '[::]:4433' --ready-file {}", ready.display());
    let mut command = lab();
    command.args(["--json", "--delay=2ms", "--rate=200mbit", "--loss=0.5%", "--rebind-after=20KB"]);
    command.args(["--reorder=5%/2ms", "--jitter=200us", "--duplicate=1%"]);
    command.arg(format!("--ready-file={}", ready.display())).args(["--server", &server, "--"]);
    command.args([PROGRAM, "get", "--insecure", "--discard", "https://198.18.0.1:4433/bytes/10MB"]);
    // the development certificate is kept in the user's data folder: a test has its own
    let output = command.env("XDG_DATA_HOME", place.path()).output().unwrap();
    let text = stderr(&output);
    if text.contains("needs CAP_SYS_ADMIN") {
        return requirements::missing(text);
    }
    assert!(output.status.success(), "{text}");
    let counters = text.lines().find(|line| line.starts_with("{\"link\"")).unwrap();
    let counters: serde_json::Value = serde_json::from_str(counters).unwrap();
    for happened in ["lost", "reordered", "duplicated"] {
        assert!(counters["link"]["to_client"][happened].as_u64().unwrap() > 0, "{happened}: {counters}");
    }
    assert!(counters["link"]["to_client"]["bytes"].as_u64().unwrap() > 10_000_000, "{counters}");
}

#[test]
fn the_time_until_the_clients_port_changes_counts_from_its_first_datagram() {
    let place = tempfile::TempDir::new().unwrap();
    let ready = place.path().join("ready");
    let server =
        format!("{PROGRAM} serve --access-log off --listen '[::]:4433' --ready-file {}", ready.display());
    let get = format!("sleep 1; exec {PROGRAM} get --insecure --discard https://198.18.0.1:4433/bytes/3MB");
    let mut command = lab();
    command.args(["--json", "--delay=10ms", "--rate=20mbit", "--rebind-after=400ms"]);
    command
        .arg(format!("--ready-file={}", ready.display()))
        .args(["--server", &server, "--", "sh", "-c", &get]);
    let output = command.env("XDG_DATA_HOME", place.path()).output().unwrap();
    let text = stderr(&output);
    if text.contains("needs CAP_SYS_ADMIN") {
        return requirements::missing(text);
    }
    assert!(output.status.success(), "{text}");
    let counters = text.lines().find(|line| line.starts_with("{\"link\"")).unwrap();
    let counters: serde_json::Value = serde_json::from_str(counters).unwrap();
    // What was under way to the old port comes too late. A port that changes before the first datagram leaves nothing behind.
    assert!(counters["link"]["to_client"]["stale"].as_u64().unwrap() > 0, "{counters}");
}

#[test]
fn a_killed_lab_takes_its_command_along() {
    let mut command = Command::new(PROGRAM);
    command.args(["lab", "--", "sh", "-c", "stat -L -c %i /proc/self/ns/net; exec sleep 600"]);
    let mut lab = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(lab.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let Ok(namespace) = line.trim().parse() else {
        lab.wait().unwrap();
        return requirements::missing("no lab can be made (see the other tests)");
    };
    assert!(!inhabitants(namespace).is_empty());
    lab.kill().unwrap();
    lab.wait().unwrap();
    assert!(becomes_empty(namespace), "{:?}", inhabitants(namespace));
}

#[test]
fn ctrl_c_ends_a_lab_without_a_command() {
    let mut lab = Command::new(PROGRAM).args(["lab", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(lab.stdout.take().unwrap()).lines().map(Result::unwrap);
    let Some(description) = output.next() else {
        lab.wait().unwrap();
        return requirements::missing("no lab can be made (see the other tests)");
    };
    let description: serde_json::Value = serde_json::from_str(&description).unwrap();
    let path = description["sides"]["server"]["namespace"].as_str().unwrap();
    assert!(fs::metadata(path).is_ok(), "{path} can be entered");
    let interrupted = Command::new("kill").args(["-INT", &lab.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert!(output.next().unwrap().contains("to_client"), "counters at the end");
    assert!(lab.wait().unwrap().success());
}

#[test]
fn mistakes_are_told_in_one_line() {
    let Some(output) = run(&["--", "no-such-program"]) else { return };
    assert_eq!(
        stderr(&output).lines().next(),
        Some("tercel: cannot run no-such-program: No such file or directory (os error 2)")
    );
    let Some(output) = run(&["--server", "exit 3", "--", "true"]) else { return };
    assert!(stderr(&output).contains("the server ended before the command began (exit status: 3)"));
    for (arguments, word) in [
        (&["--delay=1"][..], "1ms"),
        (&["--loss=5"], "1%"),
        (&["--direct", "--delay=1ms"], "--direct"),
        (&["--mtu=100"], "1280"),
        (&["--server", "true"], "COMMAND"),
    ] {
        let output = run(arguments).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
}
