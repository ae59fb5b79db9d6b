//! The lanes of a connection that uses several paths at once. Source: draft-ietf-quic-multipath.
//!
//! A *lane* is what the draft counts by path ID: a packet-number space, a path with all that recovery keeps for it, a set of
//! connection IDs of either end, and a loss timer. The parts of one lane, the *current* one, stand in the connection itself, where
//! every method finds them; those of all others are *parked* here. To work on another lane the connection exchanges the two
//! (lane_change.rs). So nothing below the connection knows of lanes, and a connection without them has one null pointer.
//!
//! Data structure: at most [`MAX_LANES`] records, in the order of their IDs. A record whose lane was never used holds connection IDs
//! only. The *home* lane is current between the calls of the embedder.
//!
//! Invariants: one record has no parked parts, the one of the current lane. The records are those of the path IDs up to `local_max`
//! that are not over. A new ID is permitted only when an old one is over, so a peer cannot make us keep more.

use super::counters::Counters;
use super::keys::PhaseMarks;
use super::lane_blocked::{Blocked, Lack};
use super::path_info::{PathCounters, Tally};
use crate::announce::Announce;
use crate::builder::PacketBuilder;
use crate::cid::{LocalCids, PeerCids, ResetToken};
use crate::error::TransportError;
use crate::lane_id::LaneId;
use crate::path::Paths;
use crate::sent::SentFrame;
use crate::space::Space;
use base::net::Addresses;
use base::time::{Duration, Instant};
use recovery::ack::AckPolicy;
use recovery::timers::{AddressValidation, BackOff, Handshake, Inputs, next_timeout};
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::frame::{self, PathPreference};

/// Lanes at a time, those included that are not used yet and those that end.
pub(super) const MAX_LANES: usize = 4;

/// What a lane may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneUse {
    /// Everything.
    Data,
    /// Acknowledgements, probes of the path, and PINGs after a timeout.
    Standby,
}

/// How far a lane has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing was sent or received there.
    Unused,
    /// The path is not validated.
    Opening,
    /// In use.
    Open,
    /// Over; its connection IDs still lead here.
    Abandoned {
        /// When it is forgotten.
        until: Instant,
    },
}

/// The parts of a lane that is in use.
pub(super) struct Body {
    pub(super) space: Space,
    pub(super) paths: Paths,
    pub(super) back_off: BackOff,
    pub(super) probed_at: Instant,
    pub(super) marks: PhaseMarks,
}

/// The parts of a lane that is not the current one.
pub(super) struct Parked {
    pub(super) local_cids: LocalCids,
    /// `None` before the peer has given one.
    pub(super) peer_cids: Option<PeerCids>,
    pub(super) body: Option<Box<Body>>,
}

/// What is known of a lane wherever its parts are.
pub(super) struct Record {
    pub(super) id: LaneId,
    pub(super) stage: Stage,
    /// `None` for the current lane.
    pub(super) parked: Option<Parked>,
    pub(super) usage: LaneUse,
    /// What it has carried up to when it was current last.
    pub(super) carried: PathCounters,
    /// What the peer would like, and the number of the frame that said so.
    peer_preference: PathPreference,
    peer_sequence: Option<u64>,
    /// What we would like.
    own_preference: PathPreference,
    own_sequence: u64,
    status: Announce<u64>,
    abandonment: Announce<u64>,
    /// The lane is to end, for this reason, as soon as no packet is being worked on.
    pub(super) ending: Option<Code>,
}

impl Record {
    fn new(id: LaneId, stage: Stage, parked: Option<Parked>) -> Record {
        Record {
            id,
            stage,
            parked,
            usage: LaneUse::Data,
            carried: PathCounters::default(),
            peer_preference: PathPreference::Available,
            peer_sequence: None,
            own_preference: PathPreference::Available,
            own_sequence: 0,
            status: Announce::Idle,
            abandonment: Announce::Idle,
            ending: None,
        }
    }

    /// Whether either end would rather not use it.
    pub(super) fn is_backup(&self) -> bool {
        [self.own_preference, self.peer_preference].contains(&PathPreference::Backup)
    }

