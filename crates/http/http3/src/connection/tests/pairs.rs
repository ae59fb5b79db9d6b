//! A client and a server against each other, with a pipe between them that cuts bytes anywhere.

use super::*;
use crate::outgoing::{BodyLength, SendError};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What of a stream has been carried over.
#[derive(Default)]
struct Carried {
    bytes: usize,
    finished: bool,
    reset: bool,
    stopped: bool,
}

struct Pair {
    client: End,
    server: End,
    carried: [BTreeMap<StreamId, Carried>; 2],
}

impl Pair {
    fn new() -> Pair {
        Pair {
            client: End::new(Side::Client, Config::client()),
            server: End::new(Side::Server, Config::server()),
            carried: Default::default(),
        }
    }

    /// Carries over everything, in pieces of at most `most` bytes, until nothing moves.
    fn settle(&mut self, most: usize) {
        loop {
            self.client.turn();
            self.server.turn();
            let moved = carry(&mut self.client, &mut self.server, &mut self.carried[0], most)
                | carry(&mut self.server, &mut self.client, &mut self.carried[1], most);
            if !moved {
                return;
            }
        }
    }
}

fn carry(from: &mut End, to: &mut End, carried: &mut BTreeMap<StreamId, Carried>, most: usize) -> bool {
    let mut moved = false;
    for (id, sent) in &from.quic.streams {
        let done = carried.entry(*id).or_default();
        if let (Some(code), false) = (sent.stopped, done.stopped) {
            (done.stopped, moved) = (true, true);
            to.quic.events.push_back(Event::StopSending { id: *id, code: code.0 });
            // The transport answers by itself. RFC 9000 §3.5.
            let answer = to.quic.sent(*id);
            answer.reset = answer.reset.or((!answer.finished).then_some(code));
        }
        if let (Some(code), false) = (sent.reset, done.reset) {
            (done.reset, moved) = (true, true);
            to.quic.events.push_back(Event::StreamReset { id: *id, code: code.0 });
        }
        if done.reset || done.finished || (done.bytes == sent.bytes.len() && !sent.finished) {
            continue;
        }
        let end = sent.bytes.len().min(done.bytes + most);
        let fin = if sent.finished && end == sent.bytes.len() { Fin::End } else { Fin::Open };
        let piece = &sent.bytes[done.bytes..end];
        let taken = to.connection.on_stream_data(&mut to.sink, *id, piece, fin);
        done.bytes += taken;
        done.finished = fin == Fin::End && taken == piece.len();
        moved = true;
    }
    moved
}

fn post(uri: &str) -> http::request::Parts {
    http::Request::post(uri).header("user-agent", "test").body(()).unwrap().into_parts().0
}

#[test]
fn a_request_and_its_response() {
    let mut pair = Pair::new();
    let head = post("https://a.example/x?y");
    let id = pair.client.connection.request(&mut pair.client.quic, &head, BodyLength::Unknown).unwrap();
    for piece in ["one", "two"] {
        let piece = Bytes::from_static(piece.as_bytes());
        pair.client.connection.write_body(&mut pair.client.quic, id, piece).unwrap();
    }
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-sum", "6".parse().unwrap());
    pair.client.connection.write_trailers(&mut pair.client.quic, id, &trailers).unwrap();
    pair.settle(7);
    assert_eq!(pair.server.sink.take(), ["0 request POST /x?y", "0 body", "0 trailers 1", "0 end"]);
    assert_eq!(pair.server.sink.body, b"onetwo");

    let head =
        http::Response::builder().status(200).header("content-length", 5).body(()).unwrap().into_parts().0;
    let server = &mut pair.server;
    server.connection.respond_interim(&mut server.quic, id, 103, [(&b"link"[..], &b"</a>"[..])]).unwrap();
    server.connection.respond(&mut server.quic, id, &head, BodyLength::Known(5)).unwrap();
    server.connection.write_body(&mut server.quic, id, Bytes::from_static(b"hello")).unwrap();
    server.connection.finish(&mut server.quic, id).unwrap();
    pair.settle(3);
    assert_eq!(pair.client.sink.take(), ["0 response 103", "0 response 200", "0 body", "0 end"]);
    assert_eq!(pair.client.sink.body, b"hello");
    for end in [&mut pair.client, &mut pair.server] {
        assert_eq!((end.connection.open_exchanges(), end.closed_with()), (0, None));
        assert_eq!(end.connection.peer_settings().unwrap().max_field_section_size, 65_536);
    }
}

