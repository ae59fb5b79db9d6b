//! `tercel serve` as users run it, ended with its test.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_tercel");
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(10);

/// A server of a folder.
pub(crate) struct Server {
    child: Child,
    pub(crate) ready: Value,
    pub(crate) port: u16,
    place: TempDir,
}

impl Server {
    /// Serves `root`, with a log.
    pub(crate) fn start(root: &Path, arguments: &[&str]) -> Server {
        Server::run(Command::new(PROGRAM), root, arguments)
    }

    /// Serves `root`, and tells the socket `supervisor` how it is, as systemd's.
    pub(crate) fn start_under(root: &Path, supervisor: &Path) -> Server {
        let mut command = Command::new(PROGRAM);
        command.env("NOTIFY_SOCKET", supervisor);
        Server::run(command, root, &[])
    }

    /// Serves what `arguments` say.
    pub(crate) fn start_without_root(arguments: &[&str]) -> Server {
        let words = [&["--listen", "127.0.0.1:0"], arguments].concat();
        Server::run_in(TempDir::new().expect("a folder"), Command::new(PROGRAM), None, &words)
    }

    /// The same with this many descriptors at most.
    pub(crate) fn start_with_descriptors(root: &Path, descriptors: u32) -> Server {
        Server::start_by(&format!("ulimit -n {descriptors} && exec \"$0\" \"$@\""), root, &[])
    }

    /// The same by a script of the shell, which must end with `exec "$0" "$@"`.
    pub(crate) fn start_by(script: &str, root: &Path, arguments: &[&str]) -> Server {
        let mut command = Command::new("sh");
        command.args(["-c", script, PROGRAM]);
        Server::run(command, root, arguments)
    }

    fn run(command: Command, root: &Path, arguments: &[&str]) -> Server {
        Server::run_in(
            TempDir::new().expect("a folder"),
            command,
            Some(root),
            &[&["--listen", "127.0.0.1:0"], arguments].concat(),
        )
    }

    /// Kills it and starts another at the same address, with what the first has kept.
    pub(crate) fn kill_and_restart(mut self, root: &Path) -> Server {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        let place = std::mem::replace(&mut self.place, TempDir::new().expect("a folder"));
        fs::remove_file(place.path().join("ready")).expect("a killed server cleans up nothing");
        let listen = format!("127.0.0.1:{}", self.port);
        Server::run_in(place, Command::new(PROGRAM), Some(root), &["--listen", &listen])
    }

    fn run_in(place: TempDir, mut command: Command, root: Option<&Path>, arguments: &[&str]) -> Server {
        let file = |name: &str| place.path().join(name);
        command.arg("serve").args(root).args(arguments);
        command.arg("--access-log").arg(file("log"));
        command.arg("--ready-file").arg(file("ready")).arg("--summary-file").arg(file("summary"));
        command.env("XDG_DATA_HOME", file("data")).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(fs::File::create(file("said")).expect("a file"));
        let mut child = command.spawn().expect("the program starts");
        let mut waited = Duration::ZERO;
        while !file("ready").exists() {
            let ended = child.try_wait().expect("a status");
            let said = || fs::read_to_string(file("said")).unwrap_or_default();
            assert!(ended.is_none() && waited < PATIENCE, "it does not start: {}", said());
            sleep(STEP);
            waited += STEP;
        }
        let text = fs::read_to_string(file("ready")).expect("the ready file");
        let ready: Value = serde_json::from_str(&text).expect("JSON");
        let port = ready["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
        Server { child, ready, port, place }
    }

    /// Asks it to end, without waiting.
    pub(crate) fn ask_to_end(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().expect("kill runs").success());
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                return status;
            }
            assert!(waited < PATIENCE, "it does not end");
            sleep(STEP);
            waited += STEP;
        }
    }

    /// One of its files: `ready`, `log`, `said` (its standard error), `summary`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Waits until one of its files has this many lines with `what`. Returns the file.
    pub(crate) fn wait_for(&self, name: &str, (what, count): (&str, usize)) -> String {
        let mut waited = Duration::ZERO;
        loop {
            let text = fs::read_to_string(self.file(name)).unwrap_or_default();
            if text.lines().filter(|line| line.contains(what)).count() >= count {
                return text;
            }
            assert!(waited < PATIENCE, "no {what} in {name}: {text}");
            sleep(STEP);
            waited += STEP;
        }
    }

    /// Ends it. Returns its summary and its access log.
    pub(crate) fn stop(mut self) -> (Value, String) {
        self.ask_to_end();
        let status = self.wait();
        assert!(status.success(), "{status}");
        let read = |name: &str| fs::read_to_string(self.place.path().join(name)).unwrap_or_default();
        (serde_json::from_str(&read("summary")).expect("a summary"), read("log"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
