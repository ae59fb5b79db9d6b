//! One stream's message: sequences of frames as a table, however the bytes are cut.

use super::*;
use crate::abuse_budgets::Rate;
use crate::testing::{Recorder, concat, data, frame, headers, request_head, request_stream};
use proptest::prelude::*;
use qpack::Limits;

struct Receiver {
    side: Side,
    message: Message,
    sections: SectionReader,
    abuse_budgets: AbuseBudgets,
    buffered: usize,
    sink: Recorder,
}

impl Receiver {
    fn new(side: Side, answers: Answers) -> Receiver {
        let rate = Rate { burst: 50, per_second: 0 };
        Receiver {
            side,
            message: Message::new(answers),
            sections: SectionReader::new(Limits { max_field_section_size: 2_000, max_lines: 20 }),
            abuse_budgets: AbuseBudgets::new(rate, rate, Instant::ZERO),
            buffered: 0,
            sink: Recorder::default(),
        }
    }

    fn server() -> Receiver {
        Receiver::new(Side::Server, Answers::Other)
    }

    fn receive(&mut self, bytes: &[u8], fin: Fin) -> Result<usize, Violation> {
        let mut shared = Shared {
            side: self.side,
            sections: &mut self.sections,
            max_field_section_size: 2_000,
            extended_connect: ExtendedConnect::Announced,
            abuse_budgets: &mut self.abuse_budgets,
            buffered: &mut self.buffered,
            max_buffered: 4_000,
            priority: &mut None,
            trace: None,
            now: Instant::ZERO,
            sink: &mut self.sink,
        };
        self.message.on_bytes(request_stream(0), bytes, fin, &mut shared)
    }
}

/// The outcome in a few words.
fn outcome(result: Result<usize, Violation>) -> String {
    match result {
        Ok(_) => "ok".into(),
        Err(Violation::Connection(error)) => format!("connection {}", error.code),
        Err(Violation::Stream { code, .. }) => format!("stream {code}"),
        Err(Violation::TooLarge) => "too large".into(),
        Err(Violation::Unwanted) => "unwanted".into(),
    }
}

fn post(length: &str) -> Vec<u8> {
    request_head("POST", &[("content-length", length)])
}

