//! A client's own moves: to another address of its own, or to the address that its server prefers. Source: RFC 9000 §9.1, §9.2, §9.6.
//!
//! A move probes first: data stays on the path in use until the server has answered a challenge on the new one. A client whose
//! address is gone has nothing to stay on and moves at once (RFC 9000 §9.2). The path that was left is kept, and is probed again
//! when the new one falls silent.
//!
//! The addresses of the server count as validated: it has completed a handshake at the first, and has named the preferred one
//! itself. No path of a client is under the threefold limit, so its challenges are always full datagrams.
//!
//! Rejected: data on both paths until one has proved better. One packet-number space cannot tell the losses of two paths apart;
//! that is what multipath is for (docs/decisions/013).

use super::amplification::AddressState;
use super::own_move::{MoveCause, OwnMove};
use super::path::{Path, PathId};
use super::set::Paths;
use base::net::Addresses;
use base::time::Instant;
use core::net::IpAddr;

impl Paths {
    /// Whether the client probes a path in order to move there.
    pub(crate) fn is_moving(&self) -> bool {
        self.own_move != OwnMove::Rest
    }

    /// Probes a path to move there when the server answers. Another move that is under way is given up.
    //= rfc9000/9.6#1
    pub(crate) fn begin_move(&mut self, now: Instant, addresses: Addresses, cause: MoveCause) {
        self.cancel_move();
        let id = self.own_path(now, addresses);
        let timeouts = self.timeouts(id);
        if let Some(path) = self.path_mut(id) {
            path.start_validation(now, timeouts);
            self.own_move = OwnMove::Probing(id, cause);
        }
    }

    /// Moves without a probe; the path that is left is forgotten.
    pub(crate) fn move_at_once(&mut self, now: Instant, addresses: Addresses) {
        self.cancel_move();
        let id = self.own_path(now, addresses);
        let timeouts = self.timeouts(id);
        if self.activate(now, id).is_some() {
            // RFC 9000 §9.2: to find out whether the new path carries anything.
            //= rfc9000/9.2#2
            self.active_mut().start_validation(now, timeouts);
        }
    }

    /// The path in use has fallen silent: probes the one that was left last. Whether there is one.
    pub(crate) fn look_back(&mut self, now: Instant) -> bool {
        let last = self.others.last().map(|path| path.addresses).filter(|_| !self.is_moving());
        if let Some(addresses) = last {
            self.begin_move(now, addresses, MoveCause::Silence);
        }
        last.is_some()
    }

    /// Whether the client has left a path on which it could go on.
    pub(crate) fn has_left_one(&self) -> bool {
        !self.others.is_empty()
    }

    /// The server has answered where the client wants to move. Why it wants to.
    pub(crate) fn proved_move(&self) -> Option<MoveCause> {
        match self.own_move {
            OwnMove::Proved(_, cause) => Some(cause),
            OwnMove::Rest | OwnMove::Probing(..) => None,
        }
    }

    /// Carries out the move whose path has proved to be good. Whether the path in use has changed: the caller then changes
    /// connection IDs and tells the ledger.
    pub(crate) fn follow_own_move(&mut self, now: Instant) -> bool {
        let OwnMove::Proved(id, _) = core::mem::take(&mut self.own_move) else { return false };
        let Some(previous) = self.activate(now, id) else { return false };
        self.others.push(previous);
        true
    }

    /// No move is under way any more.
    pub(crate) fn cancel_move(&mut self) {
        let target = core::mem::take(&mut self.own_move).target();
        if let Some(path) = target.and_then(|id| self.path_mut(id)) {
            path.cancel_validation();
        }
    }

    /// The address is no longer ours: other paths from there are forgotten.
    pub(crate) fn forget_local(&mut self, ip: IpAddr) {
        let left = |path: &Path| path.addresses.local.ip() == ip;
        let target = self.own_move.target();
        if self.others.iter().any(|path| left(path) && Some(path.id()) == target) {
            self.cancel_move();
        }
        self.others.retain(|path| !left(path));
    }

    /// The path with these addresses: one that was left, or a new one.
    fn own_path(&mut self, now: Instant, addresses: Addresses) -> PathId {
        if let Some(known) = self.others.iter().find(|path| path.addresses == addresses) {
            return known.id();
        }
        self.make_room();
        let id = self.fresh_id();
        //= rfc9000/9.4#1
        let template = self.template.of_unknown();
        self.others.push(Path::new(now, id, addresses, &template, AddressState::Validated));
        id
    }

    /// Makes another path the one in use. Returns the one that was.
    fn activate(&mut self, now: Instant, id: PathId) -> Option<Path> {
        let at = self.others.iter().position(|path| path.id() == id)?;
        let mut path = self.others.swap_remove(at);
        // The server's counts go on where they were (RFC 9000 §13.4.2).
        path.ecn = self.active().ecn.clone();
        path.ecn.on_path_change();
        path.start_mtu_search(now);
        Some(core::mem::replace(self.active_mut(), path))
    }
}
