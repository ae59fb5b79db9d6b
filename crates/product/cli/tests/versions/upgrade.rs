//! Another process takes the place of a server that runs: by SIGUSR2, with everything that was asked for, over every version.

use crate::leaving::Download;
use crate::message::Ask;
use crate::server::{PROGRAM, Server};
use crate::sites::certificate;
use crate::systemd::notifications;
use crate::{raw, site, tcp};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Larger than what waits on the way, so that most of it is sent after the upgrades.
const LARGE: usize = 40_000_000;

/// One that goes on as far as it is read.
fn begin(server: &Server, http: &str) -> Download {
    Download::of_version(server, &format!("/bytes/{LARGE}"), http)
}

/// Whether a new request is answered over each version.
fn is_answered(server: &Server) -> bool {
    ["1", "2", "3"].iter().all(|http| {
        let url = format!("https://localhost:{}/bytes/100kB", server.port);
        let mut command = Command::new(PROGRAM);
        command.args(["get", "-k", "-q", "--verify-pattern", "--http", http, &url]).stdin(Stdio::null());
        command.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    })
}

/// Deleted, an upgrade could break what clients have asked for, or leave a process behind.
#[test]
fn downloads_of_every_version_go_on_across_two_upgrades() {
    let root = site();
    for words in
        [&[][..], &["--workers", "2"], &["--workers", "2", "--steering", "hand-off", "--datapath", "plain"]]
    {
        let mut server = Server::start(root.path(), words);
        let all = |server: &Server| ["1", "2", "3", "3"].map(|http| begin(server, http));
        let mut downloads = vec![all(&server)];
        for _ in 0..2 {
            server.upgrade();
            assert!(is_answered(&server), "{words:?}");
            downloads.push(all(&server));
        }
        for (process, downloads) in downloads.iter_mut().enumerate() {
            for (place, download) in downloads.iter_mut().enumerate() {
                assert!(download.finish_verified(LARGE), "{words:?}: download {place} of process {process}");
            }
        }
        assert!(server.wait().success(), "{words:?}: the first process ends when all is answered");
        assert!(is_answered(&server));
        let (_, log) = server.stop();
        assert_eq!(log.lines().count(), 3 * 4 + 3 * 3, "{words:?}: {log}");
        assert!(log.lines().all(|line| line.contains("\" 200 ")), "{words:?}: {log}");
    }
}

/// Deleted, a client of HTTP/2 that reads slowly could lose the end of a response to a reset, when the old process has sent all of it.
#[test]
fn the_end_of_a_response_reaches_clients_that_read_it_after_the_server_has_sent_it() {
    const SIZE: usize = 30_000_000;
    let root = site();
    let path = format!("/bytes/{SIZE}");
    let mut server = Server::start(root.path(), &[]);
    let port = server.port;
    let upgrade = || _ = server.upgrade();
    let read = tcp::run(raw::http2_slowly(port, (&path, SIZE), upgrade));
    assert_eq!(read, SIZE, "after an upgrade");
    assert!(server.wait().success());
    server.stop();
    // The same where a server ends.
    let server = Server::start(root.path(), &[]);
    let read = tcp::run(raw::http2_slowly(server.port, (&path, SIZE), || server.ask_to_end()));
    assert_eq!(read, SIZE, "after SIGTERM");
}

/// Deleted, a mistake in the configuration, or a program that does not run, could end the server that does.
#[test]
fn an_upgrade_that_fails_changes_nothing() {
    let (root, place) = (site(), TempDir::new().expect("a folder"));
    let (program, config) = (place.path().join("tercel"), place.path().join("tercel.toml"));
    fs::copy(PROGRAM, &program).expect("copied");
    fs::write(&config, "workers = 1\n").expect("written");
    let words = ["--config", config.to_str().expect("text")];
    let mut server = Server::start_program(&program, root.path(), &words);
    let mut downloads = ["1", "2", "3"].map(|http| begin(&server, http));
    let replace = |content: &[u8]| {
        let new = place.path().join("new");
        fs::write(&new, content).expect("written");
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("set");
        fs::rename(&new, &program).expect("replaced");
    };
    let whole = fs::read(PROGRAM).expect("read");
    let faults: [(&str, &dyn Fn()); 4] = [
        ("ended before it was ready", &|| fs::write(&config, "workers = 0\n").expect("written")),
        ("an upgrade keeps their number", &|| fs::write(&config, "workers = 2\n").expect("written")),
        ("ended before it was ready", &|| {
            fs::write(&config, "workers = 1\n").expect("written");
            replace(b"#!/bin/sh\nexit 3\n");
        }),
        ("the program does not start", &|| replace(b"no program")),
    ];
    for (number, (told, spoil)) in (1..).zip(faults) {
        spoil();
        server.signal("USR2");
        let said = server.wait_for("said", ("no upgrade, and this server goes on", number));
        assert!(said.contains(told), "{said}");
        assert!(is_answered(&server), "{said}");
    }
    replace(&whole);
    server.upgrade();
    assert!(is_answered(&server));
    // It has been replaced once, and is busy with the downloads.
    server.signal("USR2");
    server.wait_for("said", ("SIGUSR2 is refused", 1));
    for download in &mut downloads {
        assert!(download.finish_verified(LARGE));
    }
    assert!(server.wait().success());
    server.stop();
}

