//! What the embedder calls, done on one lane after the other where there are several; and the beginning and the end of lanes.
//! Source: draft-ietf-quic-multipath §3.
//!
//! A train is split where the lane of its datagrams changes. `transmit` gives each lane a turn, in the order that the scheduler
//! says (scheduler.rs): streams give their data to whichever lane fills a packet, and what is lost on one lane may go on any other.
//! A lane begins with the first packet of the client and ends only between two calls, so that no packet ends the lane that it is on.

use super::Connection;
use super::close::close_period;
use super::lanes::{Body, LaneUse, MAX_LANES, Record, Stage};
use super::path_info::{PathCounters, PathInfo};
use super::scheduler::{Candidate, Class, Turn, turns};
use super::transmit::Transmitted;
use crate::config::Scheduler;
use crate::error::OpenPathError;
use crate::event::{Event, StreamSink};
use crate::lane_id::LaneId;
use crate::path::{AddressState, Paths};
use crate::space::Space;
use base::net::{Addresses, Train};
use base::sink::PacketSink;
use base::time::Instant;
use core::net::{IpAddr, SocketAddr};
use recovery::ack::AckTracker;
use recovery::timers::BackOff;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::frame::PathPreference;
use wire::packet::is_long;

/// The scheduler that repeats data does so as long as no more than this is in flight on the first lane, in bytes: what belongs to
/// small requests and answers.
const SMALL: u64 = 16 * 1_024;

/// The calls of the embedder.
impl Connection {
    /// Takes in the datagrams of a train, which the endpoint has routed to this connection. In-order stream data is lent
    /// to `sink` on the spot; what else happened is told by `next_event`.
    pub fn receive<S: StreamSink>(&mut self, now: Instant, train: Train<'_>, sink: &mut S) {
        self.keys.wake();
        if self.components.lanes.is_none() {
            self.receive_train(now, train, sink);
            self.answer_late_acks(now);
        } else {
            self.receive_on_lanes(now, train, sink);
        }
        if self.trace.is_some() {
            self.trace_state(now);
        }
    }

    /// Builds packets into the sink until nothing more may go, the sink is full, or a part of the window is in it.
    pub fn transmit(&mut self, now: Instant, sink: &mut impl PacketSink) -> Transmitted {
        let outcome = if self.components.lanes.is_none() {
            self.transmit_lane(now, LaneUse::Data, sink)
        } else {
            self.transmit_on_lanes(now, sink)
        };
        if self.trace.is_some() {
            self.trace_state(now);
        }
        outcome
    }

    /// Time has passed. Early calls do no harm.
    pub fn on_timeout(&mut self, now: Instant) {
        self.expire(now);
        if self.components.lanes.is_some() && !self.is_closed() {
            self.expire_parked(now);
        }
        if self.trace.is_some() {
            self.trace_state(now);
        }
    }
}

/// The same on several lanes.
impl Connection {
    fn receive_on_lanes<S: StreamSink>(&mut self, now: Instant, train: Train<'_>, sink: &mut S) {
        let Train { bytes: mut rest, segment_size, addresses, ecn } = train;
        let segment_size = segment_size.max(1);
        while !rest.is_empty() {
            let lane = self.lane_of(rest);
            let is_same = |datagram: &&[u8]| first_cid(datagram) == first_cid(rest);
            let len: usize = rest.chunks(segment_size).take_while(is_same).map(<[u8]>::len).sum();
            let (bytes, behind) = rest.split_at_mut(len.max(1));
            match lane {
                Some(id) if self.begin_to_receive(now, id, addresses) => {
                    self.count_received(id, bytes.len());
                    let train = Train { bytes, segment_size, addresses, ecn };
                    self.visit(id, |connection| connection.receive_train(now, train, sink));
                }
                _ => self.counters.dropped_path += 1,
            }
            rest = behind;
        }
        self.settle_lanes(now);
    }

    /// The lane that a datagram is for: of the current one are those of which nothing is known, too.
    fn lane_of(&self, datagram: &[u8]) -> Option<LaneId> {
        let lanes = self.components.lanes.as_ref()?;
        if datagram.first().is_some_and(|&first| is_long(first)) {
            return Some(LaneId::FIRST);
        }
        let cid = first_cid(datagram).and_then(ConnectionId::new)?;
        if self.components.local_cids.contains(&cid) {
            return Some(lanes.current);
        }
        Some(lanes.of_local_cid(&cid).unwrap_or(lanes.current))
    }

