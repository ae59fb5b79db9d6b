use super::*;
use crate::cid::ConnectionId;
use crate::version::Version;
use crate::writer::Writer;
use proptest::prelude::*;

const TYPES: [LongType; 3] = [LongType::Initial, LongType::ZeroRtt, LongType::Handshake];

fn cid(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

fn long_header(ty: LongType, version: Version) -> LongHeader<'static> {
    LongHeader { ty, version, dcid: cid(&[1; 8]), scid: cid(&[2; 4]), token: &[] }
}

/// Writes the header and `payload` zeros behind the packet number.
fn write_packet(header: &LongHeader<'_>, pn: u64, pn_size: usize, payload: usize) -> Vec<u8> {
    let mut buffer = vec![0; header.size(pn_size) + payload];
    let end = buffer.len();
    let mut writer = Writer::new(&mut buffer);
    let mark = header.write(&mut writer, pn, pn_size);
    assert_eq!(writer.position(), header.size(pn_size));
    writer.zeros(payload);
    patch_length(&mut buffer, mark, end);
    buffer
}

/// RFC 9000 §17.2 and RFC 9369 §3.2: the type bits of both versions, Retry included.
#[test]
fn type_bits_of_both_versions() {
    for (version, bits) in [(Version::V1, [0, 1, 2, 3]), (Version::V2, [1, 2, 3, 0])] {
        for (ty, bits) in TYPES.into_iter().zip(bits) {
            let packet = write_packet(&long_header(ty, version), 0, 1, 20);
            assert_eq!(packet[0], 0xc0 | bits << 4, "{ty:?} {version}");
            assert!(matches!(Packet::parse(&packet, 8), Ok(Packet::Long { ty: parsed, .. }) if parsed == ty));
        }
        let mut buffer = [0; 64];
        let mut writer = Writer::new(&mut buffer);
        write_retry(&mut writer, 0xff, version, &cid(&[1; 8]), &cid(&[2; 4]), b"token");
        writer.bytes(&[7; RETRY_TAG_LEN]);
        assert_eq!(writer.position(), retry_size(8, 4, 5));
        assert_eq!(writer.written()[0], 0xcf | bits[3] << 4);
        let Ok(Packet::Retry { token, integrity_tag, scid, .. }) = Packet::parse(writer.written(), 8) else {
            panic!("not a Retry packet");
        };
        assert_eq!((&writer.written()[token], integrity_tag, scid), (&b"token"[..], [7; 16], cid(&[2; 4])));
    }
}

/// RFC 9001 appendix A.2: the client's Initial before protection.
#[test]
fn published_initial_header() {
    let header = LongHeader {
        ty: LongType::Initial,
        version: Version::V1,
        dcid: cid(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]),
        scid: ConnectionId::EMPTY,
        token: &[],
    };
    let packet = write_packet(&header, 2, 4, 1162 + 16);
    let published =
        [0xc3, 0, 0, 0, 1, 8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 0, 0, 0x44, 0x9e, 0, 0, 0, 2];
    assert_eq!(packet[..published.len()], published);
    assert_eq!(packet.len(), 1200);
}

/// RFC 9001 appendix A.4 and RFC 9369 appendix A.4: the published Retry packets.
#[test]
fn published_retry_packets() {
    let v1 = b"\xff\x00\x00\x00\x01\x00\x08\xf0\x67\xa5\x50\x2a\x42\x62\xb5\x74\x6f\x6b\x65\x6e\
        \x04\xa2\x65\xba\x2e\xff\x4d\x82\x90\x58\xfb\x3f\x0f\x24\x96\xba";
    let v2 = b"\xcf\x6b\x33\x43\xcf\x00\x08\xf0\x67\xa5\x50\x2a\x42\x62\xb5\x74\x6f\x6b\x65\x6e\
        \xc8\x64\x6c\xe8\xbf\xe3\x39\x52\xd9\x55\x54\x36\x65\xdc\xc7\xb6";
    for (bytes, expected) in [(v1, Version::V1), (v2, Version::V2)] {
        let Ok(Packet::Retry { version, dcid, scid, token, integrity_tag }) = Packet::parse(bytes, 0) else {
            panic!("not a Retry packet");
        };
        assert_eq!((version, dcid, &bytes[token]), (expected, ConnectionId::EMPTY, &b"token"[..]));
        assert_eq!(scid, cid(&[0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5]));
        assert_eq!(integrity_tag, bytes[20..]);
    }
}

