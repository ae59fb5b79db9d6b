//! Upgrade: SIGUSR2 has the program started anew, and the new process takes the place of this one without a connection that is lost.
//!
//! The new process has the words of this one's command line, reads the configuration for itself, and is the program that is at its place
//! now. As long as it has not said that it serves, nothing is lost: it is killed, or has ended, and this one goes on.

use super::log;
use super::operations::Operations;
use super::start::{ADMIN, OF_SERVICE_MANAGER, VARIABLE};
use super::systemd;
use server::Handle;
use server::upgrade::{Channel, Word};
use std::ffi::OsString;
use std::io;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long the new process may take to read its configuration and open what it needs.
const TO_READY: Duration = Duration::from_secs(60);
/// How long it may take then to serve, while nothing is taken in.
const TO_SERVE: Duration = Duration::from_secs(10);

/// The upgrades of a server that runs.
pub(crate) struct Upgrader {
    handle: Handle,
    operations: Arc<Operations>,
    /// For `systemctl status`.
    status: String,
    is_under_way: AtomicBool,
}

impl Upgrader {
    pub(crate) fn new(handle: Handle, operations: Arc<Operations>, status: String) -> Arc<Upgrader> {
        Arc::new(Upgrader { handle, operations, status, is_under_way: AtomicBool::new(false) })
    }

    /// Begins an upgrade, on a thread of its own.
    pub(crate) fn begin(self: &Arc<Upgrader>) {
        if self.is_under_way.swap(true, Ordering::AcqRel) {
            return log::warn(
                "SIGUSR2 is refused: another process is about to take the place of this one, or has done so",
            );
        }
        let upgrader = Arc::clone(self);
        let started =
            std::thread::Builder::new().name("upgrade".to_owned()).spawn(move || upgrader.upgrade());
        if let Err(error) = started {
            self.is_under_way.store(false, Ordering::Release);
            log::warn(&format!("no upgrade: {error}"));
        }
    }

    fn upgrade(&self) {
        systemd::reloading();
        match self.replace() {
            Ok(process) => {
                log::note(&format!(
                    "tercel: upgraded: process {process} serves; process {} answers what was asked, and ends",
                    std::process::id()
                ));
                systemd::succeeded_by(process, &self.status);
            }
            Err(why) => {
                log::warn(&format!("no upgrade, and this server goes on: {why}"));
                systemd::ready(&self.status);
                self.is_under_way.store(false, Ordering::Release);
            }
        }
    }

    /// Returns the number of the new process.
    fn replace(&self) -> Result<u32, String> {
        if std::process::id() == 1 {
            return Err(
                "it is process 1, whose end would end its container: start another container instead"
                    .to_owned(),
            );
        }
        let others: Vec<_> = self.operations.socket().into_iter().map(|socket| (ADMIN, socket)).collect();
        let estate = self.handle.estate(&others).map_err(|error| error.to_string())?;
        let (mut channel, mut child) =
            start().map_err(|error| format!("the program does not start: {error}"))?;
        let replaced = channel
            .set_patience(TO_READY)
            .and_then(|()| channel.leave(&estate))
            .and_then(|()| channel.hear(Word::Ready))
            .map_err(|error| failed(&mut child, &error, "was ready"));
        // Its sockets would stay open for as long as this process lives.
        drop(estate);
        let replaced = replaced.and_then(|()| self.hand_over(&mut channel, &mut child));
        if replaced.is_err() {
            self.handle.resume();
            end(&mut child);
            open_xdp(self.handle.clone());
        }
        replaced.map(|()| child.id())
    }

    /// From here on nothing is taken in by this process.
    fn hand_over(&self, channel: &mut Channel, child: &mut Child) -> Result<(), String> {
        let handshakes = self.handle.pause();
        if self.handle.is_ending() {
            return Err("it was told to end".to_owned());
        }
        let served = channel
            .set_patience(TO_SERVE)
            .and_then(|()| channel.list(&handshakes))
            .and_then(|()| channel.hear(Word::Serving));
        served.map_err(|error| failed(child, &error, "served"))?;
        self.operations.leave();
        self.handle.retire();
        Ok(())
    }
}

/// Has a server with AF_XDP take its queues, which an upgrade leaves without sockets, on a thread of its own.
pub(crate) fn open_xdp(handle: Handle) {
    let open = move || match handle.open_xdp() {
        Ok(true) => log::note("tercel: HTTP/3 goes by AF_XDP again"),
        Ok(false) => {}
        Err(why) => {
            log::warn(&format!("HTTP/3 goes by the kernel's UDP until a restart, not by AF_XDP: {why}"))
        }
    };
    if let Err(error) = std::thread::Builder::new().name("open-xdp".to_owned()).spawn(open) {
        log::warn(&format!("HTTP/3 goes by the kernel's UDP until a restart, not by AF_XDP: {error}"));
    }
}

/// Starts the program that is at the place of this one now.
fn start() -> io::Result<(Channel, Child)> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let program = if words.is_empty() { OsString::from("tercel") } else { words.remove(0) };
    let (channel, other) = Channel::pair()?;
    let mut command = Command::new(program);
    command.args(words).stdin(other).env(VARIABLE, "1");
    OF_SERVICE_MANAGER.iter().for_each(|name| {
        command.env_remove(name);
    });
    // With the command goes this process's copy of the other end, so that the end of the child is noticed.
    let child = command.spawn()?;
    drop(command);
    Ok((channel, child))
}

/// Why the new process did not get as far as `then`.
fn failed(child: &mut Child, error: &io::Error, then: &str) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("the new process took too long before it {then}")
        }
        _ => {
            // What has closed its end has ended, or is about to.
            let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            format!("the new process ended before it {then} ({status}); its reason is above")
        }
    }
}

fn end(child: &mut Child) {
    // It may have ended.
    let _ = child.kill();
    let _ = child.wait();
}
