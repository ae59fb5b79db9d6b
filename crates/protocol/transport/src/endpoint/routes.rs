//! Which connection a datagram belongs to. Source: RFC 9000 §5.2.
//!
//! Three tables. Our own connection IDs are 8 bytes and looked up as a number; the destination that a client made up for its
//! first packets leads to its connection for as long as that lives, so that copies of an Initial never start a second one.
//! A stateless reset names nothing of ours: the token at its end leads to the connection.
//! In front stands the last answer, since datagrams come in runs. A side table by slab place remembers what leads to a
//! connection, so that forgetting one needs no help from it.
//!
//! Invariant: whatever the tables hold is listed in the side table under the same handle, and nothing else is.

use super::hash::{KeyedHash, LocalHash};
use super::shares::{Owner, Shares};
use crate::cid::{CidChange, LOCAL_CID_LEN, Registration, ResetToken};
use base::rng::Rng;
use base::slab::Handle;
use base::sparse;
use base::time::Instant;
use std::collections::HashMap;
use wire::cid::ConnectionId;
use wire::packet::is_long;

/// Where the length of the destination connection ID stands in a long header, and the ID behind it. Source: RFC 8999 §5.1.
const LONG_DCID_LEN: usize = 5;

/// The connection IDs that a datagram's first packet may be addressed to by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination<'a> {
    /// As long as ours are.
    Local(u64),
    /// In a long header, and of another length.
    Other(&'a [u8]),
}

impl Destination<'_> {
    /// Reads as little as possible; `None` if the datagram is too short for any packet.
    #[inline]
    pub(super) fn of(datagram: &[u8]) -> Option<Destination<'_>> {
        if !is_long(*datagram.first()?) {
            return Some(Destination::Local(number(datagram.get(1..)?.first_chunk()?)));
        }
        let len = usize::from(*datagram.get(LONG_DCID_LEN)?);
        let cid = datagram.get(LONG_DCID_LEN + 1..)?.get(..len)?;
        Some(cid.try_into().map_or(Destination::Other(cid), |cid| Destination::Local(number(cid))))
    }
}

#[inline]
fn number(cid: &[u8; LOCAL_CID_LEN]) -> u64 {
    u64::from_be_bytes(*cid)
}

/// The connection IDs of ours that a connection with one path has at a time, at most.
const MAX_LOCAL: usize = 4;
/// The same for one with several: those of the first path, and two of each of three others.
const MAX_LOCAL_OF_PATHS: usize = MAX_LOCAL + 3 * 2;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A client's handshake that is not complete.
    HalfOpen,
    /// In use, or our own attempt.
    Open,
}

/// What leads to a connection.
#[derive(Clone, Debug)]
struct RouteEntry {
    handle: Handle,
    stage: Stage,
    initial: Option<ConnectionId>,
    /// Whose share it counts towards, if a client began it.
    owner: Option<Owner>,
    local: Vec<u64>,
    resets: [Option<ResetToken>; 2],
}

impl RouteEntry {
    fn new(handle: Handle) -> RouteEntry {
        let local = Vec::with_capacity(MAX_LOCAL);
        RouteEntry { handle, stage: Stage::Open, initial: None, owner: None, local, resets: [None; 2] }
    }
}

/// The routing tables.
pub(super) struct Routes {
    last: Option<(u64, Handle)>,
    local: HashMap<u64, Handle, LocalHash>,
    initial: HashMap<ConnectionId, Handle, KeyedHash>,
    /// Keyed, so that the time of a look-up tells nothing about tokens. Source: RFC 9000 §10.3.1.
    resets: HashMap<ResetToken, Handle, KeyedHash>,
    /// Tokens of connections that use several paths at once, beside those of their first one.
    lane_resets: HashMap<Handle, Vec<ResetToken>, KeyedHash>,
    /// By the place of the handle. Boxed, because a place outlives its connection.
    residents: Vec<Option<Box<RouteEntry>>>,
    /// What clients have of all this.
    pub(super) shares: Shares,
}

