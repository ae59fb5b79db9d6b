//! Sessions that outlive a run: `tercel get --session-cache` and `tercel serve --ticket-keys` with files that are whole, torn, foreign or of
//! another version.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends where something is not as it should be"
)]

mod process;

use process::{PATIENCE, Process, STEP};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tercel");

/// A server that takes early data, on loopback.
struct Server {
    process: Process,
    port: u64,
    folder: TempDir,
}

impl Server {
    fn start(flags: &[&str]) -> Server {
        Server::at("localhost:0", flags)
    }

    fn at(listen: &str, flags: &[&str]) -> Server {
        let folder = TempDir::new().unwrap();
        let ready = folder.path().join("ready");
        let mut command = serve(folder.path());
        command.args(["--listen", listen]);
        let process = Process::start(command.args(["--early-data", "--ready-file"]).arg(&ready).args(flags));
        let mut waited = Duration::ZERO;
        while !ready.exists() {
            assert!(waited < PATIENCE, "the server does not come");
            sleep(STEP);
            waited += STEP;
        }
        let ready: Value = serde_json::from_str(&fs::read_to_string(&ready).unwrap()).unwrap();
        Server { process, port: ready["port"].as_u64().unwrap(), folder }
    }

    /// Ends it as a user would.
    fn stop(mut self) {
        let id = self.process.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        assert_eq!(self.process.wait(), Some(0));
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("sessions")
    }

    /// A run of `tercel get` with early data and these flags.
    fn get(&self, flags: &[&str]) -> Output {
        let mut command = Command::new(PROGRAM);
        command
            .args(["get", "--json", "--quiet", "--discard", "--early-data", "--session-cache"])
            .arg(self.cache());
        command.arg(format!("https://localhost:{}/bytes/1000", self.port)).args(flags);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Whether the connection of a run was resumed, and what became of early data.
    fn visit(&self, flags: &[&str]) -> (bool, Option<String>) {
        let output = self.get(flags);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{said}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (report["resumed"].as_bool().unwrap(), report["early_data"].as_str().map(str::to_owned))
    }
}

fn serve(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--access-log", "off"]).arg(folder);
    command.env("XDG_DATA_HOME", folder.join("data")).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

const FULL: (bool, Option<&str>) = (false, None);
const EARLY: (bool, Option<&str>) = (true, Some("accepted"));

fn shown((resumed, early): &(bool, Option<String>)) -> (bool, Option<&str>) {
    (*resumed, early.as_deref())
}

/// Deleted, each run of `tercel get` could begin with a full handshake, and a user would not see it.
#[test]
fn the_next_run_resumes_and_sends_its_request_early() {
    let server = Server::start(&[]);
    let insecure = ["-k"];
    assert_eq!(shown(&server.visit(&insecure)), FULL);
    for _ in 0..3 {
        assert_eq!(shown(&server.visit(&insecure)), EARLY);
    }
    // A run that verifies certificates does not trust the server because of an earlier one that did not.
    let output = server.get(&[]);
    assert_eq!(output.status.code(), Some(60), "{}", String::from_utf8_lossy(&output.stderr));
    let output = server.get(&["-k", "--http", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("add --http 3"));
}

/// Deleted, a user could be left without a word about what is wrong and what to do, or lose a file that was named by mistake.
#[test]
fn a_cache_that_cannot_be_used_is_told_in_one_line_and_left_as_it_is() {
    let server = Server::start(&[]);
    assert_eq!(shown(&server.visit(&["-k"])), FULL);
    let whole = fs::read_to_string(server.cache()).unwrap();
    let newer = whole.replace("tercel sessions 1\n", "tercel sessions 2\n");
    for (text, word) in [
        (&whole[..whole.len() / 2], "cut or changed"),
        (newer.as_str(), "another version"),
        ("notes of mine\n", "no file of sessions"),
        ("", "no file of sessions"),
    ] {
        fs::write(server.cache(), text).unwrap();
        let output = server.get(&["-k"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
        assert!(output.stdout.is_empty(), "nothing was asked");
        assert_eq!(fs::read_to_string(server.cache()).unwrap(), text);
    }
    fs::write(server.cache(), &whole).unwrap();
    assert_eq!(shown(&server.visit(&["-k"])), EARLY, "nothing was lost");
}

/// Deleted, servers that share keys could lose them by one that was pointed at a torn file, or a client could not resume at the other one.
#[test]
fn servers_share_the_keys_of_tickets_and_refuse_a_torn_file_in_one_line() {
    let folder = TempDir::new().unwrap();
    let keys = folder.path().join("tickets");
    let identity = ["cert", "key"].map(|name| folder.path().join(format!("{name}.pem")));
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(&identity[0], made.cert.pem()).unwrap();
    fs::write(&identity[1], made.signing_key.serialize_pem()).unwrap();
    let [certificate, key] = identity.each_ref().map(|path| path.to_str().unwrap());
    let flags = ["--ticket-keys", keys.to_str().unwrap(), "--cert", certificate, "--key", key];
    let first = Server::start(&flags);
    assert_eq!(shown(&first.visit(&["-k"])), FULL);
    let (kept, port) = (folder.path().join("sessions"), first.port);
    fs::copy(first.cache(), &kept).unwrap();
    first.stop();
    let second = Server::at(&format!("localhost:{port}"), &flags);
    fs::copy(&kept, second.cache()).unwrap();
    let (resumed, early) = second.visit(&["-k"]);
    assert!(resumed, "by a ticket of the server before");
    assert_eq!(early.as_deref(), Some("refused"), "the server before may have taken it");
    second.stop();
    let whole = fs::read_to_string(&keys).unwrap();
    for (text, word) in
        [(&whole[..whole.len() - 9], "cut or changed"), ("notes of mine\n", "no file of ticket keys")]
    {
        fs::write(&keys, text).unwrap();
        let mut command = serve(folder.path());
        let output = command
            .args(["--listen", "localhost:0"])
            .args(flags)
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{said}");
        assert!(said.contains(word) && said.contains("tickets"), "{said}");
        assert_eq!(fs::read_to_string(&keys).unwrap(), text);
    }
}

/// Deleted, the study of handshakes could count full ones as resumed ones, or none of a server over TCP.
#[test]
fn the_load_generator_resumes_over_tcp_and_quic() {
    let server = Server::start(&[]);
    for (http, flag, kind) in
        [("1", "--resume", "resumed"), ("3", "--resume", "resumed"), ("3", "--early-data", "early")]
    {
        let mut command = Command::new(PROGRAM);
        command.args([
            "load",
            "-k",
            "--json",
            "--quiet",
            "--new-connections",
            "-c",
            "2",
            "-n",
            "60",
            "--http",
            http,
        ]);
        command.arg(flag).arg(format!("https://localhost:{}/bytes/100", server.port));
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let kinds = &report["handshake_kinds"];
        assert!(kinds[kind].as_u64().unwrap() >= 30, "HTTP/{http}: {kinds}");
    }
}