/// What a server makes of whole streams: RFC 9114 §4.1, §4.1.2, §7.2.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn streams_of_requests() {
    let head = request_head("GET", &[]);
    let trailers = headers(&[("x", "y")]);
    let connect = headers(&[(":method", "CONNECT"), (":authority", "a.example:443")]);
    let websocket = headers(&[
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "a.example"),
        (":path", "/chat"),
        ("content-length", "1"),
    ]);
    let table: Vec<(&str, Vec<u8>, &str, &[&str])> = vec![
        ("get", head.clone(), "ok", &["0 request GET /", "0 end"]),
        ("body", concat(&[&head, &data(b"ab"), &data(b"c")]), "ok", &["0 request GET /", "0 body", "0 end"]),
        (
            "trailers",
            concat(&[&head, &data(b"ab"), &trailers]),
            "ok",
            &["0 request GET /", "0 body", "0 trailers 1", "0 end"],
        ),
        ("empty data", concat(&[&head, &data(b"")]), "ok", &["0 request GET /", "0 end"]),
        (
            "unknown frames everywhere",
            concat(&[
                &frame(0x21, b"xyz"),
                &head,
                &frame(0x40, b""),
                &data(b"a"),
                &frame(0x0c, b"1"),
                &trailers,
                &frame(0x21, b""),
            ]),
            "ok",
            &["0 request GET /", "0 body", "0 trailers 1", "0 end"],
        ),
        (
            "length",
            concat(&[&post("3"), &data(b"ab"), &data(b"c")]),
            "ok",
            &["0 request POST /", "0 body", "0 end"],
        ),
        ("length 0", post("0"), "ok", &["0 request POST /", "0 end"]),
        ("tunnel", concat(&[&connect, &data(b"ab")]), "ok", &["0 request CONNECT -", "0 body", "0 end"]),
        (
            "extended tunnel",
            concat(&[&websocket, &data(b"ab"), &data(b"c")]),
            "ok",
            &["0 request CONNECT /chat", "0 body", "0 end"],
        ),
        (
            "trailers in an extended tunnel",
            concat(&[&websocket, &data(b"ab"), &trailers]),
            "connection H3_FRAME_UNEXPECTED",
            &["0 request CONNECT /chat", "0 body"],
        ),
        ("nothing", vec![], "stream H3_REQUEST_INCOMPLETE", &[]),
        ("unknown only", frame(0x21, b""), "stream H3_REQUEST_INCOMPLETE", &[]),
        ("data first", data(b"a"), "connection H3_FRAME_UNEXPECTED", &[]),
        ("empty data first", data(b""), "connection H3_FRAME_UNEXPECTED", &[]),
        (
            "data after trailers",
            concat(&[&head, &trailers, &data(b"a")]),
            "connection H3_FRAME_UNEXPECTED",
            &["0 request GET /", "0 trailers 1"],
        ),
        (
            "third headers",
            concat(&[&head, &trailers, &trailers]),
            "connection H3_FRAME_UNEXPECTED",
            &["0 request GET /", "0 trailers 1"],
        ),
        ("two requests", concat(&[&head, &head]), "stream H3_MESSAGE_ERROR", &["0 request GET /"]),
        (
            "headers in a tunnel",
            concat(&[&connect, &trailers]),
            "connection H3_FRAME_UNEXPECTED",
            &["0 request CONNECT -"],
        ),
        ("too long", concat(&[&post("1"), &data(b"ab")]), "stream H3_MESSAGE_ERROR", &["0 request POST /"]),
        (
            "too long by a frame",
            concat(&[&post("1"), &data(b"a"), &data(b"b")]),
            "stream H3_MESSAGE_ERROR",
            &["0 request POST /", "0 body"],
        ),
        (
            "too short",
            concat(&[&post("3"), &data(b"ab")]),
            "stream H3_MESSAGE_ERROR",
            &["0 request POST /", "0 body"],
        ),
        ("no content", post("3"), "stream H3_MESSAGE_ERROR", &["0 request POST /"]),
        (
            "too short before trailers",
            concat(&[&post("3"), &data(b"ab"), &trailers]),
            "stream H3_MESSAGE_ERROR",
            &["0 request POST /", "0 body"],
        ),
        ("malformed", request_head("GET", &[("connection", "close")]), "stream H3_MESSAGE_ERROR", &[]),
        (
            "malformed trailers",
            concat(&[&head, &headers(&[(":path", "/")])]),
            "stream H3_MESSAGE_ERROR",
            &["0 request GET /"],
        ),
        ("bad section", frame(0x01, &[0x00, 0x00, 0x80]), "connection QPACK_DECOMPRESSION_FAILED", &[]),
        ("empty section", frame(0x01, &[]), "connection QPACK_DECOMPRESSION_FAILED", &[]),
        ("large section", request_head("GET", &[("x", &"!".repeat(2_000))]), "too large", &[]),
        ("cut head", head[..head.len() - 1].to_vec(), "connection H3_FRAME_ERROR", &[]),
        (
            "cut data",
            concat(&[&head, &data(b"abc")[..4]]),
            "connection H3_FRAME_ERROR",
            &["0 request GET /", "0 body"],
        ),
        ("cut header", concat(&[&head, &[0x00]]), "connection H3_FRAME_ERROR", &["0 request GET /"]),
        (
            "cut unknown",
            concat(&[&head, &frame(0x21, b"ab")[..2]]),
            "connection H3_FRAME_ERROR",
            &["0 request GET /"],
        ),
        (
            "push promise",
            concat(&[&head, &frame(0x05, &[0x00])]),
            "connection H3_FRAME_UNEXPECTED",
            &["0 request GET /"],
        ),
        ("settings", frame(0x04, &[]), "connection H3_FRAME_UNEXPECTED", &[]),
        ("cancel push", frame(0x03, &[0]), "connection H3_FRAME_UNEXPECTED", &[]),
        (
            "goaway",
            concat(&[&head, &frame(0x07, &[0])]),
            "connection H3_FRAME_UNEXPECTED",
            &["0 request GET /"],
        ),
        ("max push id", frame(0x0d, &[0]), "connection H3_FRAME_UNEXPECTED", &[]),
        ("priority update", frame(0x0f_0700, &[0]), "connection H3_FRAME_UNEXPECTED", &[]),
        ("http/2 priority", frame(0x02, &[]), "connection H3_FRAME_UNEXPECTED", &[]),
        ("http/2 ping", frame(0x06, &[]), "connection H3_FRAME_UNEXPECTED", &[]),
        ("http/2 window update", frame(0x08, &[]), "connection H3_FRAME_UNEXPECTED", &[]),
        ("http/2 continuation", frame(0x09, &[]), "connection H3_FRAME_UNEXPECTED", &[]),
    ];
    for (name, bytes, expected, log) in table {
        let mut whole = Receiver::server();
        assert_eq!(outcome(whole.receive(&bytes, Fin::End)), expected, "{name}");
        assert_eq!(whole.sink.log, log, "{name}");
        // The same byte by byte, with an empty end: cuts must not matter. CVE-2026-33555 is the last step.
        let mut pieces = Receiver::server();
        let result = bytes.iter().try_for_each(|byte| {
            let taken = pieces.receive(&[*byte], Fin::Open)?;
            assert_eq!(taken, 1, "{name}");
            Ok(())
        });
        let result = result.and_then(|()| pieces.receive(&[], Fin::End));
        assert_eq!(outcome(result), expected, "{name}, in pieces");
        assert_eq!(pieces.sink.log, log, "{name}, in pieces");
        assert_eq!(pieces.sink.body, whole.sink.body, "{name}");
    }
}

