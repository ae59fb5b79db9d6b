//! One function per fuzz target: any bytes in, an assertion fails if the crate breaks a promise. Not part of the API.
//!
//! The fuzzer (`fuzz/`), the property tests and the replay of the corpus (`tests/corpus.rs`) all call these, so that what
//! the fuzzer finds once is tested for good by putting its input into `fuzz/corpus/`. Each goes beyond "does not panic":
//! what was read must be within bounds, be written again in the size that was promised, and be read back the same.

use crate::cid::ConnectionId;
use crate::error::Malformed;
use crate::frame::{Ack, EcnCounts, Frame, MAX_RANGES_WRITTEN, write_ack};
use crate::packet::{LongHeader, Packet, patch_length, sample, versions};
use crate::packet_number;
use crate::reader::Reader;
use crate::side::Side;
use crate::transport_parameters::TransportParameters;
use crate::varint;
use crate::writer::Writer;
use core::ops::Range;

/// A fuzz target: its name, which is also that of its corpus folder, and its harness.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("wire_ack", ack),
    ("wire_frames", frames),
    ("wire_packet", packet),
    ("wire_packet_number", packet_number),
    ("wire_transport_parameters", transport_parameters),
    ("wire_varint", varint),
];

/// Variable-length integers one after the other.
pub fn varint(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    while let Some(&first) = reader.peek().first() {
        let before = reader.position();
        let size = varint::size_from_first_byte(first);
        let Ok(value) = reader.varint() else {
            assert!(reader.remaining() < size, "{size} bytes were there");
            assert_eq!(reader.position(), before, "a failed read moved the reader");
            return;
        };
        assert!(value <= varint::MAX);
        assert_eq!(reader.position().saturating_sub(before), size);
        assert!(varint::size(value) <= size);
        // Written in the size it came in, it gives the same bytes.
        let mut buffer = [0; varint::MAX_SIZE];
        let mut writer = Writer::new(&mut buffer);
        writer.varint_with_size(value, size);
        assert_eq!(bytes.get(before..reader.position()), Some(writer.written()));
    }
}

/// A datagram of packets. The first byte is the length of our connection IDs and whether RFC 9287 is in use.
pub fn packet(bytes: &[u8]) {
    let Some((&setting, datagram)) = bytes.split_first() else { return };
    let local_cid_len = usize::from(setting & 0x1f);
    let mut rest = datagram;
    while !rest.is_empty() {
        let strict = Packet::parse(rest, local_cid_len);
        let greased = Packet::parse_greased(rest, local_cid_len);
        if strict.is_ok() {
            assert_eq!(strict, greased, "the fixed bit alone may make a difference");
        }
        let Ok(packet) = (if setting & 0x80 == 0 { strict } else { greased }) else { return };
        let end = check_packet(&packet, rest);
        assert!(end > 0, "no progress");
        rest = rest.get(end..).unwrap_or(&[]);
    }
}

/// Checks a packet's offsets and returns where it ends.
fn check_packet(packet: &Packet, bytes: &[u8]) -> usize {
    match packet {
        Packet::Short(header) => {
            assert_eq!(header.pn_offset, header.dcid.len().saturating_add(1));
            assert_eq!(bytes.get(1..header.pn_offset), Some(header.dcid.as_slice()));
            let has_sample = bytes.len() >= header.pn_offset.saturating_add(20);
            assert_eq!(sample(bytes, header.pn_offset).is_some(), has_sample);
        }
        Packet::Long { token, pn_offset, end, .. } => {
            assert!(token.end <= *pn_offset && pn_offset <= end && *end <= bytes.len());
            check_long_roundtrip(packet, bytes);
            return *end;
        }
        Packet::Retry { version, token, integrity_tag, .. } => {
            assert!(version.is_supported());
            assert!(bytes.get(token.clone()).is_some_and(|token| !token.is_empty()));
            assert_eq!(bytes.get(token.end..), Some(&integrity_tag[..]));
        }
        Packet::VersionNegotiation { versions: list, .. } => {
            let list = bytes.get(list.clone()).unwrap_or(&[]);
            assert_eq!(versions(list).count().saturating_mul(4), list.len());
            assert!(!list.is_empty());
        }
        Packet::UnknownVersion { version, dcid, scid } => {
            assert!(!version.is_supported() && version.0 != 0);
            assert!(bytes.get(dcid.clone()).is_some() && bytes.get(scid.clone()).is_some());
        }
    }
    bytes.len()
}

/// A long header, written anew, is read back with the same fields.
fn check_long_roundtrip(packet: &Packet, bytes: &[u8]) {
    let Packet::Long { ty, version, dcid, scid, token, pn_offset, end } = packet.clone() else { return };
    let payload = end.saturating_sub(pn_offset);
    // Our length field has two bytes, and we send a packet number of at least one.
    if payload == 0 || payload >= 1 << 14 {
        return;
    }
    let token = bytes.get(token).unwrap_or(&[]);
    let header = LongHeader { ty, version, dcid, scid, token };
    let header_size = header.size(1);
    let size = header_size.saturating_add(payload).saturating_sub(1);
    let mut buffer = vec![0; size];
    let mut writer = Writer::new(&mut buffer);
    let mark = header.write(&mut writer, 0, 1);
    assert_eq!(writer.position(), header_size);
    patch_length(&mut buffer, mark, size);
    let again = Packet::parse(&buffer, 0);
    assert!(matches!(again, Ok(Packet::Long { .. })), "{again:?}");
    let Ok(Packet::Long { ty: ty2, version: version2, dcid: dcid2, scid: scid2, token: token2, .. }) = again
    else {
        return;
    };
    assert_eq!((ty, version, dcid, scid), (ty2, version2, dcid2, scid2));
    assert_eq!(Some(token), buffer.get(token2));
}

