//! A client that moves from one of its addresses to the next.

use super::server::PAUSE;
use crate::scenario::{Moves, Scenario};
use base::time::Instant;
use core::net::SocketAddr;
use transport::{Connection, MigrateError};

/// The moves that are left.
#[derive(Debug, Default)]
pub(super) struct Travels {
    addresses: Vec<SocketAddr>,
    moves: Moves,
    next_at: Option<Instant>,
}

impl Travels {
    /// As the scenario wants them.
    pub(super) fn new(scenario: &Scenario) -> Travels {
        Travels { addresses: scenario.client_addresses().to_vec(), moves: scenario.moves, next_at: None }
    }

    /// Moves when that is due: every second time at once, as a client whose address is gone. Returns when to look again.
    pub(super) fn on_turn(&mut self, now: Instant, connection: &mut Connection) -> Option<Instant> {
        if self.moves.times == 0 || !connection.is_confirmed() {
            return None;
        }
        let at = *self.next_at.get_or_insert(now + self.moves.every);
        if now < at {
            return Some(at);
        }
        if connection.has_multipath() {
            self.moves.times -= u32::from(self.change_paths(now, connection));
            self.next_at = Some(now + self.moves.every);
            return self.next_at.filter(|_| self.moves.times > 0);
        }
        let here = connection.addresses().local;
        let place = self.addresses.iter().position(|address| *address == here).map_or(0, |place| place + 1);
        let next = *self.addresses.get(place % self.addresses.len().max(1))?;
        let moved = if self.moves.times.is_multiple_of(2) {
            connection.migrate(now, next)
        } else {
            connection.migrate_at_once(now, next)
        };
        // The server has not yet given another ID, or not heard that the last one is free.
        let wait = if moved == Err(MigrateError::NoConnectionId) { PAUSE } else { self.moves.every };
        self.moves.times -= u32::from(moved.is_ok());
        self.next_at = Some(now + wait);
        self.next_at.filter(|_| self.moves.times > 0)
    }

    /// Opens a path from an address that none is from, or ends one of several. Whether it has.
    fn change_paths(&self, now: Instant, connection: &mut Connection) -> bool {
        let paths = connection.paths();
        let is_free = |address: &&SocketAddr| paths.iter().all(|path| path.addresses.local != **address);
        let free = self.addresses.iter().find(is_free).copied();
        match free.filter(|_| paths.len() < 2 || !self.moves.times.is_multiple_of(3)) {
            Some(address) => connection.open_path(now, address).is_ok(),
            None => {
                let which = self.moves.times as usize % paths.len().max(1);
                paths.get(which).is_some_and(|path| connection.abandon_path(now, path.id))
            }
        }
    }
}
