//! The connection IDs by which we reach the peer. Source: RFC 9000 §5.1.2, §9.5, §19.15, §10.3.1.
//!
//! Data structure: at most [`MAX_ACTIVE`] entries, one of which is in use on the active path and at most one other on paths
//! that are only probed; the sequence numbers seen, as ranges; and the retirements that the peer has not acknowledged.
//!
//! A peer can make us retire IDs as fast as it can send (by a rising Retire Prior To, and by repeating numbers below it), and
//! stop acknowledging. Every way to a retirement goes through one function, which counts them all: beyond
//! [`MAX_RETIREMENTS`] the connection closes. Eleven stacks of seventeen once had a queue there without a limit, and one
//! that had the limit missed the second way.

use crate::announce::Announce;
use crate::builder::PacketBuilder;
use crate::error::TransportError;
use crate::lane_id::LaneId;
use crate::sent::SentFrame;
use base::ranges::RangeSet;
use crypto::StatelessResetKey;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::frame;

/// How many connection IDs of the peer we keep.
pub(super) const MAX_ACTIVE: usize = 4;

/// Retirements that may be unacknowledged. Source: RFC 9000 §5.1.2 asks for at least twice the limit on active ones.
pub(super) const MAX_RETIREMENTS: usize = 3 * MAX_ACTIVE;

/// Gaps in the sequence numbers seen. An honest peer leaves one only for the time that a lost packet takes to come again.
const MAX_GAPS: usize = 16;

/// What the peer sends when it has lost the connection's state.
pub(crate) type ResetToken = [u8; 16];

#[derive(Clone, Copy, Debug)]
struct PeerCid {
    sequence: u64,
    cid: ConnectionId,
    /// A server's first connection ID has one only if its transport parameters say so, a client's has none.
    token: Option<ResetToken>,
}

/// What a path beside the active one is, and so whether it may show the ID of that one for want of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// The peer is there and waits for an answer, without which the connection may be lost. It may.
    New,
    /// One that was in use before. It may if its ID is the same in any case.
    Known,
    /// One from another address of this client, which is not to be recognised there. It may not.
    Elsewhere,
}

/// A retirement that the peer has not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Retirement {
    sequence: u64,
    announcement: Announce<()>,
}

/// The peer's connection IDs.
#[derive(Debug)]
pub(crate) struct PeerCids {
    lane: LaneId,
    /// In use on the active path; copied out of the entries because every packet needs it.
    active: PeerCid,
    /// In use on the other paths.
    probing: Option<Box<PeerCid>>,
    /// The active one was used on no path but the active one.
    is_exclusive: bool,
    /// Not used yet, ascending by sequence number.
    spare: Vec<PeerCid>,
    /// All sequence numbers received so far that are not below `retire_prior_to`.
    seen: RangeSet,
    /// The largest received.
    retire_prior_to: u64,
    retirements: Vec<Retirement>,
    pending: usize,
    /// The tokens in use are not those that the endpoint knows.
    tokens_changed: bool,
}

impl PeerCids {
    /// `first` is where the first packet goes: what the client made up, or the client's source connection ID.
    pub(crate) fn new(first: ConnectionId) -> PeerCids {
        let mut seen = RangeSet::new();
        seen.insert(0..1);
        PeerCids {
            lane: LaneId::FIRST,
            active: PeerCid { sequence: 0, cid: first, token: None },
            probing: None,
            is_exclusive: false,
            spare: Vec::new(),
            seen,
            retire_prior_to: 0,
            retirements: Vec::new(),
            pending: 0,
            tokens_changed: false,
        }
    }

    /// The first one that the peer gives for another lane.
    ///
    /// # Errors
    /// The frame asks to retire IDs that it never gave, too many of them.
    pub(crate) fn of_lane(lane: LaneId, new: &frame::NewConnectionId) -> Result<PeerCids, TransportError> {
        let mut cids = PeerCids::new(new.cid);
        cids.lane = lane;
        cids.active = PeerCid { sequence: new.sequence, cid: new.cid, token: Some(new.reset_token) };
        cids.seen = RangeSet::new();
        cids.retire_prior_to = new.retire_prior_to;
        cids.see(new.sequence)?;
        Ok(cids)
    }