/// The payload of a packet.
pub fn frames(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let before = reader.remaining();
        let Ok(frame) = Frame::parse_next(&mut reader) else { return };
        assert!(reader.remaining() < before, "no progress");
        if let Frame::Ack(ack) = &frame {
            check_ack(ack);
        }
        // Written anew it is read back the same. It is not longer than it was, but for the length field that a STREAM or
        // DATAGRAM frame at the end of a packet does without.
        let taken = before.saturating_sub(reader.remaining());
        assert!(frame.size() <= taken.saturating_add(varint::size(taken as u64)));
        let mut buffer = vec![0; frame.size()];
        let mut writer = Writer::new(&mut buffer);
        frame.write(&mut writer);
        assert_eq!(writer.position(), frame.size());
        let mut again = Reader::new(writer.written());
        assert_eq!(Frame::parse_next(&mut again), Ok(frame));
        assert!(again.is_empty());
    }
}

/// The ranges are as many as announced, descend, and neither touch nor go below 0.
fn check_ack(ack: &Ack<'_>) {
    let mut below: Option<u64> = None;
    let mut count: u64 = 0;
    for range in ack.ranges() {
        assert!(range.start() <= range.end());
        match below {
            None => assert_eq!(*range.end(), ack.largest()),
            Some(below) => assert!(range.end().saturating_add(1) < below),
        }
        below = Some(*range.start());
        count = count.saturating_add(1);
    }
    assert_eq!(count, ack.range_count());
}

/// Writing an ACK: the first byte is the room, the second whether there are ECN counts, then gaps and lengths as
/// variable-length integers, from packet number 0 upwards.
pub fn ack(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let (Ok(room), Ok(flags)) = (reader.u8(), reader.u8()) else { return };
    let ecn = (flags & 1 != 0).then_some(EcnCounts { ect0: 1000, ect1: 0, ce: u64::from(flags) });
    let mut ranges: Vec<Range<u64>> = Vec::new();
    while let Ok((gap, length)) = gap_and_length(&mut reader) {
        let start = ranges.last().map_or(gap, |last| last.end.saturating_add(gap).saturating_add(1));
        let end = start.saturating_add(length).saturating_add(1);
        if end > varint::MAX {
            break;
        }
        ranges.push(start..end);
    }
    let mut buffer = vec![0; usize::from(room).saturating_mul(4)];
    let mut writer = Writer::new(&mut buffer);
    let count = write_ack(&mut writer, ranges.iter().rev().cloned(), 5, ecn);
    assert!(count <= ranges.len().min(MAX_RANGES_WRITTEN));
    if count == 0 {
        assert_eq!(writer.position(), 0);
        return;
    }
    let mut written = Reader::new(writer.written());
    let parsed = Frame::parse_next(&mut written);
    assert!(matches!(parsed, Ok(Frame::Ack(_))), "{parsed:?}");
    assert!(written.is_empty());
    if let Ok(Frame::Ack(ack)) = parsed {
        check_ack(&ack);
        assert_eq!(ack.ecn(), ecn);
        let expected = ranges.iter().rev().take(count).map(|range| range.start..=range.end.saturating_sub(1));
        assert!(ack.ranges().eq(expected), "other ranges than written");
    }
}

fn gap_and_length(reader: &mut Reader<'_>) -> Result<(u64, u64), Malformed> {
    Ok((reader.varint()?, reader.varint()?))
}

/// A packet number, the largest acknowledged one and what the receiver has seen in between.
pub fn packet_number(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let (Ok(acked), Ok(ahead), Ok(seen)) = (reader.varint(), reader.varint(), reader.varint()) else {
        return;
    };
    let ahead = (ahead & 0x7fff_ffff).max(1);
    let pn = acked.saturating_add(ahead);
    if pn > varint::MAX {
        return;
    }
    let size = packet_number::encoded_size(pn, Some(acked));
    let mut buffer = [0; 4];
    let mut writer = Writer::new(&mut buffer);
    packet_number::write(&mut writer, pn, size);
    assert_eq!(writer.position(), size);
    let expected = acked.saturating_add(1).saturating_add(seen.checked_rem(ahead).unwrap_or(0));
    let truncated = packet_number::read(writer.written(), size);
    let recovered = truncated.map(|truncated| packet_number::expand(truncated, size, expected));
    assert_eq!(recovered, Some(pn));
}

/// The transport parameters of a client and of a server.
pub fn transport_parameters(bytes: &[u8]) {
    for sender in [Side::Client, Side::Server] {
        let Ok(parameters) = TransportParameters::parse(bytes, sender) else { continue };
        assert!(parameters.active_connection_id_limit >= 2 && parameters.max_udp_payload_size >= 1200);
        assert!(sender.is_server() || parameters.stateless_reset_token.is_none());
        assert!(parameters.preferred_address.is_none_or(|address| address.cid != ConnectionId::EMPTY));
        let mut written = Vec::new();
        parameters.write(&mut written);
        assert_eq!(TransportParameters::parse(&written, sender).as_ref(), Ok(&parameters));
    }
}
