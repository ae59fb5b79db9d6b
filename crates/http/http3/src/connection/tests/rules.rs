//! RFC 9114's rules for a connection, and the attacks of recent years.

use super::*;
use crate::outgoing::{BodyLength, SendError};
use crate::testing::{concat, data, headers, request_head, request_stream};
use bytes::Bytes;

fn ok_fields() -> [(&'static [u8], &'static [u8]); 1] {
    [(b"server", b"tercel")]
}

/// RFC 9114 §6.2.1, RFC 9204 §4.2: three streams, SETTINGS first; streams the peer does not allow yet come later.
#[test]
fn the_streams_of_the_start() {
    for side in [Side::Client, Side::Server] {
        let mut end = End::new(side, Config::server());
        let uni = |index| StreamId::new(side, Dir::Uni, index);
        let control = &end.quic.streams[&uni(0)].bytes;
        assert_eq!(control[..2], [0x00, 0x04]);
        assert_eq!(Settings::parse(&control[3..]).unwrap().max_field_section_size, 65_536);
        assert_eq!(end.quic.streams[&uni(1)].bytes, [0x02]);
        assert_eq!(end.quic.streams[&uni(2)].bytes, [0x03]);
        end.turn();
        assert_eq!(end.quic.streams.len(), 3);
    }
    let mut late = End::new(Side::Client, Config::client());
    late.quic = FakeQuic::new(Side::Client);
    late.connection = Connection::new(Side::Client, Arc::new(Config::client()), Instant::ZERO);
    late.quic.credit = [0, 0];
    late.turn();
    assert!(late.quic.streams.is_empty());
    late.quic.credit = [0, 1];
    late.turn();
    late.quic.credit = [0, 5];
    late.turn();
    assert_eq!(late.quic.streams.len(), 3);
}

/// RFC 9220 §3: a request may name a protocol where the server has said so, and nowhere else.
#[test]
fn extended_connect_is_what_was_announced() {
    let websocket = headers(&[
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "a.example"),
        (":path", "/chat"),
    ]);
    for enable_connect_protocol in [false, true] {
        let config = Config { enable_connect_protocol, ..Config::server() };
        let mut end = End::new(Side::Server, config);
        let control = &end.quic.streams[&StreamId::new(Side::Server, Dir::Uni, 0)].bytes;
        let settings = Settings::parse(&control[3..]).unwrap();
        assert_eq!(settings.enable_connect_protocol, enable_connect_protocol);
        end.receive(request_stream(0), &websocket, Fin::Open);
        end.turn();
        assert_eq!(end.closed_with(), None);
        let seen: &[&str] = if enable_connect_protocol { &["0 request CONNECT /chat"] } else { &[] };
        assert_eq!(end.sink.log, seen);
    }
}

/// RFC 9114 §6.2.1: whatever ends a critical stream, on either end, ends the connection.
#[test]
fn critical_streams_must_stay() {
    for ty in [0x00, 0x02, 0x03] {
        for stream in 1..4 {
            let mut end = End::server();
            let id = if ty == 0x00 { end.peer_uni(0) } else { end.peer_uni(stream) };
            if ty != 0x00 {
                end.receive(id, &[ty], Fin::Open);
            }
            match stream {
                1 => {
                    end.receive(id, &[], Fin::End);
                }
                2 => end.event(Event::StreamReset { id, code: 0x100 }),
                _ => end.event(Event::StopSending { id: StreamId::new(Side::Server, Dir::Uni, 0), code: 0 }),
            }
            assert_eq!(end.closed_with(), Some(Code::CLOSED_CRITICAL_STREAM), "{ty} {stream}");
        }
    }
}

/// The same, when the end comes with the type.
#[test]
fn critical_streams_that_are_no_sooner_open_than_closed() {
    for ty in [0x00, 0x02, 0x03] {
        let mut end = End::new(Side::Server, Config::server());
        end.receive(end.peer_uni(0), &[ty], Fin::End);
        assert_eq!(end.closed_with(), Some(Code::CLOSED_CRITICAL_STREAM));
    }
}

#[test]
fn streams_of_the_wrong_kind() {
    let mut client = End::client();
    client.receive(StreamId::new(Side::Server, Dir::Bidi, 0), b"x", Fin::Open);
    assert_eq!(client.closed_with(), Some(Code::STREAM_CREATION_ERROR));

    let mut server = End::server();
    let id = server.peer_uni(5);
    server.receive(id, &[0x21, 1, 2], Fin::Open);
    assert_eq!(server.closed_with(), None);
    assert_eq!(server.quic.sent(id).stopped, Some(Code::STREAM_CREATION_ERROR));
}

