//! Moves that handles ask for. Source: RFC 9000 §9.

use super::State;
use super::transport_verbs::Verbs;
use crate::facts::PathEvent;
use std::net::IpAddr;
use transport::{MigrateError, OpenPathError};

impl State {
    /// Asks the worker to move to another local address.
    pub(crate) fn request_migration(&mut self, ip: IpAddr) {
        self.destination = Some(ip);
        self.wants_call = true;
    }

    /// Asks the worker to open a path from another local address.
    pub(crate) fn request_path(&mut self, ip: IpAddr) {
        if !self.wanted_paths.contains(&ip) {
            self.wanted_paths.push(ip);
        }
        self.wants_call = true;
    }

    /// The worker's part of a turn. Paths that are asked for in the handshake wait for its end, and for the connection IDs that come
    /// behind it; how many wait is bounded by the addresses of the machine.
    pub(super) fn exchange_paths(&mut self, verbs: &mut impl Verbs) {
        let State { wanted_paths, facts, error, .. } = self;
        wanted_paths.retain(|&from| match verbs.open_path(from) {
            Ok(()) => false,
            Err(OpenPathError::NotConfirmed | OpenPathError::NoConnectionId) if error.is_none() => true,
            Err(error) => {
                facts.paths.on_event(PathEvent::OpenFailed { from, error });
                false
            }
        });
    }

    /// The worker's part of a turn. A move that is asked for in the handshake waits for its end.
    pub(super) fn exchange_migration(&mut self, verbs: &mut impl Verbs) {
        let Some(ip) = self.destination else { return };
        let outcome = verbs.migrate(ip);
        if outcome == Err(MigrateError::NotConfirmed) && self.error.is_none() {
            return;
        }
        self.destination = None;
        if outcome.is_err() {
            self.facts.failed = Some(ip);
        }
    }
}
