//! Reading headers: one packet off the front of a datagram at a time.
//!
//! A long packet tells where it ends, so that the caller can go on with the packet coalesced behind it; all others reach to
//! the end of the datagram. RFC 9000 §12.2.

use super::bits::{LongType, RETRY_TAG_LEN, TypeBits, has_fixed_bit, is_long};
use crate::cid::ConnectionId;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::version::Version;
use core::ops::Range;

/// A packet's header, as far as it can be read without keys. All offsets count from the start of the bytes given to
/// [`Packet::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A packet with a short header (1-RTT). Reaches to the end of the datagram.
    Short(ShortHeader),
    /// An Initial, 0-RTT or Handshake packet of a supported version.
    Long {
        /// Which of the three.
        ty: LongType,
        /// [`Version::V1`] or [`Version::V2`].
        version: Version,
        /// Destination connection ID.
        dcid: ConnectionId,
        /// Source connection ID.
        scid: ConnectionId,
        /// Where the token stands; empty for all but Initial packets.
        token: Range<usize>,
        /// Where the protected packet number begins.
        pn_offset: usize,
        /// Where the packet ends; behind it may follow another one.
        end: usize,
    },
    /// A Retry packet of a supported version, its tag not yet verified. RFC 9000 §17.2.5.
    Retry {
        /// [`Version::V1`] or [`Version::V2`].
        version: Version,
        /// Destination connection ID.
        dcid: ConnectionId,
        /// Source connection ID.
        scid: ConnectionId,
        /// Where the token stands; never empty.
        token: Range<usize>,
        /// The last 16 bytes of the packet; the bytes before them are what the tag covers.
        integrity_tag: [u8; RETRY_TAG_LEN],
    },
    /// A Version Negotiation packet. RFC 9000 §17.2.1.
    VersionNegotiation {
        /// Destination connection ID.
        dcid: ConnectionId,
        /// Source connection ID.
        scid: ConnectionId,
        /// Where the list stands; see [`versions`]. A multiple of 4 bytes, not empty.
        versions: Range<usize>,
    },
    /// A long header of a version that is not supported. All that may be done with it is to answer with a Version
    /// Negotiation packet, for which the two connection IDs, of up to 255 bytes, are echoed. RFC 8999 §5.1.
    UnknownVersion {
        /// The version, never 0.
        version: Version,
        /// Where the destination connection ID stands.
        dcid: Range<usize>,
        /// Where the source connection ID stands.
        scid: Range<usize>,
    },
}

/// A short header, as far as it can be read without keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortHeader {
    /// Destination connection ID.
    pub dcid: ConnectionId,
    /// Where the protected packet number begins.
    pub pn_offset: usize,
}

impl ShortHeader {
    /// Reads a short header without looking at the first byte, for callers that did (see [`is_long`], [`has_fixed_bit`]).
    #[inline]
    pub fn parse(bytes: &[u8], local_cid_len: usize) -> Result<ShortHeader, Malformed> {
        let pn_offset = local_cid_len.saturating_add(1);
        let dcid = bytes.get(1..pn_offset).ok_or(Malformed("short header ends early"))?;
        let dcid = ConnectionId::new(dcid).ok_or(Malformed("connection ID longer than 20 bytes"))?;
        Ok(ShortHeader { dcid, pn_offset })
    }
}

impl Packet {
    /// Reads the header of the first packet in `bytes`, the rest of a datagram. `local_cid_len` is the length of our own
    /// connection IDs, which a short header does not tell. A packet without the fixed bit is refused.
    #[inline]
    pub fn parse(bytes: &[u8], local_cid_len: usize) -> Result<Packet, Malformed> {
        let packet = Packet::parse_greased(bytes, local_cid_len)?;
        let first = bytes.first().copied().unwrap_or(0);
        // RFC 9000 §17.2, §17.3.1: without the fixed bit a packet is not valid; RFC 8999 asks nothing of it in other versions.
        let needs_fixed_bit = matches!(packet, Packet::Short(_) | Packet::Long { .. } | Packet::Retry { .. });
        //= rfc9000/17.2#1
        if needs_fixed_bit && !has_fixed_bit(first) {
            return Err(Malformed("fixed bit is 0"));
        }
        Ok(packet)
    }