/// RFC 9204 §3.2.2, §4.4: nothing but "capacity 0" and cancellations may come, whatever it announces.
#[test]
fn qpack_streams_without_a_dynamic_table() {
    let table: [(&[u8], Option<Code>); 5] = [
        (&[0x02, 0x20, 0x20], None),
        (&[0x03, 0x40, 0x7f, 0x01], None),
        (&[0x02, 0x3f, 0xe1, 0x1f], Some(Code(0x201))),
        (&[0x02, 0x4f, 0xff, 0xff, 0xff], Some(Code(0x201))),
        (&[0x03, 0x80], Some(Code(0x202))),
    ];
    for (bytes, code) in table {
        let mut end = End::server();
        end.receive(end.peer_uni(1), bytes, Fin::Open);
        assert_eq!(end.closed_with(), code, "{bytes:x?}");
    }
    // CVE-2026-119235: instructions without effect have a budget, continuation bytes an end.
    let mut end = End::server();
    end.receive(end.peer_uni(1), &[0x02], Fin::Open);
    end.receive(end.peer_uni(1), &vec![0x20; 20_000], Fin::Open);
    assert_eq!(end.closed_with(), Some(Code::EXCESSIVE_LOAD));
}

/// A stream's error ends the stream, and the application hears of it only if it heard of the request.
#[test]
fn a_malformed_request_ends_its_stream_only() {
    let mut end = End::server();
    let (bad, cut, good) = (request_stream(0), request_stream(1), request_stream(2));
    end.receive(bad, &request_head("GET", &[("upgrade", "x")]), Fin::End);
    let short = concat(&[&request_head("POST", &[("content-length", "5")]), &data(b"ab")]);
    end.receive(cut, &short, Fin::End);
    end.receive(good, &request_head("GET", &[]), Fin::End);
    end.turn();
    for id in [bad, cut] {
        assert_eq!(end.quic.sent(id).reset, Some(Code::MESSAGE_ERROR));
        assert_eq!(end.quic.sent(id).stopped, Some(Code::MESSAGE_ERROR));
    }
    let log = ["4 request POST /", "4 body", "4 aborted: H3_MESSAGE_ERROR", "8 request GET /", "8 end"];
    assert_eq!(end.sink.take(), log);
    assert_eq!(end.closed_with(), None);
    assert_eq!(end.connection.open_exchanges(), 1);
    // What is still on its way is discarded, also by a connection that has forgotten the stream.
    assert_eq!(end.receive(bad, &data(b"late"), Fin::End), 6);
    let refused = end.connection.respond_with(&mut end.quic, bad, 200, ok_fields(), BodyLength::Empty);
    assert_eq!(refused, Err(SendError::NoSuchExchange));
}

/// RFC 9114 §4.2.2: too large a head is answered with 431, not with the connection's end.
#[test]
fn a_head_that_is_too_large() {
    let mut end = End::server();
    let head = request_head("GET", &[("x", &"!".repeat(70_000))]);
    end.receive(request_stream(0), &head[..1_000], Fin::Open);
    end.turn();
    let sent = end.quic.sent(request_stream(0));
    assert!(sent.finished);
    assert_eq!(sent.stopped, Some(Code::NO_ERROR));
    assert_eq!(sent.bytes, headers(&[(":status", "431"), ("content-length", "0")]));
    assert_eq!((end.connection.open_exchanges(), end.connection.buffered), (0, 0));
    // CVE-2025-64702: a small section that decodes to a large one is no different.
    let mut section = vec![0x00, 0x00];
    section.extend([0xc0 | 58; 60_000]);
    end.receive(request_stream(1), &frame(0x01, &section), Fin::End);
    end.turn();
    assert!(end.quic.sent(request_stream(1)).finished);
    assert_eq!((end.sink.take().len(), end.closed_with()), (0, None));
}

