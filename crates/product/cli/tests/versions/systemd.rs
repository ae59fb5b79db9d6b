//! A server under systemd: what it tells, and what its unit allows it.

use crate::server::Server;
use crate::site;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// What a service tells at the socket `path` (sd_notify(3)): each call waits for the next message.
pub(crate) fn notifications(path: &Path) -> impl Fn() -> String + use<> {
    let socket = UnixDatagram::bind(path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    move || {
        let mut message = [0; 1_000];
        let length = socket.recv(&mut message).expect("a message in time");
        String::from_utf8_lossy(message.get(..length).unwrap_or_default()).into_owned()
    }
}

/// Deleted, `systemctl start` could wait in vain, and `systemctl reload` return before the reload is done.
#[test]
fn a_service_tells_when_it_is_ready_reloads_and_stops() {
    let (root, place) = (site(), TempDir::new().expect("a folder"));
    let path = place.path().join("notify");
    let told = notifications(&path);
    let server = Server::start_under(root.path(), &path);
    let ready = told();
    assert!(ready.starts_with("READY=1\nSTATUS=serves HTTP/1.1, 2 and 3 on 127.0.0.1:"), "{ready}");
    server.signal("HUP");
    let reloading = told();
    let micros = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").and_then(|rest| rest.lines().next());
    assert!(micros.is_some_and(|micros| micros.parse::<u64>().is_ok_and(|micros| micros > 0)), "{reloading}");
    assert_eq!(told(), ready, "once it has reloaded");
    assert!(std::fs::read_to_string(server.file("said")).expect("a file").contains("tercel: reloaded: "));
    server.stop();
    assert!(told().starts_with("STOPPING=1\n"));
}

/// Deleted, a server whose threads hang could be taken for one that lives, or one that is idle for one that hangs.
#[test]
fn the_watchdog_hears_of_a_server_that_lives() {
    let (root, place) = (site(), TempDir::new().expect("a folder"));
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let script =
        format!("NOTIFY_SOCKET={} WATCHDOG_USEC=300000 WATCHDOG_PID=$$ exec \"$0\" \"$@\"", path.display());
    let server = Server::start_by(&script, root.path(), &["--workers", "2"]);
    let mut alive = 0;
    while alive < 3 {
        let mut message = [0; 1_000];
        let length = socket.recv(&mut message).expect("a message in time");
        alive += usize::from(message.get(..length) == Some(b"WATCHDOG=1"));
    }
    server.stop();
}

/// Deleted, a server could go on as root, in one of its threads or groups.
#[test]
fn a_server_of_root_becomes_another_user_in_all_threads() {
    if !rustix::process::geteuid().is_root() {
        return requirements::missing("only root changes its user");
    }
    let (root, place) = (site(), TempDir::new().expect("a folder"));
    let open = |folder: &Path| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(folder, mode).expect("set");
    };
    open(root.path());
    open(place.path());
    let file = |name: &str| place.path().join(name).display().to_string();
    let (log, ready) = (file("log"), file("ready"));
    let words = ["--user", "nobody", "--access-log", &log, "--ready-file", &ready, "--workers", "2"];
    let server = ServerProcess::start(root.path(), &file("data"), &words);
    server.wait_for(&ready);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.0.id())).expect("threads");
    let mut threads = 0;
    for task in tasks.flatten() {
        let status = std::fs::read_to_string(task.path().join("status")).expect("a status");
        let line = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
            line.split_whitespace().map(|id| id.parse().expect("a number")).collect::<Vec<u32>>()
        };
        let (users, groups) = (line("Uid:"), line("Gid:"));
        assert!(users.iter().chain(&groups).all(|id| *id == 65_534), "{status}");
        assert!(!line("Groups:").contains(&0), "{status}");
        assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
        threads += 1;
    }
    assert!(threads > 4);
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&log).expect("the log"));
    assert_eq!(owner, 65_534);
}

/// Deleted, a service that is not root's could seem to run as the user that its file names.
#[test]
fn only_root_becomes_another_user() {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "60"]);
    if rustix::process::geteuid().is_root() {
        command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    let output = command.args([crate::server::PROGRAM, "serve", "--listen", "127.0.0.1:0", "--user", "root"]);
    let output = output.env("XDG_DATA_HOME", "/nowhere").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--user root: only root can change to another user"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

/// A server with files of its own, which ends with its test.
struct ServerProcess(std::process::Child);

impl ServerProcess {
    fn start(root: &Path, data: &str, words: &[&str]) -> ServerProcess {
        let mut command = Command::new(crate::server::PROGRAM);
        command.arg("serve").arg(root).args(["--listen", "127.0.0.1:0"]).args(words);
        command.env("XDG_DATA_HOME", data).stdin(std::process::Stdio::null());
        ServerProcess(command.spawn().expect("it starts"))
    }

    /// Waits until the file is there.
    fn wait_for(&self, file: &str) {
        for _ in 0..6_000 {
            if Path::new(file).exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no {file}");
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Deleted, the unit could come to allow a server that was broken into more than it needs.
#[test]
fn the_unit_is_hardened() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging/tercel.service");
    let text = std::fs::read_to_string(&unit).expect("the unit");
    assert!(text.contains("\nType=notify\n") && text.contains("\nExecReload=/bin/kill -HUP $MAINPID\n"));
    assert!(text.contains("\nWatchdogSec="));
    let mut command = Command::new("systemd-analyze");
    let output = command.args(["security", "--offline=true", "--no-pager"]).arg(&unit).output();
    let Ok(output) = output else { return requirements::missing("systemd-analyze is not installed") };
    let said = String::from_utf8_lossy(&output.stdout);
    let level = said.lines().last().and_then(|line| line.rsplit_once(": "));
    let level: f32 = level
        .and_then(|(_, level)| level.split_whitespace().next()?.parse().ok())
        .unwrap_or_else(|| panic!("{said}{}", String::from_utf8_lossy(&output.stderr)));
    assert!(level < 2.0, "{said}");
}