    /// As [`Packet::parse`], and takes a packet without the fixed bit: for a connection whose end sent the
    /// grease_quic_bit transport parameter. RFC 9287 §3.
    #[inline]
    pub fn parse_greased(bytes: &[u8], local_cid_len: usize) -> Result<Packet, Malformed> {
        match bytes.first() {
            Some(&first) if !is_long(first) => ShortHeader::parse(bytes, local_cid_len).map(Packet::Short),
            Some(&first) => parse_long(first, bytes),
            None => Err(Malformed("empty datagram")),
        }
    }
}

fn parse_long(first: u8, bytes: &[u8]) -> Result<Packet, Malformed> {
    let mut reader = Reader::new(bytes);
    reader.u8()?;
    let version = Version(reader.u32()?);
    if !version.is_supported() && version != Version::NEGOTIATION {
        let dcid = range_of_cid(&mut reader)?;
        let scid = range_of_cid(&mut reader)?;
        //= rfc9000/17.2#3
        return Ok(Packet::UnknownVersion { version, dcid, scid });
    }
    // RFC 9000 §17.2: a longer ID makes the packet one to drop. A Version Negotiation packet echoes our own.
    //= rfc9000/17.2#2
    let dcid = ConnectionId::read(&mut reader)?;
    let scid = ConnectionId::read(&mut reader)?;
    if version == Version::NEGOTIATION {
        return parse_version_negotiation(reader, dcid, scid);
    }
    let ty = match TypeBits::from_first_byte(first, version) {
        TypeBits::Numbered(ty) => ty,
        TypeBits::Retry => return parse_retry(reader, version, dcid, scid),
    };
    let token = match ty {
        LongType::Initial => {
            let token = reader.varint_bytes()?;
            range_behind(reader.position(), token.len())
        }
        LongType::ZeroRtt | LongType::Handshake => 0..0,
    };
    let payload = reader.varint()?;
    let pn_offset = reader.position();
    let end = match usize::try_from(payload) {
        Ok(payload) if payload <= reader.remaining() => pn_offset.saturating_add(payload),
        _ => return Err(Malformed("packet length beyond the datagram")),
    };
    Ok(Packet::Long { ty, version, dcid, scid, token, pn_offset, end })
}

fn parse_version_negotiation(
    mut reader: Reader<'_>,
    dcid: ConnectionId,
    scid: ConnectionId,
) -> Result<Packet, Malformed> {
    let list = reader.rest();
    if list.is_empty() || !list.len().is_multiple_of(4) {
        return Err(Malformed("version list is empty or torn"));
    }
    let versions = range_behind(reader.position(), list.len());
    Ok(Packet::VersionNegotiation { dcid, scid, versions })
}

fn parse_retry(
    mut reader: Reader<'_>,
    version: Version,
    dcid: ConnectionId,
    scid: ConnectionId,
) -> Result<Packet, Malformed> {
    let start = reader.position();
    let (token, integrity_tag) =
        reader.rest().split_last_chunk::<RETRY_TAG_LEN>().ok_or(Malformed("Retry packet without a tag"))?;
    // RFC 9000 §17.2.5.2: a client must discard a Retry packet with an empty token.
    //= rfc9000/17.2.5.2#3
    if token.is_empty() {
        return Err(Malformed("Retry packet with an empty token"));
    }
    let token = start..start.saturating_add(token.len());
    Ok(Packet::Retry { version, dcid, scid, token, integrity_tag: *integrity_tag })
}

fn range_of_cid(reader: &mut Reader<'_>) -> Result<Range<usize>, Malformed> {
    let len = usize::from(reader.u8()?);
    reader.bytes(len)?;
    Ok(range_behind(reader.position(), len))
}

/// The range of the `len` bytes that were read last.
fn range_behind(position: usize, len: usize) -> Range<usize> {
    position.saturating_sub(len)..position
}

/// The versions in the list of a Version Negotiation packet.
pub fn versions(list: &[u8]) -> impl Iterator<Item = Version> + Clone + '_ {
    let (chunks, _) = list.as_chunks::<4>();
    chunks.iter().map(|chunk| Version(u32::from_be_bytes(*chunk)))
}

/// The 16 bytes that header protection samples, 4 behind the start of the packet number. `None` if the packet, which ends
/// where `packet` ends, is too short, in which case it must be discarded. RFC 9001 §5.4.2.
#[inline]
pub fn sample(packet: &[u8], pn_offset: usize) -> Option<&[u8; 16]> {
    packet.get(pn_offset.saturating_add(4)..)?.first_chunk()
}
