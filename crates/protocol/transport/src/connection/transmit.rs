//! Assembly: plan, fill, seal.
//!
//! *Plan* (plan.rs) says what may go. *Fill* lets the components write their frames in the order of their table
//! (components.rs). *Seal* (seal.rs) encrypts the packet where it lies and notes it in the ledger; header protection follows
//! for the whole train, several packets in one pass. A train is built straight into the data path's memory. Stream data that fills a packet is not
//! copied there: sealing reads it where the application has it, and writes the ciphertext.
//!
//! To a data path that holds trains until they depart the pacer releases some before their time. All that is in such a train
//! is dated by its departure, the packets in the ledger as well as the delays of acknowledgements.

use super::assembly::Assembly;
use super::components::{self, Permission, Target, ledger_and_owners};
use super::lanes::LaneUse;
use super::masks::{PASS, masks_of};
use super::plan::{Allowance, Kind, Plan, SpaceSet};
use super::receive::BATCH;
use super::seal::{Departure, Draft, apply_mask};
use crate::builder::PacketBuilder;
use crate::path::{Blocked, PathId};
use crate::sent::SentFrame;
use crate::space::SpaceId;
use base::net::Ecn;
use base::sink::{PacketSink, TrainPath};
use base::time::Instant;

/// What a call of `transmit` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmitted {
    /// Everything that may go now is in the sink.
    All,
    /// As much as should leave before the caller looks at what has arrived; more may go. See `Path::longest_flight`.
    Paused,
    /// The sink had no memory left; call again after a flush.
    SinkFull,
}

/// What was built, in bytes of UDP payload.
#[derive(Clone, Copy)]
struct Sent {
    bytes: u64,
    /// The part that counts as in flight: neither packets that only acknowledge nor probes of another path do.
    counted: u64,
}