    /// Whether packets of a lane may be opened. A server begins one when it is addressed there.
    fn begin_to_receive(&mut self, now: Instant, id: LaneId, addresses: Addresses) -> bool {
        let Some(record) = self.components.lanes.as_ref().and_then(|lanes| lanes.record(id)) else {
            return false;
        };
        match record.stage {
            Stage::Opening | Stage::Open => true,
            Stage::Abandoned { .. } => false,
            Stage::Unused => {
                let has_cid = record.parked.as_ref().is_some_and(|parked| parked.peer_cids.is_some());
                if self.side.is_client() || !has_cid {
                    return false;
                }
                //= multipath/3.1#2
                let is_known = self.open_paths().any(|known| known == addresses);
                let state = if is_known { AddressState::Validated } else { AddressState::Unvalidated };
                self.begin_lane(now, id, addresses, state);
                true
            }
        }
    }

    /// The addresses of validated paths.
    fn open_paths(&self) -> impl Iterator<Item = Addresses> {
        let parked = self.components.lanes.iter().flat_map(|lanes| lanes.records());
        let parked = parked.filter_map(|record| Some(&record.body()?.paths));
        let validated = |paths: &&Paths| paths.active().is_validated();
        parked.chain([&self.paths]).filter(validated).map(|paths| paths.active().addresses)
    }

    fn begin_lane(&mut self, now: Instant, id: LaneId, addresses: Addresses, state: AddressState) {
        let acks = AckTracker::new(self.spaces.application.acks.policy());
        let space = Space::new(acks, &mut self.rng).of_lane(id);
        let paths = self.paths.beside(now, addresses, state);
        let body =
            Body { space, paths, back_off: BackOff::default(), probed_at: now, marks: Default::default() };
        let Some(lanes) = &mut self.components.lanes else { return };
        let Some(record) = lanes.record_mut(id) else { return };
        record.stage = Stage::Opening;
        if let Some(parked) = &mut record.parked {
            parked.body = Some(Box::new(body));
        }
        (lanes.is_unsettled, lanes.resets_changed) = (true, true);
        if let Some(trace) = &mut self.trace {
            trace.on_path(now, id, addresses);
        }
    }

    fn transmit_on_lanes(&mut self, now: Instant, sink: &mut impl PacketSink) -> Transmitted {
        self.settle_lanes(now);
        let scheduler = self.config.multipath.unwrap_or_default();
        let turns = self.turns(scheduler);
        if self.is_closed() {
            // The end goes the best way, and only once.
            let best = turns.first().copied().flatten().map(|turn| turn.id);
            let close = |connection: &mut Connection| connection.transmit_lane(now, LaneUse::Data, sink);
            return best.and_then(|id| self.visit(id, close)).unwrap_or(Transmitted::All);
        }
        let is_second_used = matches!(turns, [_, Some(Turn { usage: LaneUse::Data, .. }), ..]);
        let mut outcome = Transmitted::All;
        for (at, turn) in turns.into_iter().flatten().enumerate() {
            let repeats = at == 0 && is_second_used && scheduler == Scheduler::Redundant;
            let sent = self.visit(turn.id, |connection| {
                let sent = connection.transmit_lane(now, turn.usage, sink);
                let in_flight = connection.spaces.in_flight_bytes();
                if repeats && in_flight <= SMALL {
                    connection.repeat_elsewhere();
                }
                sent
            });
            match sent {
                Some(Transmitted::SinkFull) => return Transmitted::SinkFull,
                Some(Transmitted::Paused) => outcome = Transmitted::Paused,
                Some(Transmitted::All) | None => {}
            }
        }
        outcome
    }

    /// Who sends what, in which order.
    fn turns(&mut self, scheduler: Scheduler) -> [Option<Turn>; MAX_LANES] {
        let current = (self.timers.back_off, &self.paths);
        let Some(lanes) = &mut self.components.lanes else { return [None; MAX_LANES] };
        let mut candidates = [None; MAX_LANES];
        for (place, record) in candidates.iter_mut().zip(lanes.records()).filter(|(_, it)| it.is_open()) {
            let (back_off, paths) = record.body().map_or(current, |body| (body.back_off, &body.paths));
            let class = if !paths.carries_data() {
                Class::Unproved
            } else if back_off.timeouts() > 0 {
                Class::Silent
            } else if record.is_backup() {
                Class::Backup
            } else {
                Class::Good
            };
            *place = Some(Candidate { id: record.id, class, rtt: paths.active().rtt.smoothed() });
        }
        lanes.rotation = lanes.rotation.wrapping_add(1);
        let turns = turns(scheduler, lanes.rotation, candidates);
        for turn in turns.iter().flatten() {
            lanes.record_mut(turn.id).into_iter().for_each(|record| record.usage = turn.usage);
        }
        turns
    }

