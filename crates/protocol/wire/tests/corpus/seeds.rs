//! Makes the seeds of the fuzz corpus: small, valid or nearly valid, one thing each.

use wire::frame::{
    Ack, AckFrequency, ConnectionClose, Crypto, DataBlocked, Datagram, EcnCounts, Frame, MaxData,
    MaxStreamData, MaxStreams, NewConnectionId, NewToken, PathChallenge, PathResponse, ResetStream,
    RetireConnectionId, StopSending, Stream, StreamDataBlocked, StreamsBlocked, Timestamp, write_ack,
};
use wire::packet::{
    KeyPhase, LongHeader, LongType, Spin, patch_length, write_retry, write_short, write_version_negotiation,
};
use wire::transport_parameters::{PreferredAddress, VersionInformation};
use wire::{Code, ConnectionId, Dir, Reader, TransportParameters, Version, Writer, varint};

/// Target, name, bytes.
pub(crate) type Seed = (&'static str, String, Vec<u8>);

/// Every seed.
pub(crate) fn all() -> Vec<Seed> {
    [acks(), frames(), packets(), packet_numbers(), transport_parameters(), varints()].concat()
}

fn written(fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut buffer = [0; 2000];
    let mut writer = Writer::new(&mut buffer);
    fill(&mut writer);
    writer.written().to_vec()
}

fn varint_bytes(values: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|&value| varint::append(&mut bytes, value));
    bytes
}

fn cid(len: u8) -> ConnectionId {
    let bytes: Vec<u8> = (1..=len).collect();
    ConnectionId::new(&bytes).unwrap()
}

fn varints() -> Vec<Seed> {
    let edges = [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, varint::MAX];
    vec![
        ("wire_varint", "edges".into(), varint_bytes(&edges)),
        (
            "wire_varint",
            "long-zeros".into(),
            [&[0x40, 0][..], &[0x80, 0, 0, 0], &[0xc0, 0, 0, 0, 0, 0, 0, 0]].concat(),
        ),
        ("wire_varint", "cut".into(), vec![0xff; 7]),
    ]
}

fn packet_numbers() -> Vec<Seed> {
    let seed = |name: &str, values: [u64; 3]| ("wire_packet_number", name.to_owned(), varint_bytes(&values));
    vec![
        seed("appendix-a2", [0x00ab_e8b3, 29_519, 100]),
        seed("first", [0, 1, 0]),
        seed("far-ahead", [1 << 40, 0x7fff_ffff, 0]),
        seed("last", [varint::MAX - 1, 1, 0]),
    ]
}

fn acks() -> Vec<Seed> {
    let seed = |name: &str, room: u8, flags: u8, values: &[u64]| {
        ("wire_ack", name.to_owned(), [vec![room, flags], varint_bytes(values)].concat())
    };
    vec![
        seed("one-range", 20, 0, &[0, 10]),
        seed("gaps-and-ecn", 50, 1, &[3, 4, 1, 0, 100, 5000, 1, 1]),
        seed("no-room", 1, 1, &[0, 10, 4, 5]),
        seed("too-many", 255, 0, &[1; 300]),
        seed("huge", 50, 1, &[1 << 60, 1 << 60, 1 << 59, 7]),
    ]
}

