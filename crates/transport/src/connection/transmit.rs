//! Assembly: plan, fill, seal.
//!
//! *Plan* (plan.rs) says what may go. *Fill* lets the components write their frames in a fixed order of priority. *Seal*
//! encrypts the packet where it lies and notes it in the ledger; header protection follows for the whole train in one
//! pass. A train is built straight into the data path's memory, and stream data is copied once, to its final place.
//!
//! To a data path that holds trains until they depart the pacer releases some before their time. All that is in such a train
//! is dated by its departure, the packets in the ledger as well as the delays of acknowledgements.

use super::Connection;
use super::keys::Wear;
use super::plan::{Kind, Permission, Plan, SpaceSet};
use super::receive::BATCH;
use crate::builder::PacketBuilder;
use crate::error::TransportError;
use crate::path::Blocked;
use crate::space::SpaceId;
use crate::without::Technique;
use base::net::Ecn;
use base::sink::{PacketSink, TrainPath};
use base::time::Instant;
use crypto::TAG_LEN;
use recovery::packet::{PacketFlags, SentPacket};
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::packet::{LengthMark, LongHeader, LongType, Spin, patch_length, write_short};
use wire::packet_number;
use wire::writer::Writer;

/// What a call of `transmit` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmitted {
    /// Everything that may go now is in the sink.
    All,
    /// The sink had no memory left; call again after a flush.
    SinkFull,
}

/// One packet, written and encrypted but for its header protection.
struct Sealed {
    len: usize,
    pn_offset: usize,
}

/// A packet about to be written.
pub(super) struct Draft<'a> {
    pub(super) now: Instant,
    pub(super) space: SpaceId,
    /// The peer's connection ID that it goes to.
    pub(super) dcid: ConnectionId,
    pub(super) ecn: Ecn,
    /// The packet is padded to at least this many bytes.
    pub(super) min_len: usize,
    pub(super) room: &'a mut [u8],
}