/// What a client makes of responses: RFC 9114 §4.1, RFC 9110 §6.4.1.
#[test]
fn streams_of_responses() {
    let ok = headers(&[(":status", "200")]);
    let ok5 = headers(&[(":status", "200"), ("content-length", "5")]);
    let early = headers(&[(":status", "103"), ("link", "</a>")]);
    let table: Vec<(Answers, Vec<u8>, &str)> = vec![
        (Answers::Other, ok.clone(), "ok"),
        (Answers::Other, concat(&[&early, &early, &ok5, &data(b"12345")]), "ok"),
        (Answers::Other, concat(&[&ok5, &data(b"1234")]), "stream H3_MESSAGE_ERROR"),
        (Answers::Other, early.clone(), "stream H3_MESSAGE_ERROR"),
        (Answers::Other, vec![], "stream H3_MESSAGE_ERROR"),
        (Answers::Other, concat(&[&early, &data(b"1")]), "connection H3_FRAME_UNEXPECTED"),
        (Answers::Other, concat(&[&ok, &ok]), "stream H3_MESSAGE_ERROR"),
        (Answers::Other, request_head("GET", &[]), "stream H3_MESSAGE_ERROR"),
        (Answers::Other, concat(&[&frame(0x05, &[0x00, 0x00, 0x00]), &ok]), "connection H3_ID_ERROR"),
        (Answers::Other, headers(&[(":status", "304"), ("content-length", "5")]), "ok"),
        (Answers::Other, concat(&[&headers(&[(":status", "204")]), &data(b"1")]), "stream H3_MESSAGE_ERROR"),
        (Answers::Head, ok5.clone(), "ok"),
        (Answers::Head, concat(&[&ok5, &data(b"12345")]), "stream H3_MESSAGE_ERROR"),
        (Answers::Connect, concat(&[&ok5, &data(b"123456789")]), "ok"),
        (Answers::Connect, concat(&[&ok, &headers(&[("x", "y")])]), "connection H3_FRAME_UNEXPECTED"),
        (
            Answers::Connect,
            headers(&[(":status", "407"), ("content-length", "1")]),
            "stream H3_MESSAGE_ERROR",
        ),
    ];
    for (answers, bytes, expected) in table {
        let mut receiver = Receiver::new(Side::Client, answers);
        assert_eq!(
            outcome(receiver.receive(&bytes, Fin::End)),
            expected,
            "{answers:?} {:?}",
            receiver.sink.log
        );
    }
}

/// picoquic #2114, CVE-2026-56816: a frame's length costs nothing until its bytes come.
#[test]
fn huge_lengths_cost_nothing() {
    let huge = |ty: u64| {
        let mut bytes = Vec::new();
        crate::frame::append_header(&mut bytes, ty, wire::varint::MAX);
        bytes
    };
    let mut receiver = Receiver::server();
    assert_eq!(outcome(receiver.receive(&huge(0x01), Fin::Open)), "too large");
    let mut receiver = Receiver::server();
    assert!(receiver.receive(&huge(0x21), Fin::Open).is_ok());
    for _ in 0..1_000 {
        assert_eq!(receiver.receive(&[0; 1_000], Fin::Open), Ok(1_000));
    }
    assert_eq!((receiver.message.partial.capacity(), receiver.buffered), (0, 0));
    let mut receiver = Receiver::server();
    let bytes = concat(&[&request_head("POST", &[]), &huge(0x00), b"abc"]);
    assert_eq!(receiver.receive(&bytes, Fin::Open), Ok(bytes.len()));
    assert_eq!(receiver.sink.body, b"abc");
}