    /// Whether the ID is one of these.
    pub(crate) fn holds(&self, cid: &ConnectionId) -> bool {
        self.entries().any(|entry| entry.cid == *cid)
    }

    /// The endpoint has to know the tokens of these IDs now.
    pub(crate) fn tell_reset_tokens(&mut self) {
        self.tokens_changed = true;
    }

    /// Gives back what only IDs to come need.
    pub(crate) fn release_memory(&mut self) {
        self.spare.shrink_to_fit();
        self.seen.shrink();
        self.retirements.shrink_to_fit();
    }

    /// Where packets on the active path go.
    #[inline]
    pub(crate) fn active(&self) -> ConnectionId {
        self.active.cid
    }

    /// Where packets on another path than the active one go: one ID never used on the active path, so that the two cannot be
    /// linked. Without a spare one the active ID has to do, where `beside` permits it. `None`: nothing may go there. Source: RFC 9000
    /// §9.5.
    pub(crate) fn for_probe(&mut self, beside: Beside) -> Option<ConnectionId> {
        if self.probing.is_none() && !self.spare.is_empty() {
            self.probing = Some(Box::new(self.spare.remove(0)));
            self.tokens_changed = true;
        }
        match &self.probing {
            Some(probing) => Some(probing.cid),
            None => self.shares(beside).then_some(self.active.cid),
        }
    }

    /// Whether [`PeerCids::for_probe`] has an ID.
    pub(crate) fn has_for_probe(&self, beside: Beside) -> bool {
        self.probing.is_some() || !self.spare.is_empty() || self.shares(beside)
    }

    /// Whether the active ID may be used on another path, too: a peer without IDs cannot be recognised by them.
    fn shares(&self, beside: Beside) -> bool {
        //= rfc9000/9.5#4
        self.active.cid.is_empty()
            || match beside {
                Beside::New => true,
                Beside::Known => !self.is_exclusive,
                Beside::Elsewhere => false,
            }
    }

    /// Whether another path can be given an ID that was not used on any. Source: RFC 9000 §9.5.
    pub(crate) fn has_spare(&self) -> bool {
        !self.spare.is_empty() && self.retirements.len() + 2 <= MAX_RETIREMENTS
    }

    /// The path that was probed is given up: no other may use its ID. Source: RFC 9000 §9.5.
    pub(crate) fn drop_probing(&mut self) {
        if let Some(probing) = self.probing.take_if(|_| self.retirements.len() < MAX_RETIREMENTS) {
            self.tokens_changed = true;
            let _ = self.retire(probing.sequence);
        }
    }

    /// The server's Retry names another ID. Source: RFC 9000 §17.2.5.2.
    pub(crate) fn on_retry(&mut self, cid: ConnectionId) {
        self.active.cid = cid;
    }

    /// The peer's first packet names the ID that it chose. Source: RFC 9000 §7.2.
    pub(crate) fn on_first_packet(&mut self, cid: ConnectionId) {
        if self.active.sequence == 0 {
            self.active.cid = cid;
        }
    }

    /// The server's transport parameters have a token for its first ID.
    pub(crate) fn on_initial_reset_token(&mut self, token: ResetToken) {
        if self.active.sequence == 0 {
            self.active.token = Some(token);
            self.tokens_changed = true;
        }
    }

    /// The server's transport parameters have an ID for its preferred address: the one with sequence number 1, which serves
    /// on any path. Source: RFC 9000 §5.1.1, §9.6.1.
    pub(crate) fn on_preferred_address(&mut self, cid: ConnectionId, token: ResetToken) {
        //= rfc9000/5.1.1#5
        if self.seen.insert(1..2) > 0 {
            self.spare.insert(0, PeerCid { sequence: 1, cid, token: Some(token) });
        }
    }