impl Routes {
    pub(super) fn new(rng: &mut Rng) -> Routes {
        let local = LocalHash::new(rng);
        let keyed = KeyedHash::new(rng);
        Routes {
            last: None,
            local: HashMap::with_hasher(local),
            initial: HashMap::with_hasher(keyed.clone()),
            resets: HashMap::with_hasher(keyed.clone()),
            lane_resets: HashMap::with_hasher(keyed.clone()),
            residents: Vec::new(),
            shares: Shares::new(keyed),
        }
    }

    /// The connection that a datagram with this destination belongs to.
    #[inline]
    pub(super) fn find(&mut self, destination: Destination<'_>) -> Option<Handle> {
        let number = match destination {
            Destination::Local(number) => number,
            Destination::Other(cid) => return self.initial.get(&ConnectionId::new(cid)?).copied(),
        };
        if let Some((last, handle)) = self.last
            && last == number
        {
            return Some(handle);
        }
        if let Some(&handle) = self.local.get(&number) {
            self.last = Some((number, handle));
            return Some(handle);
        }
        if self.initial.is_empty() {
            return None;
        }
        self.initial.get(&ConnectionId::new(&number.to_be_bytes())?).copied()
    }

    /// The connection that a datagram would end if it is a stateless reset; the connection has the last word. For datagrams
    /// with a short header that lead nowhere. Source: RFC 9000 §10.3.1.
    pub(super) fn find_reset(&self, datagram: &[u8]) -> Option<Handle> {
        if self.resets.is_empty() {
            return None;
        }
        self.resets.get(datagram.last_chunk()?).copied()
    }

    /// Replaces the tokens that lead to a connection.
    pub(super) fn register_resets(&mut self, handle: Handle, tokens: [Option<ResetToken>; 2]) {
        let before = core::mem::replace(&mut self.resident(handle).resets, tokens);
        self.unlink_resets(handle, before.into_iter().flatten());
        for token in tokens.into_iter().flatten() {
            self.resets.entry(token).or_insert(handle);
        }
    }

    /// Replaces those of its further paths.
    pub(super) fn register_lane_resets(&mut self, handle: Handle, tokens: Vec<ResetToken>) {
        let before = self.lane_resets.remove(&handle).unwrap_or_default();
        self.unlink_resets(handle, before.into_iter());
        for token in &tokens {
            self.resets.entry(*token).or_insert(handle);
        }
        if !tokens.is_empty() {
            self.lane_resets.insert(handle, tokens);
        }
    }

    fn unlink_resets(&mut self, handle: Handle, tokens: impl Iterator<Item = ResetToken>) {
        for token in tokens {
            if self.resets.get(&token) == Some(&handle) {
                self.resets.remove(&token);
            }
        }
    }

    /// A client's connection, whose Initial packets go to `dcid`, begins its handshake.
    pub(super) fn admit(&mut self, now: Instant, handle: Handle, dcid: ConnectionId, owner: Owner) {
        self.initial.insert(dcid, handle);
        let resident = self.resident(handle);
        resident.initial = Some(dcid);
        if resident.owner.is_none() {
            (resident.stage, resident.owner) = (Stage::HalfOpen, Some(owner));
            self.shares.on_begun(now, &owner);
        }
    }

    /// Its handshake is complete. Whether that is news of a client's.
    pub(super) fn on_established(&mut self, handle: Handle) -> bool {
        let place = self.residents.get_mut(handle.index()).and_then(Option::as_deref_mut);
        let half_open =
            place.filter(|resident| resident.handle == handle && resident.stage == Stage::HalfOpen);
        let Some(resident) = half_open else { return false };
        resident.stage = Stage::Open;
        if let Some(owner) = &resident.owner {
            self.shares.on_handshake_over(owner);
        }
        true
    }