/// Deleted, a connection whose handshake is under way could be lost, or clients could find that a server has forgotten their tokens.
#[test]
fn keys_and_tickets_are_those_of_the_process_before() {
    let root = site();
    let mut server = Server::start(root.path(), &["--retry", "always"]);
    let place = TempDir::new().expect("a folder");
    let sessions = place.path().join("sessions");
    assert_eq!([is_resumed(&server, &sessions), is_resumed(&server, &sessions)], [false, true]);
    for _ in 0..2 {
        server.upgrade();
        assert!(is_resumed(&server, &sessions));
    }
    server.stop();
}

/// Whether a client whose sessions are in this file had one that the server knows.
fn is_resumed(server: &Server, sessions: &Path) -> bool {
    let url = format!("https://localhost:{}/hello.txt", server.port);
    let mut command = Command::new(PROGRAM);
    command
        .args(["get", "-k", "--json", "--discard", "--http", "3", "--session-cache"])
        .arg(sessions)
        .arg(url);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    told["resumed"].as_bool().expect("a fact")
}

/// Deleted, clients of a server that was killed would need a full handshake each, or the keys be there for all to read.
#[test]
fn keys_and_tickets_in_a_state_folder_survive_a_crash() {
    let (root, place) = (site(), TempDir::new().expect("a folder"));
    let (state, sessions) = (place.path().join("state"), place.path().join("sessions"));
    let words = ["--state-dir", state.to_str().expect("text")];
    let server = Server::start(root.path(), &words);
    assert_eq!([is_resumed(&server, &sessions), is_resumed(&server, &sessions)], [false, true]);
    let mut names = Vec::new();
    for file in fs::read_dir(&state).expect("a folder").flatten() {
        assert_eq!(file.metadata().expect("a file").mode() & 0o777, 0o600);
        names.push(file.file_name());
    }
    names.sort();
    assert_eq!(names, ["quic-keys", "ticket-keys"]);
    let mut server = server.kill_and_restart_with(root.path(), &words);
    assert!(is_resumed(&server, &sessions));
    server.upgrade();
    assert!(is_resumed(&server, &sessions));
    server.stop();
}

/// Deleted, systemd could take the end of the old process for that of the service, and an operator could be without an admin address.
/// Deleted, a service without a home could not start without a certificate of its own, though it has a folder for what it keeps.
#[test]
fn without_a_home_the_development_certificate_lies_in_the_state_folder() {
    let (root, place) = (site(), TempDir::new().expect("a folder"));
    let state = place.path().join("state");
    let words = ["--state-dir", state.to_str().expect("text")];
    let script = "unset HOME XDG_DATA_HOME; exec \"$0\" \"$@\"";
    let server = Server::start_by(script, root.path(), &words);
    let certificate = server.ready["certificate"].as_str().expect("a path").to_owned();
    assert!(Path::new(&certificate).starts_with(&state) && is_answered(&server), "{certificate}");
    server.stop();
    // Where there is a home, it stays there.
    let server = Server::start(root.path(), &words);
    assert!(
        !server.ready["certificate"].as_str().expect("a path").starts_with(state.to_str().expect("text"))
    );
    server.stop();
}