/// CVE-2026-40898: the limit holds for trailers too.
#[test]
fn trailers_that_are_too_large() {
    let mut end = End::server();
    let large = headers(&[("x", &"!".repeat(70_000))]);
    end.receive(request_stream(0), &concat(&[&request_head("POST", &[]), &data(b"a"), &large]), Fin::End);
    assert_eq!(end.sink.take(), ["0 request POST /", "0 body", "0 aborted: H3_REQUEST_CANCELLED"]);
    assert_eq!(end.closed_with(), None);
    assert_eq!(end.quic.sent(request_stream(0)).reset, Some(Code::REQUEST_CANCELLED));
}

/// Google quiche, HAProxy: control frames that change nothing, at line rate, keep nothing and have a budget.
#[test]
fn floods_of_control_frames() {
    for useless in [frame(0x07, &[0]), frame(0x0d, &[5]), frame(0x21, b"x"), frame(0x0f_0700, &[0x00, b'i'])]
    {
        let mut end = End::server();
        let flood = useless.repeat(9_000);
        end.control(&flood);
        assert_eq!(end.closed_with(), None);
        end.control(&flood);
        assert_eq!(end.closed_with(), Some(Code::EXCESSIVE_LOAD), "{useless:x?}");
    }
    // Streams of unknown type, ended at once.
    let mut end = End::server();
    let mut index = 0;
    while end.connection.failure.is_none() && index < 20_000 {
        index += 1;
        end.receive(end.peer_uni(index), &[0x21], Fin::End);
    }
    assert_eq!(end.closed_with(), Some(Code::EXCESSIVE_LOAD));
}

#[test]
fn a_withdrawn_request() {
    let mut end = End::server();
    let (unseen, seen, answered) = (request_stream(0), request_stream(1), request_stream(2));
    end.receive(unseen, &request_head("GET", &[])[..3], Fin::Open);
    end.receive(seen, &request_head("POST", &[]), Fin::Open);
    end.receive(answered, &request_head("POST", &[]), Fin::Open);
    end.connection.respond_whole(&mut end.quic, answered, 200, ok_fields(), b"done").unwrap();
    for id in [unseen, seen, answered] {
        end.event(Event::StreamReset { id, code: Code::REQUEST_CANCELLED.0 });
    }
    assert_eq!(end.quic.sent(unseen).reset, Some(Code::REQUEST_REJECTED));
    assert_eq!(end.quic.sent(seen).reset, Some(Code::REQUEST_CANCELLED));
    assert_eq!(end.quic.sent(answered).reset, None, "a complete response stands");
    let cancelled = "aborted by peer: H3_REQUEST_CANCELLED";
    assert_eq!(
        end.sink.take(),
        [
            "4 request POST /".into(),
            "8 request POST /".into(),
            format!("4 {cancelled}"),
            format!("8 {cancelled}")
        ]
    );
    assert_eq!(end.connection.open_exchanges(), 0);

    // Stopped: what is being sent ends; the request may still arrive.
    let stopped = request_stream(3);
    end.receive(stopped, &request_head("POST", &[]), Fin::Open);
    end.event(Event::StopSending { id: stopped, code: Code::REQUEST_CANCELLED.0 });
    end.receive(stopped, &data(b"x"), Fin::End);
    let log = ["12 request POST /", "12 stop: H3_REQUEST_CANCELLED", "12 body", "12 end"];
    assert_eq!(end.sink.take(), log);
    assert_eq!(end.connection.open_exchanges(), 0);
}

/// CVE-2023-44487 by way of HTTP/3: requests and their withdrawal at line rate. The budget refills with time.
#[test]
fn rapid_reset_has_a_budget() {
    for stop in [false, true] {
        let mut end = End::server();
        let mut index = 0;
        let mut withdraw = |end: &mut End| {
            let id = request_stream(index);
            index += 1;
            end.receive(id, &request_head("GET", &[]), Fin::Open);
            if stop {
                end.event(Event::StopSending { id, code: 0x10c });
            }
            end.event(Event::StreamReset { id, code: 0x10c });
        };
        (0..1_000).for_each(|_| withdraw(&mut end));
        assert_eq!(end.closed_with(), None);
        end.pass(Duration::from_secs(1));
        (0..200).for_each(|_| withdraw(&mut end));
        assert_eq!(end.closed_with(), None);
        withdraw(&mut end);
        assert_eq!(end.closed_with(), Some(Code::EXCESSIVE_LOAD));
        assert!(end.connection.actions.is_empty());
    }
}