    /// The connection IDs by which clients reach connections whose handshake is under way.
    pub(super) fn handshakes(&self) -> impl Iterator<Item = ConnectionId> {
        let residents = self.residents.iter().flatten().filter(|resident| resident.stage == Stage::HalfOpen);
        residents.flat_map(|resident| {
            let local = resident.local.iter().filter_map(|number| ConnectionId::new(&number.to_be_bytes()));
            resident.initial.into_iter().chain(local)
        })
    }

    /// Whether datagrams to this ID would go to a connection.
    pub(super) fn leads(&self, cid: &ConnectionId) -> bool {
        let number = cid.as_slice().try_into().ok().map(number);
        number.is_some_and(|number| self.local.contains_key(&number)) || self.initial.contains_key(cid)
    }

    pub(super) fn register(&mut self, handle: Handle, change: CidChange) -> Registration {
        let (CidChange::Added(cid) | CidChange::Removed(cid)) = change;
        let Some(number) = cid.as_slice().try_into().ok().map(number) else { return Registration::Done };
        match change {
            // Two random IDs have met: the older connection keeps its traffic.
            //= rfc9000/5.1.1#1
            CidChange::Added(cid) if self.leads(&cid) => return Registration::Taken,
            CidChange::Added(_) => self.add(handle, number),
            CidChange::Removed(_) => self.remove(handle, number),
        }
        Registration::Done
    }

    fn add(&mut self, handle: Handle, number: u64) {
        let resident = self.resident(handle);
        debug_assert!(resident.local.len() < MAX_LOCAL_OF_PATHS, "a connection has a few IDs at a time");
        resident.local.push(number);
        self.local.insert(number, handle);
        self.last = None;
    }

    fn remove(&mut self, handle: Handle, number: u64) {
        self.resident(handle).local.retain(|held| *held != number);
        self.unlink(handle, number);
    }

    fn unlink(&mut self, handle: Handle, number: u64) {
        if self.local.get(&number) == Some(&handle) {
            self.local.remove(&number);
        }
        self.last = None;
    }

    /// The connection is gone.
    pub(super) fn forget(&mut self, handle: Handle) {
        let Some(place) = self.residents.get_mut(handle.index()) else { return };
        let Some(resident) = place.take_if(|resident| resident.handle == handle) else { return };
        if let Some(owner) = &resident.owner {
            if resident.stage == Stage::HalfOpen {
                self.shares.on_handshake_over(owner);
            }
            self.shares.on_gone(owner);
        }
        for number in resident.local {
            self.unlink(handle, number);
        }
        self.unlink_resets(handle, resident.resets.into_iter().flatten());
        if !self.lane_resets.is_empty() {
            self.register_lane_resets(handle, Vec::new());
        }
        if let Some(dcid) = resident.initial.filter(|dcid| self.initial.get(dcid) == Some(&handle)) {
            self.initial.remove(&dcid);
        }
        self.shrink();
    }

    /// Gives memory back after a peak.
    fn shrink(&mut self) {
        if let Some(room) = sparse::room_to_keep(self.local.len(), self.local.capacity()) {
            self.local.shrink_to(room);
        }
        if let Some(room) = sparse::room_to_keep(self.initial.len(), self.initial.capacity()) {
            self.initial.shrink_to(room);
        }
        if let Some(room) = sparse::room_to_keep(self.resets.len(), self.resets.capacity()) {
            self.resets.shrink_to(room);
        }
    }

    /// The entry of the side table, made if need be.
    fn resident(&mut self, handle: Handle) -> &mut RouteEntry {
        let index = handle.index();
        let stale = self.residents.get(index).and_then(Option::as_deref).map(|old| old.handle);
        if let Some(stale) = stale.filter(|stale| *stale != handle) {
            self.forget(stale);
        }
        if self.residents.len() <= index {
            self.residents.resize_with(index + 1, || None);
        }
        self.residents[index].get_or_insert_with(|| Box::new(RouteEntry::new(handle)))
    }

    /// Entries for which all tables have room.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.local.capacity() + self.initial.capacity() + self.resets.capacity()
    }

    /// Entries of all tables.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.local.len() + self.initial.len() + self.resets.len()
    }
}