#[test]
fn the_service_and_its_admin_address_are_those_of_the_new_process() {
    let (root, place) = (site(), TempDir::new().expect("a folder"));
    let path = place.path().join("notify");
    let told = notifications(&path);
    let admin = place.path().join("admin.sock");
    let at = format!("unix:{}", admin.display());
    let mut server = Server::start_with(root.path(), &["--admin", &at], &[("NOTIFY_SOCKET", &path)]);
    let status = || {
        let output = Command::new(PROGRAM).args(["status", "--admin", &at]).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(told().starts_with("READY=1\n"));
    let mut download = begin(&server, "3");
    let inode = fs::metadata(&admin).expect("a socket").ino();
    let process = server.upgrade();
    assert!(told().starts_with("RELOADING=1\n"));
    assert!(told().starts_with(&format!("MAINPID={process}\nREADY=1\nSTATUS=serves ")));
    assert!(status().contains("ready"), "{}", status());
    assert!(download.finish_verified(LARGE) && server.wait().success());
    assert_eq!(fs::metadata(&admin).expect("a socket").ino(), inode, "it stays");
    assert!(status().contains("ready"), "{}", status());
    server.stop();
    assert!(told().starts_with("STOPPING=1\n"), "and nothing of the process that was");
    assert!(!admin.exists());
}

/// Deleted, a server that has dropped its privileges could not be upgraded, since it cannot bind its port again.
#[test]
fn a_server_that_is_not_root_any_more_keeps_its_port() {
    if !rustix::process::geteuid().is_root() {
        return requirements::missing("only root binds low ports and changes its user");
    }
    let root = site();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("set");
    open(root.path());
    let low = (600..1_000).find(|port| {
        TcpListener::bind(("127.0.0.1", *port)).is_ok() && UdpSocket::bind(("127.0.0.1", *port)).is_ok()
    });
    let listen = format!("127.0.0.1:{}", low.expect("a free port"));
    let place = TempDir::new().expect("a folder");
    open(place.path());
    certificate(place.path(), "a", &["localhost"], &rcgen::PKCS_ECDSA_P256_SHA256);
    let file = |name: &str| place.path().join(name).display().to_string();
    let (chain, key, state) = (file("a.crt"), file("a.key"), file("state"));
    let words =
        ["--user", "nobody", "--listen", &listen, "--cert", &chain, "--key", &key, "--state-dir", &state];
    let Some(mut server) = Server::start_for_all(root.path(), &words) else {
        return requirements::missing("the account `nobody` cannot run the program");
    };
    let mut download = begin(&server, "3");
    let process = server.upgrade();
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a status");
    assert!(status.contains("\nUid:\t65534\t65534\t65534\t65534\n"), "{status}");
    assert!(is_answered(&server) && download.finish_verified(LARGE));
    server.stop();
}

/// Deleted, a service whose sockets systemd opens could try to open them again, or hang on to the wrong ones.
#[test]
fn sockets_of_a_service_manager_are_served_and_passed_on() {
    let root = site();
    let (tcp, udp) = requirements::ports::over_tcp_and_udp();
    let address = tcp.local_addr().expect("an address");
    let copies = (tcp.try_clone().expect("a copy"), udp.try_clone().expect("a copy"));
    // Standard input and output stand for the descriptors that a service manager passes.
    let script = "exec 3<&0 4<&1 </dev/null >/dev/null; \
                  LISTEN_FDS=2 LISTEN_PID=$$ LISTEN_FDNAMES=web:web exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, PROGRAM]);
    command.stdin(std::os::fd::OwnedFd::from(copies.0)).stdout(std::os::fd::OwnedFd::from(copies.1));
    let mut server = Server::start_command(command, root.path(), &["--listen", &address.to_string()]);
    assert_eq!(server.port, address.port());
    assert!(is_answered(&server));
    let mut downloads = ["1", "3"].map(|http| begin(&server, http));
    server.upgrade();
    assert!(is_answered(&server));
    assert!(downloads.iter_mut().all(|download| download.finish_verified(LARGE)));
    let ask = tcp::run(tcp::http1(server.port, &[Ask::get("/hello.txt")])).remove(0).status;
    assert_eq!(ask, 200);
    server.stop();
    // Those that no address asks for are told.
    let mut command = Command::new("sh");
    command.args(["-c", script, PROGRAM]).stdin(std::os::fd::OwnedFd::from(tcp));
    command.stdout(std::os::fd::OwnedFd::from(udp));
    let server = Server::start_command(command, root.path(), &["--listen", "127.0.0.1:0"]);
    server.wait_for("said", (&format!("a socket at {address} was passed on"), 1));
    server.stop();
}