    /// Whether packets go and come there.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Opening | Stage::Open)
    }

    pub(super) fn body(&self) -> Option<&Body> {
        self.parked.as_ref()?.body.as_deref()
    }

    /// The peer's connection IDs of a parked lane on which packets go and come.
    fn peer_cids_in_use(&self) -> Option<&PeerCids> {
        self.parked.as_ref()?.peer_cids.as_ref().filter(|_| self.is_open())
    }

    /// Whether the lane carries data and answers; asked of parked lanes.
    fn is_fit(&self) -> bool {
        let fit = |body: &Body| body.back_off.timeouts() == 0 && body.paths.carries_data();
        self.is_open() && self.ending.is_none() && self.body().is_some_and(fit)
    }

    fn next_timeout(&self, max_ack_delay: Duration) -> Option<Instant> {
        if let Stage::Abandoned { until } = self.stage {
            return Some(until);
        }
        let Body { space, paths, back_off, .. } = self.body().filter(|_| self.is_open())?;
        let cids = self.parked.as_ref()?.peer_cids.as_ref()?;
        let path = paths.active();
        let loss = next_timeout(&Inputs {
            spaces: &[space.timers()],
            rtt: &path.rtt,
            max_ack_delay,
            doublings: back_off.doublings(false),
            handshake: Handshake::Confirmed,
            address_validation: AddressValidation::Complete,
            amplification: path.amplification_limit(),
        });
        let release = path.pacer.next_release().filter(|_| self.usage == LaneUse::Data);
        let departures = [space.acks.next_timeout(), release, path.probe_wait_ends()];
        let departures = departures.into_iter().filter(|_| !path.is_amplification_limited());
        departures.chain([loss.map(|timer| timer.at), paths.next_timeout(cids)]).flatten().min()
    }
}

/// All lanes of a connection.
pub(crate) struct Lanes {
    records: Vec<Record>,
    pub(super) current: LaneId,
    pub(super) home: LaneId,
    /// The largest path ID that the peer may use, and that we may.
    local_max: u32,
    peer_max: u32,
    /// The least that the peer may say in MAX_PATH_ID.
    peer_floor: u32,
    limit: Announce<u32>,
    /// Turns of the scheduler that goes round.
    pub(super) rotation: usize,
    /// Some record asks for attention.
    pub(super) is_unsettled: bool,
    pub(super) tally: Tally,
    blocked: Blocked,
    /// Lanes beside the home lane have begun or ended, of which the endpoint has to learn the stateless reset tokens.
    pub(super) resets_changed: bool,
}

impl Lanes {
    /// What an end tells in its transport parameters: the largest path ID that the peer may use at first.
    pub(super) const INITIAL_MAX: u32 = MAX_LANES as u32 - 1;

    /// Both ends can use several paths. The current lane is the first, which has these connection IDs.
    pub(super) fn new(peer_max: u32, first: &mut LocalCids) -> Lanes {
        let mut lanes = Lanes {
            records: vec![Record::new(LaneId::FIRST, Stage::Open, None)],
            current: LaneId::FIRST,
            home: LaneId::FIRST,
            local_max: 0,
            peer_max,
            peer_floor: peer_max,
            limit: Announce::Idle,
            rotation: 0,
            is_unsettled: false,
            tally: Tally::default(),
            blocked: Blocked::default(),
            resets_changed: false,
        };
        for _ in 0..Lanes::INITIAL_MAX {
            lanes.permit_next(first);
        }
        lanes
    }

    /// Permits one path ID more.
    fn permit_next(&mut self, cids: &mut LocalCids) {
        let Some(next) = self.local_max.checked_add(1) else { return };
        self.local_max = next;
        let parked = Parked { local_cids: cids.of_lane(LaneId(next)), peer_cids: None, body: None };
        self.records.push(Record::new(LaneId(next), Stage::Unused, Some(parked)));
        self.issue();
    }

