//! The connection IDs that the peer uses to reach us. Source: RFC 9000 §5.1.1, §19.15, §19.16.
//!
//! Data structure: at most [`MAX_ISSUED`] entries, ascending by sequence number, and a log of changes for the endpoint's
//! routing table. A NEW_CONNECTION_ID frame is resent until it is acknowledged or its ID is retired: whether it waits is
//! the entry's state, not a queue.
//!
//! An ID that leads to another connection already is exchanged for another one when the endpoint takes the log, which is
//! before the peer hears of it.
//!
//! Invariants: the log holds at most [`MAX_LOG`] changes, because no new ID is issued while it is long; an ID can be
//! retired only after it has been sent, so a peer cannot make us issue faster than it answers.
//! We never ask the peer to retire an ID (Retire Prior To is always 0).

use super::generator::{CidGenerator, LOCAL_CID_LEN};
use crate::announce::Announce;
use crate::builder::PacketBuilder;
use crate::error::TransportError;
use crate::lane_id::LaneId;
use crate::sent::SentFrame;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::frame;

/// The most connection IDs that we issue at a time, whatever the peer's limit.
pub(super) const MAX_ISSUED: usize = 4;

/// The same for each lane but the first: one in use, one to change to.
const MAX_OF_LANE: usize = 2;

/// Changes that may wait to be taken: those of one peer that replaces all its IDs, and room for the IDs it has left.
const MAX_LOG: usize = 3 * MAX_ISSUED;

/// A change in the set of connection IDs that lead to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CidChange {
    /// Datagrams to this ID belong to the connection from now on.
    Added(ConnectionId),
    /// The peer will not use the ID any more.
    Removed(ConnectionId),
}

/// What the routing table made of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registration {
    /// It is in the table.
    Done,
    /// The added ID leads to another connection, and goes on to do so.
    Taken,
}

/// How often a taken ID is exchanged: with the fullest table that fits into memory this fails once in an age.
pub(crate) const MAX_EXCHANGES: usize = 16;

#[derive(Clone, Copy, Debug)]
struct LocalCid {
    sequence: u64,
    /// A third of what a [`ConnectionId`] takes: all of ours are of one length.
    bytes: [u8; LOCAL_CID_LEN],
    announcement: Announce<()>,
}

impl LocalCid {
    fn new(sequence: u64, cid: ConnectionId, announcement: Announce<()>) -> LocalCid {
        let mut entry = LocalCid { sequence, bytes: [0; LOCAL_CID_LEN], announcement };
        entry.set(cid);
        entry
    }

    fn set(&mut self, cid: ConnectionId) {
        debug_assert_eq!(cid.len(), LOCAL_CID_LEN, "all connection IDs of ours are of one length");
        self.bytes = cid.as_slice().try_into().unwrap_or_default();
    }

    fn cid(&self) -> ConnectionId {
        ConnectionId::new(&self.bytes).unwrap_or(ConnectionId::EMPTY)
    }

    #[inline]
    fn is(&self, cid: &ConnectionId) -> bool {
        cid.as_slice() == self.bytes
    }
}

/// Our connection IDs of one connection.
pub(crate) struct LocalCids {
    lane: LaneId,
    generator: CidGenerator,
    entries: Vec<LocalCid>,
    next_sequence: u64,
    /// IDs with a lower number have been sent at least once.
    sent_below: u64,
    /// How many the peer is willing to keep, at most `MAX_ISSUED`.
    limit: usize,
    /// Entries that wait to be sent.
    pending: usize,
    first: ConnectionId,
    log: Vec<CidChange>,
}

impl LocalCids {
    /// Makes the first connection ID, the one of the handshake.
    pub(crate) fn new(mut generator: CidGenerator) -> LocalCids {
        let first = generator.next_cid();
        let entry = LocalCid::new(0, first, Announce::Idle);
        LocalCids {
            lane: LaneId::FIRST,
            generator,
            entries: vec![entry],
            next_sequence: 1,
            sent_below: 1,
            // Source: RFC 9000 §18.2: the default of active_connection_id_limit.
            limit: 2,
            pending: 0,
            first,
            log: vec![CidChange::Added(first)],
        }
    }

    /// Those of another lane, of which none is issued yet. Source: draft-ietf-quic-multipath §3.2.1.
    pub(crate) fn of_lane(&mut self, lane: LaneId) -> LocalCids {
        LocalCids {
            lane,
            generator: self.generator.fork(),
            entries: Vec::new(),
            next_sequence: 0,
            sent_below: 0,
            limit: self.limit.min(MAX_OF_LANE),
            pending: 0,
            first: ConnectionId::EMPTY,
            log: Vec::new(),
        }
    }

    /// The lane of `others` is over: nothing leads to it any more.
    pub(crate) fn take_back(&mut self, others: LocalCids) {
        self.log.extend(others.log);
        self.log.extend(others.entries.iter().map(|entry| CidChange::Removed(entry.cid())));
    }

    /// The sequence number of the ID that is issued next.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Gives back what only IDs to come need.
    pub(crate) fn release_memory(&mut self) {
        self.entries.shrink_to_fit();
        self.log.shrink_to_fit();
    }

    /// The source connection ID of every long header that we send.
    #[inline]
    pub(crate) fn first(&self) -> ConnectionId {
        self.first
    }

    /// What a server puts into its stateless_reset_token transport parameter.
    pub(crate) fn first_reset_token(&self) -> [u8; 16] {
        self.generator.reset_token(&self.first)
    }

