//! Writing headers, their first byte not yet protected.
//!
//! A long header's length field is always two bytes, written as a mark to be patched when the packet's end is known: a
//! packet is then filled in one pass.

use super::bits::{FIXED, KeyPhase, LONG, LongType, RETRY_TAG_LEN, Spin, TypeBits};
use crate::cid::ConnectionId;
use crate::packet_number;
use crate::varint;
use crate::version::Version;
use crate::writer::Writer;

/// The most bytes that the two-byte length field of a long header counts.
const MAX_LENGTH: usize = (1 << 14) - 1;

/// A long header to be written.
#[derive(Clone, Copy, Debug)]
pub struct LongHeader<'a> {
    /// Which packet it begins.
    pub ty: LongType,
    /// [`Version::V1`] or [`Version::V2`].
    pub version: Version,
    /// Destination connection ID.
    pub dcid: ConnectionId,
    /// Source connection ID.
    pub scid: ConnectionId,
    /// The token; only an Initial packet has the field, in others it is left out.
    pub token: &'a [u8],
}

/// Where a long header's length field stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the length must be patched when the packet is complete"]
pub struct LengthMark {
    /// Offset of the packet number, right behind the length field, from the start of the writer's buffer.
    pub pn_offset: usize,
}

impl LongHeader<'_> {
    /// How many bytes the header takes, with a packet number of `pn_size` bytes.
    #[inline]
    pub fn size(&self, pn_size: usize) -> usize {
        let token = match self.ty {
            LongType::Initial => varint::size(self.token.len() as u64).saturating_add(self.token.len()),
            LongType::ZeroRtt | LongType::Handshake => 0,
        };
        // First byte, version, two ID lengths, packet length: 1 + 4 + 2 + 2.
        let ids = self.dcid.len().saturating_add(self.scid.len());
        ids.saturating_add(token).saturating_add(pn_size).saturating_add(9)
    }

    /// Writes the header and the packet number in `pn_size` (1 to 4) bytes. The length is 0 until [`patch_length`].
    pub fn write(&self, writer: &mut Writer<'_>, pn: u64, pn_size: usize) -> LengthMark {
        let ty = TypeBits::Numbered(self.ty).bits(self.version);
        writer.u8(LONG | FIXED | ty | size_bits(pn_size));
        writer.u32(self.version.0);
        self.dcid.write(writer);
        self.scid.write(writer);
        if self.ty == LongType::Initial {
            writer.varint_bytes(self.token);
        }
        writer.varint_with_size(0, 2);
        let mark = LengthMark { pn_offset: writer.position() };
        packet_number::write(writer, pn, pn_size);
        mark
    }
}

/// Completes a long header: the packet ends at `end`, its AEAD tag included. Offsets count from the start of `buffer`, which
/// is the one the header was written to.
#[inline]
pub fn patch_length(buffer: &mut [u8], mark: LengthMark, end: usize) {
    let length = end.saturating_sub(mark.pn_offset);
    debug_assert!(length <= MAX_LENGTH && end <= buffer.len(), "packet of {length} bytes");
    let field = buffer.get_mut(..mark.pn_offset).and_then(|header| header.last_chunk_mut::<2>());
    if let Some(field) = field {
        *field = (length.min(MAX_LENGTH) as u16 | 0x4000).to_be_bytes();
    }
}

/// How many bytes a short header takes.
#[inline]
pub const fn short_header_size(dcid_len: usize, pn_size: usize) -> usize {
    dcid_len.saturating_add(pn_size).saturating_add(1)
}

/// Writes a short header with the packet number in `pn_size` (1 to 4) bytes. Returns the offset of the packet number.
#[inline]
pub fn write_short(
    writer: &mut Writer<'_>,
    dcid: &ConnectionId,
    spin: Spin,
    key_phase: KeyPhase,
    pn: u64,
    pn_size: usize,
) -> usize {
    writer.u8(FIXED | spin.bits() | key_phase.bits() | size_bits(pn_size));
    writer.bytes(dcid.as_slice());
    let pn_offset = writer.position();
    packet_number::write(writer, pn, pn_size);
    pn_offset
}

/// Writes a Version Negotiation packet. `unused` fills the bits that should be random; `dcid` and `scid` (at most 255 bytes)
/// are the received packet's source and destination. RFC 9000 §17.2.1.
pub fn write_version_negotiation(
    writer: &mut Writer<'_>,
    unused: u8,
    dcid: &[u8],
    scid: &[u8],
    versions: &[Version],
) {
    // RFC 9000 §17.2.1: the fixed bit should be set where QUIC shares a port with other protocols.
    writer.u8(LONG | FIXED | unused);
    writer.u32(Version::NEGOTIATION.0);
    for cid in [dcid, scid] {
        debug_assert!(cid.len() <= 255, "connection ID of {} bytes", cid.len());
        writer.u8(cid.len().min(255) as u8);
        writer.bytes(cid.get(..255).unwrap_or(cid));
    }
    for version in versions {
        writer.u32(version.0);
    }
}

/// How many bytes a Retry packet takes, its integrity tag included.
pub fn retry_size(dcid_len: usize, scid_len: usize, token_len: usize) -> usize {
    let ids = dcid_len.saturating_add(scid_len).saturating_add(7);
    ids.saturating_add(token_len).saturating_add(RETRY_TAG_LEN)
}

/// Writes a Retry packet but for the integrity tag, which covers what is written here. The lowest four bits of `unused` fill
/// the bits that have no meaning. RFC 9000 §17.2.5.
pub fn write_retry(
    writer: &mut Writer<'_>,
    unused: u8,
    version: Version,
    dcid: &ConnectionId,
    scid: &ConnectionId,
    token: &[u8],
) {
    writer.u8(LONG | FIXED | TypeBits::Retry.bits(version) | (unused & 0x0f));
    writer.u32(version.0);
    dcid.write(writer);
    scid.write(writer);
    writer.bytes(token);
}

/// The size field of a packet number in the first byte.
#[inline]
const fn size_bits(pn_size: usize) -> u8 {
    debug_assert!(pn_size >= 1 && pn_size <= 4);
    (pn_size.saturating_sub(1) & 0x03) as u8
}
