//! Moves that handles ask for. Source: RFC 9000 §9.

use super::State;
use super::transport_verbs::Verbs;
use std::net::IpAddr;
use transport::MigrateError;

impl State {
    /// Asks the worker to move to another local address.
    pub(crate) fn request_migration(&mut self, ip: IpAddr) {
        self.destination = Some(ip);
        self.wants_call = true;
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