/// Coalesced packets: the first tells where the second begins, and only an Initial has a token.
#[test]
fn coalesced_packets_are_walked() {
    let initial = LongHeader { token: b"abc", ..long_header(LongType::Initial, Version::V1) };
    let mut datagram = write_packet(&initial, 0, 1, 30);
    let first_end = datagram.len();
    let handshake = LongHeader { token: b"ignored", ..long_header(LongType::Handshake, Version::V1) };
    datagram.extend(write_packet(&handshake, 0, 2, 40));
    let Ok(Packet::Long { token, end, pn_offset, .. }) = Packet::parse(&datagram, 8) else { panic!() };
    assert_eq!((&datagram[token], end, pn_offset), (&b"abc"[..], first_end, first_end - 31));
    let Ok(Packet::Long { token, end, .. }) = Packet::parse(&datagram[first_end..], 8) else { panic!() };
    assert_eq!((token.is_empty(), end), (true, datagram.len() - first_end));
    // A length that reaches one byte beyond the datagram.
    assert!(Packet::parse(&datagram[first_end..datagram.len() - 1], 8).is_err());
}

#[test]
fn short_headers() {
    let dcid = cid(&[3; 8]);
    let mut buffer = [0; 32];
    let mut writer = Writer::new(&mut buffer);
    let pn_offset = write_short(&mut writer, &dcid, Spin::One, KeyPhase::One, 0x1234_5678, 3);
    assert_eq!((pn_offset, writer.position()), (9, short_header_size(8, 3)));
    let bytes = writer.written();
    assert_eq!(Packet::parse(bytes, 8), Ok(Packet::Short(ShortHeader { dcid, pn_offset: 9 })));
    assert_eq!(bytes[9..], [0x34, 0x56, 0x78]);
    let first = bytes[0];
    assert!(!is_long(first) && has_fixed_bit(first) && !has_reserved_bits_short(first));
    assert_eq!(packet_number_size(first), 3);
    assert_eq!((Spin::from_first_byte(first), KeyPhase::from_first_byte(first)), (Spin::One, KeyPhase::One));
    assert_eq!((Spin::One.flipped(), KeyPhase::Zero.flipped()), (Spin::Zero, KeyPhase::One));
    assert!(Packet::parse(&bytes[..8], 8).is_err(), "shorter than its connection ID");
    assert!(Packet::parse(&[0x40; 64], 21).is_err());
    assert_eq!(sample(&[0; 29], 9), Some(&[0; 16]));
    assert_eq!(sample(&[0; 28], 9), None);
    assert_eq!(sample(&[0; 28], usize::MAX), None);
    assert!(has_reserved_bits_short(0x50) && has_reserved_bits_short(0x48) && has_reserved_bits_long(0xc8));
    assert!(has_reserved_bits_long(0xc4) && !has_reserved_bits_long(0xf3));
}

/// RFC 9000 §17.2: no fixed bit, no packet, unless RFC 9287 is in use. Version Negotiation has no fixed bit.
#[test]
fn fixed_bit_is_required_unless_greased() {
    let mut packet = write_packet(&long_header(LongType::Initial, Version::V1), 0, 1, 20);
    packet[0] &= !0x40;
    assert_eq!(Packet::parse(&packet, 8), Err(crate::Malformed("fixed bit is 0")));
    assert!(Packet::parse_greased(&packet, 8).is_ok());
    assert!(Packet::parse(&[0x3f; 30], 8).is_err());
    assert!(Packet::parse_greased(&[0x3f; 30], 8).is_ok());
    assert!(Packet::parse(&[], 8).is_err());
    assert!(Packet::parse(&[0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4], 8).is_ok());
}