/// After the end nothing reaches the application, and the transport is closed once.
#[test]
fn nothing_after_a_connection_error() {
    let mut end = End::server();
    let bytes = concat(&[&request_head("GET", &[]), &frame(0x04, &[])]);
    assert_eq!(end.receive(request_stream(0), &bytes, Fin::Open), bytes.len());
    assert_eq!(
        end.receive(request_stream(1), &request_head("GET", &[]), Fin::End),
        request_head("GET", &[]).len()
    );
    end.event(Event::StreamReset { id: request_stream(0), code: 0 });
    assert_eq!(end.closed_with(), Some(Code::FRAME_UNEXPECTED));
    end.turn();
    assert_eq!(end.sink.take(), ["0 request GET /"]);
}

/// RFC 9114 §5.2, from the server's end.
#[test]
fn a_server_leaves() {
    let mut end = End::server();
    let control = StreamId::new(Side::Server, Dir::Uni, 0);
    end.receive(request_stream(0), &request_head("GET", &[]), Fin::End);
    let start = end.quic.sent(control).bytes.len();
    end.connection.goaway(&mut end.quic, Goaway::Notice);
    end.receive(request_stream(1), &request_head("GET", &[]), Fin::End);
    end.connection.goaway(&mut end.quic, Goaway::Final);
    end.connection.goaway(&mut end.quic, Goaway::Notice);
    let expected =
        concat(&[&[0x07, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc], &[0x07, 0x01, 0x08]]);
    assert_eq!(end.quic.sent(control).bytes[start..], expected);
    // Requests that are too late are rejected, those before still answered.
    end.receive(request_stream(3), &request_head("GET", &[]), Fin::End);
    end.turn();
    for index in [2, 3] {
        assert_eq!(end.quic.sent(request_stream(index)).reset, Some(Code::REQUEST_REJECTED));
    }
    assert_eq!(end.connection.open_exchanges(), 2);
    for index in [0, 1] {
        let id = request_stream(index);
        end.connection.respond_with(&mut end.quic, id, 200, ok_fields(), BodyLength::Empty).unwrap();
    }
    assert_eq!(end.connection.open_exchanges(), 0);
    end.connection.close(&mut end.quic, end.now);
    assert_eq!(end.closed_with(), Some(Code::NO_ERROR));
}

/// RFC 9114 §5.2, from the client's end.
#[test]
fn a_client_hears_that_the_server_leaves() {
    let mut end = End::client();
    let head = http::Request::get("https://a.example/").body(()).unwrap().into_parts().0;
    for index in 0..4 {
        let id = end.connection.request(&mut end.quic, &head, BodyLength::Empty).unwrap();
        assert_eq!(id, request_stream(index));
    }
    end.control(&frame(0x07, &[8]));
    end.turn();
    let rejected = "aborted by peer: H3_REQUEST_REJECTED";
    assert_eq!(end.sink.take(), [format!("8 {rejected}"), format!("12 {rejected}"), "goaway".into()]);
    assert_eq!(end.quic.sent(request_stream(3)).reset, Some(Code::REQUEST_CANCELLED));
    assert_eq!(end.connection.open_exchanges(), 2);
    let refused = end.connection.request(&mut end.quic, &head, BodyLength::Empty);
    assert_eq!(refused, Err(RequestError::GoingAway));
    end.control(&frame(0x07, &[4]));
    assert_eq!(end.sink.take(), [format!("4 {rejected}")]);
    end.control(&frame(0x07, &[8]));
    assert_eq!(end.closed_with(), Some(Code::ID_ERROR));
}

/// RFC 9218 §7, and PRIORITY_UPDATE floods: what is kept for streams to come has an end.
#[test]
fn priorities() {
    let mut end = End::server();
    let update = |id: u64, text: &[u8]| {
        let mut payload = Vec::new();
        wire::varint::append(&mut payload, id);
        payload.extend_from_slice(text);
        frame(0x0f_0700, &payload)
    };
    end.control(&update(4, b"u=6"));
    end.control(&update(4, b"u=1"));
    end.receive(request_stream(0), &request_head("GET", &[("priority", "u=5, i")]), Fin::End);
    // RFC 9218 §7: what PRIORITY_UPDATE said before overrides the field.
    end.receive(request_stream(1), &request_head("GET", &[("priority", "u=7")]), Fin::End);
    end.control(&update(0, b"u=0"));
    end.turn();
    let urgency = |end: &mut End, index| end.quic.sent(request_stream(index)).priority.map(|p| p.urgency);
    assert_eq!((urgency(&mut end, 0), urgency(&mut end, 1)), (Some(0), Some(1)));
    for index in 10..5_000 {
        end.control(&update(index * 4, b"u=1"));
    }
    assert_eq!(end.connection.early_priorities.len(), 100);
    assert_eq!(end.closed_with(), None);
    for index in 10..10_000 {
        end.control(&update(index * 4, b"u=1"));
    }
    assert_eq!(end.closed_with(), Some(Code::EXCESSIVE_LOAD));
}