fn single_frames() -> Vec<(&'static str, Frame<'static>)> {
    const DATA: &[u8] = b"0123456789";
    let transport_close = ConnectionClose::Transport { code: Code::crypto(40), frame_type: 6, reason: DATA };
    let new_cid = NewConnectionId { sequence: 5, retire_prior_to: 2, cid: cid(8), reset_token: [6; 16] };
    let frequency = AckFrequency {
        sequence: 1,
        ack_eliciting_threshold: 10,
        requested_max_ack_delay_us: 25_000,
        reordering_threshold: 3,
    };
    let largest = AckFrequency {
        sequence: varint::MAX,
        ack_eliciting_threshold: varint::MAX,
        requested_max_ack_delay_us: varint::MAX,
        reordering_threshold: varint::MAX,
    };
    vec![
        ("padding", Frame::Padding { count: 40 }),
        ("ping", Frame::Ping),
        ("reset-stream", Frame::ResetStream(ResetStream { id: 4, code: 0x10c, final_size: 70_000 })),
        ("stop-sending", Frame::StopSending(StopSending { id: 4, code: 0x10c })),
        ("crypto", Frame::Crypto(Crypto { offset: 1200, data: DATA })),
        ("new-token", Frame::NewToken(NewToken { token: DATA })),
        ("stream", Frame::Stream(Stream { id: 0, offset: 0, fin: false, data: DATA })),
        ("stream-end", Frame::Stream(Stream { id: 400, offset: 1 << 33, fin: true, data: DATA })),
        (
            "stream-last-offset",
            Frame::Stream(Stream { id: 4, offset: varint::MAX - 10, fin: true, data: DATA }),
        ),
        ("max-data", Frame::MaxData(MaxData { maximum: 1 << 24 })),
        ("max-stream-data", Frame::MaxStreamData(MaxStreamData { id: 8, maximum: 1 << 20 })),
        ("max-streams-bidi", Frame::MaxStreams(MaxStreams { dir: Dir::Bidi, maximum: 1 << 60 })),
        ("max-streams-uni", Frame::MaxStreams(MaxStreams { dir: Dir::Uni, maximum: 3 })),
        ("data-blocked", Frame::DataBlocked(DataBlocked { limit: 1 << 24 })),
        ("stream-data-blocked", Frame::StreamDataBlocked(StreamDataBlocked { id: 8, limit: 1 << 20 })),
        ("streams-blocked-bidi", Frame::StreamsBlocked(StreamsBlocked { dir: Dir::Bidi, limit: 100 })),
        ("streams-blocked-uni", Frame::StreamsBlocked(StreamsBlocked { dir: Dir::Uni, limit: 3 })),
        ("new-connection-id", Frame::NewConnectionId(new_cid)),
        ("retire-connection-id", Frame::RetireConnectionId(RetireConnectionId { sequence: 3 })),
        ("path-challenge", Frame::PathChallenge(PathChallenge(*b"challeng"))),
        ("path-response", Frame::PathResponse(PathResponse(*b"challeng"))),
        ("close-transport", Frame::ConnectionClose(transport_close)),
        (
            "close-application",
            Frame::ConnectionClose(ConnectionClose::Application { code: 0x100, reason: DATA }),
        ),
        ("handshake-done", Frame::HandshakeDone),
        ("immediate-ack", Frame::ImmediateAck),
        ("datagram", Frame::Datagram(Datagram { data: DATA })),
        ("ack-frequency", Frame::AckFrequency(frequency)),
        ("ack-frequency-largest", Frame::AckFrequency(largest)),
        ("timestamp", Frame::Timestamp(Timestamp { time: 1 << 20 })),
    ]
}

fn frames() -> Vec<Seed> {
    let mut seeds: Vec<Seed> = single_frames()
        .into_iter()
        .map(|(name, frame)| ("wire_frames", name.to_owned(), written(|writer| frame.write(writer))))
        .collect();
    let together = seeds.iter().flat_map(|(_, _, bytes)| bytes.clone()).collect();
    let ack = written(|writer| {
        let ranges = [1000..1010, 900..901, 0..800];
        assert_eq!(write_ack(writer, ranges, 300, Some(EcnCounts { ect0: 5, ect1: 0, ce: 1 })), 3);
    });
    let mut reader = Reader::new(&ack);
    reader.u8().unwrap();
    assert!(Ack::parse(3, &mut reader).is_ok());
    let extra: [(&str, Vec<u8>); 8] = [
        ("all", together),
        ("ack-ecn", ack),
        ("ack-below-zero", vec![0x02, 5, 0, 1, 3, 1, 0]),
        ("ack-many-announced", varint_bytes(&[2, 1000, 0, varint::MAX, 0, 0, 0, 1, 1])),
        ("stream-to-the-end", vec![0x0d, 4, 0x40, 0x80, 1, 2, 3]),
        ("datagram-to-the-end", vec![0x30, 1, 2, 3]),
        ("type-not-minimal", vec![0x40, 0x01]),
        ("type-unknown", varint_bytes(&[0x4242, 1, 2])),
    ];
    seeds.extend(extra.map(|(name, bytes)| ("wire_frames", name.to_owned(), bytes)));
    seeds
}