#[test]
fn responses_to_head_have_no_content() {
    let mut pair = Pair::new();
    let head = http::Request::head("https://a.example/").body(()).unwrap().into_parts().0;
    let id = pair.client.connection.request(&mut pair.client.quic, &head, BodyLength::Empty).unwrap();
    pair.settle(100);
    let fields = [(&b"content-length"[..], &b"1000"[..])];
    let server = &mut pair.server;
    server.connection.respond_with(&mut server.quic, id, 200, fields, BodyLength::Empty).unwrap();
    pair.settle(100);
    assert_eq!(pair.client.sink.take(), ["0 response 200", "0 end"]);
}

/// 100,000 requests on one connection leave nothing behind.
#[test]
fn many_requests_leave_nothing_behind() {
    let mut pair = Pair::new();
    let head = post("https://a.example/");
    for round in 0..1_000 {
        let ids: Vec<StreamId> = (0..100)
            .map(|_| pair.client.connection.request(&mut pair.client.quic, &head, BodyLength::Empty).unwrap())
            .collect();
        carry(&mut pair.client, &mut pair.server, &mut pair.carried[0], usize::MAX);
        for id in &ids {
            let server = &mut pair.server;
            server.connection.respond_whole(&mut server.quic, *id, 200, [], b"ok").unwrap();
        }
        carry(&mut pair.server, &mut pair.client, &mut pair.carried[1], usize::MAX);
        for end in [&mut pair.client, &mut pair.server] {
            end.quic.streams.retain(|id, _| id.dir() == Dir::Uni);
            assert_eq!(end.connection.open_exchanges(), 0, "{round}");
            end.sink.take();
        }
        pair.carried.iter_mut().for_each(|carried| carried.retain(|id, _| id.dir() == Dir::Uni));
    }
    assert_eq!(pair.server.connection.exchanges.next(), 100_000);
}

/// What two correct ends may do to each other, in any order. No order may make either see an error of the connection.
#[derive(Clone, Debug)]
enum Step {
    Request { known: bool },
    ClientWrites { which: usize, len: usize },
    ClientFinishes { which: usize },
    ClientCancels { which: usize },
    ServerResponds { which: usize, known: Option<u16> },
    ServerWrites { which: usize, len: usize },
    ServerFinishes { which: usize },
    ServerCancels { which: usize },
    ServerStopsReading { which: usize },
    Settle { most: usize },
    ClientTakes { most: usize },
    ServerLeaves,
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0_usize..4;
    prop_oneof![
        3 => any::<bool>().prop_map(|known| Step::Request { known }),
        4 => (which.clone(), 0_usize..2_000).prop_map(|(which, len)| Step::ClientWrites { which, len }),
        2 => which.clone().prop_map(|which| Step::ClientFinishes { which }),
        1 => which.clone().prop_map(|which| Step::ClientCancels { which }),
        3 => (which.clone(), proptest::option::of(0_u16..2_000)).prop_map(|(which, known)| Step::ServerResponds { which, known }),
        4 => (which.clone(), 0_usize..2_000).prop_map(|(which, len)| Step::ServerWrites { which, len }),
        2 => which.clone().prop_map(|which| Step::ServerFinishes { which }),
        1 => which.clone().prop_map(|which| Step::ServerCancels { which }),
        1 => which.prop_map(|which| Step::ServerStopsReading { which }),
        4 => (1_usize..600).prop_map(|most| Step::Settle { most }),
        1 => (1_usize..600).prop_map(|most| Step::ClientTakes { most }),
        1 => Just(Step::ServerLeaves),
    ]
}

