use super::*;
use crate::cid::ConnectionId;
use crate::dir::Dir;
use crate::error::{Code, Malformed};
use crate::reader::Reader;
use crate::varint;
use crate::writer::Writer;
use proptest::prelude::*;

fn parse(bytes: &[u8]) -> Result<Frame<'_>, Malformed> {
    Frame::parse_next(&mut Reader::new(bytes))
}

fn write(frame: &Frame<'_>) -> Vec<u8> {
    let mut buffer = vec![0xee; frame.size()];
    let mut writer = Writer::new(&mut buffer);
    frame.write(&mut writer);
    assert_eq!(writer.position(), frame.size(), "{frame:?}");
    buffer
}

fn varints(values: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|&value| varint::append(&mut bytes, value));
    bytes
}

/// The bytes of every frame, by hand from RFC 9000 §19: a slip in a field's order would pass a roundtrip.
#[test]
fn published_layouts() {
    let cid = ConnectionId::new(&[9; 4]).unwrap();
    let token = [5; 16];
    let mut new_cid = vec![0x18, 7, 3, 4, 9, 9, 9, 9];
    new_cid.extend(token);
    let close = ConnectionClose::Transport { code: Code(0x0a), frame_type: 6, reason: b"no" };
    let frequency = AckFrequency {
        sequence: 1,
        ack_eliciting_threshold: 2,
        requested_max_ack_delay_us: 3,
        reordering_threshold: 4,
    };
    let cases: &[(&[u8], Frame<'_>)] = &[
        (&[0, 0, 0], Frame::Padding { count: 3 }),
        (&[1], Frame::Ping),
        (&[4, 1, 2, 3], Frame::ResetStream(ResetStream { id: 1, code: 2, final_size: 3 })),
        (
            &[0x24, 1, 2, 4, 3],
            Frame::ResetStreamAt(ResetStreamAt { id: 1, code: 2, final_size: 4, reliable_size: 3 }),
        ),
        (&[5, 1, 2], Frame::StopSending(StopSending { id: 1, code: 2 })),
        (&[6, 1, 2, 8, 9], Frame::Crypto(Crypto { offset: 1, data: &[8, 9] })),
        (&[7, 2, 8, 9], Frame::NewToken(NewToken { token: &[8, 9] })),
        (&[0x0a, 1, 1, 8], Frame::Stream(Stream { id: 1, offset: 0, fin: false, data: &[8] })),
        (&[0x0f, 1, 2, 1, 8], Frame::Stream(Stream { id: 1, offset: 2, fin: true, data: &[8] })),
        (&[0x10, 1], Frame::MaxData(MaxData { maximum: 1 })),
        (&[0x11, 1, 2], Frame::MaxStreamData(MaxStreamData { id: 1, maximum: 2 })),
        (&[0x12, 1], Frame::MaxStreams(MaxStreams { dir: Dir::Bidi, maximum: 1 })),
        (&[0x13, 1], Frame::MaxStreams(MaxStreams { dir: Dir::Uni, maximum: 1 })),
        (&[0x14, 1], Frame::DataBlocked(DataBlocked { limit: 1 })),
        (&[0x15, 1, 2], Frame::StreamDataBlocked(StreamDataBlocked { id: 1, limit: 2 })),
        (&[0x16, 1], Frame::StreamsBlocked(StreamsBlocked { dir: Dir::Bidi, limit: 1 })),
        (&[0x17, 1], Frame::StreamsBlocked(StreamsBlocked { dir: Dir::Uni, limit: 1 })),
        (
            &new_cid,
            Frame::NewConnectionId(NewConnectionId {
                sequence: 7,
                retire_prior_to: 3,
                cid,
                reset_token: token,
            }),
        ),
        (&[0x19, 1], Frame::RetireConnectionId(RetireConnectionId { sequence: 1 })),
        (&[0x1a, 1, 2, 3, 4, 5, 6, 7, 8], Frame::PathChallenge(PathChallenge([1, 2, 3, 4, 5, 6, 7, 8]))),
        (&[0x1b, 1, 2, 3, 4, 5, 6, 7, 8], Frame::PathResponse(PathResponse([1, 2, 3, 4, 5, 6, 7, 8]))),
        (&[0x1c, 0x0a, 6, 2, b'n', b'o'], Frame::ConnectionClose(close)),
        (&[0x1d, 9, 1, b'x'], Frame::ConnectionClose(ConnectionClose::Application { code: 9, reason: b"x" })),
        (&[0x1e], Frame::HandshakeDone),
        (&[0x1f], Frame::ImmediateAck),
        (&[0x31, 1, 8], Frame::Datagram(Datagram { data: &[8] })),
        (&[0x40, 0xaf, 1, 2, 3, 4], Frame::AckFrequency(frequency)),
        (&[0x42, 0xf5, 0x40, 0x80], Frame::Timestamp(Timestamp { time: 128 })),
    ];
    for (bytes, frame) in cases {
        assert_eq!(parse(bytes), Ok(*frame));
        assert_eq!(write(frame), *bytes);
        // Cut anywhere, it is an error (or, for padding, less of it), never another frame.
        for end in 1..bytes.len() {
            let cut = parse(&bytes[..end]);
            assert!(cut.is_err() || matches!(cut, Ok(Frame::Padding { .. })), "{frame:?} cut at {end}");
        }
    }
    let covered: Vec<u64> = cases.iter().map(|(bytes, _)| Reader::new(bytes).varint().unwrap()).collect();
    assert!((0..=0x1f).all(|ty| covered.contains(&ty) || matches!(ty, 2 | 3 | 8..=0x0f)));
}

#[test]
fn frames_that_reach_to_the_end_of_the_packet() {
    let stream = Stream { id: 1, offset: 0, fin: true, data: &[8, 9] };
    assert_eq!(parse(&[0x09, 1, 8, 9]), Ok(Frame::Stream(stream)));
    let mut buffer = [0; 4];
    let mut writer = Writer::new(&mut buffer);
    stream_header(&mut writer, 1, 0, true, None);
    assert_eq!((writer.written(), stream_header_size(1, 0, None)), (&[0x09, 1][..], 2));
    assert_eq!(parse(&[0x30, 8, 9]), Ok(Frame::Datagram(Datagram { data: &[8, 9] })));
    assert_eq!(parse(&[0x30]), Ok(Frame::Datagram(Datagram { data: &[] })));
    let mut writer = Writer::new(&mut buffer);
    Datagram { data: &[8] }.write_last(&mut writer);
    assert_eq!(writer.written(), [0x30, 8]);
}

/// RFC 9000 §12.4; CVE-2026-26080 was a truncated type read as PADDING.
#[test]
fn frame_types_are_whole_and_minimal() {
    for bytes in [&[0x40, 0x01][..], &[0x80, 0, 0, 0x01], &[0xc0, 0, 0, 0, 0, 0, 0, 0], &[0x40, 0x30]] {
        assert_eq!(parse(bytes), Err(Malformed("frame type not in its shortest encoding")));
    }
    for bytes in [&[][..], &[0x40], &[0x80, 0, 0], &[0xc0, 0]] {
        assert!(parse(bytes).is_err());
    }
    assert_eq!(read_type(&mut Reader::new(&[0x7f, 0xff])), Ok(0x3fff));
    for ty in [0x20, 0x2f, 0x32, 0xae, 0xb0, 0x4000, varint::MAX] {
        assert_eq!(parse(&varints(&[ty, 0, 0, 0, 0, 0])), Err(Malformed("unknown frame type")));
        assert_eq!(ty::name(ty), "unknown");
    }
}

#[test]
fn offsets_end_at_2_to_the_62() {
    for (prefix, len_field) in [(&[0x0e, 0][..], true), (&[0x0c, 0], false), (&[0x06], true)] {
        for (offset, valid) in [(varint::MAX - 2, true), (varint::MAX - 1, false), (varint::MAX, false)] {
            let mut bytes = prefix.to_vec();
            varint::append(&mut bytes, offset);
            bytes.extend(len_field.then_some(2));
            bytes.extend([7, 7]);
            assert_eq!(parse(&bytes).is_ok(), valid, "{bytes:02x?}");
        }
    }
}

#[test]
fn values_out_of_bounds_are_refused() {
    for ty in [0x12, 0x13, 0x16, 0x17] {
        assert!(parse(&varints(&[ty, MAX_STREAM_COUNT])).is_ok());
        assert!(parse(&varints(&[ty, MAX_STREAM_COUNT + 1])).is_err());
    }
    let new_cid = |sequence: u8, retire_prior_to: u8, len: u8| {
        let mut bytes = vec![0x18, sequence, retire_prior_to, len];
        bytes.extend(vec![1; usize::from(len) + 16]);
        parse(&bytes).is_ok()
    };
    assert!(new_cid(1, 1, 1) && new_cid(1, 0, 20));
    assert!(!new_cid(1, 2, 8) && !new_cid(1, 0, 0) && !new_cid(1, 0, 21));
    assert!(parse(&[0x07, 0]).is_err(), "empty token");
}

#[test]
fn close_reasons_are_cut_to_fit() {
    let reason = [b'x'; 100];
    for close in [
        ConnectionClose::Transport { code: Code::PROTOCOL_VIOLATION, frame_type: 8, reason: &reason },
        ConnectionClose::Application { code: 0x100, reason: &reason },
    ] {
        let bare = close.fitted(0).size();
        for room in bare..120 {
            let fitted = close.fitted(room);
            assert!(fitted.size() <= room && fitted.code() == close.code());
            assert_eq!(fitted == close, room >= close.size());
        }
    }
}

#[test]
fn ack_ranges() {
    // 20 to 17, gap of 2 (16, 15), 14 to 14, gap of 1 (13), 12 to 0.
    let bytes = [0x03, 20, 5, 2, 3, 1, 0, 0, 12, 1, 2, 3];
    let Ok(Frame::Ack(ack)) = parse(&bytes) else { panic!("not an ACK") };
    assert_eq!((ack.largest(), ack.delay(), ack.range_count()), (20, 5, 3));
    assert_eq!(ack.ranges().collect::<Vec<_>>(), [17..=20, 14..=14, 0..=12]);
    assert_eq!(ack.ecn(), Some(EcnCounts { ect0: 1, ect1: 2, ce: 3 }));
    assert_eq!(write(&Frame::Ack(ack)), bytes);
    let Ok(Frame::Ack(plain)) = parse(&[0x02, 20, 5, 0, 20]) else { panic!("not an ACK") };
    assert_eq!((plain.ranges().collect::<Vec<_>>(), plain.ecn()), (vec![0..=20], None));
}

/// draft-ietf-quic-multipath §4, byte by byte.
#[test]
fn published_layouts_of_several_paths() {
    let cid = ConnectionId::new(&[9; 4]).unwrap();
    let token = [5; 16];
    let mut path_cid = vec![0x7e, 0x78, 1, 7, 3, 4, 9, 9, 9, 9];
    path_cid.extend(token);
    let new = NewConnectionId { sequence: 7, retire_prior_to: 3, cid, reset_token: token };
    let status = |preference| PathStatus { path: 1, sequence: 2, preference };
    let cases: &[(&[u8], Frame<'_>)] = &[
        (&[0x7e, 0x75, 1, 2], Frame::PathAbandon(PathAbandon { path: 1, code: 2 })),
        (&[0x7e, 0x76, 1, 2], Frame::PathStatus(status(PathPreference::Backup))),
        (&[0x7e, 0x77, 1, 2], Frame::PathStatus(status(PathPreference::Available))),
        (&path_cid, Frame::PathNewConnectionId(PathNewConnectionId { path: 1, new })),
        (&[0x7e, 0x79, 1, 2], Frame::PathRetireConnectionId(PathRetireConnectionId { path: 1, sequence: 2 })),
        (&[0x7e, 0x7a, 3], Frame::MaxPathId(MaxPathId { maximum: 3 })),
        (&[0x7e, 0x7b, 3], Frame::PathsBlocked(PathsBlocked { maximum: 3 })),
        (&[0x7e, 0x7c, 1, 2], Frame::PathCidsBlocked(PathCidsBlocked { path: 1, next_sequence: 2 })),
    ];
    for (bytes, frame) in cases {
        assert_eq!((parse(bytes), write(frame)), (Ok(*frame), bytes.to_vec()));
        for end in 1..bytes.len() {
            assert!(parse(&bytes[..end]).is_err(), "{frame:?} cut at {end}");
        }
    }
}

/// draft-ietf-quic-multipath §4.1: the path stands between the type and the fields of an ACK frame.
#[test]
fn acknowledgements_of_a_path() {
    let bytes = [0x3f, 7, 20, 5, 1, 3, 1, 0, 1, 2, 3];
    let Ok(Frame::PathAck(acked)) = parse(&bytes) else { panic!("not a PATH_ACK") };
    assert_eq!((acked.path, acked.ack.ranges().collect::<Vec<_>>()), (7, vec![17..=20, 14..=14]));
    assert_eq!(acked.ack.ecn(), Some(EcnCounts { ect0: 1, ect1: 2, ce: 3 }));
    assert_eq!(write(&Frame::PathAck(acked)), bytes);
    for end in 1..bytes.len() {
        assert!(parse(&bytes[..end]).is_err(), "cut at {end}");
    }
    assert!(parse(&[0x3e, 7, 5, 0, 0, 6]).is_err(), "below packet number 0");
    for (path, ecn) in [(0, None), (1 << 20, acked.ack.ecn())] {
        for room in 0..40 {
            let mut buffer = [0; 40];
            let mut writer = Writer::new(&mut buffer[..room]);
            let count = write_path_ack(&mut writer, path, [17..21, 14..15], 5, ecn);
            let written = writer.position();
            if count > 0 {
                let Ok(Frame::PathAck(read)) = parse(&buffer[..written]) else { panic!("not a PATH_ACK") };
                assert_eq!((read.path, read.ack.ecn(), read.ack.range_count()), (path, ecn, count as u64));
            } else {
                assert_eq!(written, 0);
            }
        }
    }
}

/// RFC 9000 §19.3.1: numbers below 0. MsQuic and others have underflowed here.
#[test]
fn ack_underflow_is_refused() {
    let below = Err(Malformed("ACK range below packet number 0"));
    assert_eq!(parse(&[0x02, 5, 0, 0, 6]), below, "first range");
    assert_eq!(parse(&[0x02, 5, 0, 1, 3, 1, 0]), below, "gap: 2 - 1 - 2");
    assert_eq!(parse(&[0x02, 5, 0, 1, 3, 0, 1]), below, "length: 0 - 1");
    assert!(parse(&[0x02, 5, 0, 1, 3, 0, 0]).is_ok(), "2 - 0 - 2 = 0");
    assert_eq!(parse(&varints(&[2, varint::MAX, 0, 1, 0, varint::MAX, varint::MAX])), below);
    // A count far beyond the bytes ends with the bytes.
    assert!(parse(&varints(&[2, 1000, 0, varint::MAX, 0, 0, 0])).is_err());
    assert!(parse(&[0x03, 5, 0, 0, 0, 1, 2]).is_err(), "ECN counts cut");
}

fn write_ranges(room: usize, ranges: &[core::ops::Range<u64>], ecn: Option<EcnCounts>) -> (usize, Vec<u8>) {
    let mut buffer = vec![0; room];
    let mut writer = Writer::new(&mut buffer);
    let count = write_ack(&mut writer, ranges.iter().cloned(), 77, ecn);
    let written = writer.position();
    buffer.truncate(written);
    (count, buffer)
}

#[test]
fn ack_is_written_as_far_as_it_fits() {
    let ranges: Vec<_> = (0..100u64).rev().map(|n| n * 1000..n * 1000 + 1 + n).collect();
    let ecn = Some(EcnCounts { ect0: 1, ect1: 0, ce: 100_000 });
    for ecn in [None, ecn] {
        for room in 0..400 {
            let (count, bytes) = write_ranges(room, &ranges, ecn);
            if count == 0 {
                assert!(bytes.is_empty());
                continue;
            }
            let Ok(Frame::Ack(ack)) = parse(&bytes) else { panic!("not an ACK") };
            let expected = ranges.iter().take(count).map(|range| range.start..=range.end - 1);
            assert!(ack.ranges().eq(expected));
            assert_eq!((ack.delay(), ack.ecn()), (77, ecn));
        }
        assert_eq!(write_ranges(400, &ranges, ecn).0, MAX_RANGES_WRITTEN);
        assert_eq!(write_ranges(10, &ranges, ecn).0, usize::from(ecn.is_none()));
    }
    assert_eq!(write_ranges(100, &[], None), (0, vec![]));
}

/// Any frame that can be written, from free choices.
fn any_frame() -> impl Strategy<Value = (u8, [u64; 4], Vec<u8>, bool)> {
    let number = (any::<u64>(), 2u32..64).prop_map(|(raw, shift)| raw >> shift);
    (
        0u8..30,
        [number.clone(), number.clone(), number.clone(), number],
        prop::collection::vec(any::<u8>(), 1..200),
        any::<bool>(),
    )
}

fn build(kind: u8, [a, b, c, d]: [u64; 4], data: &[u8], flag: bool) -> Frame<'_> {
    let dir = if flag { Dir::Bidi } else { Dir::Uni };
    let start = a.min(varint::MAX - 200);
    match kind {
        0 => Frame::ResetStream(ResetStream { id: a, code: b, final_size: c }),
        1 => Frame::StopSending(StopSending { id: a, code: b }),
        2 => Frame::Crypto(Crypto { offset: start, data }),
        3 => Frame::NewToken(NewToken { token: data }),
        4..=6 => Frame::Stream(Stream { id: b, offset: start, fin: flag, data }),
        7 => Frame::MaxData(MaxData { maximum: a }),
        8 => Frame::MaxStreamData(MaxStreamData { id: a, maximum: b }),
        9 => Frame::MaxStreams(MaxStreams { dir, maximum: a.min(MAX_STREAM_COUNT) }),
        10 => Frame::DataBlocked(DataBlocked { limit: a }),
        11 => Frame::StreamDataBlocked(StreamDataBlocked { id: a, limit: b }),
        12 => Frame::StreamsBlocked(StreamsBlocked { dir, limit: a.min(MAX_STREAM_COUNT) }),
        13 => Frame::NewConnectionId(NewConnectionId {
            sequence: a.max(b),
            retire_prior_to: a.min(b),
            cid: ConnectionId::new(&data[..data.len().min(20)]).unwrap(),
            reset_token: [data[0]; 16],
        }),
        14 => Frame::RetireConnectionId(RetireConnectionId { sequence: a }),
        15 => Frame::PathChallenge(PathChallenge(a.to_be_bytes())),
        16 => {
            Frame::ConnectionClose(ConnectionClose::Transport { code: Code(a), frame_type: b, reason: data })
        }
        17 => Frame::ConnectionClose(ConnectionClose::Application { code: a, reason: data }),
        19 => Frame::ResetStreamAt(ResetStreamAt {
            id: a,
            code: b,
            final_size: c.max(d),
            reliable_size: c.min(d),
        }),
        18 => Frame::Datagram(Datagram { data }),
        29 => Frame::Timestamp(Timestamp { time: a }),
        20..=28 => build_of_paths(kind, [a, b, c, d], data, flag),
        _ => Frame::AckFrequency(AckFrequency {
            sequence: a,
            ack_eliciting_threshold: b,
            requested_max_ack_delay_us: c,
            reordering_threshold: d,
        }),
    }
}

/// The frames of several paths.
fn build_of_paths(kind: u8, [a, b, c, _]: [u64; 4], data: &[u8], flag: bool) -> Frame<'static> {
    match kind {
        20..=22 => Frame::PathStatus(PathStatus {
            path: a,
            sequence: b,
            preference: if flag { PathPreference::Available } else { PathPreference::Backup },
        }),
        23 => Frame::PathAbandon(PathAbandon { path: a, code: b }),
        24 => Frame::PathNewConnectionId(PathNewConnectionId {
            path: c,
            new: NewConnectionId {
                sequence: a.max(b),
                retire_prior_to: a.min(b),
                cid: ConnectionId::new(&data[..data.len().min(20)]).unwrap(),
                reset_token: [data[0]; 16],
            },
        }),
        25 => Frame::PathRetireConnectionId(PathRetireConnectionId { path: a, sequence: b }),
        26 => Frame::MaxPathId(MaxPathId { maximum: a }),
        27 => Frame::PathsBlocked(PathsBlocked { maximum: a }),
        _ => Frame::PathCidsBlocked(PathCidsBlocked { path: a, next_sequence: b }),
    }
}

proptest! {
    /// What is written is read back, takes the bytes that `size` promised, and leaves the next frame alone.
    #[test]
    fn frames_roundtrip(choices in prop::collection::vec(any_frame(), 1..8)) {
        let frames: Vec<_> =
            choices.iter().map(|(kind, numbers, data, flag)| build(*kind, *numbers, data, *flag)).collect();
        let bytes: Vec<u8> = frames.iter().flat_map(write).collect();
        let mut reader = Reader::new(&bytes);
        for frame in &frames {
            prop_assert_eq!(Frame::parse_next(&mut reader), Ok(*frame));
        }
        prop_assert!(reader.is_empty());
    }
}