    /// Gives connection IDs for each lane that both ends permit.
    fn issue(&mut self) {
        //= multipath/3.2.1#1
        let permitted = self.records.iter_mut().filter(|record| record.id.0 <= self.peer_max);
        for parked in permitted.filter_map(|record| record.parked.as_mut()) {
            parked.local_cids.issue();
        }
    }

    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }

    /// The IDs of all records; the rest is `None`.
    pub(super) fn ids(&self) -> [Option<LaneId>; MAX_LANES] {
        core::array::from_fn(|at| self.records.get(at).map(|record| record.id))
    }

    pub(super) fn record(&self, id: LaneId) -> Option<&Record> {
        self.records.iter().find(|record| record.id == id)
    }

    pub(super) fn record_mut(&mut self, id: LaneId) -> Option<&mut Record> {
        self.records.iter_mut().find(|record| record.id == id)
    }

    pub(super) fn parked_mut(&mut self, id: LaneId) -> Option<&mut Parked> {
        self.record_mut(id)?.parked.as_mut()
    }

    /// A parked lane with connection IDs of which the endpoint has to learn.
    pub(super) fn changed_cids(&self) -> Option<LaneId> {
        let has_changed =
            |record: &&Record| record.parked.as_ref().is_some_and(|parked| parked.local_cids.has_changes());
        self.records.iter().find(has_changed).map(|record| record.id)
    }

    /// The peer asks for acknowledgements on these terms, on all lanes.
    pub(super) fn set_ack_policy(&mut self, policy: AckPolicy) {
        for parked in self.records.iter_mut().filter_map(|record| record.parked.as_mut()) {
            parked.body.iter_mut().for_each(|body| body.space.acks.set_policy(policy));
        }
    }

    /// The lane whose connection ID of ours this is, if it is parked.
    pub(super) fn of_local_cid(&self, cid: &ConnectionId) -> Option<LaneId> {
        let has = |record: &&Record| record.parked.as_ref().is_some_and(|lane| lane.local_cids.contains(cid));
        self.records.iter().find(has).map(|record| record.id)
    }

    /// Whether a parked lane has this connection ID of the peer.
    pub(super) fn holds_peer_cid(&self, cid: &ConnectionId) -> bool {
        let mut parked = self.records.iter().filter_map(|record| record.parked.as_ref()?.peer_cids.as_ref());
        parked.any(|cids| cids.holds(cid))
    }

    /// Whether these are the last bytes of a stateless reset on a parked lane in use. Source: RFC 9000 §10.3.1.
    pub(super) fn is_reset_token(&self, tail: &ResetToken) -> bool {
        let mut found = false;
        for cids in self.records.iter().filter_map(Record::peer_cids_in_use) {
            found |= cids.is_reset_token(tail);
        }
        found
    }

    /// The stateless reset tokens of the parked lanes in use, if others than at the last call.
    pub(super) fn take_reset_tokens(&mut self) -> Option<Vec<ResetToken>> {
        let mut has_changed = core::mem::take(&mut self.resets_changed);
        for record in self.records.iter_mut().filter(|record| record.is_open()) {
            let cids = record.parked.as_mut().and_then(|parked| parked.peer_cids.as_mut());
            has_changed |= cids.is_some_and(|cids| cids.take_reset_tokens().is_some());
        }
        let in_use = || self.records.iter().filter_map(Record::peer_cids_in_use);
        has_changed.then(|| in_use().flat_map(PeerCids::reset_tokens).flatten().collect())
    }

    /// The lane with the least ID that both ends permit, that nothing has used, and for which the peer has given a connection ID.
    pub(super) fn next_unused(&self) -> Option<LaneId> {
        let has_cid =
            |record: &Record| record.parked.as_ref().is_some_and(|parked| parked.peer_cids.is_some());
        let usable = |record: &&Record| {
            record.stage == Stage::Unused && record.id.0 <= self.peer_max && has_cid(record)
        };
        self.records.iter().find(usable).map(|record| record.id)
    }

    /// There is no unused lane: the peer is told if that is its doing.
    pub(super) fn on_refused(&mut self) {
        let without_cid = |record: &&Record| record.stage == Stage::Unused && record.id.0 <= self.peer_max;
        if let Some(record) = self.records.iter().find(without_cid) {
            self.blocked.on_refused(Lack::ConnectionIds(record.id.0));
        } else if self.peer_max <= self.local_max {
            self.blocked.on_refused(Lack::PathIds(self.peer_max));
        }
    }

    /// The lane that a frame names; `None` if it is over.
    ///
    /// # Errors
    /// The peer may not name it.
    pub(super) fn named(&self, path: u64) -> Result<Option<LaneId>, TransportError> {
        //= multipath/4#2
        let Some(id) = u32::try_from(path).ok().filter(|id| *id <= self.local_max) else {
            return Err(violation("path ID above the limit"));
        };
        //= multipath/4#3
        let is_over = |record: &&Record| matches!(record.stage, Stage::Abandoned { .. });
        Ok(self.record(LaneId(id)).filter(|record| !is_over(record)).map(|record| record.id))
    }

    /// Whether a lane beside the current one carries data, and none of its probes is unanswered.
    pub(super) fn has_fit_beside(&self) -> bool {
        self.records.iter().any(Record::is_fit)
    }

    /// Whether a packet has come on such a lane within this time. Where nothing comes through on any lane, each end could give up the one
    /// that the other keeps.
    pub(super) fn hears_beside(&self, now: Instant, within: Duration) -> bool {
        let is_heard = |body: &Body| body.space.acks.ack_delay(now) <= within;
        self.records.iter().any(|record| record.is_fit() && record.body().is_some_and(is_heard))
    }

    /// Whether lanes beside this one are open.
    pub(super) fn has_open_beside(&self, id: LaneId) -> bool {
        self.records.iter().any(|record| record.id != id && record.is_open() && record.ending.is_none())
    }

    /// Whether a parked lane is open between these addresses.
    pub(super) fn has_open_between(&self, addresses: Addresses) -> bool {
        let mut bodies = self.records.iter().filter(|record| record.is_open()).filter_map(Record::body);
        bodies.any(|body| body.paths.active().addresses == addresses)
    }

    /// The open lane that takes the place of `id`: one that carries data, if there is one.
    pub(super) fn successor(&self, id: LaneId) -> Option<LaneId> {
        let others = || self.records.iter().filter(|record| record.id != id && record.is_open());
        others().find(|record| record.is_fit()).or_else(|| others().next()).map(|record| record.id)
    }

    /// The lane is to end as soon as no packet is being worked on, unless it is the only one; whether it is.
    pub(super) fn end(&mut self, id: LaneId, code: Code) -> bool {
        let has_others = self.has_open_beside(id);
        let Some(record) = self.record_mut(id).filter(|_| has_others) else { return false };
        record.ending.get_or_insert(code);
        self.is_unsettled = true;
        true
    }

    /// The longest close period of the parked lanes. Source: draft-ietf-quic-multipath §2.5, §2.6.
    pub(super) fn longest_pto(&self, max_ack_delay: Duration) -> Duration {
        let bodies = self.records.iter().filter_map(Record::body);
        bodies.map(|body| body.paths.active().rtt.pto(max_ack_delay)).max().unwrap_or(Duration::ZERO)
    }

    /// When a parked lane, or one that is over, needs attention.
    pub(super) fn next_timeout(&self, max_ack_delay: Duration) -> Option<Instant> {
        self.records.iter().filter_map(|record| record.next_timeout(max_ack_delay)).min()
    }

    /// What the current lane carries.
    pub(super) fn current_use(&self) -> LaneUse {
        self.record(self.current).map_or(LaneUse::Data, |record| record.usage)
    }

    /// The lane is over: its packets are forgotten already, its connection IDs lead here until then, and the peer is told.
    pub(super) fn on_abandoned(&mut self, id: LaneId, code: Code, until: Instant) {
        self.resets_changed = true;
        let Some(record) = self.record_mut(id) else { return };
        record.stage = Stage::Abandoned { until };
        record.status.cancel();
        record.ending = None;
        record.abandonment.request(code.0);
        if let Some(parked) = &mut record.parked {
            //= multipath/3.4#1
            (parked.peer_cids, parked.body) = (None, None);
        }
    }

    /// Forgets a lane whose time is over, if the peer knows that it is, and permits another one instead. Its connection IDs are taken
    /// back by `cids`.
    pub(super) fn forget(&mut self, now: Instant, retry: Duration, cids: &mut LocalCids) {
        let due = |record: &Record| matches!(record.stage, Stage::Abandoned { until } if now >= until);
        let Some(at) = self.records.iter().position(due) else { return };
        let Some(record) = self.records.get_mut(at) else { return };
        if record.abandonment != Announce::Idle {
            record.stage = Stage::Abandoned { until: now + retry };
            return;
        }
        let record = self.records.remove(at);
        if let Some(parked) = record.parked {
            cids.take_back(parked.local_cids);
        }
        self.permit_next(cids);
        self.limit.request(self.local_max);
    }
}

