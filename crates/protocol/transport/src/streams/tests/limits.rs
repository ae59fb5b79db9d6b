//! Limits against a hostile peer: one test for each row of RELIABILITY 2.2 that concerns streams.

use super::*;
use crate::reassembly::MAX_PIECES;
use wire::frame;

fn server() -> End {
    let [_, server] = pair(&StreamConfig::default());
    server
}

fn code_of(outcome: Result<(), TransportError>) -> Option<Code> {
    outcome.err().map(|error| error.code)
}

/// Every frame that names a stream.
fn naming(id: u64) -> [Frame<'static>; 5] {
    [
        Frame::Stream(frame::Stream { id, offset: 0, fin: false, data: &[] }),
        Frame::ResetStream(frame::ResetStream { id, code: 0, final_size: 0 }),
        Frame::StreamDataBlocked(frame::StreamDataBlocked { id, limit: 0 }),
        Frame::StopSending(frame::StopSending { id, code: 0 }),
        Frame::MaxStreamData(frame::MaxStreamData { id, maximum: 1 }),
    ]
}

/// RUSTSEC-2026-0523, GHSA-475v-pq2g-fp9g: a frame other than STREAM opens 2^40 streams.
#[test]
fn no_frame_may_name_a_stream_above_the_limit() {
    for frame in naming(client_stream(Dir::Bidi, 100).as_u64()) {
        assert_eq!(code_of(server().receive(&frame)), Some(Code::STREAM_LIMIT_ERROR), "{frame:?}");
    }
    for frame in naming(client_stream(Dir::Bidi, (1 << 60) - 1).as_u64()) {
        assert_eq!(code_of(server().receive(&frame)), Some(Code::STREAM_LIMIT_ERROR), "{frame:?}");
    }
    for frame in naming(client_stream(Dir::Bidi, 99).as_u64()) {
        let mut server = server();
        assert_eq!(server.receive(&frame), Ok(()), "{frame:?}");
        assert_eq!(server.streams.count(), 1, "the streams below are not made");
    }
}

#[test]
fn no_frame_may_name_a_part_that_is_not_there_or_a_stream_that_we_did_not_open() {
    let ours_unopened = StreamId::new(Side::Server, Dir::Bidi, 0).as_u64();
    for frame in naming(ours_unopened) {
        assert_eq!(code_of(server().receive(&frame)), Some(Code::STREAM_STATE_ERROR), "{frame:?}");
    }
    let only_theirs = client_stream(Dir::Uni, 0);
    let only_ours = StreamId::new(Side::Server, Dir::Uni, 0);
    for existing in [false, true] {
        for index in 0..5 {
            let mut server = server();
            if existing {
                server.receive_data(only_theirs, 0..1, false).unwrap();
                assert_eq!(server.streams.open(Dir::Uni), Ok(only_ours));
            }
            let about_recv = index < 3;
            let (right, wrong) = if about_recv { (only_theirs, only_ours) } else { (only_ours, only_theirs) };
            assert_eq!(
                code_of(server.receive(&naming(wrong.as_u64())[index])),
                Some(Code::STREAM_STATE_ERROR)
            );
            if existing && index != 1 {
                assert_eq!(server.receive(&naming(right.as_u64())[index]), Ok(()));
            }
        }
    }
}

/// RFC 9000 §4.5.
#[test]
fn the_final_size_neither_changes_nor_is_passed() {
    let id = client_stream(Dir::Bidi, 0);
    type Step = fn(&mut End, StreamId) -> Result<(), TransportError>;
    let violations: [Step; 7] = [
        |end, id| end.receive_data(id, 10..20, true).and_then(|()| end.receive_data(id, 19..21, false)),
        |end, id| end.receive_data(id, 10..20, true).and_then(|()| end.receive_data(id, 10..19, true)),
        |end, id| end.receive_data(id, 10..20, false).and_then(|()| end.receive_data(id, 0..10, true)),
        |end, id| end.receive_data(id, 10..20, false).and_then(|()| end.receive_reset(id, 19)),
        |end, id| end.receive_data(id, 10..20, true).and_then(|()| end.receive_reset(id, 21)),
        |end, id| end.receive_reset(id, 20).and_then(|()| end.receive_data(id, 20..21, false)),
        |end, id| end.receive_reset(id, 20).and_then(|()| end.receive_reset(id, 21)),
    ];
    for (index, violate) in violations.iter().enumerate() {
        assert_eq!(code_of(violate(&mut server(), id)), Some(Code::FINAL_SIZE_ERROR), "violation {index}");
    }
    let mut end = server();
    end.receive_data(id, 10..20, true).unwrap();
    end.receive_data(id, 10..20, true).unwrap();
    end.receive_data(id, 20..20, true).unwrap();
    end.receive_data(id, 0..10, false).unwrap();
    end.receive_data(id, 0..20, true).unwrap();
    assert_eq!((end.reader.taken[&id], end.reader.ended.len()), (20, 1));
}