fn long(ty: LongType, version: Version, token: &[u8]) -> Vec<u8> {
    let header = LongHeader { ty, version, dcid: cid(8), scid: cid(5), token };
    let mut packet = Vec::new();
    let mut buffer = [0xa5; 200];
    let mut writer = Writer::new(&mut buffer);
    let mark = header.write(&mut writer, 7, 2);
    let end = writer.position() + 40;
    patch_length(&mut buffer, mark, end);
    packet.extend_from_slice(&buffer[..end]);
    packet
}

fn short() -> Vec<u8> {
    let mut packet = written(|writer| {
        write_short(writer, &cid(8), Spin::One, KeyPhase::Zero, 0x1234, 2);
    });
    packet.extend([0x5a; 30]);
    packet
}

fn packets() -> Vec<Seed> {
    let retry = |version| {
        written(|writer| {
            write_retry(writer, 5, version, &cid(8), &cid(20), b"a token");
            writer.bytes(&[9; 16]);
        })
    };
    let negotiation = written(|writer| {
        write_version_negotiation(writer, 0x2a, cid(8).as_slice(), &[], &Version::SUPPORTED)
    });
    let mut unknown = vec![0xc5, 0x1a, 0x2a, 0x3a, 0x4a, 200];
    unknown.extend([1; 200]);
    unknown.extend([3, 1, 2, 3]);
    let coalesced =
        [long(LongType::Initial, Version::V1, b""), long(LongType::Handshake, Version::V1, b""), short()]
            .concat();
    let mut without_fixed_bit = short();
    without_fixed_bit[0] &= !0x40;
    let datagrams = [
        (8, "initial-v1", long(LongType::Initial, Version::V1, b"token")),
        (8, "initial-v2", long(LongType::Initial, Version::V2, b"token")),
        (8, "zero-rtt", long(LongType::ZeroRtt, Version::V1, b"")),
        (8, "handshake-v2", long(LongType::Handshake, Version::V2, b"")),
        (8, "retry-v1", retry(Version::V1)),
        (8, "retry-v2", retry(Version::V2)),
        (8, "version-negotiation", negotiation),
        (8, "unknown-version", unknown),
        (8, "short", short()),
        (0, "short-without-cid", short()),
        (21, "cid-too-long", short()),
        (0x88, "greased", without_fixed_bit),
        (8, "coalesced", coalesced),
    ];
    datagrams
        .into_iter()
        .map(|(setting, name, datagram)| ("wire_packet", name.to_owned(), [vec![setting], datagram].concat()))
        .collect()
}

fn transport_parameters() -> Vec<Seed> {
    let client = TransportParameters {
        max_idle_timeout_ms: 30_000,
        initial_max_data: 1 << 24,
        initial_max_streams_bidi: 100,
        initial_source_connection_id: Some(cid(8)),
        version_information: Some(VersionInformation {
            chosen: Version::V1,
            available: vec![Version::V2, Version::V1, Version(0x1a2a_3a4a)],
        }),
        ..TransportParameters::default()
    };
    let server = TransportParameters {
        original_destination_connection_id: Some(cid(18)),
        retry_source_connection_id: Some(cid(4)),
        stateless_reset_token: Some([3; 16]),
        max_ack_delay_ms: 10,
        ack_delay_exponent: 5,
        min_ack_delay_us: Some(1000),
        max_datagram_frame_size: 1200,
        max_udp_payload_size: 1472,
        disable_active_migration: true,
        grease_quic_bit: true,
        preferred_address: Some(PreferredAddress {
            ipv4: Some("192.0.2.1:443".parse().unwrap()),
            ipv6: None,
            cid: cid(8),
            reset_token: [4; 16],
        }),
        ..client.clone()
    };
    let bytes = |parameters: &TransportParameters| {
        let mut bytes = Vec::new();
        parameters.write(&mut bytes);
        bytes
    };
    let seeds = [
        ("client", bytes(&client)),
        ("server", bytes(&server)),
        ("twice", bytes(&client).repeat(2)),
        ("reserved", varint_bytes(&[31 * 1000 + 27, 3, 1, 2, 3])),
        ("length-beyond", varint_bytes(&[4, varint::MAX])),
    ];
    seeds.map(|(name, bytes)| ("wire_transport_parameters", name.to_owned(), bytes)).to_vec()
}
