//! One packet: its header, the frames that its components write, encryption, the ledger, header protection.

use super::assembly::Assembly;
use super::close::close_period;
use super::handshake::discard_space;
use super::keys::KeyUsage;
use super::trace::Plain;
use crate::builder::{PacketBuilder, Rest};
use crate::error::TransportError;
use crate::event::CloseReason;
use crate::sent::SentFrame;
use crate::space::SpaceId;
use base::net::Ecn;
use base::time::Instant;
use crypto::{DirectionalKeys, TAG_LEN};
use recovery::packet::{PacketFlags, SentPacket};
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::packet::{LengthMark, LongHeader, LongType, Spin, patch_length, write_short};
use wire::packet_number;
use wire::writer::Writer;

/// One packet, written and encrypted but for its header protection.
pub(super) struct Sealed {
    pub(super) len: usize,
    pub(super) pn_offset: usize,
}

/// When packets leave, by which all that is in them is dated, and their ECN mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) at: Instant,
    pub(super) ecn: Ecn,
}

/// A packet about to be written.
pub(super) struct Draft<'a> {
    pub(super) departure: Departure,
    pub(super) space: SpaceId,
    /// The peer's connection ID that it goes to.
    pub(super) dcid: ConnectionId,
    /// The packet is padded to at least this many bytes.
    pub(super) min_len: usize,
    pub(super) room: &'a mut [u8],
}

/// What writes the frames of a packet.
pub(super) trait Fill: FnOnce(&mut Assembly<'_>, &mut PacketBuilder<'_>) {}

impl<F: FnOnce(&mut Assembly<'_>, &mut PacketBuilder<'_>)> Fill for F {}

