//! Work that the number of requests explains is no flood, and discarded content has limits.

use super::*;
use crate::outgoing::BodyLength;
use crate::testing::{concat, data, headers, request_head, request_stream};

fn ok_fields() -> [(&'static [u8], &'static [u8]); 1] {
    [(b"server", b"tercel")]
}

/// Issue 10: h2o sends one Stream Cancellation for each request, and after 10,000 the connection ended. What the number of
/// requests explains is no flood.
#[test]
fn a_cancellation_for_each_request_is_no_flood() {
    let mut end = End::client();
    let decoder = end.peer_uni(1);
    end.receive(decoder, &[0x03], Fin::Open);
    let head = http::Request::get("https://a.example/").body(()).unwrap().into_parts().0;
    let answer = headers(&[(":status", "200")]);
    let interim = headers(&[(":status", "103")]);
    for _ in 0..30_000 {
        let id = end.connection.request(&mut end.quic, &head, BodyLength::Empty).unwrap();
        end.receive(id, &concat(&[&interim, &answer, &frame(0x21, b"x")]), Fin::End);
        end.receive(decoder, &[0x40], Fin::Open);
        end.sink.log.clear();
        end.quic.streams.remove(&id);
    }
    assert_eq!(end.closed_with(), None);
    // Without requests it is one.
    end.receive(decoder, &[0x40; 10_001], Fin::Open);
    assert_eq!(end.closed_with(), Some(Code::EXCESSIVE_LOAD));
}

/// The same at a server: each request comes with a PRIORITY_UPDATE, an unknown frame, an empty DATA frame and a cancellation.
#[test]
fn what_comes_with_each_request_is_no_flood() {
    let mut end = End::server();
    let decoder = end.peer_uni(1);
    end.receive(decoder, &[0x03], Fin::Open);
    let request = concat(&[&request_head("GET", &[]), &frame(0x21, b"x"), &data(b"")]);
    for index in 0..8_000 {
        let id = request_stream(index);
        let mut update = Vec::new();
        wire::varint::append(&mut update, id.as_u64());
        end.control(&frame(0x0f_0700, &concat(&[&update, b"u=1"])));
        end.receive(id, &request, Fin::End);
        end.connection.respond_whole(&mut end.quic, id, 200, ok_fields(), b"ok").unwrap();
        end.receive(decoder, &[0x40], Fin::Open);
        end.turn();
        end.sink.log.clear();
        end.quic.streams.remove(&id);
    }
    assert_eq!(end.closed_with(), None);
}

/// A proxy brings the requests of many users, some of which give up: each that was answered explains one.
#[test]
fn answered_requests_explain_withdrawn_ones() {
    let mut end = End::server();
    for index in 0..4_000 {
        let (answered, withdrawn) = (request_stream(2 * index), request_stream(2 * index + 1));
        end.receive(answered, &request_head("GET", &[]), Fin::End);
        end.connection.respond_whole(&mut end.quic, answered, 200, ok_fields(), b"ok").unwrap();
        end.receive(withdrawn, &request_head("GET", &[]), Fin::Open);
        end.event(Event::StreamReset { id: withdrawn, code: Code::REQUEST_CANCELLED.0 });
        end.sink.log.clear();
    }
    assert_eq!(end.closed_with(), None);
}

/// Priorities are hints: more than a turn can heed end nothing.
#[test]
fn many_priorities_in_a_turn_end_nothing() {
    let mut end = End::server();
    for index in 0..6_000 {
        end.receive(request_stream(index), &request_head("GET", &[("priority", "u=1")]), Fin::End);
    }
    assert_eq!(end.closed_with(), None);
}

/// RFC 9114 §4.1: the rest of an answered request may be thrown away, up to a limit, and its client is then asked to stop.
#[test]
fn what_is_discarded_has_a_limit() {
    let mut end = End::server();
    let post = |end: &mut End, index| {
        let id = request_stream(index);
        end.receive(id, &request_head("POST", &[("content-length", "100000")]), Fin::Open);
        end.connection.respond_whole(&mut end.quic, id, 413, [], b"").unwrap();
        end.connection.discard(id, 10_000);
        id
    };
    let whole = post(&mut end, 0);
    end.receive(whole, &frame(0x00, &[0; 9_000]), Fin::Open);
    end.receive(whole, &[], Fin::End);
    end.turn();
    assert_eq!(end.quic.sent(whole).stopped, None);
    assert_eq!(end.connection.open_exchanges(), 0);
    let long = post(&mut end, 1);
    end.receive(long, &frame(0x00, &[0; 9_000]), Fin::Open);
    end.turn();
    assert_eq!((end.quic.sent(long).stopped, end.connection.open_exchanges()), (None, 1));
    end.receive(long, &[0; 9_000], Fin::Open);
    end.turn();
    assert_eq!(end.quic.sent(long).stopped, Some(Code::NO_ERROR));
    assert_eq!(end.connection.open_exchanges(), 0);
    // Too slow: the response stands.
    let slow = post(&mut end, 2);
    end.pass(Duration::from_secs(30));
    end.receive(slow, &[0; 100], Fin::Open);
    end.pass(Duration::from_secs(45));
    let sent = end.quic.sent(slow);
    assert_eq!((sent.stopped, sent.reset), (Some(Code::NO_ERROR), None));
    // The client gives up sending, not the response.
    let reset = post(&mut end, 3);
    end.event(Event::StreamReset { id: reset, code: Code::REQUEST_CANCELLED.0 });
    let sent = end.quic.sent(reset);
    assert_eq!((sent.stopped, sent.reset), (None, None));
    assert_eq!((end.connection.open_exchanges(), end.closed_with()), (0, None));
    let log = ["0 request POST /", "4 request POST /", "8 request POST /", "12 request POST /"];
    assert_eq!(end.sink.take(), log, "nothing of the content is lent");
}

/// Issue 10: trailers without the end of the stream held an exchange for ever.
#[test]
fn trailers_without_an_end_have_a_deadline() {
    let mut end = End::server();
    let request = concat(&[&request_head("POST", &[]), &data(b"a"), &headers(&[("x", "y")])]);
    end.receive(request_stream(0), &request, Fin::Open);
    end.pass(Duration::from_secs(50));
    assert_eq!(end.connection.open_exchanges(), 1);
    end.pass(Duration::from_secs(25));
    assert_eq!(end.quic.sent(request_stream(0)).reset, Some(Code::REQUEST_INCOMPLETE));
    assert_eq!(end.connection.open_exchanges(), 0);
}

/// RFC 9114 §4.2.2: not even a refusal passes the peer's limit; its stream ends all the same.
#[test]
fn a_refusal_that_does_not_fit_is_a_reset() {
    let mut end = End::new(Side::Server, Config::server());
    end.control(&frame(0x04, &[0x06, 0x20]));
    let head = request_head("GET", &[("x", &"!".repeat(70_000))]);
    end.receive(request_stream(0), &head, Fin::End);
    end.turn();
    let sent = end.quic.sent(request_stream(0));
    assert_eq!((sent.reset, sent.finished), (Some(Code::EXCESSIVE_LOAD), false));
    assert_eq!(end.connection.open_exchanges(), 0);
}
