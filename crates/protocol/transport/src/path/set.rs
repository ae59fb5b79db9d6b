//! The paths of a connection, and what happens when the peer's address changes. Source: RFC 9000 §9.
//!
//! Data structure: the active path inline, because every packet asks for it; at most [`MAX_OTHERS`] others; and one
//! *candidate*, the addresses of the latest datagram that came from somewhere unknown. A candidate costs nothing and becomes
//! a path only when an authentic packet in the datagram gives a reason, so an unknown sender that copies our connection ID can
//! neither make nor push out a path.
//!
//! A server follows the highest-numbered non-probing packet at once, but sends no more than three times what it received
//! there until the peer has answered a challenge. Meanwhile it remembers the last validated path, challenges the peer there
//! too (RFC 9000 §9.3.3), and goes back when the answer from the new one does not come. A client follows no address change: servers
//! do not move. Its own moves are in own_paths.rs.
//!
//! A client must not move during the handshake, but an address translator may give it another port or address then. The
//! server follows, under the threefold limit. Once the IP address was another one, Handshake packets prove none any more,
//! because the keys may have come by another path than the packet; a challenge does, as soon as there are keys for it.
//!
//! Invariants: once the handshake is confirmed, as long as the active path is not fully validated, `fallback` names a
//! validated path among the others if there is one; the number of failed validations that no move explains has a limit, after
//! which new addresses are ignored.

use super::amplification::AddressState;
use super::own_move::OwnMove;
use super::path::{Path, PathId, Template};
use super::validation::{ChallengeResult, Data, ValidationTimeouts};
use crate::builder::PacketBuilder;
use crate::cid::{Beside, PeerCids};
use crate::config::TransportConfig;
use base::net::Addresses;
use base::rng::SparseRng;
use base::time::{Duration, Instant};
use recovery::congestion::{Algorithm, SavedParameters};
use recovery::pacer::Release;
use recovery::rtt::{INITIAL_RTT, Rtt};
use std::sync::Arc;
use wire::Side;
use wire::frame;
use wire::transport_parameters::TransportParameters;

/// Paths besides the active one.
pub(super) const MAX_OTHERS: usize = 3;

/// Failed validations after which datagrams from new addresses are dropped unread, but for those that moves explain: see
/// [`EXPLAINED`]. Without it a peer could keep a server validating for ever.
pub(super) const MAX_FAILURES: u32 = 100;

/// Failed validations that a peer's proof of a new address explains, and takes back. A client that moves, or whose address translator
/// gives it another port, may be seen at an address or two where it does not stay, as often as it moves.
const EXPLAINED: u32 = 2;

/// Probe timeouts that a validation may take. Source: RFC 9000 §8.2.4.
const TIMEOUT_PTOS: u64 = 3;

/// Whether the peer may change its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerMigration {
    /// Never: the peer is a server.
    NotAllowed,
    /// The peer is a client whose handshake is not confirmed. Its address may still change by no will of its own.
    Handshake,
    /// The same, and its IP address has changed.
    Rebound,
    /// The peer is a client whose handshake is confirmed.
    Peer,
}

/// Where a datagram from an unknown address came from.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: PathId,
    addresses: Addresses,
    bytes: u64,
    seen_at: Instant,
}

/// What the passing of time did to the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// Nothing that others need to know.
    Nothing,
    /// The peer was not at its new address: the last validated path is active again. To be treated like a migration.
    Reverted,
    /// The peer was not at its new address and there is no other. The connection ends in silence (RFC 9000 §9.3.2).
    NoPath,
    /// The server has not answered where we wanted to move.
    MoveFailed(Addresses),
}

/// The paths of a connection.
#[derive(Debug)]
pub(crate) struct Paths {
    active: Path,
    /// A client's are those that it has left, the last one last, and the one that it probes.
    pub(super) others: Vec<Path>,
    /// Where to go back to while the active path is not validated.
    fallback: Option<PathId>,
    candidate: Option<Box<Candidate>>,
    peer_migration: PeerMigration,
    failures: u32,
    next_id: u64,
    pub(super) template: Template,
    peer_max_ack_delay: Duration,
    /// A client's move (own_paths.rs).
    pub(super) own_move: OwnMove,
}

impl Paths {
    /// The path of the handshake.
    pub(crate) fn new(
        now: Instant,
        side: Side,
        config: &Arc<TransportConfig>,
        addresses: Addresses,
        state: AddressState,
    ) -> Paths {
        let template = Template::new(config);
        Paths {
            active: Path::new(now, PathId(0), addresses, &template, state),
            others: Vec::new(),
            fallback: None,
            candidate: None,
            peer_migration: if side.is_client() {
                PeerMigration::NotAllowed
            } else {
                PeerMigration::Handshake
            },
            failures: 0,
            next_id: 1,
            template,
            peer_max_ack_delay: Duration::ZERO,
            own_move: OwnMove::Rest,
        }
    }