impl Assembly<'_> {
    /// Writes one packet with its header protection; 0 when there was nothing to say.
    pub(super) fn write_protected(&mut self, draft: Draft<'_>, fill: impl Fill) -> usize {
        let Draft { space, room, .. } = draft;
        let Some(sealed) = self.write_packet(Draft { room: &mut *room, ..draft }, fill) else { return 0 };
        let packet = room.get_mut(..sealed.len).unwrap_or(&mut []);
        self.protect_one(space, sealed.pn_offset, packet);
        sealed.len
    }

    fn protect_one(&self, space: SpaceId, pn_offset: usize, packet: &mut [u8]) {
        let Some(sample) = packet.get(pn_offset + 4..).and_then(|rest| rest.first_chunk()) else { return };
        let (mask, bits) = match (space, &self.keys.one_rtt) {
            (SpaceId::Application, Some(keys)) => (keys.local_header.mask(sample), 0x1f),
            _ => match self.long_keys(space) {
                Some(keys) => (keys.header.mask(sample), 0x0f),
                None => return,
            },
        };
        apply_mask(packet, pn_offset, &mask, bits);
    }

    /// The keys of packets with a long header, as we seal them.
    fn long_keys(&self, space: SpaceId) -> Option<&DirectionalKeys> {
        match space {
            SpaceId::Application => self.keys.early.local(),
            SpaceId::Initial | SpaceId::Handshake => self.keys.long(space).map(|keys| &keys.local),
        }
    }

    /// Header, frames, encryption, ledger: one packet at the start of the room. Stream data up to its end is encrypted where the
    /// application has it, unless a trace reads the plaintext first.
    pub(super) fn write_packet(&mut self, draft: Draft<'_>, fill: impl Fill) -> Option<Sealed> {
        let Draft { departure, space: id, dcid, min_len, room } = draft;
        if id == SpaceId::Application {
            match &self.keys.one_rtt {
                Some(keys) if keys.usage(self.config) == KeyUsage::Fresh => {}
                Some(_) => self.renew_keys(departure.at)?,
                None => {
                    self.keys.early.local()?;
                }
            }
        }
        let space = self.spaces.space_mut(id)?;
        let pn = space.next_packet_number(self.rng);
        let pn_len = packet_number::encoded_size(pn, space.ledger.largest_acked());
        let size = room.len();
        let mut header = Writer::new(room);
        let (mark, pn_offset) = self.write_header(id, dcid, pn, pn_len, &mut header);
        let header_len = header.position();
        let mut frames = core::mem::take(self.frames);
        let payload = room.get_mut(header_len..size.checked_sub(TAG_LEN)?)?;
        let mut builder = PacketBuilder::new(Writer::new(payload), &mut frames);
        if self.trace.is_none() {
            builder.allow_rest();
        }
        fill(self, &mut builder);
        let nothing = builder.is_empty() && min_len == 0;
        // RFC 9001 §5.4.2: the sample needs four bytes of packet number and payload.
        //= rfc9001/5.4.2#1
        builder.pad_to((4 - pn_len).max(min_len.saturating_sub(header_len + TAG_LEN)));
        let (flags, rest) = (builder.flags(), builder.rest());
        let len = header_len + builder.writer.position() + TAG_LEN;
        if !nothing {
            if let Some(mark) = mark {
                patch_length(room, mark, len);
            }
            if let Some(trace) = self.trace {
                let payload = room.get(header_len..len.saturating_sub(TAG_LEN)).unwrap_or(&[]);
                let long = mark.map(|_| self.handshake.version);
                let key_phase = self.counters.key_updates;
                trace.on_sent(departure.at, &Plain { space: id, long, key_phase, pn, dcid, len, payload });
            }
            self.seal(id, pn, header_len, room.get_mut(..len)?, rest)?;
            let size = len.min(usize::from(u16::MAX)) as u16;
            let flags = flags.with(PacketFlags::of_ecn(departure.ecn));
            self.note_sent(id, departure.ecn, SentPacket { pn, sent_at: departure.at, size, flags }, &frames);
        }
        *self.frames = frames;
        (!nothing).then_some(Sealed { len, pn_offset })
    }

    /// Returns where the length of a long header must be patched in, and where the packet number stands.
    #[inline]
    fn write_header(
        &self,
        id: SpaceId,
        dcid: ConnectionId,
        pn: u64,
        pn_len: usize,
        header: &mut Writer<'_>,
    ) -> (Option<LengthMark>, usize) {
        match (id, &self.keys.one_rtt) {
            (SpaceId::Application, Some(keys)) => {
                (None, write_short(header, &dcid, Spin::Zero, keys.phase(), pn, pn_len))
            }
            _ => self.write_long_header(id, dcid, pn, pn_len, header),
        }
    }

    #[cold]
    fn write_long_header(
        &self,
        id: SpaceId,
        dcid: ConnectionId,
        pn: u64,
        pn_len: usize,
        header: &mut Writer<'_>,
    ) -> (Option<LengthMark>, usize) {
        let ty = match id {
            SpaceId::Initial => LongType::Initial,
            SpaceId::Handshake => LongType::Handshake,
            SpaceId::Application => LongType::ZeroRtt,
        };
        let version = self.handshake.version;
        let scid = self.components.local_cids.first();
        let mark =
            LongHeader { ty, version, dcid, scid, token: self.handshake.token() }.write(header, pn, pn_len);
        (Some(mark), mark.pn_offset)
    }

    /// Encrypts the packet. `None` if the rest of its payload is gone, which ends the connection.
    #[inline]
    fn seal(
        &mut self,
        id: SpaceId,
        pn: u64,
        header_len: usize,
        packet: &mut [u8],
        rest: Option<Rest>,
    ) -> Option<()> {
        let rest = match rest {
            None => &[],
            Some(rest) => match self.components.streams.rest(&rest) {
                Some(bytes) => bytes,
                None => {
                    self.fault = Some(CloseReason::Violation(REST_IS_GONE));
                    return None;
                }
            },
        };
        match (id, &mut self.keys.one_rtt) {
            (SpaceId::Application, Some(keys)) => keys.seal(pn, packet, header_len, rest),
            _ => {
                if let Some(keys) = self.long_keys(id) {
                    keys.packet.seal_with(pn, packet, header_len, rest);
                }
            }
        }
        Some(())
    }

    /// The ledger learns of the packet. Source: RFC 9002 appendix A.5.
    fn note_sent(&mut self, id: SpaceId, ecn: Ecn, packet: SentPacket, frames: &[SentFrame]) {
        let Some(space) = self.spaces.space_mut(id) else { return };
        let (flags, sent_at) = (packet.flags, packet.sent_at);
        space.ledger.on_sent(packet, frames);
        space.on_sent();
        if flags.has(PacketFlags::ACK_ELICITING) {
            space.on_ack_eliciting_sent();
            self.timers.on_ack_eliciting_sent(sent_at);
        }
        // RFC 9000 §13.4.2: marks are counted by space, as the peer reports them.
        self.paths.active_mut().ecn.on_sent(id, ecn, 1);
        self.counters.sent_packets += 1;
        if id == SpaceId::Handshake && self.side.is_client() {
            // RFC 9001 §4.9.1: a client drops Initial keys when it first sends a Handshake packet.
            //= rfc9001/4.9.1#1
            discard_space(SpaceId::Initial, self.spaces, self.keys, self.timers);
        }
    }

    /// The local key is worn: updates it as soon as that is allowed, and ends the connection when the key must not be used
    /// any more. `None` when no packet may be sealed. Source: RFC 9001 §6.6.
    #[cold]
    fn renew_keys(&mut self, now: Instant) -> Option<()> {
        let keep = close_period(self.paths, self.components);
        let keys = self.keys.one_rtt.as_mut()?;
        //= rfc9001/6.1#1
        if self.handshake.is_confirmed() && keys.try_update(now, keep) {
            self.counters.key_updates = keys.updates();
            return Some(());
        }
        let exhausted = keys.usage(self.config) == KeyUsage::Exhausted;
        if exhausted {
            let reason = "the key is used up and the peer acknowledges no update";
            let error = TransportError::new(Code::AEAD_LIMIT_REACHED, reason);
            self.fault = Some(CloseReason::Violation(error));
        }
        // Not yet allowed (RFC 9001 §6.1: the handshake is not confirmed, or the last update not acknowledged): the old key
        // still serves.
        (!exhausted).then_some(())
    }
}

/// Nothing between filling a packet and sealing it takes bytes from a stream.
const REST_IS_GONE: TransportError =
    TransportError::new(Code::INTERNAL_ERROR, "stream data is gone before its packet is sealed");

/// Masks the first byte and the packet number. Source: RFC 9001 §5.4.1.
#[inline]
pub(super) fn apply_mask(packet: &mut [u8], pn_offset: usize, mask: &[u8; 5], first_bits: u8) {
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