/// RUSTSEC-2026-0258: frames count, not only bytes.
#[test]
fn frames_without_effect_have_a_budget() {
    for useless in [data(b""), frame(0x21, b""), frame(0x21, b"x")] {
        let mut receiver = Receiver::server();
        receiver.receive(&request_head("POST", &[]), Fin::Open).unwrap();
        let taken = (0..1_000).take_while(|_| receiver.receive(&useless, Fin::Open).is_ok()).count();
        assert_eq!(taken, 50);
        assert_eq!(outcome(receiver.receive(&useless, Fin::Open)), "connection H3_EXCESSIVE_LOAD");
    }
    let mut receiver = Receiver::new(Side::Client, Answers::Other);
    let early = headers(&[(":status", "103")]);
    let taken = (0..1_000).take_while(|_| receiver.receive(&early, Fin::Open).is_ok()).count();
    assert_eq!(taken, 50, "interim responses without end");
}

/// The application's pace is the peer's: what is not taken is not passed over.
#[test]
fn content_waits_for_the_application() {
    let mut receiver = Receiver::server();
    let bytes = concat(&[&request_head("POST", &[]), &data(b"0123456789"), &data(b"ab")]);
    receiver.sink.takes = 3;
    let mut taken = 0;
    for _ in 0..100 {
        if receiver.message.is_ended() {
            break;
        }
        taken += receiver.receive(&bytes[taken..], Fin::End).unwrap();
    }
    assert_eq!(receiver.sink.body, b"0123456789ab");
    assert_eq!(receiver.sink.log, ["0 request POST /", "0 body", "0 end"]);
    let mut stubborn = Receiver::server();
    stubborn.sink.takes = 0;
    let head = request_head("POST", &[]).len() + 2;
    assert_eq!(stubborn.receive(&bytes, Fin::End), Ok(head));
    assert_eq!(stubborn.receive(&bytes[head..], Fin::End), Ok(0), "still nothing");
}

/// A large DATA frame goes on in the slices in which it came.
#[test]
fn content_is_not_copied_or_cut() {
    let mut receiver = Receiver::server();
    let content = vec![7; 100_000];
    let mut bytes = request_head("POST", &[]);
    crate::frame::append_header(&mut bytes, 0x00, 100_000);
    receiver.receive(&bytes, Fin::Open).unwrap();
    for piece in content.chunks(1_400) {
        assert_eq!(receiver.receive(piece, Fin::Open), Ok(piece.len()));
    }
    assert_eq!(receiver.sink.lent, 100_000_usize.div_ceil(1_400));
    assert_eq!(receiver.message.partial.capacity(), 0);
    assert!(receiver.receive(&[], Fin::End).is_ok());
}

/// Unfinished heads of many streams are bounded together, not only each.
#[test]
fn unfinished_heads_are_bounded() {
    let mut receiver = Receiver::server();
    let head = request_head("GET", &[("x", &"!".repeat(1_500))]);
    let mut outcomes = (0..10).map(|_| {
        receiver.message = Message::new(Answers::Other);
        outcome(receiver.receive(&head[..head.len() - 1], Fin::Open))
    });
    assert_eq!(outcomes.by_ref().take_while(|outcome| outcome == "ok").count(), 2);
    assert_eq!(outcomes.next().unwrap(), "stream H3_REQUEST_REJECTED", "what many requests explain ends one");
    drop(outcomes);
    assert_eq!(outcome(receiver.receive(b"", Fin::Open)), "ok");
    assert!(receiver.buffered > 4_000);
}

