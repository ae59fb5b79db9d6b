//! What a service tells systemd: that it is ready, that it reloads, that it stops. Nothing without NOTIFY_SOCKET.
//!
//! Source: sd_notify(3). It is one datagram, so there is no crate for it here.

use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};

/// It serves, or serves on after [`reloading`]. `status` is shown by `systemctl status`.
pub(crate) fn ready(status: &str) {
    notify(&format!("READY=1\nSTATUS={status}"));
}

/// It reads its configuration again. systemd tells answers to this reload from those to another by the time.
pub(crate) fn reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    let micros = now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1_000);
    notify(&format!("RELOADING=1\nMONOTONIC_USEC={micros}\nSTATUS=reloading"));
}

/// Another process is the service from now on, and serves. systemd hears it from the one that was, and heeds no other.
pub(crate) fn succeeded_by(process: u32, status: &str) {
    notify(&format!("MAINPID={process}\nREADY=1\nSTATUS={status}"));
    IS_SUCCEEDED.store(true, Ordering::Release);
}

/// Whether another process is the service.
static IS_SUCCEEDED: AtomicBool = AtomicBool::new(false);

/// It lives. To be told more often than `WATCHDOG_USEC` says.
pub(crate) fn alive() {
    notify("WATCHDOG=1");
}

/// It ends as soon as what was asked is answered.
pub(crate) fn stopping() {
    notify("STOPPING=1\nSTATUS=answering what was asked");
}

fn notify(state: &str) {
    if IS_SUCCEEDED.load(Ordering::Acquire) {
        return;
    }
    if let Some(place) = std::env::var_os("NOTIFY_SOCKET") {
        // A server goes on whether its supervisor listens or not.
        let _ = send(&place, state);
    }
}

fn send(place: &OsStr, state: &str) -> io::Result<()> {
    let address = match place.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(place)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a service in a container, whose socket has no path, would never be ready.
    #[test]
    fn a_socket_without_a_path_is_reached() {
        let name = format!("tercel-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        send(OsStr::new(&format!("@{name}")), "READY=1").unwrap();
        let mut message = [0; 20];
        let length = socket.recv(&mut message).unwrap();
        assert_eq!(&message[..length], b"READY=1");
        assert!(send(OsStr::new("/nowhere/notify"), "READY=1").is_err());
    }
}