/// What is counted.
impl Lanes {
    /// The current lane is left: what was counted since it was entered is its own.
    pub(super) fn book(&mut self, now: &Counters) {
        let Lanes { records, current, tally, .. } = self;
        if let Some(record) = records.iter_mut().find(|record| record.id == *current) {
            record.carried = tally.of_current(record.carried, now);
        }
        tally.begin(now);
    }

    /// What a lane has carried, where the connection has counted so much.
    pub(super) fn carried(&self, record: &Record, now: &Counters) -> PathCounters {
        if record.id == self.current { self.tally.of_current(record.carried, now) } else { record.carried }
    }
}

/// What the peer says.
impl Lanes {
    pub(super) fn on_status(&mut self, frame: &frame::PathStatus) -> Result<(), TransportError> {
        let Some(record) = self.named(frame.path)?.and_then(|id| self.record_mut(id)) else { return Ok(()) };
        //= multipath/4.3#1
        if record.peer_sequence.is_none_or(|seen| frame.sequence > seen) {
            record.peer_sequence = Some(frame.sequence);
            record.peer_preference = frame.preference;
        }
        Ok(())
    }

    pub(super) fn on_max_path_id(&mut self, frame: &frame::MaxPathId) -> Result<(), TransportError> {
        //= multipath/4.6#1
        let Some(maximum) = u32::try_from(frame.maximum).ok().filter(|maximum| *maximum >= self.peer_floor)
        else {
            return Err(violation("MAX_PATH_ID above 2^32 - 1, or below what the handshake said"));
        };
        //= multipath/4.6#2
        if maximum > self.peer_max {
            self.peer_max = maximum;
            self.issue();
        }
        Ok(())
    }

