//! A client's own moves: what the application and the server may ask for, and what has to hold. Source: RFC 9000 §9.2, §9.6.

use super::Connection;
use crate::config::PreferredAddresses;
use crate::error::MigrateError;
use crate::event::Event;
use crate::path::MoveCause;
use crate::space::SpaceId;
use base::net::Addresses;
use base::time::Instant;
use core::net::{IpAddr, SocketAddr};

/// Probe timeouts in a row after which a client probes the path that it has left.
pub(super) const SILENT_PTOS: u32 = 2;

impl Connection {
    /// Moves a client to another address of its own, as soon as the server has answered there: [`Event::Migrated`] tells, or
    /// [`Event::MigrationFailed`]. Data stays on the path in use until then. The data path must be able to send from `local`.
    /// Source: RFC 9000 §9.1.
    ///
    /// # Errors
    /// The connection may not move, or not there.
    pub fn migrate(&mut self, now: Instant, local: SocketAddr) -> Result<(), MigrateError> {
        let to = self.destination_from(local)?;
        self.give_up_move();
        self.paths.begin_move(now, to, MoveCause::Wish);
        Ok(())
    }

    /// As [`Connection::migrate`], for a client whose address is gone: it moves at once, and validates the path meanwhile.
    /// Source: RFC 9000 §9.2.
    ///
    /// # Errors
    /// The connection may not move, or not there.
    pub fn migrate_at_once(&mut self, now: Instant, local: SocketAddr) -> Result<(), MigrateError> {
        let to = self.destination_from(local)?;
        self.give_up_move();
        //= rfc9000/9.2#1
        self.paths.move_at_once(now, to);
        self.on_own_move();
        Ok(())
    }

    /// `ip` is no longer an address of ours: paths that were left there are forgotten.
    pub(super) fn forget_left_paths(&mut self, ip: IpAddr) {
        self.paths.forget_local(ip);
    }

    /// The path from `local` to the server, if the connection may move there.
    fn destination_from(&self, local: SocketAddr) -> Result<Addresses, MigrateError> {
        let active = self.paths.active().addresses;
        if self.side.is_server() {
            return Err(MigrateError::Server);
        }
        //= rfc9000/9#3
        if !self.handshake.is_confirmed() || self.lifecycle.is_over() {
            return Err(MigrateError::NotConfirmed);
        }
        let is_preferred = self.preferred_address() == Some(active.peer);
        //= rfc9000/9#2
        if self.handshake.disables_migration() && !is_preferred {
            return Err(MigrateError::Disabled);
        }
        if local.is_ipv4() != active.peer.is_ipv4() {
            return Err(MigrateError::OtherFamily);
        }
        let lanes = self.components.lanes.as_ref();
        let is_lane = lanes.is_some_and(|lanes| lanes.has_open_between(Addresses { local, ..active }));
        if local == active.local || is_lane {
            return Err(MigrateError::SamePath);
        }
        // RFC 9000 §9.5: never one connection ID from two addresses; a server without connection IDs has none to spare.
        //= rfc9000/9.5#3
        if !self.components.peer_cids.has_spare() {
            return Err(MigrateError::NoConnectionId);
        }
        Ok(Addresses { local, ..active })
    }

    /// A client knows that the server is done with the handshake: by HANDSHAKE_DONE, or because the server has acknowledged a 1-RTT packet,
    /// which it cannot read before. Without the latter a client whose peer never repeats a lost HANDSHAKE_DONE sends its Finished for ever.
    /// Source: RFC 9001 §4.1.2.
    pub(super) fn on_server_done(&mut self, now: Instant) {
        if !self.handshake.is_confirmed() {
            self.on_handshake_confirmed(now);
            self.prefer_address(now);
        }
    }

    /// The handshake is confirmed: the server may prefer to be reached at another address. Source: RFC 9000 §9.6.1.
    pub(super) fn prefer_address(&mut self, now: Instant) {
        let active = self.paths.active().addresses;
        if let Some(peer) =
            self.preferred_address().filter(|peer| self.side.is_client() && *peer != active.peer)
        {
            //= rfc9000/9.6#1
            self.paths.begin_move(now, Addresses { peer, ..active }, MoveCause::Wish);
        }
    }

    /// Where the server prefers to be reached, over the family of addresses in use.
    fn preferred_address(&self) -> Option<SocketAddr> {
        let told = self.handshake.peer_parameters()?.preferred_address.as_ref()?;
        let addresses = PreferredAddresses { ipv4: told.ipv4, ipv6: told.ipv6 };
        addresses.beside(self.paths.active().addresses.peer)
    }

    /// The server has answered a challenge: it may be the one that a move waits for.
    pub(super) fn on_path_proved(&mut self, now: Instant) {
        let Some(cause) = self.paths.proved_move() else { return };
        if cause == MoveCause::Silence && !self.timers.has_backed_off() {
            // The path in use was heard of again.
            self.give_up_move();
        } else if self.paths.follow_own_move(now) {
            self.on_own_move();
        }
    }

    /// No answer has come from where a move was to go.
    pub(super) fn on_move_failed(&mut self, addresses: Addresses) {
        self.components.peer_cids.drop_probing();
        self.events.push_back(Event::MigrationFailed { addresses });
    }

    /// The path in use has fallen silent: is the one that was left better?
    pub(super) fn look_back(&mut self, now: Instant) {
        let goes_on_elsewhere = self.components.lanes.as_ref().is_some_and(|lanes| lanes.has_fit_beside());
        if self.side.is_client() && self.components.peer_cids.has_spare() && !goes_on_elsewhere {
            self.paths.look_back(now);
        }
    }

    fn give_up_move(&mut self) {
        self.paths.cancel_move();
        self.components.peer_cids.drop_probing();
    }

    fn on_own_move(&mut self) {
        self.on_path_changed();
        self.events.push_back(Event::Migrated { addresses: self.paths.active().addresses });
        // Something that is no probe tells the server (RFC 9000 §9.2).
        self.components.control_frames.ping();
        self.speak_up(SpaceId::Application);
    }
}