#[test]
fn deadlines() {
    use base::time::Duration;
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let limit = Some(Duration::from_secs(10));
    let deadlines = Deadlines { head: limit, body: limit, body_bytes: 100 };
    // Opened because a later stream was: never overdue.
    let mut receiver = Receiver::server();
    assert_eq!(receiver.message.is_overdue(at(1_000), &deadlines), None);
    // A head that dribbles.
    let head = request_head("POST", &[]);
    receiver.receive(&head[..1], Fin::Open).unwrap();
    assert_eq!(receiver.message.is_overdue(at(9), &deadlines), None);
    assert!(receiver.message.is_overdue(at(10), &deadlines).is_some());
    // Content: enough in each period, else too slow.
    receiver.receive(&head[1..], Fin::Open).unwrap();
    let mut bytes = Vec::new();
    crate::frame::append_header(&mut bytes, 0x00, 1_000);
    bytes.extend([0; 100]);
    receiver.receive(&bytes, Fin::Open).unwrap();
    assert_eq!(receiver.message.is_overdue(at(10), &deadlines), None);
    receiver.receive(&[0; 99], Fin::Open).unwrap();
    assert_eq!(receiver.message.is_overdue(at(19), &deadlines), None);
    assert!(receiver.message.is_overdue(at(20), &deadlines).is_some());
    // An application that does not take what it is lent is not the peer's fault.
    receiver.sink.takes = 0;
    receiver.receive(&[0; 5], Fin::Open).unwrap();
    assert_eq!(receiver.message.is_overdue(at(100), &deadlines), None);
}

proptest! {
    /// However valid frames are cut into packets, the same reaches the application.
    #[test]
    fn cuts_do_not_matter(
        contents in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..6),
        cuts in proptest::collection::vec(0_usize..500, 0..8),
        takes in 1_usize..40,
    ) {
        let mut bytes = request_head("POST", &[("x-long", &"v".repeat(70))]);
        for content in &contents {
            bytes.extend(frame(0x21, &content[content.len() / 2..]));
            bytes.extend(data(content));
        }
        bytes.extend(headers(&[("x", "y")]));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(bytes.len());
        let mut receiver = Receiver::server();
        receiver.sink.takes = takes;
        let mut start = 0;
        for cut in cuts {
            while start < cut || (cut == bytes.len() && !receiver.message.is_ended()) {
                let fin = if cut == bytes.len() { Fin::End } else { Fin::Open };
                let taken = receiver.receive(&bytes[start..cut], fin);
                start += taken.map_err(|violation| TestCaseError::fail(format!("{violation:?}")))?;
            }
        }
        prop_assert_eq!(&receiver.sink.body, &contents.concat());
        prop_assert_eq!(receiver.sink.log.last().map(String::as_str), Some("0 end"));
        prop_assert_eq!(receiver.buffered, 0);
    }

    /// CVE-2021-43848 and all parsers' fate: any bytes, in any pieces, give an outcome and no panic.
    #[test]
    fn any_bytes_are_handled(
        pieces in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..30),
                Just(request_head("POST", &[])),
                Just(data(b"abc")),
                Just(headers(&[(":status", "200")])),
                (0_u64..16, proptest::collection::vec(any::<u8>(), 0..9)).prop_map(|(ty, payload)| frame(ty, &payload)),
            ],
            0..8,
        ),
        server: bool,
    ) {
        let mut receiver = Receiver::new(if server { Side::Server } else { Side::Client }, Answers::Other);
        for piece in &pieces {
            match receiver.receive(piece, Fin::Open) {
                Ok(taken) => prop_assert_eq!(taken, piece.len()),
                Err(_) => return Ok(()),
            }
            prop_assert!(receiver.buffered <= 4_000);
        }
        let _ = receiver.receive(&[], Fin::End);
    }
}

/// A head is compared with the one before. Deleted, it could be given that one's status in place of its own,
/// or half of a head that did not decode.
#[test]
fn a_head_that_comes_again_is_told_from_another() {
    let mut receiver = Receiver::new(Side::Client, Answers::Other);
    let head = |status: &str| headers(&[(":status", status), ("x", "1")]);
    let broken = frame(0x01, &[0, 0, 0xd9, 0xff, 0xff]);
    for (bytes, expected) in [
        (head("200"), "ok"),
        (head("200"), "ok"),
        (head("404"), "ok"),
        (broken.clone(), "connection QPACK_DECOMPRESSION_FAILED"),
        (head("404"), "ok"),
        (head("200"), "ok"),
    ] {
        receiver.message = Message::new(Answers::Other);
        assert_eq!(outcome(receiver.receive(&bytes, Fin::Open)), expected);
    }
    let statuses: Vec<&str> = receiver.sink.log.iter().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(statuses, ["200", "200", "404", "404", "200"]);
}