    pub(super) fn on_paths_blocked(&self, frame: &frame::PathsBlocked) -> Result<(), TransportError> {
        //= multipath/4.7#1
        if frame.maximum > u64::from(self.local_max) {
            return Err(violation("PATHS_BLOCKED above the limit"));
        }
        Ok(())
    }
}

/// What we say.
impl Lanes {
    /// How we would like the peer to use the lane; it is told. `false` if the lane is over.
    pub(super) fn prefer(&mut self, id: LaneId, preference: PathPreference) -> bool {
        let is_over = |record: &Record| matches!(record.stage, Stage::Abandoned { .. });
        let Some(record) = self.record_mut(id).filter(|record| !is_over(record)) else { return false };
        record.own_preference = preference;
        record.own_sequence += 1;
        record.status.request(record.own_sequence);
        true
    }

    /// Whether something waits to be sent.
    pub(super) fn wants(&self) -> bool {
        let cids_wait = |parked: &Parked| {
            parked.local_cids.wants() || parked.peer_cids.as_ref().is_some_and(PeerCids::wants)
        };
        self.limit.is_pending()
            || self.blocked.wants()
            || self.records.iter().any(|record| {
                record.abandonment.is_pending()
                    || record.status.is_pending()
                    || record.parked.as_ref().is_some_and(cids_wait)
            })
    }

    /// Writes what waits, as far as the packet has room.
    pub(super) fn write(&mut self, packet: &mut PacketBuilder<'_>) {
        if let Some(&maximum) = self.limit.pending() {
            let frame = frame::MaxPathId { maximum: maximum.into() };
            if packet.remaining() >= frame.size() {
                frame.write(&mut packet.writer);
                packet.sent(SentFrame::MaxPathId { maximum });
                self.limit.on_sent();
            }
        }
        self.blocked.write(packet);
        for record in &mut self.records {
            record.write(packet);
        }
    }

    pub(super) fn on_acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::MaxPathId { maximum } => self.limit.on_value_acked(&maximum),
            SentFrame::PathAbandon { lane } => {
                self.record_mut(lane).into_iter().for_each(|record| record.abandonment.on_acked());
            }
            SentFrame::PathStatus { lane, sequence } => {
                self.record_mut(lane).into_iter().for_each(|record| record.status.on_value_acked(&sequence));
            }
            _ => {}
        }
    }

    pub(super) fn on_lost(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::MaxPathId { maximum } => self.limit.on_value_lost(&maximum),
            SentFrame::PathAbandon { lane } => {
                self.record_mut(lane).into_iter().for_each(|record| record.abandonment.on_lost());
            }
            //= multipath/4.3#2
            SentFrame::PathStatus { lane, sequence } => {
                self.record_mut(lane).into_iter().for_each(|record| record.status.on_value_lost(&sequence));
            }
            _ => {}
        }
    }
}

impl Record {
    fn write(&mut self, packet: &mut PacketBuilder<'_>) {
        let (lane, path) = (self.id, u64::from(self.id.0));
        if let Some(&code) = self.abandonment.pending() {
            let frame = frame::PathAbandon { path, code };
            if packet.remaining() >= frame.size() {
                frame.write(&mut packet.writer);
                packet.sent(SentFrame::PathAbandon { lane });
                self.abandonment.on_sent();
            }
        }
        if let Some(&sequence) = self.status.pending() {
            let frame = frame::PathStatus { path, sequence, preference: self.own_preference };
            if packet.remaining() >= frame.size() {
                frame.write(&mut packet.writer);
                packet.sent(SentFrame::PathStatus { lane, sequence });
                self.status.on_sent();
            }
        }
        if let Some(parked) = &mut self.parked {
            parked.local_cids.write(packet);
            if let Some(cids) = &mut parked.peer_cids {
                cids.write(packet);
            }
        }
    }
}

pub(super) fn violation(reason: &'static str) -> TransportError {
    TransportError::new(Code::PROTOCOL_VIOLATION, reason)
}