    /// The paths of another lane, which begins at these addresses.
    pub(crate) fn beside(&self, now: Instant, addresses: Addresses, state: AddressState) -> Paths {
        let template = self.template.of_unknown();
        let mut active = Path::new(now, PathId(0), addresses, &template, state);
        active.start_mtu_search(now);
        Paths {
            active,
            others: Vec::new(),
            fallback: None,
            candidate: None,
            peer_migration: self.peer_migration,
            failures: 0,
            next_id: 1,
            template,
            peer_max_ack_delay: self.peer_max_ack_delay,
            own_move: OwnMove::Rest,
        }
    }

    /// Whether the path in use may carry data: its addresses are validated, on a client with nothing left to prove.
    pub(crate) fn carries_data(&self) -> bool {
        let is_client = self.peer_migration == PeerMigration::NotAllowed;
        self.active.is_validated() && !(is_client && self.active.is_validating())
    }

    /// Challenges the peer on the path in use, unless that is being done.
    pub(crate) fn validate(&mut self, now: Instant) {
        let timeouts = self.timeouts(self.active_id());
        self.active.start_validation(now, timeouts);
    }

    /// Whether the peer has not answered the challenges on the path in use.
    pub(crate) fn has_failed(&self, now: Instant) -> bool {
        self.active.has_failed(now)
    }

    /// The path in use.
    #[inline]
    pub(crate) fn active(&self) -> &Path {
        &self.active
    }

    #[inline]
    pub(crate) fn active_mut(&mut self) -> &mut Path {
        &mut self.active
    }

    #[inline]
    pub(crate) fn active_id(&self) -> PathId {
        self.active.id()
    }

    #[inline]
    pub(crate) fn path(&self, id: PathId) -> Option<&Path> {
        if self.active.id() == id {
            Some(&self.active)
        } else {
            self.others.iter().find(|path| path.id() == id)
        }
    }

    #[inline]
    pub(crate) fn path_mut(&mut self, id: PathId) -> Option<&mut Path> {
        if self.active.id() == id {
            return Some(&mut self.active);
        }
        self.others.iter_mut().find(|path| path.id() == id)
    }

    /// The addresses that the peer has proved to be at: what an application may be told. During the handshake, those it
    /// claims. A peer that merely seems to have moved must not pass a filter by address (CVE-2026-40460).
    pub(crate) fn validated_addresses(&self) -> Addresses {
        let fallback = self.fallback.filter(|_| !self.active.is_validated()).and_then(|id| self.path(id));
        fallback.unwrap_or(&self.active).addresses
    }

    /// Datagrams of `bytes` UDP payload in all arrived; called before any packet in them is opened, once. `None`: they are
    /// to be dropped unread.
    #[inline]
    pub(crate) fn on_datagram(&mut self, now: Instant, addresses: Addresses, bytes: usize) -> Option<PathId> {
        if self.active.addresses == addresses {
            //= rfc9000/8.1#2
            self.active.on_received(bytes as u64);
            return Some(self.active.id());
        }
        self.on_datagram_elsewhere(now, addresses, bytes as u64)
    }

    #[cold]
    fn on_datagram_elsewhere(&mut self, now: Instant, addresses: Addresses, bytes: u64) -> Option<PathId> {
        let mut known = core::iter::once(&mut self.active).chain(&mut self.others);
        if let Some(path) = known.find(|path| path.addresses.same_path(&addresses)) {
            path.on_received(bytes);
            return Some(path.id());
        }
        if self.peer_migration == PeerMigration::NotAllowed && addresses.peer == self.active.addresses.peer {
            // It is the server that must not move; our own address may change under us.
            return Some(self.active.id());
        }
        // RFC 9000 §9: datagrams from an unknown server address are dropped.
        //= rfc9000/9#1
        if self.peer_migration == PeerMigration::NotAllowed || self.failures >= MAX_FAILURES {
            return None;
        }
        if let Some(candidate) = self.candidate.as_mut().filter(|candidate| candidate.addresses == addresses)
        {
            candidate.bytes = candidate.bytes.saturating_add(bytes);
            candidate.seen_at = now;
            return Some(candidate.id);
        }
        let id = self.fresh_id();
        self.candidate = Some(Box::new(Candidate { id, addresses, bytes, seen_at: now }));
        Some(id)
    }

