//! Getting a connection to a server that has several addresses.
//!
//! The first address gets a head start; then the next one is tried beside it, and whichever completes its handshake first
//! is used (RFC 8305). An address where no server listens, or to which there is no way, is given up as soon as the network
//! says so; see [`crate::probe`].

use crate::error::{GetError, Silence};
use crate::probe::Probe;
use crate::target::Target;
use crate::transfer::Transfer;
use base::slab::Handle;
use base::time::{Duration, Instant};
use http3::ConnectionError;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use transport::CloseReason;

/// The head start of each address. Source: RFC 8305 §5.
const HEAD_START: Duration = Duration::from_millis(250);
/// A server that was silent for so long is asked about at the network.
const PROBE_AFTER: Duration = Duration::from_millis(60);

/// Why an attempt failed. Unlike an error it can be told to several downloads.
#[derive(Debug)]
pub enum Fault {
    /// What the system or the network says of the address.
    Network(SocketAddr, io::ErrorKind),
    /// How the connection ended.
    Closed(CloseReason, Option<ConnectionError>),
}

impl Fault {
    /// The error, where no connection has to be asked.
    pub fn of_network(address: SocketAddr, kind: io::ErrorKind) -> GetError {
        match kind {
            io::ErrorKind::ConnectionRefused => GetError::Refused(address),
            io::ErrorKind::TimedOut => GetError::Timeout(Silence::Connecting, 0),
            kind => GetError::Unreachable(address, kind.into()),
        }
    }

    /// Whether another address of the same server would not help.
    fn is_final(&self) -> bool {
        !matches!(
            self,
            Fault::Network(..) | Fault::Closed(CloseReason::HandshakeTimeout | CloseReason::IdleTimeout, _)
        )
    }
}

/// One handshake under way.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) handle: Handle,
    address: SocketAddr,
    began: Instant,
    probe: Option<Probe>,
}

/// What to do next for a server.
#[derive(Debug)]
pub(crate) enum Step {
    /// Begin a handshake with this address.
    Dial(SocketAddr),
    /// Close this attempt: the network says that it is hopeless.
    Abandon(Handle),
    /// Nothing now.
    Nothing,
}

/// A server: what is connected to it or about to be, and who waits for that.
#[derive(Debug)]
pub(crate) struct Server {
    target: Target,
    pub(crate) waiting: Vec<Transfer>,
    /// The connection in use.
    pub(crate) ready: Option<Handle>,
    untried: VecDeque<SocketAddr>,
    attempts: Vec<Attempt>,
    next_attempt: Instant,
    fault: Option<Fault>,
}

impl Server {
    pub(crate) fn new(target: &Target) -> Server {
        Server {
            target: target.clone(),
            waiting: Vec::new(),
            ready: None,
            untried: VecDeque::new(),
            attempts: Vec::new(),
            next_attempt: Instant::ZERO,
            fault: None,
        }
    }

    pub(crate) fn is_at(&self, target: &Target) -> bool {
        self.target.same_server(target)
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Whether it has a connection or tries to get one.
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.is_none() && self.attempts.is_empty() && self.untried.is_empty()
    }

    /// Whether it tries to get a connection.
    pub(crate) fn is_dialing(&self) -> bool {
        self.ready.is_none() && !(self.attempts.is_empty() && self.untried.is_empty())
    }

    /// These are its addresses.
    pub(crate) fn on_resolved(&mut self, addresses: Vec<SocketAddr>, now: Instant) {
        self.untried = addresses.into();
        self.next_attempt = now;
        self.fault = None;
    }

