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
    /// Processes that took the place of the child, one after the other.
    upgraded: Vec<u32>,
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
        Server::start_with(root, &[], &[("NOTIFY_SOCKET", supervisor)])
    }

    /// The same with words and variables.
    pub(crate) fn start_with(root: &Path, arguments: &[&str], variables: &[(&str, &Path)]) -> Server {
        let mut command = Command::new(PROGRAM);
        command.envs(variables.iter().copied());
        Server::run(command, root, arguments)
    }

    /// The same by a copy of the program.
    pub(crate) fn start_program(program: &Path, root: &Path, arguments: &[&str]) -> Server {
        Server::run(Command::new(program), root, arguments)
    }

    /// Serves `root` at the address that `arguments` say, by a command that ends with `serve`.
    pub(crate) fn start_command(command: Command, root: &Path, arguments: &[&str]) -> Server {
        Server::run_as_it_is(TempDir::new().expect("a folder"), command, Some(root), arguments)
    }

    /// The same with files in a folder that is open to all users; `None` if they cannot run the program.
    pub(crate) fn start_for_all(root: &Path, arguments: &[&str]) -> Option<Server> {
        use std::os::unix::fs::PermissionsExt as _;
        let place = TempDir::new().expect("a folder");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).expect("set");
        // The program may be in a folder of root's.
        let program = place.path().join("tercel");
        fs::copy(PROGRAM, &program).expect("copied");
        let mut probe = Command::new("setpriv");
        probe.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).arg("--version");
        let runs =
            probe.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        runs.then(|| Server::run_in(place, Command::new(&program), Some(root), arguments))
    }

    /// Serves what `arguments` say.
    pub(crate) fn start_without_root(arguments: &[&str]) -> Server {
        Server::start_without_root_at("127.0.0.1:0", arguments)
    }

    /// The same at this address.
    pub(crate) fn start_without_root_at(listen: &str, arguments: &[&str]) -> Server {
        let words = [&["--listen", listen], arguments].concat();
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
    pub(crate) fn kill_and_restart(self, root: &Path) -> Server {
        self.kill_and_restart_with(root, &[])
    }

    /// The same with these words.
    pub(crate) fn kill_and_restart_with(mut self, root: &Path, arguments: &[&str]) -> Server {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        let place = std::mem::replace(&mut self.place, TempDir::new().expect("a folder"));
        fs::remove_file(place.path().join("ready")).expect("a killed server cleans up nothing");
        let listen = format!("127.0.0.1:{}", self.port);
        Server::run_in(
            place,
            Command::new(PROGRAM),
            Some(root),
            &[&["--listen", &listen], arguments].concat(),
        )
    }

    fn run_in(place: TempDir, mut command: Command, root: Option<&Path>, arguments: &[&str]) -> Server {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Server::run_as_it_is(place, command, root, arguments)
    }

    /// With the standard input and output of the command.
    fn run_as_it_is(place: TempDir, mut command: Command, root: Option<&Path>, arguments: &[&str]) -> Server {
        let file = |name: &str| place.path().join(name);
        command.arg("serve").args(root).args(arguments);
        command.arg("--access-log").arg(file("log"));
        command.arg("--ready-file").arg(file("ready")).arg("--summary-file").arg(file("summary"));
        command.env("XDG_DATA_HOME", file("data"));
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
        Server { child, upgraded: Vec::new(), ready, port, place }
    }

    /// Asks it to end, without waiting.
    pub(crate) fn ask_to_end(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal, the first process of it.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Has another process take the place of the one that serves. Returns its number.
    pub(crate) fn upgrade(&mut self) -> u32 {
        signal(self.serving(), "USR2");
        let said = self.wait_for("said", ("tercel: upgraded: process ", self.upgraded.len() + 1));
        let text = fs::read_to_string(self.file("ready")).expect("the ready file");
        let ready: Value = serde_json::from_str(&text).expect("JSON");
        let process =
            ready["pid"].as_u64().and_then(|process| u32::try_from(process).ok()).expect("a number");
        assert!(said.contains(&format!("upgraded: process {process} serves")), "{said}");
        self.upgraded.push(process);
        process
    }

    /// The process that serves.
    fn serving(&self) -> u32 {
        self.upgraded.last().copied().unwrap_or(self.child.id())
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
    pub(crate) fn stop(self) -> (Value, String) {
        signal(self.serving(), "TERM");
        self.ended()
    }

    /// The summary and the access log of one that was asked to end: to ask again would end it at once.
    pub(crate) fn ended(mut self) -> (Value, String) {
        let status = self.wait();
        assert!(status.success(), "{status}");
        for process in std::mem::take(&mut self.upgraded) {
            let mut waited = Duration::ZERO;
            while is_running(process) {
                assert!(waited < PATIENCE, "process {process} does not end");
                sleep(STEP);
                waited += STEP;
            }
        }
        let read = |name: &str| fs::read_to_string(self.place.path().join(name)).unwrap_or_default();
        (serde_json::from_str(&read("summary")).expect("a summary"), read("log"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Only this can: they are no children of this process. The last one may have begun when the test ended.
        let ready = fs::read_to_string(self.file("ready")).unwrap_or_default();
        let last = serde_json::from_str::<Value>(&ready).ok().and_then(|ready| ready["pid"].as_u64());
        let last =
            last.and_then(|process| u32::try_from(process).ok()).filter(|last| *last != self.child.id());
        for process in self.upgraded.iter().copied().chain(last).filter(|process| is_running(*process)) {
            let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
        }
    }
}

pub(crate) fn signal(process: u32, name: &str) {
    let words = [&format!("-{name}"), &process.to_string()];
    assert!(Command::new("kill").args(words).status().expect("kill runs").success());
}

/// Whether it runs; one that has ended and was not waited for does not.
fn is_running(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