    /// The peer's transport parameters are known.
    pub(crate) fn on_peer_parameters(&mut self, peer: &TransportParameters) {
        let limit = u16::try_from(peer.max_udp_payload_size).unwrap_or(u16::MAX);
        self.peer_max_ack_delay = Duration::from_millis(peer.max_ack_delay_ms);
        self.on_size_limit(limit);
    }

    /// The peer, or our own interface, takes no packets larger than this: on paths to come as well.
    pub(crate) fn on_size_limit(&mut self, limit: u16) {
        self.template.on_size_limit(limit);
        self.active.on_size_limit(limit);
    }

    /// The controller of this path, which has carried nothing yet, and of those to come.
    pub(crate) fn set_congestion(&mut self, algorithm: Algorithm) {
        self.template.congestion = algorithm;
        self.active.begin_again(&self.template);
    }

    /// An earlier connection has found this out about the path, which has carried nothing yet.
    pub(crate) fn resume_from(&mut self, saved: SavedParameters) {
        self.template.saved = Some(Box::new(saved));
        self.active.begin_again(&self.template);
    }

    /// The data path holds trains back until they depart.
    pub(crate) fn use_departure_times(&mut self) {
        self.template.release = Release::Early;
        for path in core::iter::once(&mut self.active).chain(&mut self.others) {
            path.pacer.set_release(Release::Early);
        }
    }

    /// How much of its rate a path may save up for a train.
    pub(crate) fn set_train_span(&mut self, span: Duration) {
        core::iter::once(&mut self.active).chain(&mut self.others).for_each(|path| path.set_train_span(span));
    }

    /// A Handshake packet came: the peer is at the path's address, unless its IP address has changed since the handshake began.
    /// Where only the port has, all that was sent went to that IP address. Source: RFC 9000 §8.1.
    pub(crate) fn on_handshake_packet(&mut self, id: PathId) {
        if self.peer_migration == PeerMigration::Handshake
            && let Some(path) = self.path_mut(id)
        {
            path.on_validated();
        }
    }

    /// Gives back what only acknowledgements to come need, on the active path.
    pub(crate) fn release_memory(&mut self) {
        self.active.congestion.release_memory();
        self.others.shrink_to_fit();
    }

    /// No packet of the handshake counts any more.
    pub(crate) fn forget_handshake(&mut self) {
        self.active.ecn.forget_handshake();
    }

    /// From now on a client may move, and larger packets may be tried.
    pub(crate) fn on_handshake_confirmed(&mut self, now: Instant) {
        if self.peer_migration != PeerMigration::NotAllowed && !self.active.is_validated() {
            let timeouts = self.timeouts(self.active_id());
            self.active.start_validation(now, timeouts);
            self.fallback = self.others.iter().find(|path| path.is_validated()).map(Path::id);
        }
        if self.peer_migration != PeerMigration::NotAllowed {
            self.peer_migration = PeerMigration::Peer;
        }
        self.active.rtt.on_handshake_confirmed();
        self.active.start_mtu_search(now);
    }

    /// A PATH_CHALLENGE arrived on a path: the answer goes back the same way. Source: RFC 9000 §8.2.2.
    pub(crate) fn on_path_challenge(&mut self, now: Instant, id: PathId, data: Data) {
        self.materialize(id);
        let timeouts = self.timeouts(id);
        let Some(path) = self.path_mut(id) else { return };
        //= rfc9000/8.2.2#1
        path.owe_response(data);
        if !path.is_validated() {
            // The peer thinks of moving here; when it does, its address is validated already.
            path.start_validation(now, timeouts);
        }
    }

    /// A PATH_RESPONSE arrived, on any path. Where it proved the peer to be, if it was not known to be there: an occasion for
    /// a new address token (RFC 9000 §9.3).
    pub(crate) fn on_path_response(&mut self, now: Instant, data: Data) -> Option<Addresses> {
        let (mut proved, mut valid) = (None, None);
        for path in core::iter::once(&mut self.active).chain(&mut self.others) {
            let was_validated = path.is_validated();
            let result = path.on_response(now, data);
            if result != ChallengeResult::None && !was_validated {
                proved = Some(path.addresses);
            }
            valid = valid.or((result == ChallengeResult::Path).then_some(path.id()));
        }
        if let Some(valid) = valid {
            self.own_move.on_path_proved(valid);
        }
        if proved.is_some() {
            self.failures = self.failures.saturating_sub(EXPLAINED);
        }
        if self.active.is_validated() && !self.active.is_validating() {
            self.fallback = None;
        }
        proved
    }