fn apply(pair: &mut Pair, step: &Step, ids: &mut Vec<StreamId>) {
    // The most recent few streams, so that steps meet on them.
    let pick = |which: usize| ids.iter().rev().nth(which).copied().unwrap_or(StreamId::from_u64(0));
    let bytes = |len: usize| Bytes::from(vec![b'x'; len]);
    let (client, server) = (&mut pair.client, &mut pair.server);
    let _: Result<(), SendError> = match *step {
        Step::Request { known } => {
            let length = if known { BodyLength::Known(1_000) } else { BodyLength::Unknown };
            let id = client.connection.request(&mut client.quic, &post("https://a.example/"), length);
            ids.extend(id.ok());
            Ok(())
        }
        Step::ClientWrites { which, len } => {
            client.connection.write_body(&mut client.quic, pick(which), bytes(len))
        }
        Step::ClientFinishes { which } => client.connection.finish(&mut client.quic, pick(which)),
        Step::ClientCancels { which } => {
            client.connection.cancel(&mut client.quic, pick(which), Code::REQUEST_CANCELLED);
            Ok(())
        }
        Step::ServerResponds { which, known } => {
            let length = known.map_or(BodyLength::Unknown, |length| BodyLength::Known(length.into()));
            server.connection.respond_with(&mut server.quic, pick(which), 200, [], length)
        }
        Step::ServerWrites { which, len } => {
            server.connection.write_body(&mut server.quic, pick(which), bytes(len))
        }
        Step::ServerFinishes { which } => server.connection.finish(&mut server.quic, pick(which)),
        Step::ServerCancels { which } => {
            server.connection.cancel(&mut server.quic, pick(which), Code::REQUEST_CANCELLED);
            Ok(())
        }
        Step::ServerStopsReading { which } => {
            server.connection.stop_reading(&mut server.quic, pick(which));
            Ok(())
        }
        Step::Settle { most } => {
            pair.settle(most);
            Ok(())
        }
        Step::ClientTakes { most } => {
            client.sink.takes = most;
            Ok(())
        }
        Step::ServerLeaves => {
            server.connection.goaway(&mut server.quic, Goaway::Final);
            Ok(())
        }
    };
}

proptest! {
    #[test]
    fn correct_ends_never_find_fault_with_each_other(steps in proptest::collection::vec(step(), 1..60)) {
        let mut pair = Pair::new();
        let mut ids = Vec::new();
        for step in &steps {
            apply(&mut pair, step, &mut ids);
        }
        pair.client.sink.takes = usize::MAX;
        pair.settle(1_000);
        prop_assert_eq!(pair.client.connection.failure(), None);
        prop_assert_eq!(pair.server.connection.failure(), None);
        // Every message either ended or was aborted, at most once.
        for end in [&mut pair.client, &mut pair.server] {
            for id in &ids {
                let prefix = format!("{} ", id.as_u64());
                let ends = end.sink.log.iter().filter(|line| {
                    line.strip_prefix(&prefix).is_some_and(|rest| rest == "end" || rest.starts_with("aborted"))
                });
                prop_assert!(ends.count() <= 1, "{:?}", end.sink.log);
            }
        }
        // Given up by both ends, nothing is left.
        for id in ids {
            pair.client.connection.cancel(&mut pair.client.quic, id, Code::REQUEST_CANCELLED);
            pair.server.connection.cancel(&mut pair.server.quic, id, Code::REQUEST_CANCELLED);
        }
        pair.settle(1_000);
        prop_assert_eq!(pair.client.connection.open_exchanges(), 0);
        prop_assert_eq!(pair.server.connection.open_exchanges(), 0);
        prop_assert_eq!((pair.client.connection.buffered, pair.server.connection.buffered), (0, 0));
    }
}