/// What writes the frames of a packet.
pub(super) trait Fill: FnOnce(&mut Connection, &mut PacketBuilder<'_>) {}

impl<F: FnOnce(&mut Connection, &mut PacketBuilder<'_>)> Fill for F {}

impl Connection {
    /// Builds packets into the sink until nothing more may go or the sink is full.
    pub fn transmit(&mut self, now: Instant, sink: &mut impl PacketSink) -> Transmitted {
        loop {
            //= rfc9002/7.7#1
            let paced = self.paths.active_mut().pacer.allowance(now);
            let Some(plan) = self.plan(now, paced) else { break };
            let path = self.paths.path(plan.path);
            let ecn = path.map_or(Ecn::NotEct, |path| path.ecn.mark());
            let Some(addresses) = path.map(|path| path.addresses) else { break };
            let departs = self.departure(now, &plan);
            let train = TrainPath { departs, ..TrainPath::new(addresses, ecn) };
            let Some(capacity) = sink.begin(train, plan.size) else { return Transmitted::SinkFull };
            let at = departs.unwrap_or(now);
            let sent = match plan.kind {
                Kind::Train(budget, permission) => {
                    self.send_train((at, ecn), &plan, (budget, permission), capacity, sink)
                }
                _ => self.send_single((at, ecn), &plan, sink),
            };
            sink.end();
            if sent == 0 {
                // The plan promised more than the components had; try again on the next occasion rather than now.
                break;
            }
            self.on_train_sent((now, at), &plan, sent);
        }
        self.note_app_limited(now);
        Transmitted::All
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

    /// Whether the application or the network is what limits us: the window grows only in the second case (RFC 9002 §7.8).
    fn note_app_limited(&mut self, now: Instant) {
        let starved = !self.streams.wants_data();
        let in_flight = self.spaces.in_flight_bytes();
        let path = self.paths.active_mut();
        path.app_limited = path.note_mtu_probe(now, in_flight) == Blocked::No && starved;
    }

    /// The local key is worn: updates it as soon as that is allowed, and ends the connection when the key must not be used
    /// any more. `None` when no packet may be sealed. Source: RFC 9001 §6.6.
    #[cold]
    fn renew_keys(&mut self, now: Instant) -> Option<()> {
        if self.update_keys(now) {
            return Some(());
        }
        let exhausted = self.keys.one_rtt.as_ref()?.wear(&self.config) == Wear::Exhausted;
        if exhausted {
            let reason = "the key is used up and the peer acknowledges no update";
            let error = TransportError::new(Code::AEAD_LIMIT_REACHED, reason);
            self.fall_silent(now, crate::event::CloseReason::Violation(error));
        }
        // Not yet allowed (RFC 9001 §6.1: the handshake is not confirmed, or the last update not acknowledged): the old key
        // still serves.
        (!exhausted).then_some(())
    }

    /// Full packets of 1-RTT data until budget, capacity or data end. Returns the bytes sent.
    fn send_train(
        &mut self,
        (now, ecn): (Instant, Ecn),
        plan: &Plan,
        (budget, permission): (u64, Permission),
        capacity: usize,
        sink: &mut impl PacketSink,
    ) -> u64 {
        let affordable = usize::try_from(budget / plan.size as u64).unwrap_or(usize::MAX).max(1);
        let most = capacity.min(affordable).min(BATCH);
        let mut count = 0;
        let mut sent = 0;
        let mut pn_offset = 0;
        while count < most {
            let (room, dcid) = (sink.room(), self.peer_cids.active());
            let draft = Draft { now, space: SpaceId::Application, dcid, ecn, min_len: 0, room };
            let fill = |this: &mut Connection, packet: &mut PacketBuilder<'_>| {
                this.fill(now, SpaceId::Application, permission, packet);
            };
            let Some(sealed) = self.write_packet(draft, fill) else { break };
            sink.push(sealed.len);
            pn_offset = sealed.pn_offset;
            count += 1;
            sent += sealed.len as u64;
            if sealed.len < plan.size {
                break;
            }
        }
        self.protect_train(count, pn_offset, sink);
        sent
    }

    /// Header protection of a whole train in one pass. Source: RFC 9001 §5.4.
    fn protect_train(&mut self, count: usize, pn_offset: usize, sink: &mut impl PacketSink) {
        let Some(keys) = &self.keys.one_rtt else { return };
        let masks = &mut self.scratch.masks;
        for (index, sample) in masks.samples.iter_mut().take(count).enumerate() {
            if let Some(bytes) = sink.packet(index).get(pn_offset + 4..pn_offset + 4 + sample.len()) {
                sample.copy_from_slice(bytes);
            }
        }
        let pass = if self.config.without.has(Technique::TrainMasks) { 1 } else { BATCH };
        for (samples, masks) in masks.samples[..count].chunks(pass).zip(masks.masks[..count].chunks_mut(pass))
        {
            keys.local_header.masks(samples, masks);
        }
        for (index, mask) in masks.masks.iter().take(count).enumerate() {
            apply_mask(sink.packet(index), pn_offset, mask, 0x1f);
        }
    }

    /// Everything that is one datagram: coalesced handshake packets, probes, CONNECTION_CLOSE.
    #[cold]
    fn send_single(&mut self, (now, ecn): (Instant, Ecn), plan: &Plan, sink: &mut impl PacketSink) -> u64 {
        let len = match plan.kind {
            Kind::Coalesced(set, permission) => {
                self.write_coalesced((now, ecn), set, permission, sink.room())
            }
            Kind::Close => self.write_close_datagram((now, ecn), sink.room()),
            Kind::PathProbe => self.write_path_probe((now, ecn), plan.path, sink.room()),
            Kind::MtuProbe => self.write_mtu_probe((now, ecn), plan.size, sink.room()),
            Kind::Train(..) => 0,
        };
        if len > 0 {
            sink.push(len);
        }
        len as u64
    }

    /// One datagram with a packet of each space of the set. Source: RFC 9000 §12.2, §14.1.
    fn write_coalesced(
        &mut self,
        (now, ecn): (Instant, Ecn),
        set: SpaceSet,
        permission: Permission,
        room: &mut [u8],
    ) -> usize {
        let mut used = 0;
        for space in SpaceId::ALL.into_iter().filter(|&space| set.contains(space)) {
            let rest = room.get_mut(used..).unwrap_or(&mut []);
            // RFC 9000 §14.1: datagrams that hold an Initial are at least 1,200 bytes long; the last packet pads, and those
            // before it leave it the room.
            //= rfc9000/14.1#1
            //= rfc9000/14.1#2
            let (min_len, kept) = match (set.contains(SpaceId::Initial), set.ends_with(space)) {
                (true, true) => (rest.len(), 0),
                (true, false) => (0, MIN_ROOM),
                (false, _) => (0, 0),
            };
            let most = rest.len().saturating_sub(kept);
            let Some(rest) = rest.get_mut(..most).filter(|rest| rest.len() >= MIN_ROOM) else { continue };
            let dcid = self.peer_cids.active();
            let draft = Draft { now, space, dcid, ecn, min_len, room: rest };
            used += self.write_protected(draft, |this, packet| this.fill(now, space, permission, packet));
        }
        used
    }

    /// Writes one packet with its header protection; 0 when there was nothing to say.
    pub(super) fn write_protected(&mut self, draft: Draft<'_>, fill: impl Fill) -> usize {
        let Draft { now, space, dcid, ecn, min_len, room } = draft;
        let Some(sealed) =
            self.write_packet(Draft { now, space, dcid, ecn, min_len, room: &mut *room }, fill)
        else {
            return 0;
        };
        let packet = room.get_mut(..sealed.len).unwrap_or(&mut []);
        self.protect_one(space, sealed.pn_offset, packet);
        sealed.len
    }

    fn protect_one(&self, space: SpaceId, pn_offset: usize, packet: &mut [u8]) {
        let Some(sample) = packet.get(pn_offset + 4..).and_then(|rest| rest.first_chunk()) else { return };
        let (mask, bits) = match (space, &self.keys.one_rtt, self.keys.long(space)) {
            (SpaceId::Application, Some(keys), _) => (keys.local_header.mask(sample), 0x1f),
            (_, _, Some(keys)) => (keys.local.header.mask(sample), 0x0f),
            _ => return,
        };
        apply_mask(packet, pn_offset, &mask, bits);
    }

    /// Header, frames, encryption, ledger: one packet at the start of the room.
    fn write_packet(&mut self, draft: Draft<'_>, fill: impl Fill) -> Option<Sealed> {
        let Draft { now, space: id, dcid, ecn, min_len, room } = draft;
        if id == SpaceId::Application && self.keys.one_rtt.as_ref()?.wear(&self.config) != Wear::Fresh {
            self.renew_keys(now)?;
        }
        let space = self.spaces.space_mut(id)?;
        let pn = space.next_packet_number(&mut self.rng);
        let pn_len = packet_number::encoded_size(pn, space.ledger.largest_acked());
        let size = room.len();
        let mut header = Writer::new(room);
        let (mark, pn_offset) = self.write_header(id, dcid, (pn, pn_len), &mut header)?;
        let header_len = header.position();
        let mut frames = core::mem::take(&mut self.scratch.frames);
        let payload = room.get_mut(header_len..size.checked_sub(TAG_LEN)?)?;
        let mut builder = PacketBuilder::new(Writer::new(payload), &mut frames);
        fill(self, &mut builder);
        let nothing = builder.is_empty() && min_len == 0;
        // RFC 9001 §5.4.2: the sample needs four bytes of packet number and payload.
        //= rfc9001/5.4.2#1
        builder.pad_to((4 - pn_len).max(min_len.saturating_sub(header_len + TAG_LEN)));
        let flags = builder.flags();
        let len = header_len + builder.writer.position() + TAG_LEN;
        if !nothing {
            if let Some(mark) = mark {
                patch_length(room, mark, len);
            }
            self.seal(id, pn, header_len, room.get_mut(..len)?);
            self.note_sent(now, id, (pn, ecn, len), flags, &frames);
        }
        self.scratch.frames = frames;
        (!nothing).then_some(Sealed { len, pn_offset })
    }

    /// Returns where the length of a long header must be patched in, and where the packet number stands.
    #[inline]
    fn write_header(
        &self,
        id: SpaceId,
        dcid: ConnectionId,
        (pn, pn_len): (u64, usize),
        header: &mut Writer<'_>,
    ) -> Option<(Option<LengthMark>, usize)> {
        let Some(ty) = long_type(id) else {
            let phase = self.keys.one_rtt.as_ref()?.phase();
            return Some((None, write_short(header, &dcid, Spin::Zero, phase, pn, pn_len)));
        };
        let version = self.handshake.version;
        let scid = self.local_cids.first();
        let mark =
            LongHeader { ty, version, dcid, scid, token: self.handshake.token() }.write(header, pn, pn_len);
        Some((Some(mark), mark.pn_offset))
    }

    fn seal(&mut self, id: SpaceId, pn: u64, header_len: usize, packet: &mut [u8]) {
        match (id, &mut self.keys.one_rtt) {
            (SpaceId::Application, Some(keys)) => keys.seal(pn, packet, header_len),
            _ => {
                if let Some(keys) = self.keys.long(id) {
                    keys.local.packet.seal(pn, packet, header_len);
                }
            }
        }
    }

    /// The ledger learns of the packet. Source: RFC 9002 appendix A.5.
    fn note_sent(
        &mut self,
        now: Instant,
        id: SpaceId,
        (pn, ecn, len): (u64, Ecn, usize),
        flags: PacketFlags,
        frames: &[crate::sent::SentFrame],
    ) {
        let Some(space) = self.spaces.space_mut(id) else { return };
        let size = len.min(usize::from(u16::MAX)) as u16;
        let flags = flags.with(PacketFlags::of_ecn(ecn));
        space.ledger.on_sent(SentPacket { pn, sent_at: now, size, flags }, frames);
        space.on_sent();
        if flags.has(PacketFlags::ACK_ELICITING) {
            space.on_ack_eliciting_sent();
            self.timers.on_ack_eliciting_sent(now);
        }
        // RFC 9000 §13.4.2: marks are counted by space, as the peer reports them.
        self.paths.active_mut().ecn.on_sent(id, ecn, 1);
        self.counters.sent_packets += 1;
        if id == SpaceId::Handshake && self.side.is_client() {
            // RFC 9001 §4.9.1: a client drops Initial keys when it first sends a Handshake packet.
            //= rfc9001/4.9.1#1
            self.discard_space(SpaceId::Initial);
        }
    }

    /// Lets the components write, most urgent first.
    fn fill(&mut self, now: Instant, id: SpaceId, permission: Permission, packet: &mut PacketBuilder<'_>) {
        let Some(space) = self.spaces.space_mut(id) else { return };
        space.write_ack(now, packet);
        if permission == Permission::AckOnly {
            space.elicit_ack_now_and_then(packet);
            return;
        }
        space.crypto.write(packet);
        let is_probe = space.owes_probe();
        //= rfc9000/12.5#1
        if id == SpaceId::Application {
            if is_probe {
                self.ack_frequency.write_immediate_ack(packet);
            }
            self.fill_application(packet);
        }
        if let Some(space) = self.spaces.space_mut(id) {
            space.settle_probe(packet);
        }
    }

    /// The 1-RTT frames, in order of priority.
    fn fill_application(&mut self, packet: &mut PacketBuilder<'_>) {
        if self.tidings.wants() {
            self.tidings.write(packet);
        }
        if self.ack_frequency.wants() {
            self.ack_frequency.write(packet);
        }
        if self.peer_cids.wants() {
            self.peer_cids.write(packet);
        }
        if self.local_cids.wants() {
            self.local_cids.write(packet);
        }
        if self.streams.wants_control() {
            self.streams.write_control(packet);
        }
        if self.datagrams.wants() {
            self.datagrams.write(packet);
        }
        self.streams.write_data(packet);
    }
}

/// Less room than this in a datagram is not worth another packet.
const MIN_ROOM: usize = 128;

const fn long_type(space: SpaceId) -> Option<LongType> {
    match space {
        SpaceId::Initial => Some(LongType::Initial),
        SpaceId::Handshake => Some(LongType::Handshake),
        SpaceId::Application => None,
    }
}

/// Masks the first byte and the packet number. Source: RFC 9001 §5.4.1.
#[inline]
fn apply_mask(packet: &mut [u8], pn_offset: usize, mask: &[u8; 5], first_bits: u8) {
    let Some(first) = packet.first_mut() else { return };
    let pn_len = usize::from(*first & 3) + 1;
    //= rfc9001/5.4.1#1
    *first ^= mask[0] & first_bits;
    if let Some(pn) = packet.get_mut(pn_offset..pn_offset + pn_len) {
        for (byte, mask) in pn.iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
    }
}