/// RFC 9000 §3.2: a stream opens those below it; data may come in any order; none is looked for for ever.
#[test]
fn streams_in_any_order() {
    let mut end = End::server();
    end.receive(request_stream(5), &request_head("GET", &[]), Fin::End);
    end.receive(request_stream(2), &request_head("GET", &[]), Fin::End);
    end.event(Event::StreamReset { id: request_stream(4), code: 0x10c });
    end.event(Event::StreamReset { id: request_stream(9), code: 0x10c });
    assert_eq!(end.sink.take(), ["20 request GET /", "20 end", "8 request GET /", "8 end"]);
    end.pass(Duration::from_secs(100));
    assert_eq!(end.connection.open_exchanges(), 8);
    assert_eq!(end.closed_with(), None);
}

/// Slowloris: bytes dribbled into a head end it in time, wherever they stop.
#[test]
fn slow_requests_are_given_up() {
    let mut end = End::server();
    let head = request_head("POST", &[("x-long", "a value that takes its time")]);
    end.receive(request_stream(0), &head[..5], Fin::Open);
    end.receive(request_stream(1), &head, Fin::Open);
    assert!(end.connection.next_timeout().is_some());
    for second in 0..29 {
        end.pass(Duration::from_secs(1));
        end.receive(request_stream(0), &head[second + 5..second + 6], Fin::Open);
    }
    assert_eq!(end.quic.sent(request_stream(0)).reset, None);
    end.pass(Duration::from_secs(9));
    assert_eq!(end.quic.sent(request_stream(0)).reset, Some(Code::REQUEST_INCOMPLETE));
    assert_eq!(end.quic.sent(request_stream(1)).reset, None);
    end.pass(Duration::from_secs(30));
    assert_eq!(end.quic.sent(request_stream(1)).reset, Some(Code::REQUEST_INCOMPLETE));
    assert_eq!(end.sink.take(), ["4 request POST /", "4 aborted: H3_REQUEST_INCOMPLETE"]);
    assert_eq!((end.connection.buffered, end.connection.next_timeout()), (0, None));
}

/// RFC 9114 §4.2.2: we send no field section that the peer said it does not take.
#[test]
fn the_peers_limit_on_heads() {
    let mut end = End::new(Side::Client, Config::client());
    end.control(&frame(0x04, &[0x06, 0x41, 0x00]));
    let head = |value: &str| {
        http::Request::get("https://a.example/").header("x", value).body(()).unwrap().into_parts().0
    };
    assert!(end.connection.request(&mut end.quic, &head("1"), BodyLength::Empty).is_ok());
    let refused = end.connection.request(&mut end.quic, &head(&"1".repeat(100)), BodyLength::Empty);
    assert_eq!(refused, Err(RequestError::HeadTooLarge));
    assert_eq!(end.connection.open_exchanges(), 1);
    end.quic.credit = [0, 0];
    let refused = end.connection.request(&mut end.quic, &head("1"), BodyLength::Empty);
    assert_eq!(refused, Err(RequestError::NoStream));
}

/// The hot path of sending: one frame header for the whole content, which is handed over as it is.
#[test]
fn content_of_known_length_is_one_frame() {
    let mut end = End::server();
    let id = request_stream(0);
    end.receive(id, &request_head("GET", &[]), Fin::End);
    let content = Bytes::from(vec![9; 100_000]);
    let length = BodyLength::Known(content.len() as u64);
    end.connection.respond_with(&mut end.quic, id, 200, ok_fields(), length).unwrap();
    let mut rest = content.clone();
    while !rest.is_empty() {
        let piece = rest.split_to(rest.len().min(30_000));
        end.connection.write_body(&mut end.quic, id, piece).unwrap();
    }
    let too_much = end.connection.write_body(&mut end.quic, id, Bytes::from_static(b"x"));
    assert_eq!(too_much, Err(SendError::WrongLength));
    end.connection.finish(&mut end.quic, id).unwrap();
    let sent = end.quic.sent(id);
    assert_eq!((sent.writes, sent.finished), (5, true));
    let expected = concat(&[&headers(&[(":status", "200"), ("server", "tercel")]), &data(&content)]);
    assert!(sent.bytes == expected);
    assert_eq!(end.connection.open_exchanges(), 0);
}

