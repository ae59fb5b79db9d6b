//! The packets that an endpoint sends without a connection. Each is written into one buffer that is kept, and each is
//! smaller than the datagram that it answers, so that an endpoint can neither amplify nor be drawn into a loop.
//! Source: RFC 9000 §6.1, §8.1.2, §10.3; RFC 9001 §5.8.

use base::rng::Rng;
use crypto::{RetryIntegrity, SAMPLE_LEN, TAG_LEN, initial_keys};
use wire::Side;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::frame;
use wire::packet::{
    LongHeader, LongType, RETRY_TAG_LEN, patch_length, retry_size, write_retry, write_version_negotiation,
};
use wire::version::Version;
use wire::writer::Writer;

/// Longer than any reply: Version Negotiation with two connection IDs of 255 bytes.
const MAX_REPLY: usize = 600;

/// The smallest datagram that can be a stateless reset. Source: RFC 9000 §10.3.
pub(super) const MIN_RESET: usize = 21;
/// A stateless reset for a large datagram has between this and 16 bytes more: the sizes of ordinary acknowledgements.
const USUAL_RESET: usize = 42;
/// Bytes of a stateless reset token.
const TOKEN_LEN: usize = 16;

/// The packet that is written, until the next one.
pub(super) struct Reply {
    buffer: Box<[u8; MAX_REPLY]>,
    len: usize,
}

/// The two ends of a packet to be answered, and its version.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyHeader {
    pub(super) version: Version,
    pub(super) dcid: ConnectionId,
    pub(super) scid: ConnectionId,
}

impl Reply {
    pub(super) fn new() -> Reply {
        Reply { buffer: Box::new([0; MAX_REPLY]), len: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or(&[])
    }

    /// Version Negotiation for a packet with these connection IDs, as they were. Source: RFC 9000 §17.2.1.
    pub(super) fn version_negotiation(&mut self, rng: &mut Rng, dcid: &[u8], scid: &[u8]) {
        let [unused, grease @ ..]: [u8; 5] = rng.bytes();
        // RFC 9000 §6.3: a reserved version among them, so that clients learn to skip what they do not know.
        //= rfc9000/6.3#1
        let reserved = Version(u32::from_be_bytes(grease) & 0xf0f0_f0f0 | 0x0a0a_0a0a);
        let [first, second] = Version::SUPPORTED;
        let mut writer = Writer::new(&mut self.buffer[..]);
        write_version_negotiation(&mut writer, unused, scid, dcid, &[reserved, first, second]);
        self.len = writer.position();
    }

    /// Retry for a client's Initial; `scid` is where the client must send from now on. Source: RFC 9000 §17.2.5.
    pub(super) fn retry(&mut self, rng: &mut Rng, asked: &ReplyHeader, scid: &ConnectionId, token: &[u8]) {
        self.len = 0;
        let size = retry_size(asked.scid.len(), scid.len(), token.len());
        let body = size.saturating_sub(RETRY_TAG_LEN);
        let Some((room, tag_room)) = self.buffer.split_at_mut_checked(body) else { return };
        let [unused]: [u8; 1] = rng.bytes();
        let mut writer = Writer::new(room);
        write_retry(&mut writer, unused, asked.version, &asked.scid, scid, token);
        let tag = RetryIntegrity::tag(asked.version, asked.dcid.as_slice(), writer.written());
        if let (Some(tag), Some(place)) = (tag, tag_room.first_chunk_mut()) {
            *place = tag;
            self.len = size;
        }
    }

    /// A stateless reset for a datagram of `trigger` bytes; `false` if that is too small to be answered.
    /// Source: RFC 9000 §10.3, §10.3.3.
    pub(super) fn stateless_reset(&mut self, rng: &mut Rng, trigger: usize, token: [u8; TOKEN_LEN]) -> bool {
        let usual = USUAL_RESET + rng.below(TOKEN_LEN as u64) as usize;
        // Smaller than what it answers, so that two endpoints without state fall silent.
        //= rfc9000/10.3.3#1
        let len = usual.min(trigger.saturating_sub(1));
        let Some((random, tail)) =
            self.buffer.get_mut(..len).and_then(|room| room.split_last_chunk_mut::<TOKEN_LEN>())
        else {
            return false;
        };
        //= rfc9000/10.3#2
        if len < MIN_RESET {
            return false;
        }
        //= rfc9000/10.3#1
        rng.fill(random);
        *tail = token;
        if let Some(first) = random.first_mut() {
            *first = *first & 0x3f | 0x40;
        }
        self.len = len;
        true
    }

    /// An Initial packet that closes a connection which was never there. Source: RFC 9000 §10.2.3, §8.1.2.
    pub(super) fn close(&mut self, asked: &ReplyHeader, code: Code) {
        self.len = 0;
        let keys = initial_keys(asked.version, asked.dcid.as_slice(), Side::Server).local;
        let reason = code.name().unwrap_or_default().as_bytes();
        let frame = frame::ConnectionClose::Transport { code, frame_type: 0, reason };
        let header = LongHeader {
            ty: LongType::Initial,
            version: asked.version,
            dcid: asked.scid,
            scid: asked.dcid,
            token: &[],
        };
        let mut writer = Writer::new(&mut self.buffer[..]);
        let mark = header.write(&mut writer, 0, PN_LEN);
        let header_len = writer.position();
        frame.write(&mut writer);
        let len = writer.position() + TAG_LEN;
        patch_length(&mut self.buffer[..], mark, len);
        let Some(packet) = self.buffer.get_mut(..len) else { return };
        keys.packet.seal(0, packet, header_len);
        let sample = packet.get(mark.pn_offset + 4..).and_then(|rest| rest.first_chunk::<SAMPLE_LEN>());
        let Some(mask) = sample.map(|sample| keys.header.mask(sample)) else { return };
        if let Some(first) = packet.first_mut() {
            *first ^= mask[0] & 0x0f;
        }
        for (byte, mask) in packet.iter_mut().skip(mark.pn_offset).take(PN_LEN).zip(&mask[1..]) {
            *byte ^= mask;
        }
        self.len = len;
    }
}

/// Bytes of the packet number of a close.
const PN_LEN: usize = 1;