/// h3spec, quicly 9bce5448, lsquic 4.8.1: the final size of a reset is data as far as flow control goes.
#[test]
fn a_reset_cannot_pass_the_flow_control_limits() {
    let window = StreamConfig::default().initial_stream_window;
    let id = client_stream(Dir::Bidi, 0);
    assert_eq!(code_of(server().receive_reset(id, window + 1)), Some(Code::FLOW_CONTROL_ERROR));
    assert_eq!(code_of(server().receive_reset(id, (1 << 62) - 1)), Some(Code::FLOW_CONTROL_ERROR));
    assert_eq!(server().receive_reset(id, window), Ok(()));
}

/// CVE-2026-75804: the connection's limit is on the sum of the highest offsets, gaps included.
#[test]
fn the_connection_limit_counts_every_stream() {
    let mut server = server();
    let config = StreamConfig::default();
    let window = config.initial_stream_window;
    server.receive_data(client_stream(Dir::Bidi, 0), window - 1..window, false).unwrap();
    let rest = config.initial_connection_window - window;
    let second = client_stream(Dir::Bidi, 1);
    assert_eq!(code_of(server.receive_data(second, rest..rest + 1, false)), Some(Code::FLOW_CONTROL_ERROR));
    assert_eq!(code_of(server.receive_reset(second, rest + 1)), Some(Code::FLOW_CONTROL_ERROR));
    assert_eq!(server.receive_data(second, rest - 1..rest, false), Ok(()));
    assert_eq!(
        code_of(server.receive_data(client_stream(Dir::Uni, 0), 0..1, false)),
        Some(Code::FLOW_CONTROL_ERROR)
    );
    let mut other = self::server();
    let beyond = other.receive_data(second, window..window + 1, false);
    assert_eq!(code_of(beyond), Some(Code::FLOW_CONTROL_ERROR), "the stream's own limit");
}

/// GHSA-f7qr, CVE-2026-44433: a byte at the highest offset must earn nothing.
#[test]
fn credit_comes_only_from_bytes_taken_in_order() {
    let mut server = server();
    let window = StreamConfig::default().initial_stream_window;
    let id = client_stream(Dir::Bidi, 0);
    server.receive_data(id, 1..window, false).unwrap();
    assert!(!server.streams.wants_control());
    assert_eq!(server.streams.retained_bytes(), window - 1);
    // Nor from bytes that are here but that the application did not take.
    server.reader.appetite = vec![10];
    server.receive_data(id, 0..1, false).unwrap();
    assert!(!server.streams.wants_control());
    assert_eq!(server.reader.taken[&id], 11);
    server.reader.appetite = Vec::new();
    server.deliver(id);
    assert_eq!(server.reader.taken[&id], window);
    assert_eq!(server.streams.retained_bytes(), 0);
    let frames = server.packet(100).unwrap().frames;
    assert!(matches!(frames[..], [SentFrame::MaxData { .. }, SentFrame::MaxStreamData { .. }]), "{frames:?}");
}

/// aioquic 1.5: a reset after a reset, or data after a reset, counted the connection's window twice.
#[test]
fn what_comes_after_a_reset_counts_once() {
    let mut server = server();
    let id = client_stream(Dir::Bidi, 0);
    server.receive_data(id, 5..10, false).unwrap();
    for _ in 0..3 {
        server.receive_reset(id, 1_000).unwrap();
        server.receive_data(id, 0..1_000, false).unwrap();
        server.receive_data(id, 900..1_000, true).unwrap();
    }
    assert_eq!((server.streams.received, server.streams.retained_bytes()), (1_000, 0));
    assert_eq!(server.take_events(), [Event::StreamReset { id, code: 7 }]);
    assert_eq!(server.reader.loans, 0);
}