    fn expire_parked(&mut self, now: Instant) {
        let Some(lanes) = &self.components.lanes else { return };
        let (home, ids) = (lanes.home, lanes.ids());
        for id in ids.into_iter().flatten().filter(|id| *id != home) {
            self.visit(id, |connection| connection.expire_lane(now));
        }
        self.settle_lanes(now);
        let retry = close_period(&self.paths, &self.components);
        if let Some(lanes) = &mut self.components.lanes {
            lanes.forget(now, retry, &mut self.components.local_cids);
        }
    }
}

/// The beginning and the end of lanes. The home lane is the current one.
impl Connection {
    /// Does what had to wait until no packet is being worked on.
    fn settle_lanes(&mut self, now: Instant) {
        let Some(lanes) = &mut self.components.lanes else { return };
        if !core::mem::take(&mut lanes.is_unsettled) || self.lifecycle.is_over() {
            return;
        }
        for id in lanes.ids().into_iter().flatten() {
            self.settle_opening(now, id);
            let record = self.components.lanes.as_mut().and_then(|lanes| lanes.record_mut(id));
            if let Some(code) = record.and_then(|record| record.ending.take()) {
                self.abandon(now, id, code);
            }
        }
    }

    fn settle_opening(&mut self, now: Instant, id: LaneId) {
        let Some(lanes) = &mut self.components.lanes else { return };
        let Some(record) = lanes.record_mut(id).filter(|record| record.stage == Stage::Opening) else {
            return;
        };
        let Some(parked) = &mut record.parked else { return };
        let Some(body) = &mut parked.body else { return };
        if body.paths.carries_data() {
            record.stage = Stage::Open;
            let addresses = body.paths.active().addresses;
            self.events.push_back(Event::PathOpened { id, addresses });
            return;
        }
        if self.side.is_server() && body.space.acks.largest().is_none() {
            // Nothing authentic has come: there is no such lane yet.
            parked.body = None;
            record.stage = Stage::Unused;
            return;
        }
        //= multipath/3.1#1
        body.paths.validate(now);
        lanes.is_unsettled = true;
    }

    /// Ends a lane: what is in flight there goes on others. Source: draft-ietf-quic-multipath §3.4.
    fn abandon(&mut self, now: Instant, id: LaneId, code: Code) {
        let Some(lanes) = &self.components.lanes else { return };
        let was_open = lanes.record(id).is_some_and(|record| record.is_open());
        let (is_home, successor) = (lanes.home == id, lanes.successor(id));
        self.visit(id, Connection::forfeit);
        let Some(lanes) = &self.components.lanes else { return };
        let past = lanes.record(id).filter(|_| was_open).map(|record| self.lane_info(record));
        if is_home {
            let Some(successor) = successor.filter(|next| self.enter(*next)) else { return };
            self.components.lanes.iter_mut().for_each(|lanes| lanes.home = successor);
            self.components.peer_cids.tell_reset_tokens();
        }
        let until = now + close_period(&self.paths, &self.components);
        if let Some(lanes) = &mut self.components.lanes {
            lanes.on_abandoned(id, code, until);
        }
        if let Some(past) = past.map(|info| PathInfo { ended: Some(code), ..info }) {
            self.events.push_back(Event::PathClosed { id, addresses: past.addresses, code });
            self.components.lanes.iter_mut().for_each(|lanes| lanes.tally.keep_past(past));
        }
    }
}

/// What the application asks for.
impl Connection {
    /// Begins to use the path from `local` to the server beside those in use: [`Event::PathOpened`] tells when data goes there, or
    /// [`Event::PathClosed`]. The data path must be able to send from `local`. Source: draft-ietf-quic-multipath §3.1.
    ///
    /// # Errors
    /// No path can be opened, or not this one.
    pub fn open_path(&mut self, now: Instant, local: SocketAddr) -> Result<LaneId, OpenPathError> {
        //= multipath/3#1
        if self.side.is_server() {
            return Err(OpenPathError::Server);
        }
        if !self.handshake.is_confirmed() || self.lifecycle.is_over() {
            return Err(OpenPathError::NotConfirmed);
        }
        let Some(lanes) = &self.components.lanes else { return Err(OpenPathError::Unsupported) };
        let active = self.paths.active().addresses;
        if local.is_ipv4() != active.peer.is_ipv4() {
            return Err(OpenPathError::OtherFamily);
        }
        let addresses = Addresses { local, ..active };
        let in_use =
            |record: &Record| record.body().is_some_and(|body| body.paths.active().addresses == addresses);
        if active.local == local || lanes.records().iter().any(in_use) {
            return Err(OpenPathError::SamePath);
        }
        //= multipath/2.2#1
        if self.handshake.disables_migration() {
            return Err(OpenPathError::Disabled);
        }
        let Some(id) = lanes.next_unused() else {
            self.components.lanes.iter_mut().for_each(|lanes| lanes.on_refused());
            return Err(OpenPathError::NoConnectionId);
        };
        self.begin_lane(now, id, addresses, AddressState::Validated);
        let parked = self.components.lanes.as_mut().and_then(|lanes| lanes.parked_mut(id));
        if let Some(body) = parked.and_then(|parked| parked.body.as_mut()) {
            body.paths.validate(now);
        }
        Ok(id)
    }