    /// The highest-numbered packet so far is not a probing one and came on a path that is not the active one: the peer has
    /// moved there, or seems to. Whether the active path has changed; the caller then changes connection IDs and tells the
    /// ledger. Source: RFC 9000 §9.3.
    pub(crate) fn on_peer_moved(&mut self, now: Instant, id: PathId) -> bool {
        if self.peer_migration != PeerMigration::Peer {
            return false;
        }
        self.materialize(id);
        let timeouts = self.timeouts(id);
        let Some(at) = self.others.iter().position(|path| path.id() == id) else { return false };
        let is_here = |path: &&mut Path| path.addresses.local != self.active.addresses.local;
        if let Some(path) = self.others.get_mut(at).filter(is_here).filter(|path| !path.is_validated()) {
            // It is we who seem to be elsewhere: at the preferred address nothing but probes goes before the client is known
            // to be reached from there.
            //= rfc9000/9.6.2#1
            path.start_validation(now, timeouts);
            return false;
        }
        let mut path = self.others.swap_remove(at);
        //= rfc9000/9.4#1
        if is_rebinding(&self.active.addresses, &path.addresses) && !path.rtt.has_sample() {
            path.inherit(&self.active);
        }
        // The peer's counts go on where they were (RFC 9000 §13.4.2).
        path.ecn = self.active.ecn.clone();
        path.ecn.on_path_change();
        path.start_mtu_search(now);
        if !path.is_validated() {
            //= rfc9000/9.3#2
            path.start_validation(now, timeouts);
        }
        let mut previous = core::mem::replace(&mut self.active, path);
        if previous.is_validated() {
            self.fallback = (!self.active.is_validated()).then_some(previous.id());
            // RFC 9000 §9.3.3: if someone merely forwards copies of packets, the answer from here undoes it.
            //= rfc9000/9.3.3#1
            previous.start_validation(now, timeouts);
            self.others.push(previous);
        } else {
            // RFC 9000 §9.3.2: going on from a spurious address abandons its validation.
            self.failures += 1;
            if self.active.is_validated() {
                self.fallback = None;
            }
        }
        true
    }

    /// As `on_peer_moved`, while the handshake runs: an address translator has changed the peer's address. Whether the active
    /// path has changed; nothing but the threefold limit protects the new address before there are keys for a challenge.
    pub(crate) fn on_peer_rebound(&mut self, id: PathId) -> bool {
        if !matches!(self.peer_migration, PeerMigration::Handshake | PeerMigration::Rebound) {
            return false;
        }
        self.materialize(id);
        let Some(at) = self.others.iter().position(|path| path.id() == id) else { return false };
        let mut path = self.others.swap_remove(at);
        if !is_rebinding(&self.active.addresses, &path.addresses) {
            self.peer_migration = PeerMigration::Rebound;
        } else if !path.rtt.has_sample() {
            path.inherit(&self.active);
        }
        path.ecn = self.active.ecn.clone();
        path.ecn.on_path_change();
        self.others.push(core::mem::replace(&mut self.active, path));
        // Each counts, so that copies of the client's packets cannot make the server move about for ever.
        self.failures += 1;
        true
    }

    pub(super) fn fresh_id(&mut self) -> PathId {
        self.next_id += 1;
        PathId(self.next_id - 1)
    }

    /// Makes a path of the candidate if `id` names it.
    fn materialize(&mut self, id: PathId) {
        let Some(candidate) = self.candidate.take_if(|candidate| candidate.id == id) else { return };
        self.make_room();
        let Candidate { addresses, bytes, seen_at, .. } = *candidate;
        //= rfc9000/9.3.1#1
        // Nothing is known of a path that the peer has moved to.
        let template = self.template.of_unknown();
        let mut path = Path::new(seen_at, id, addresses, &template, AddressState::Unvalidated);
        path.on_received(bytes);
        self.others.push(path);
    }

    /// Drops another path when there are too many: first one that is not validated, then the oldest.
    pub(super) fn make_room(&mut self) {
        if self.others.len() < MAX_OTHERS {
            return;
        }
        let fallback = self.fallback;
        let droppable = |path: &Path| Some(path.id()) != fallback;
        let unproved = self.others.iter().position(|path| droppable(path) && !path.is_validated());
        let any = || self.others.iter().position(droppable);
        if let Some(at) = unproved.or_else(any) {
            let path = self.others.remove(at);
            self.failures += u32::from(!path.is_validated());
        }
    }