#[test]
fn the_verbs_refuse_what_is_out_of_order() {
    let mut end = End::server();
    let id = request_stream(0);
    end.receive(id, &request_head("GET", &[]), Fin::End);
    let body = Bytes::from_static(b"ab");
    let Connection { .. } = &end.connection;
    assert_eq!(end.connection.write_body(&mut end.quic, id, body.clone()), Err(SendError::OutOfOrder));
    assert_eq!(end.connection.finish(&mut end.quic, id), Err(SendError::OutOfOrder));
    end.connection.respond_interim(&mut end.quic, id, 103, ok_fields()).unwrap();
    end.connection.respond_with(&mut end.quic, id, 200, ok_fields(), BodyLength::Known(4)).unwrap();
    let again = end.connection.respond_with(&mut end.quic, id, 200, ok_fields(), BodyLength::Empty);
    assert_eq!(again, Err(SendError::OutOfOrder));
    assert_eq!(end.connection.respond_interim(&mut end.quic, id, 103, []), Err(SendError::OutOfOrder));
    end.connection.write_body(&mut end.quic, id, body.clone()).unwrap();
    assert_eq!(end.connection.finish(&mut end.quic, id), Err(SendError::WrongLength));
    end.connection.cancel(&mut end.quic, id, Code::INTERNAL_ERROR);
    assert_eq!(end.quic.sent(id).reset, Some(Code::INTERNAL_ERROR));
    assert_eq!(end.connection.finish(&mut end.quic, id), Err(SendError::NoSuchExchange));
    assert_eq!(end.connection.open_exchanges(), 0);
}

/// A head that is sent often is encoded once.
#[test]
fn an_encoded_head_is_the_head() {
    let mut end = End::server();
    let head = EncodedHead::response(200, ok_fields(), BodyLength::Known(2));
    let mut sent = Vec::new();
    for index in 0..4 {
        let id = request_stream(index);
        end.receive(id, &request_head("GET", &[]), Fin::End);
        match index {
            0 => end.connection.respond_encoded(&mut end.quic, id, &head).unwrap(),
            1 => end
                .connection
                .respond_with(&mut end.quic, id, 200, ok_fields(), BodyLength::Known(2))
                .unwrap(),
            2 => end.connection.respond_whole(&mut end.quic, id, 200, ok_fields(), b"ab").unwrap(),
            _ => {
                let content = Bytes::from_static(b"abc");
                let long = end.connection.respond_at_once(&mut end.quic, id, &head, content.clone());
                assert_eq!(long, Err(SendError::WrongLength));
                end.connection.respond_at_once(&mut end.quic, id, &head, content.slice(..2)).unwrap();
                let again = end.connection.respond_at_once(&mut end.quic, id, &head, content.slice(..2));
                assert_eq!(again, Err(SendError::NoSuchExchange));
            }
        }
        assert_eq!(end.quic.sent(id).finished, index >= 2);
        if index < 2 {
            end.connection.write_body(&mut end.quic, id, Bytes::from_static(b"ab")).unwrap();
            end.connection.finish(&mut end.quic, id).unwrap();
        }
        sent.push(core::mem::take(&mut end.quic.sent(id).bytes));
    }
    assert!(sent.windows(2).all(|pair| pair[0] == pair[1]));
}

/// RFC 9114 §4.1: a server that has answered needs no more of the request.
#[test]
fn the_rest_of_a_request_may_not_matter() {
    let mut end = End::server();
    let id = request_stream(0);
    end.receive(id, &request_head("POST", &[]), Fin::Open);
    end.connection.respond_whole(&mut end.quic, id, 413, [], b"").unwrap();
    end.connection.stop_reading(&mut end.quic, id);
    assert_eq!(end.quic.sent(id).stopped, Some(Code::NO_ERROR));
    assert_eq!(end.receive(id, &data(b"rest"), Fin::Open), 6);
    end.event(Event::StreamReset { id, code: Code::NO_ERROR.0 });
    assert_eq!(end.sink.take(), ["0 request POST /"]);
    assert_eq!(end.connection.open_exchanges(), 0);
}