    /// Ends the use of a path, if others are in use; whether it does. Source: draft-ietf-quic-multipath §3.4.
    pub fn abandon_path(&mut self, now: Instant, id: LaneId) -> bool {
        let Some(lanes) = &mut self.components.lanes else { return false };
        let is_open = lanes.record(id).is_some_and(|record| record.is_open());
        let ends = is_open && lanes.end(id, Code::APPLICATION_ABANDON_PATH);
        self.settle_lanes(now);
        ends
    }

    /// How the peer should use a path, which it need not heed, and how we do. Whether there is such a path.
    /// Source: draft-ietf-quic-multipath §3.3.
    pub fn prefer_path(&mut self, id: LaneId, preference: PathPreference) -> bool {
        self.components.lanes.as_mut().is_some_and(|lanes| lanes.prefer(id, preference))
    }

    /// Whether both ends can use several paths at once. Known when the handshake is complete.
    pub fn has_multipath(&self) -> bool {
        self.components.lanes.is_some()
    }

    /// `ip` is no longer an address of ours: paths that were left there are forgotten, and of several in use those from there end as
    /// long as another one is left. Whether the connection still needs an address instead.
    pub fn forget_local_address(&mut self, now: Instant, ip: IpAddr) -> bool {
        self.forget_left_paths(ip);
        let from_there: Vec<LaneId> = self.paths_from(ip).collect();
        if let Some(lanes) = &mut self.components.lanes {
            for id in from_there {
                lanes.end(id, Code::PATH_UNSTABLE_OR_POOR);
            }
            self.settle_lanes(now);
        }
        self.paths.active().addresses.local.ip() == ip
    }

    /// The open lanes from a local address.
    fn paths_from(&self, ip: IpAddr) -> impl Iterator<Item = LaneId> {
        let open = self.components.lanes.iter().flat_map(|lanes| lanes.records());
        let local = |record: &Record| {
            let paths = record.body().map_or(&self.paths, |body| &body.paths);
            paths.active().addresses.local
        };
        open.filter(move |record| record.is_open() && local(record).ip() == ip).map(|record| record.id)
    }
}

/// What the embedder is told of paths.
impl Connection {
    /// The paths in use, one where several at once are not possible.
    pub fn paths(&self) -> Vec<PathInfo> {
        let Some(lanes) = &self.components.lanes else {
            return vec![self.info_of(LaneId::FIRST, &self.paths)];
        };
        let open = lanes.records().iter().filter(|record| record.is_open());
        open.map(|record| self.lane_info(record)).collect()
    }

    /// The paths that are over, as they were at their ends, the latest last: four at most, and none where several at once are not
    /// possible.
    pub fn past_paths(&self) -> &[PathInfo] {
        self.components.lanes.as_ref().map_or(&[], |lanes| lanes.tally.past())
    }

    /// What is known of a lane in use.
    fn lane_info(&self, record: &Record) -> PathInfo {
        let paths = record.body().map_or(&self.paths, |body| &body.paths);
        let lanes = self.components.lanes.as_ref();
        let counters = lanes.map_or(record.carried, |lanes| lanes.carried(record, &self.counters));
        PathInfo { is_backup: record.is_backup(), counters, ..self.info_of(record.id, paths) }
    }

    fn info_of(&self, id: LaneId, paths: &Paths) -> PathInfo {
        let path = paths.active();
        PathInfo {
            id,
            addresses: path.addresses,
            rtt: path.rtt.smoothed(),
            probe_timeout: path.rtt.pto(self.components.ack_frequency.peer_max_ack_delay()),
            congestion_window: path.congestion.window(),
            is_validated: paths.carries_data(),
            is_backup: false,
            ended: None,
            counters: PathCounters::default(),
        }
    }

    /// Bytes have arrived for a lane.
    fn count_received(&mut self, id: LaneId, bytes: usize) {
        let record = self.components.lanes.as_mut().and_then(|lanes| lanes.record_mut(id));
        record.into_iter().for_each(|record| record.carried.received_bytes += bytes as u64);
    }
}

/// The connection ID that a datagram with a short header goes to.
fn first_cid(datagram: &[u8]) -> Option<&[u8]> {
    datagram.get(1..=crate::cid::LOCAL_CID_LEN).filter(|_| !is_long(datagram[0]))
}