    /// What is due. `heard` says whether anything ever came back on a connection.
    pub(crate) fn next_step(&mut self, now: Instant, mut heard: impl FnMut(Handle) -> bool) -> Step {
        if self.ready.is_some() {
            return Step::Nothing;
        }
        for attempt in &mut self.attempts {
            if now.saturating_since(attempt.began) < PROBE_AFTER || heard(attempt.handle) {
                continue;
            }
            let verdict = match &attempt.probe {
                Some(probe) => probe.verdict(),
                None => match Probe::send(attempt.address) {
                    Ok(probe) => {
                        attempt.probe = Some(probe);
                        None
                    }
                    Err(error) => Some(error),
                },
            };
            if let Some(error) = verdict.filter(|error| speaks_of_the_way(error.kind())) {
                let handle = attempt.handle;
                let fault = Fault::Network(attempt.address, error.kind());
                self.on_failed(handle, fault);
                return Step::Abandon(handle);
            }
        }
        if now < self.next_attempt && !self.attempts.is_empty() {
            return Step::Nothing;
        }
        self.untried.pop_front().map_or(Step::Nothing, Step::Dial)
    }

    /// A handshake has begun.
    pub(crate) fn on_dialed(&mut self, handle: Handle, address: SocketAddr, now: Instant) {
        self.attempts.push(Attempt { handle, address, began: now, probe: None });
        self.next_attempt = now + HEAD_START;
    }

    /// A handshake could not begin or did not succeed.
    pub(crate) fn on_failed(&mut self, handle: Handle, fault: Fault) {
        self.attempts.retain(|attempt| attempt.handle != handle);
        self.on_fault(fault);
    }

    /// As `on_failed`, for an attempt that never was.
    pub(crate) fn on_fault(&mut self, fault: Fault) {
        if fault.is_final() {
            self.untried.clear();
        }
        // What a server says tells more than a silence.
        if self.fault.as_ref().is_none_or(|known| !known.is_final()) {
            self.fault = Some(fault);
        }
    }

    /// Whether the connection is one that it tries to get.
    pub(crate) fn tries(&self, handle: Handle) -> bool {
        self.attempts.iter().any(|attempt| attempt.handle == handle)
    }

    /// A handshake is complete: this is the connection. Returns the other attempts, which are not needed.
    pub(crate) fn on_connected(&mut self, handle: Handle) -> Vec<Handle> {
        self.ready = Some(handle);
        self.untried.clear();
        self.fault = None;
        let attempts = core::mem::take(&mut self.attempts);
        attempts.into_iter().map(|attempt| attempt.handle).filter(|other| *other != handle).collect()
    }

    /// Why there is no connection and will be none; `None` as long as there may be one.
    pub(crate) fn take_fault(&mut self) -> Option<Fault> {
        if self.is_idle() { self.fault.take() } else { None }
    }
}

/// Whether an error is about the address rather than about our own socket.
pub fn speaks_of_the_way(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, PermissionDenied};
    matches!(kind, ConnectionRefused | HostUnreachable | NetworkUnreachable | PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::slab::Slab;

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    #[test]
    fn addresses_get_a_head_start_and_the_first_to_answer_is_used() {
        let mut handles = Slab::new();
        let mut server = Server::new(&Target::parse("https://h/").unwrap());
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert!(server.is_idle());
        server.on_resolved(vec![address(1), address(2), address(3)], at(0));
        let dial = |step: Step| match step {
            Step::Dial(address) => address.port(),
            other => panic!("{other:?}"),
        };
        let first = handles.insert(());
        assert_eq!(dial(server.next_step(at(0), |_| true)), 1);
        server.on_dialed(first, address(1), at(0));
        assert!(matches!(server.next_step(at(249), |_| true), Step::Nothing));
        let second = handles.insert(());
        assert_eq!(dial(server.next_step(at(250), |_| true)), 2);
        server.on_dialed(second, address(2), at(250));
        assert_eq!(server.on_connected(second), [first]);
        assert!(!server.is_dialing() && server.take_fault().is_none());

        server.ready = None;
        server.on_resolved(vec![address(1), address(2)], at(300));
        let third = handles.insert(());
        assert_eq!(dial(server.next_step(at(300), |_| true)), 1);
        server.on_dialed(third, address(1), at(300));
        server.on_failed(third, Fault::Closed(CloseReason::HandshakeTimeout, None));
        assert_eq!(dial(server.next_step(at(301), |_| true)), 2, "no head start for one that failed");
        server.on_fault(Fault::Closed(CloseReason::StatelessReset, None));
        assert!(matches!(server.take_fault(), Some(Fault::Closed(CloseReason::StatelessReset, _))));
    }
}