#[test]
fn version_negotiation() {
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    write_version_negotiation(&mut writer, 0x2a, &[1; 5], &[], &Version::SUPPORTED);
    let bytes = writer.written();
    assert_eq!(bytes[0], 0xea);
    let Ok(Packet::VersionNegotiation { dcid, scid, versions: list }) = Packet::parse(bytes, 8) else {
        panic!("not a Version Negotiation packet");
    };
    assert_eq!((dcid, scid), (cid(&[1; 5]), ConnectionId::EMPTY));
    assert!(versions(&bytes[list]).eq(Version::SUPPORTED));
    assert!(Packet::parse(&bytes[..bytes.len() - 1], 8).is_err(), "torn list");
    assert!(Packet::parse(&bytes[..bytes.len() - 8], 8).is_err(), "empty list");
}

/// RFC 8999 §5.1: connection IDs of other versions may have 255 bytes; RFC 9000 §17.2: those of ours not more than 20.
#[test]
fn long_connection_ids() {
    for version in [Version(0x1a2a_3a4a), Version::V1, Version::V2, Version::NEGOTIATION] {
        let mut bytes = vec![0xc0];
        bytes.extend(version.0.to_be_bytes());
        bytes.push(255);
        bytes.extend([9; 255]);
        bytes.push(21);
        bytes.extend([8; 21]);
        bytes.extend([0; 40]);
        let parsed = Packet::parse(&bytes, 8);
        if version.is_reserved() {
            assert_eq!(parsed, Ok(Packet::UnknownVersion { version, dcid: 6..261, scid: 262..283 }));
        } else {
            assert!(parsed.is_err(), "{version}");
        }
    }
}

#[test]
fn retry_without_a_token_is_refused() {
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    write_retry(&mut writer, 0, Version::V1, &cid(&[1; 8]), &cid(&[2; 4]), &[]);
    writer.bytes(&[7; RETRY_TAG_LEN]);
    assert_eq!(Packet::parse(writer.written(), 8), Err(crate::Malformed("Retry packet with an empty token")));
    let shorter = writer.position() - 1;
    writer.rewind(shorter);
    assert_eq!(Packet::parse(writer.written(), 8), Err(crate::Malformed("Retry packet without a tag")));
}

proptest! {
    /// A written header is read back with the same fields.
    #[test]
    fn long_headers_roundtrip(
        ty in 0usize..3,
        v2: bool,
        dcid in prop::collection::vec(any::<u8>(), 0..=20),
        scid in prop::collection::vec(any::<u8>(), 0..=20),
        token in prop::collection::vec(any::<u8>(), 0..100),
        pn_size in 1usize..=4,
        payload in 0usize..1300,
    ) {
        let version = if v2 { Version::V2 } else { Version::V1 };
        let header = LongHeader { ty: TYPES[ty], version, dcid: cid(&dcid), scid: cid(&scid), token: &token };
        let bytes = write_packet(&header, 5, pn_size, payload);
        let Ok(Packet::Long { ty, version, dcid, scid, token, pn_offset, end }) = Packet::parse(&bytes, 8) else {
            panic!("not a long packet");
        };
        prop_assert_eq!((ty, version, dcid, scid), (header.ty, header.version, header.dcid, header.scid));
        let expected: &[u8] = if ty == LongType::Initial { header.token } else { &[] };
        prop_assert_eq!(&bytes[token], expected);
        prop_assert_eq!((pn_offset, end), (header.size(pn_size) - pn_size, bytes.len()));
        prop_assert_eq!(packet_number_size(bytes[0]), pn_size);
    }
}