    /// A NEW_CONNECTION_ID frame arrived.
    ///
    /// # Errors
    /// The peer uses no connection IDs, contradicts itself, gives more than we keep, or makes us retire too many.
    pub(crate) fn on_new_connection_id(
        &mut self,
        new: &frame::NewConnectionId,
    ) -> Result<(), TransportError> {
        //= rfc9000/19.15#3
        if self.active.cid.is_empty() {
            return Err(violation("new connection ID from a peer that uses none"));
        }
        //= rfc9000/19.15#4
        self.check_contradiction(new)?;
        let is_new = self.see(new.sequence)?;
        //= rfc9000/5.1.2#1
        self.raise_retire_prior_to(new.retire_prior_to)?;
        //= rfc9000/19.15#5
        if new.sequence < self.retire_prior_to {
            // Too late to be used. RFC 9000 §19.15: it is retired too, which must not escape the limit.
            return self.retire(new.sequence);
        }
        if is_new {
            let entry = PeerCid { sequence: new.sequence, cid: new.cid, token: Some(new.reset_token) };
            let at = self.spare.partition_point(|spare| spare.sequence < new.sequence);
            self.spare.insert(at, entry);
        }
        self.replace_retired_active()?;
        //= rfc9000/5.1.1#3
        if 1 + usize::from(self.probing.is_some()) + self.spare.len() > MAX_ACTIVE {
            let reason = "more connection IDs than active_connection_id_limit";
            return Err(TransportError::new(Code::CONNECTION_ID_LIMIT_ERROR, reason));
        }
        Ok(())
    }

    /// One sequence number, one ID, one token. Source: RFC 9000 §19.15.
    fn check_contradiction(&self, new: &frame::NewConnectionId) -> Result<(), TransportError> {
        let contradicts = |entry: &PeerCid| {
            let same_token =
                entry.token.is_none_or(|token| StatelessResetKey::same(&token, &new.reset_token));
            let same_number = entry.sequence == new.sequence;
            let same_cid = entry.cid == new.cid;
            (same_number || same_cid) && !(same_number && same_cid && same_token)
        };
        if self.entries().any(contradicts) {
            return Err(violation("connection ID, sequence number or token used twice"));
        }
        Ok(())
    }

    /// Remembers a sequence number; whether it is new. Numbers below `retire_prior_to` need not be remembered.
    fn see(&mut self, sequence: u64) -> Result<bool, TransportError> {
        if sequence < self.retire_prior_to {
            return Ok(false);
        }
        let is_new = self.seen.insert(sequence..sequence + 1) > 0;
        if self.seen.count() > MAX_GAPS {
            return Err(violation("sequence numbers of connection IDs with too many gaps"));
        }
        Ok(is_new)
    }

    /// Retires what the peer asks to retire. Source: RFC 9000 §5.1.2.
    fn raise_retire_prior_to(&mut self, bound: u64) -> Result<(), TransportError> {
        if bound <= self.retire_prior_to {
            return Ok(());
        }
        self.retire_prior_to = bound;
        self.seen.remove(0..bound);
        while let Some(first) = self.spare.first().filter(|spare| spare.sequence < bound).copied() {
            self.spare.remove(0);
            self.retire(first.sequence)?;
        }
        if let Some(probing) = self.probing.take_if(|probing| probing.sequence < bound) {
            self.tokens_changed = true;
            self.retire(probing.sequence)?;
        }
        Ok(())
    }

    /// The ID in use may itself be one of those to retire.
    fn replace_retired_active(&mut self) -> Result<(), TransportError> {
        if self.active.sequence >= self.retire_prior_to {
            return Ok(());
        }
        let retired = self.active.sequence;
        self.active = self.take_next().ok_or(violation("retires every connection ID it gave"))?;
        self.is_exclusive = true;
        self.retire(retired)
    }

    /// The ID that the active path should use next: one that a probe has already brought to the peer's new address, or else
    /// the oldest spare one.
    fn take_next(&mut self) -> Option<PeerCid> {
        self.tokens_changed = true;
        self.probing
            .take()
            .map(|probing| *probing)
            .or_else(|| (!self.spare.is_empty()).then(|| self.spare.remove(0)))
    }

    /// Moves to an unused ID and retires the one in use; `false`, and nothing happens, when there is none.
    /// Source: RFC 9000 §9.5.
    pub(crate) fn switch(&mut self) -> bool {
        self.is_exclusive = false;
        if self.retirements.len() >= MAX_RETIREMENTS {
            return false;
        }
        let Some(next) = self.take_next() else { return false };
        let retired = core::mem::replace(&mut self.active, next);
        self.is_exclusive = true;
        self.retire(retired.sequence).is_ok()
    }