impl Assembly<'_> {
    /// Builds packets into the sink until nothing more may go, the sink is full, or a part of the window is in it.
    pub(super) fn transmit(&mut self, now: Instant, sink: &mut impl PacketSink) -> Transmitted {
        let mut left = self.paths.active().longest_flight();
        while left > 0 {
            //= rfc9002/7.7#1
            let paced = self.paced(now);
            let Some(plan) = self.plan(now, paced) else { break };
            self.keys.wake();
            let path = self.paths.path(plan.path);
            let ecn = path.map_or(Ecn::NotEct, |path| path.ecn.mark());
            let Some(addresses) = path.map(|path| path.addresses) else { break };
            let departs = self.departure(now, &plan);
            let train = TrainPath { departs, ..TrainPath::new(addresses, ecn) };
            let Some(capacity) = sink.begin(train, plan.size) else { return Transmitted::SinkFull };
            let departure = Departure { at: departs.unwrap_or(now), ecn };
            let before = self.spaces.in_flight_bytes();
            let sent = match plan.kind {
                Kind::Train(Allowance { bytes, permission }) => {
                    let allowance = Allowance { bytes: bytes.min(left), permission };
                    self.send_train(departure, plan.size, allowance, capacity, sink)
                }
                _ => self.send_single(departure, &plan, sink),
            };
            sink.end();
            if sent == 0 {
                // The plan promised more than the components had; try again on the next occasion rather than now.
                break;
            }
            let counted = self.spaces.in_flight_bytes().saturating_sub(before);
            self.on_train_sent(now, departure.at, plan.path, Sent { bytes: sent, counted });
            // Less than another train of that length is not worth a system call of its own.
            left = left.checked_sub(sent).filter(|left| *left >= sent).unwrap_or(0);
        }
        self.note_app_limited(now);
        if left == 0 && self.has_more(now) {
            return Transmitted::Paused;
        }
        self.hold_pacer();
        Transmitted::All
    }

    /// What pacing allows. A lane that carries no data is as one that the pacer holds back.
    #[inline]
    fn paced(&mut self, now: Instant) -> u64 {
        match self.usage {
            LaneUse::Data => {
                let path = self.paths.active_mut();
                if path.pacer.has_long_trains() {
                    let may_wait = !self.components.datagrams.wants();
                    let bytes = if may_wait { self.components.streams.waiting() } else { 0 };
                    path.pacer.expect(bytes, path.congestion.available(self.spaces.in_flight_bytes()));
                }
                path.pacer.allowance(now)
            }
            LaneUse::Standby => 0,
        }
    }

    /// Whether something may go now.
    fn has_more(&mut self, now: Instant) -> bool {
        let paced = self.paced(now);
        self.plan(now, paced).is_some()
    }

    /// When what is planned departs, if not at once. Probes of a path do not wait, nor does the end.
    #[inline]
    fn departure(&self, now: Instant, plan: &Plan) -> Option<Instant> {
        match plan.kind {
            Kind::PathProbe | Kind::Close => None,
            Kind::MtuProbe | Kind::Coalesced(..) | Kind::Train(..) => {
                self.paths.active().pacer.departure(now)
            }
        }
    }

    /// All has left that may. Whether the application or the network limits the connection: the window grows only in the
    /// second case, when some component still has something to send.
    fn note_app_limited(&mut self, now: Instant) {
        //= rfc9002/7.8#1
        let starved = self.usage == LaneUse::Standby || !self.wants_packet(now);
        let in_flight = self.spaces.in_flight_bytes();
        let path = self.paths.active_mut();
        path.app_limited = path.note_mtu_probe(now, in_flight) == Blocked::No && starved;
    }

    /// Where the window is full an acknowledgement decides when something leaves, not the pacer.
    #[inline]
    fn hold_pacer(&mut self) {
        let path = self.paths.active_mut();
        // As large as the plan would make it.
        let size = u64::from(path.max_packet_size).min(path.amplification());
        let is_full = path.congestion.available(self.spaces.in_flight_bytes()) < size;
        if is_full && !self.spaces.handshaking() {
            path.pacer.hold();
        }
    }

    /// Full packets of 1-RTT data until budget, capacity or data end. Returns the bytes sent.
    fn send_train(
        &mut self,
        departure: Departure,
        size: usize,
        allowance: Allowance,
        capacity: usize,
        sink: &mut impl PacketSink,
    ) -> u64 {
        let affordable = usize::try_from(allowance.bytes / size as u64).unwrap_or(usize::MAX).max(1);
        let most = capacity.min(affordable).min(BATCH);
        let mut count = 0;
        let mut sent = 0;
        let mut pn_offset = 0;
        while count < most {
            let (room, dcid) = (sink.room(), self.components.peer_cids.active());
            let space = SpaceId::Application;
            let draft = Draft { departure, space, dcid, min_len: 0, room };
            let target = Target { now: departure.at, space, permission: allowance.permission };
            let fill = |this: &mut Assembly<'_>, packet: &mut PacketBuilder<'_>| {
                components::fill(this.components, this.spaces, target, packet);
                if this.spaces.application.owes_probe() {
                    this.repeat_in_probe(target, packet);
                }
                if target.permission == Permission::All {
                    this.components.streams.pad_before_data(packet);
                }
            };
            let Some(sealed) = self.write_packet(draft, fill) else { break };
            sink.push(sealed.len);
            pn_offset = sealed.pn_offset;
            count += 1;
            sent += sealed.len as u64;
            if sealed.len < size {
                break;
            }
            if allowance.permission == Permission::All && self.components.streams.may_run(size) {
                let alike = self.send_run(departure, size, most - count, sink);
                count += alike;
                sent += (alike * size) as u64;
            }
        }
        self.protect_train(count, pn_offset, sink);
        sent
    }

    /// Header protection of a whole train, some packets in each pass. Source: RFC 9001 §5.4.
    fn protect_train(&self, count: usize, pn_offset: usize, sink: &mut impl PacketSink) {
        let Some(keys) = &self.keys.one_rtt else { return };
        for first in (0..count).step_by(PASS) {
            let masks = masks_of(&keys.local_header, count - first, self.config.without, |index| {
                sink.packet(first + index).get(pn_offset + 4..)?.first_chunk().copied()
            });
            for (index, mask) in (first..count).zip(&masks) {
                apply_mask(sink.packet(index), pn_offset, mask, 0x1f);
            }
        }
    }

    /// Congestion control, pacing and address validation learn what left, or departs at `at`.
    fn on_train_sent(&mut self, now: Instant, at: Instant, path: PathId, Sent { bytes, counted }: Sent) {
        self.counters.sent_bytes += bytes;
        let in_flight = self.spaces.in_flight_bytes();
        let is_active = path == self.paths.active_id();
        let Some(path) = self.paths.path_mut(path) else { return };
        path.on_sent(bytes);
        // A probe of another path counts nowhere as in flight: that path's controller would never hear of its fate, and what is
        // in flight on the active path says nothing about it.
        if counted == 0 || !is_active {
            return;
        }
        path.congestion.on_sent(at, counted, in_flight);
        if in_flight <= counted {
            path.repace(); // after idleness the rate may be another
        }
        path.pacer.on_sent(now, counted);
    }

    /// Everything that is one datagram: coalesced handshake packets, probes, CONNECTION_CLOSE.
    #[cold]
    fn send_single(&mut self, departure: Departure, plan: &Plan, sink: &mut impl PacketSink) -> u64 {
        let len = match plan.kind {
            Kind::Coalesced(set, permission) => self.write_coalesced(departure, set, permission, sink.room()),
            Kind::Close => self.write_close_datagram(departure, sink.room()),
            Kind::PathProbe => self.write_path_probe(departure, plan.path, sink.room()),
            Kind::MtuProbe => self.write_mtu_probe(departure, plan.size, sink.room()),
            Kind::Train(_) => 0,
        };
        if len > 0 {
            sink.push(len);
        }
        len as u64
    }

    /// One datagram with a packet of each space of the set. Source: RFC 9000 §12.2, §14.1.
    fn write_coalesced(
        &mut self,
        departure: Departure,
        set: SpaceSet,
        permission: Permission,
        room: &mut [u8],
    ) -> usize {
        let mut used = 0;
        // A server that does not know our address yet may send no more than three times what it got from there: probes bring it
        // as much as they can.
        let asks_for_credit =
            self.spaces.owes_probe() && self.side.is_client() && !self.handshake.is_address_validated();
        let fills = asks_for_credit || set.contains(SpaceId::Initial);
        for space in SpaceId::ALL.into_iter().filter(|&space| set.contains(space)) {
            let rest = room.get_mut(used..).unwrap_or(&mut []);
            // RFC 9000 §14.1: datagrams that hold an Initial are at least 1,200 bytes long; the last packet pads, and those
            // before it leave it the room.
            //= rfc9000/14.1#1
            //= rfc9000/14.1#2
            let (min_len, kept) = match (fills, set.ends_with(space)) {
                (true, true) => (rest.len(), 0),
                (true, false) => (0, MIN_ROOM),
                (false, _) => (0, 0),
            };
            let most = rest.len().saturating_sub(kept);
            let Some(rest) = rest.get_mut(..most).filter(|rest| rest.len() >= MIN_ROOM) else { continue };
            let dcid = self.components.peer_cids.active();
            let draft = Draft { departure, space, dcid, min_len, room: rest };
            let target = Target { now: departure.at, space, permission };
            let is_early = space == SpaceId::Application && self.keys.one_rtt.is_none();
            let len = self.write_protected(draft, |this, packet| {
                if is_early {
                    components::fill_early(this.components, this.spaces, target, packet);
                } else {
                    components::fill(this.components, this.spaces, target, packet);
                }
                if !is_early {
                    this.repeat_in_probe(target, packet);
                }
                if min_len > 0 {
                    this.repeat_where_padding_stands(space, packet);
                }
            });
            self.counters.sent_early += u64::from(is_early && len > 0);
            used += len;
        }
        used
    }

    /// A probe that would be a PING repeats what is oldest instead, as the probe before it may have done: either of them may
    /// be lost. Source: RFC 9002 §6.2.4.
    #[cold]
    fn repeat_in_probe(&mut self, target: Target, packet: &mut PacketBuilder<'_>) {
        let owes_probe = self.spaces.space(target.space).is_some_and(|space| space.owes_probe());
        if !owes_probe
            || target.permission != Permission::All
            || packet.frames().iter().any(SentFrame::is_repeated)
        {
            return;
        }
        let Some((ledger, mut owners)) =
            ledger_and_owners(self.components, self.spaces, target.space, self.config.without)
        else {
            return;
        };
        ledger.probe(1, &mut |_, frames| owners.repeat(frames));
        components::fill_again(self.components, self.spaces, target, packet);
    }

    /// A probe that must be padded repeats handshake bytes instead. Source: RFC 9002 §6.2.4.
    fn repeat_where_padding_stands(&mut self, id: SpaceId, packet: &mut PacketBuilder<'_>) {
        let Some(space) = self.spaces.space_mut(id).filter(|space| space.owes_probe()) else { return };
        if id != SpaceId::Application {
            space.crypto.repeat(packet);
        }
    }
}

/// Less room than this in a datagram is not worth another packet.
const MIN_ROOM: usize = 128;