    /// The ID that goes with a server's preferred address, and its stateless reset token: to be called before any other is
    /// issued, since its sequence number is 1. Source: RFC 9000 §5.1.1.
    pub(crate) fn issue_for_preferred_address(&mut self) -> (ConnectionId, [u8; 16]) {
        let cid = self.generator.next_cid();
        let entry = LocalCid::new(self.next_sequence, cid, Announce::Idle);
        self.entries.push(entry);
        self.log.push(CidChange::Added(cid));
        self.next_sequence += 1;
        self.sent_below = self.next_sequence;
        (cid, self.generator.reset_token(&cid))
    }

    /// Whether a packet with this destination may be ours: for packets that the endpoint has not routed, because they stood
    /// behind another one in their datagram. Source: RFC 9000 §12.2.
    pub(crate) fn contains(&self, cid: &ConnectionId) -> bool {
        self.entries.iter().any(|entry| entry.is(cid))
    }

    /// The peer's active_connection_id_limit is known.
    pub(crate) fn on_peer_limit(&mut self, limit: u64) {
        self.limit = usize::try_from(limit).unwrap_or(MAX_ISSUED).clamp(1, MAX_ISSUED);
    }

    /// Issues as many IDs as the peer keeps. For when the handshake is complete.
    pub(crate) fn issue(&mut self) {
        //= rfc9000/5.1.1#2
        while self.entries.len() < self.limit && self.log.len() + self.entries.len() + 1 < MAX_LOG {
            let cid = self.generator.next_cid();
            let sequence = self.next_sequence;
            self.entries.push(LocalCid::new(sequence, cid, Announce::Pending(())));
            self.log.push(CidChange::Added(cid));
            self.next_sequence += 1;
            self.pending += 1;
        }
    }

    /// A RETIRE_CONNECTION_ID frame arrived in a packet to `used`. Source: RFC 9000 §19.16.
    pub(crate) fn on_retire(&mut self, sequence: u64, used: &ConnectionId) -> Result<(), TransportError> {
        //= rfc9000/19.16#1
        if sequence >= self.sent_below {
            return Err(TransportError::new(
                Code::PROTOCOL_VIOLATION,
                "retires a connection ID never issued",
            ));
        }
        let Some(index) = self.entries.iter().position(|entry| entry.sequence == sequence) else {
            return Ok(()); // a copy of a frame that was heeded before
        };
        //= rfc9000/19.16#2
        if self.entries.get(index).is_some_and(|entry| entry.is(used)) {
            return Err(TransportError::new(
                Code::PROTOCOL_VIOLATION,
                "retires the connection ID that it uses",
            ));
        }
        let entry = self.entries.remove(index);
        self.pending -= usize::from(entry.announcement.is_pending());
        //= rfc9000/5.1.1#4
        self.log.push(CidChange::Removed(entry.cid()));
        self.issue();
        Ok(())
    }

    /// Hands over what has changed since the last call, in order, for the endpoint's table. An ID that is taken, and that the
    /// peer has not heard of, is replaced by a fresh one, which is handed over too.
    pub(crate) fn take_changes(&mut self, mut visit: impl FnMut(CidChange) -> Registration) {
        let LocalCids { log, entries, generator, sent_below, .. } = self;
        for change in log.drain(..) {
            let taken = visit(change) == Registration::Taken;
            let CidChange::Added(cid) = change else { continue };
            let unsent = |entry: &&mut LocalCid| entry.is(&cid) && entry.sequence >= *sent_below;
            let Some(entry) = entries.iter_mut().find(unsent).filter(|_| taken) else { continue };
            for _ in 0..MAX_EXCHANGES {
                entry.set(generator.next_cid());
                if visit(CidChange::Added(entry.cid())) == Registration::Done {
                    break;
                }
            }
        }
    }

    /// Whether `take_changes` has something.
    #[inline]
    pub(crate) fn has_changes(&self) -> bool {
        !self.log.is_empty()
    }

    /// Whether a NEW_CONNECTION_ID frame waits.
    #[inline]
    pub(crate) fn wants(&self) -> bool {
        self.pending > 0
    }

    /// Writes the NEW_CONNECTION_ID frames that wait, as far as there is room.
    pub(crate) fn write(&mut self, packet: &mut PacketBuilder<'_>) {
        for entry in self.entries.iter_mut().filter(|entry| entry.announcement.is_pending()) {
            let new = frame::NewConnectionId {
                sequence: entry.sequence,
                retire_prior_to: 0,
                cid: entry.cid(),
                reset_token: self.generator.reset_token(&entry.cid()),
            };
            let of_path = frame::PathNewConnectionId { path: self.lane.0.into(), new };
            if packet.remaining() < of_path.size() {
                return;
            }
            match self.lane {
                LaneId::FIRST => new.write(&mut packet.writer),
                _ => of_path.write(&mut packet.writer),
            }
            packet.sent(SentFrame::NewConnectionId { lane: self.lane, sequence: entry.sequence });
            entry.announcement.on_sent();
            self.pending -= 1;
            self.sent_below = self.sent_below.max(entry.sequence + 1);
        }
    }

    /// A frame of ours was acknowledged.
    pub(crate) fn on_acked(&mut self, frame: &SentFrame) {
        self.settle(frame, Announce::on_acked);
    }

    /// A frame of ours was lost.
    pub(crate) fn on_lost(&mut self, frame: &SentFrame) {
        self.settle(frame, Announce::on_lost);
    }

    fn settle(&mut self, frame: &SentFrame, event: fn(&mut Announce<()>)) {
        let SentFrame::NewConnectionId { sequence, .. } = *frame else { return };
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.sequence == sequence) else { return };
        self.pending -= usize::from(entry.announcement.is_pending());
        event(&mut entry.announcement);
        self.pending += usize::from(entry.announcement.is_pending());
    }
}