    /// How long a validation of the path may take. Source: RFC 9000 §8.2.4, §9.4.
    pub(super) fn timeouts(&self, id: PathId) -> ValidationTimeouts {
        let delay = self.peer_max_ack_delay;
        let current = self.active.rtt.pto(delay);
        let own = self.path(id).map_or(current, |path| path.rtt.pto(delay));
        let initial = Rtt::new(INITIAL_RTT).pto(delay);
        //= rfc9000/8.2.4#1
        ValidationTimeouts { interval: own, timeout: current.max(initial) * TIMEOUT_PTOS }
    }
}

/// Probes: what leaves on a path for the path's own sake.
impl Paths {
    /// The path on which a challenge or a response should leave now, in a datagram of its own. Where there is no connection ID for a
    /// path, they wait for one.
    #[inline]
    pub(crate) fn wants_probe(&self, now: Instant, cids: &PeerCids) -> Option<PathId> {
        if self.active.wants_probe(now) {
            return Some(self.active.id());
        }
        let wants = |path: &&Path| path.wants_probe(now) && cids.has_for_probe(self.beside_active(path));
        self.others.iter().find(wants).map(Path::id)
    }

    /// What another path is beside the active one. A server's addresses tell nothing of its client.
    pub(crate) fn beside_active(&self, path: &Path) -> Beside {
        let is_client = self.peer_migration == PeerMigration::NotAllowed;
        if is_client && path.addresses.local != self.active.addresses.local {
            Beside::Elsewhere
        } else if path.is_validated() {
            Beside::Known
        } else {
            Beside::New
        }
    }

    /// Writes the frames of a probe; the datagram must be as large as the path's credit allows, up to 1,200 bytes.
    pub(crate) fn write_probe(
        &mut self,
        now: Instant,
        id: PathId,
        rng: &mut SparseRng,
        packet: &mut PacketBuilder<'_>,
    ) {
        let is_active = self.active.id() == id;
        let owed = is_active && self.active.owes_response();
        let Some(path) = self.path_mut(id) else { return };
        path.write_probe(now, rng, packet);
        //= rfc9000/9.3.3#2
        if owed && packet.remaining() > 0 {
            // RFC 9000 §9.3.3: a non-probing packet in answer brings the peer back from a spurious migration.
            packet.writer.varint(frame::ty::PING);
            packet.sent_unremembered();
        }
    }

    /// When `on_timeout` has something to do.
    pub(crate) fn next_timeout(&self, cids: &PeerCids) -> Option<Instant> {
        if self.others.is_empty() && !self.active.is_validating() {
            return None;
        }
        let other = |path: &Path| {
            // Without a connection ID a challenge that is due waits for one, not for time.
            let has_cid = cids.has_for_probe(self.beside_active(path));
            if has_cid { path.next_timeout() } else { path.validation_ends() }
        };
        self.active.next_timeout().into_iter().chain(self.others.iter().filter_map(other)).min()
    }

    /// Gives up validations that took too long.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> Expiry {
        let target = self.own_move.target().and_then(|id| self.path(id));
        let failed = target.filter(|path| path.has_failed(now)).map(|path| path.addresses);
        if failed.is_some() {
            self.own_move = OwnMove::Rest;
        }
        self.give_up_others(now);
        if !self.active.has_failed(now) {
            return failed.map_or(Expiry::Nothing, Expiry::MoveFailed);
        }
        self.active.cancel_validation();
        self.failures += u32::from(!self.active.is_validated());
        let fallback = self.fallback.take();
        let Some(at) = self.others.iter().position(|path| Some(path.id()) == fallback) else {
            // A path known to be good whose second look failed, or which does not carry full datagrams, goes on.
            //= rfc9000/9.3.2#2
            return if self.active.is_validated() { Expiry::Nothing } else { Expiry::NoPath };
        };
        //= rfc9000/9.3.2#1
        self.active = self.others.swap_remove(at);
        Expiry::Reverted
    }

    fn give_up_others(&mut self, now: Instant) {
        let (fallback, mut failed) = (self.fallback, 0);
        self.others.retain_mut(|path| {
            if !path.has_failed(now) {
                return true;
            }
            path.cancel_validation();
            failed += u32::from(!path.is_validated());
            Some(path.id()) == fallback
        });
        self.failures += failed;
    }

    /// How many paths there are, and how many validations have failed.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, u32) {
        (1 + self.others.len(), self.failures)
    }
}

/// Whether nothing but the peer's port has changed, which is most often a NAT's doing.
fn is_rebinding(before: &Addresses, after: &Addresses) -> bool {
    before.peer.ip() == after.peer.ip() && before.local == after.local
}
