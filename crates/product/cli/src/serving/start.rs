//! What a server gets when it starts: from the process whose place it takes, or from a service manager that has opened sockets.
//!
//! A process before tells by the variable `TERCEL_UPGRADE` that standard input is a channel to it (server/src/upgrade). A service manager
//! tells by `LISTEN_FDS` how many sockets there are, from descriptor 3 on: sd_listen_fds(3).

use server::upgrade::{Channel, Handshake, Inheritance, PassedSockets, Word};
use std::env;
use std::ffi::OsStr;
use std::io::stdin;
use std::os::fd::{AsFd as _, OwnedFd};

/// Tells a new process that standard input is the channel.
pub(crate) const VARIABLE: &str = "TERCEL_UPGRADE";
/// The name under which the socket of the admin address is passed on.
pub(crate) const ADMIN: &str = "admin";
/// The variables of a service manager about sockets, and of whom it watches.
pub(crate) const OF_SERVICE_MANAGER: [&str; 4] =
    ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_PID"];

/// The start of a server.
pub(crate) struct Start {
    channel: Option<Channel>,
    inheritance: Inheritance,
    admin: Option<OwnedFd>,
}

impl Start {
    /// Finds what there is.
    ///
    /// # Errors
    /// One line: what there is cannot be used.
    pub(crate) fn find() -> Result<Start, String> {
        if env::var_os(VARIABLE).is_some_and(|value| !value.is_empty()) {
            return Start::from_process().map_err(|error| {
                format!("{VARIABLE} is set, and standard input is no channel to a server that runs: {error}")
            });
        }
        let (sockets, names) = from_service_manager()?;
        let mut admin = None;
        let mut passed = Vec::new();
        for (number, socket) in sockets.into_iter().enumerate() {
            if names.get(number).is_some_and(|name| name == ADMIN) {
                admin = Some(socket);
            } else {
                passed.push(socket);
            }
        }
        let passed = PassedSockets::of_service_manager(passed)?;
        Ok(Start { channel: None, inheritance: Inheritance::of_service_manager(passed), admin })
    }

    fn from_process() -> std::io::Result<Start> {
        let mut channel = Channel::of(stdin().as_fd().try_clone_to_owned()?);
        let mut inheritance = channel.inherit()?;
        let admin = inheritance.take_other(ADMIN);
        Ok(Start { channel: Some(channel), inheritance, admin })
    }

    /// The socket of the admin address, if there is one.
    pub(crate) fn take_admin(&mut self) -> Option<OwnedFd> {
        self.admin.take()
    }

    /// What the server gets.
    pub(crate) fn take_inheritance(&mut self) -> Inheritance {
        std::mem::take(&mut self.inheritance)
    }

    /// Whether the server takes the place of another process.
    pub(crate) fn is_upgrade(&self) -> bool {
        self.channel.is_some()
    }

    /// The server has all it needs. Returns the handshakes that are under way in the process before, which takes nothing in any more.
    ///
    /// # Errors
    /// One line: that process does without this one.
    pub(crate) fn ready(&mut self) -> Result<Vec<Handshake>, String> {
        let Some(channel) = &mut self.channel else { return Ok(Vec::new()) };
        channel.say(Word::Ready).and_then(|()| channel.hear_listed()).map_err(|error| left(&error))
    }

    /// The server serves. If it takes the place of another process, `then` is called once that one knows.
    ///
    /// # Errors
    /// As [`Start::ready`].
    pub(crate) fn serving(self, then: impl FnOnce()) -> Result<(), String> {
        let Some(mut channel) = self.channel else { return Ok(()) };
        channel.say(Word::Serving).map(|()| then()).map_err(|error| left(&error))
    }
}

fn left(error: &std::io::Error) -> String {
    format!("the server whose place this one was to take goes on without it: {error}")
}

/// The sockets that a service manager has opened for this process, and their names.
fn from_service_manager() -> Result<(Vec<OwnedFd>, Vec<String>), String> {
    let text = |name: &str| env::var_os(name).as_deref().and_then(OsStr::to_str).map(str::to_owned);
    let count = listened(text("LISTEN_FDS").as_deref(), text("LISTEN_PID").as_deref());
    let sockets = udp::take_passed(count)
        .map_err(|error| format!("LISTEN_FDS is {count}, and there are not as many sockets: {error}"))?;
    let names = text("LISTEN_FDNAMES").unwrap_or_default();
    Ok((sockets, names.split(':').map(str::to_owned).collect()))
}

/// How many sockets are passed to this process.
fn listened(count: Option<&str>, process: Option<&str>) -> usize {
    let is_ours = process.and_then(|process| process.parse().ok()) == Some(std::process::id());
    count.filter(|_| is_ours).and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a program that a service starts could take its descriptors for sockets.
    #[test]
    fn sockets_are_those_of_the_process_that_is_named() {
        let own = std::process::id().to_string();
        assert_eq!(listened(Some("3"), Some(&own)), 3);
        for (count, process) in [
            (None, None),
            (Some("3"), None),
            (Some("3"), Some("1")),
            (Some("x"), Some(own.as_str())),
            (None, Some(&own)),
        ] {
            assert_eq!(listened(count, process), 0);
        }
    }
}