/// CVE-2026-25800, CVE-2026-119234: frames of one byte with gaps, on one stream and spread over many.
#[test]
fn scattered_bytes_are_bounded_by_count() {
    let mut one = server();
    let id = client_stream(Dir::Bidi, 0);
    let refused = (0..).find(|index| one.receive_data(id, 1 + index * 2..2 + index * 2, false).is_err());
    assert!(refused.is_some_and(|count| count <= MAX_PIECES as u64 + 2), "{refused:?}");

    let mut many = server();
    let mut accepted = 0;
    let refused = (0..600_000u64).any(|index| {
        let (id, at) = (client_stream(Dir::Bidi, index % 100), 1 + index / 100 * 2);
        accepted += 1;
        many.receive_data(id, at..at + 1, false).is_err()
    });
    assert!(refused && accepted <= MAX_CONNECTION_PIECES + 100, "{accepted}");
    assert!(many.streams.held.pieces <= MAX_CONNECTION_PIECES + 100);
}

/// What a hostile peer makes us hold is bounded by the window, whatever the order.
#[test]
fn retained_bytes_never_pass_the_connection_window() {
    let mut server = server();
    server.reader.appetite = vec![0];
    let config = StreamConfig::default();
    let mut refused = false;
    for index in 0..100 {
        let id = client_stream(Dir::Bidi, index);
        for start in (0..config.initial_stream_window / 1_000).rev().map(|step| step * 1_000) {
            refused |= server.receive_data(id, start..start + 1_000, false).is_err();
        }
    }
    assert!(refused);
    assert!(server.streams.retained_bytes() <= config.initial_connection_window);
}

/// Rapid reset: the peer opens and resets for ever. It gets streams back only as fast as the application takes
/// notice.
#[test]
fn streams_are_given_back_at_the_application_s_pace() {
    let mut server = server();
    let mut opened = 0;
    let refused = loop {
        let id = client_stream(Dir::Uni, opened);
        let outcome = server.receive_data(id, 0..1, false).and_then(|()| server.receive_reset(id, 1));
        match outcome {
            Ok(()) => opened += 1,
            Err(error) => break error.code,
        }
    };
    assert_eq!((refused, opened), (Code::STREAM_LIMIT_ERROR, 100));
    assert!(!server.streams.wants_control());
    assert_eq!(server.streams.events.len(), 100);
    assert_eq!(server.take_events().len(), 100);
    assert_eq!(server.streams.count(), 0);
    let frames = server.packet(100).unwrap().frames;
    assert_eq!(frames, [SentFrame::MaxStreams { dir: Dir::Uni, limit: 200 }]);
}

/// quinn 2024-05: data that arrives out of order on a stopped stream made the flow control underflow.
#[test]
fn a_stopped_stream_counts_every_byte_once_in_any_order() {
    for last in [0, 1, 2] {
        let mut server = server();
        let id = client_stream(Dir::Uni, 0);
        server.reader.appetite = vec![3];
        server.receive_data(id, 0..10, false).unwrap();
        server.receive_data(id, 50..60, false).unwrap();
        server.streams.stop_sending(id, 9);
        assert_eq!(server.streams.retained_bytes(), 0);
        server.receive_data(id, 200..300, false).unwrap();
        server.receive_data(id, 100..200, false).unwrap();
        server.receive_data(id, 10..50, false).unwrap();
        let loans = server.reader.loans;
        match last {
            0 => server.receive_reset(id, 1_000).unwrap(),
            1 => server.receive_data(id, 990..1_000, true).unwrap(),
            _ => server.receive_data(id, 1_000..1_000, true).unwrap(),
        }
        assert_eq!((server.streams.received, server.reader.loans), (1_000, loans));
        assert_eq!(server.streams.count(), 0, "over without waiting for what is missing");
        assert_eq!(server.take_events(), []);
        assert_eq!(server.receive_data(id, 300..990, false), Ok(()), "late data is no error");
        assert_eq!(server.streams.received, 1_000);
    }
}
