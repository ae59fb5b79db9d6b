//! A server under systemd: what it tells, and what its unit allows it.

use crate::server::Server;
use crate::site;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Deleted, `systemctl start` could wait in vain, and `systemctl reload` return before the reload is done.
#[test]
fn a_service_tells_when_it_is_ready_reloads_and_stops() {
    let (root, place) = (site(), TempDir::new().expect("a folder"));
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let told = || {
        let mut message = [0; 1_000];
        let length = socket.recv(&mut message).expect("a message in time");
        String::from_utf8_lossy(message.get(..length).unwrap_or_default()).into_owned()
    };
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

/// Deleted, the unit could come to allow a server that was broken into more than it needs.
#[test]
fn the_unit_is_hardened() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging/tercel.service");
    let text = std::fs::read_to_string(&unit).expect("the unit");
    assert!(text.contains("\nType=notify\n") && text.contains("\nExecReload=/bin/kill -HUP $MAINPID\n"));
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