    /// The one way to a retirement.
    fn retire(&mut self, sequence: u64) -> Result<(), TransportError> {
        if self.retirements.iter().any(|retirement| retirement.sequence == sequence) {
            return Ok(()); // it is on its way
        }
        if self.retirements.len() >= MAX_RETIREMENTS {
            //= rfc9000/5.1.2#2
            let reason = "more connection IDs to retire than it acknowledges";
            return Err(TransportError::new(Code::CONNECTION_ID_LIMIT_ERROR, reason));
        }
        self.retirements.push(Retirement { sequence, announcement: Announce::Pending(()) });
        self.pending += 1;
        Ok(())
    }

    /// Whether a RETIRE_CONNECTION_ID frame waits.
    #[inline]
    pub(crate) fn wants(&self) -> bool {
        self.pending > 0
    }

    /// Writes the RETIRE_CONNECTION_ID frames that wait, as far as there is room.
    pub(crate) fn write(&mut self, packet: &mut PacketBuilder<'_>) {
        for retirement in self.retirements.iter_mut().filter(|it| it.announcement.is_pending()) {
            let sequence = retirement.sequence;
            let of_path = frame::PathRetireConnectionId { path: self.lane.0.into(), sequence };
            if packet.remaining() < of_path.size() {
                return;
            }
            match self.lane {
                LaneId::FIRST => frame::RetireConnectionId { sequence }.write(&mut packet.writer),
                _ => of_path.write(&mut packet.writer),
            }
            packet.sent(SentFrame::RetireConnectionId { lane: self.lane, sequence });
            retirement.announcement.on_sent();
            self.pending -= 1;
        }
    }

    /// A frame of ours was acknowledged: the retirement is over.
    pub(crate) fn on_acked(&mut self, frame: &SentFrame) {
        let SentFrame::RetireConnectionId { sequence, .. } = *frame else { return };
        if let Some(at) = self.retirements.iter().position(|it| it.sequence == sequence) {
            let retirement = self.retirements.swap_remove(at);
            self.pending -= usize::from(retirement.announcement.is_pending());
        }
    }

    /// A frame of ours was lost: it goes again.
    pub(crate) fn on_lost(&mut self, frame: &SentFrame) {
        let SentFrame::RetireConnectionId { sequence, .. } = *frame else { return };
        let Some(retirement) = self.retirements.iter_mut().find(|it| it.sequence == sequence) else { return };
        self.pending -= usize::from(retirement.announcement.is_pending());
        retirement.announcement.on_lost();
        self.pending += usize::from(retirement.announcement.is_pending());
    }

    /// Whether the last bytes of a datagram are the token of an ID in use: a stateless reset. Tokens of IDs not yet used or
    /// retired do not count, and the time it takes tells nothing. Source: RFC 9000 §10.3.1.
    pub(crate) fn is_reset_token(&self, tail: &ResetToken) -> bool {
        let in_use = [Some(&self.active), self.probing.as_deref()];
        let mut found = false;
        for token in in_use.into_iter().flatten().filter_map(|entry| entry.token.as_ref()) {
            //= rfc9000/10.3.1#2
            found |= StatelessResetKey::same(token, tail);
        }
        found
    }

    /// The stateless reset tokens of the IDs in use, if they have changed since the last call: a stateless reset names no
    /// connection ID of ours, so the endpoint must find the connection by them. Source: RFC 9000 §10.3.1.
    #[inline]
    pub(crate) fn take_reset_tokens(&mut self) -> Option<[Option<ResetToken>; 2]> {
        core::mem::take(&mut self.tokens_changed).then(|| self.reset_tokens())
    }

    /// Those of the IDs in use.
    pub(crate) fn reset_tokens(&self) -> [Option<ResetToken>; 2] {
        [self.active.token, self.probing.as_ref().and_then(|entry| entry.token)]
    }

    fn entries(&self) -> impl Iterator<Item = &PeerCid> {
        core::iter::once(&self.active).chain(self.probing.as_deref()).chain(&self.spare)
    }

    /// How many IDs there are, and how many retirements wait for an acknowledgement.
    #[cfg(test)]
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.entries().count(), self.retirements.len())
    }
}

fn violation(reason: &'static str) -> TransportError {
    TransportError::new(Code::PROTOCOL_VIOLATION, reason)
}
