//! The server on HTTP/3 as its clients see it, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod early;
mod low;
mod service;
mod wire;

use base::time::Duration;
use bytes::Bytes;
use http3::{Abort, BodyLength, Code, MessageSink, ResponseHead, Trailers};
use server::access_log::{AccessLog, Target};
use server::handler::{FileOptions, Files};
use server::http3::Server;
use server::low::Handler;
use std::collections::BTreeMap;
use transport::StreamId;
use wire::World;

/// What the client knows of a response.
#[derive(Debug, Default)]
struct Seen {
    statuses: Vec<u16>,
    fields: Vec<(String, String)>,
    bytes: usize,
    trailers: Vec<(String, String)>,
    has_ended: bool,
    aborted: Option<Abort>,
    stopped: Option<Code>,
}

/// A client that writes down what it sees.
#[derive(Debug, Default)]
struct Client {
    seen: BTreeMap<StreamId, Seen>,
    /// Streams in the order in which their content came, without repetitions.
    order: Vec<u64>,
    ended: Vec<u64>,
}

impl Client {
    fn seen(&mut self, id: StreamId) -> &mut Seen {
        self.seen.entry(id).or_default()
    }
}

impl MessageSink for Client {
    fn on_response(&mut self, id: StreamId, head: &ResponseHead<'_>) {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let seen = self.seen(id);
        seen.statuses.push(head.status());
        seen.fields = head.fields().map(|line| (text(line.name), text(line.value))).collect();
    }
    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        self.seen(id).bytes += bytes.len();
        self.order.push(id.index());
        self.order.dedup();
        bytes.len()
    }
    fn on_trailers(&mut self, id: StreamId, trailers: &Trailers<'_>) {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        self.seen(id).trailers = trailers.fields().map(|line| (text(line.name), text(line.value))).collect();
    }
    fn on_end(&mut self, id: StreamId) {
        self.seen(id).has_ended = true;
        self.ended.push(id.index());
    }
    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        self.seen(id).aborted = Some(abort);
    }
    fn on_stop_sending(&mut self, id: StreamId, code: Code) {
        self.seen(id).stopped = Some(code);
    }
}

fn world(config: http3::Config) -> World<Client> {
    let log = AccessLog::start(Target::Off).unwrap();
    let server = Server::new(Files::new(FileOptions::default()), log.recorder());
    let mut world = World::new(server, config, Client::default());
    world.connect();
    world
}

impl<H: Handler> World<Client, H> {
    fn ask(&mut self, method: &str, path: &str, fields: &[(&str, &str)], body: BodyLength) -> StreamId {
        let mut head = http::Request::builder().method(method).uri(format!("https://localhost{path}"));
        for (name, value) in fields {
            head = head.header(*name, *value);
        }
        let head = head.body(()).unwrap().into_parts().0;
        let id = self.client.connection.request(&mut self.client_transport, &head, body).unwrap();
        self.client.messages.seen(id);
        id
    }

    fn get(&mut self, path: &str, fields: &[(&str, &str)]) -> StreamId {
        self.ask("GET", path, fields, BodyLength::Empty)
    }

    /// All that was asked has ended.
    fn finish(&mut self, most: Duration) {
        let all_ended =
            |world: &mut World<Client, H>| world.client.messages.seen.values().all(|seen| seen.has_ended);
        assert!(self.run_until(most, all_ended), "{:?}", self.client.messages);
    }
}

const SECONDS: Duration = Duration::from_secs(10);

/// Issue 10: 16 requests sent at once came back in reverse. RFC 9218 §10: in the order of their stream IDs.
#[test]
fn requests_sent_at_once_are_answered_in_their_order() {
    for size in [3_usize, 5_000, 700_000] {
        let mut world = world(http3::Config::client());
        for _ in 0..16 {
            world.get(&format!("/bytes/{size}"), &[]);
        }
        world.finish(SECONDS);
        assert_eq!(world.client.messages.ended, (0..16).collect::<Vec<u64>>(), "{size} bytes each");
        // What is larger than a writer's lead pauses, and the next may send meanwhile.
        let order = &world.client.messages.order;
        assert!(size > 100_000 || *order == (0..16).collect::<Vec<u64>>(), "{size} bytes each: {order:?}");
    }
}

/// RFC 9218 §4.1, §7, §10: urgency before order; the last PRIORITY_UPDATE before the priority field.
#[test]
fn urgent_requests_come_first() {
    let mut world = world(http3::Config::client());
    for urgency in [7, 3, 5, 0, 3, 1] {
        world.get("/bytes/300000", &[("priority", &format!("u={urgency}"))]);
    }
    world.finish(SECONDS);
    assert_eq!(world.client.messages.ended, [3, 5, 1, 4, 2, 0]);
}

/// RFC 9218 §10: incremental responses share what there is, and neither kind starves the other, unless it is bulk.
#[test]
fn incremental_requests_share() {
    let mut world = world(http3::Config::client());
    world.get("/bytes/250000", &[]);
    for _ in 0..3 {
        world.get("/bytes/300000", &[("priority", "i")]);
    }
    world.run_until(SECONDS, |world| world.client.messages.seen.values().any(|seen| seen.has_ended));
    let bytes: Vec<usize> = world.client.messages.seen.values().map(|seen| seen.bytes).collect();
    assert!(bytes.iter().all(|&bytes| bytes > 60_000), "{bytes:?}");
    world.finish(SECONDS);
}

/// A small response does not wait for a large one that was asked for before, unless the client has said which is urgent.
#[test]
fn bulk_lets_small_responses_pass() {
    let mut world = world(http3::Config::client());
    let usual = [world.get("/bytes/4000000", &[]), world.get("/bytes/4000000", &[])];
    world.run_until(SECONDS, |world| world.client.messages.seen(usual[0]).bytes > 100_000);
    let small = world.get("/bytes/1000", &[]);
    world.run_until(SECONDS, |world| world.client.messages.seen(small).has_ended);
    let of_bulk = world.client.messages.seen(usual[0]).bytes;
    assert!(of_bulk < 2_000_000, "{of_bulk} bytes came first");
    let urgent = world.get("/bytes/4000000", &[("priority", "u=1")]);
    let late = world.get("/bytes/1000", &[]);
    world.finish(SECONDS);
    let ended = &world.client.messages.ended;
    assert_eq!(ended[1..], [urgent, late, usual[0], usual[1]].map(StreamId::index), "{ended:?}");
}

/// Issue 10: a response whose head was larger than the client's SETTINGS_MAX_FIELD_SECTION_SIZE was never sent, and its
/// stream never ended. RFC 9114 §4.2.2: what fits is sent, and else the stream is reset.
#[test]
fn a_head_that_the_client_does_not_take_ends_the_stream() {
    let most = |max_field_section_size| http3::Config { max_field_section_size, ..http3::Config::client() };
    for (limit, fields) in [(200, vec!["date", "content-length"]), (100, vec![])] {
        let mut world = world(most(limit));
        let id = world.get("/bytes/5000", &[]);
        world.finish(Duration::from_secs(1));
        let seen = world.client.messages.seen(id);
        let names: Vec<&str> = seen.fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((seen.statuses.as_slice(), names), (&[500][..], fields), "{limit}");
    }
    let mut world = world(most(40));
    let id = world.get("/bytes/5000", &[]);
    assert!(
        world.run_until(Duration::from_secs(1), |world| world.client.messages.seen(id).aborted.is_some())
    );
    assert_eq!(world.client.messages.seen(id).aborted, Some(Abort::Peer(Code::INTERNAL_ERROR)));
}

impl<H: Handler> World<Client, H> {
    /// Sends `bytes` more of a request's content as the stream takes them.
    fn send(&mut self, id: StreamId, bytes: usize) {
        let mut left = bytes;
        let sent = self.run_until(SECONDS, |world| {
            let room = world.client_transport.send_capacity(id).min(left).min(100_000);
            if room > 0 {
                let piece = Bytes::from(vec![0; room]);
                world.client.connection.write_body(&mut world.client_transport, id, piece).unwrap();
                left -= room;
            }
            left == 0
        });
        assert!(sent, "{left} of {bytes} bytes were not taken: {:?}", self.client.messages);
    }
}

/// Issue 10: with STOP_SENDING right behind an early 413, the `fetch` of a browser that still sends never ends.
#[test]
fn an_early_answer_does_not_stop_the_client_at_once() {
    let mut world = world(http3::Config::client());
    let announced = 70_000_000;
    let fields = [("content-length", "70000000")];
    let id = world.ask("POST", "/bytes/1", &fields, BodyLength::Known(announced));
    world.send(id, 4_000_000);
    world.finish(SECONDS);
    let seen = world.client.messages.seen(id);
    assert_eq!((seen.statuses.as_slice(), seen.stopped, seen.aborted), (&[413][..], None, None));
    // The connection serves on, and what is sent still is taken.
    world.send(id, 1_000_000);
    let other = world.get("/bytes/10", &[]);
    world.finish(SECONDS);
    assert_eq!(world.client.messages.seen(other).statuses, [200]);
    assert_eq!(world.client.messages.seen(id).stopped, None);
}

/// Content of a request that needs none is bounded in time, too: a client that stops sending is asked to stop.
#[test]
fn content_that_nobody_wants_is_not_awaited_for_ever() {
    let mut world = world(http3::Config::client());
    let id = world.ask("GET", "/bytes/1", &[], BodyLength::Unknown);
    world.send(id, 10);
    world.finish(SECONDS);
    let is_stopped = |world: &mut World<Client>| world.client.messages.seen(id).stopped.is_some();
    // Other requests keep the connection.
    let is_asked = (0..20).any(|_| {
        world.get("/bytes/1", &[]);
        world.run_until(Duration::from_secs(5), is_stopped)
    });
    assert!(is_asked);
    assert_eq!(world.client.messages.seen(id).stopped, Some(Code::NO_ERROR));
}

/// RFC 9110 §10.1.1: 100 or a final status, before any content.
#[test]
fn who_expects_100_is_told_at_once() {
    let mut world = world(http3::Config::client());
    let fields = [("expect", "100-continue"), ("content-length", "1000")];
    let id = world.ask("POST", "/bytes/10", &fields, BodyLength::Known(1_000));
    let refused = world.ask("POST", "/nothing", &fields, BodyLength::Known(1_000));
    let without = world.ask("POST", "/bytes/10", &[("expect", "100-Continue")], BodyLength::Empty);
    (0..3).for_each(|_| world.step());
    assert_eq!(world.client.messages.seen(id).statuses, [100]);
    assert_eq!(world.client.messages.seen(refused).statuses, [405]);
    assert_eq!(world.client.messages.seen(without).statuses, [200], "all of it is here");
    world.send(id, 1_000);
    world.client.connection.finish(&mut world.client_transport, id).unwrap();
    world.finish(SECONDS);
    let seen = world.client.messages.seen(id);
    assert_eq!((seen.statuses.as_slice(), seen.bytes), (&[100, 200][..], 10));
}

/// RFC 9110 §6.6.1: what is refused before it has a head is dated like all else.
#[test]
fn a_head_that_is_too_large_gets_a_whole_answer() {
    let mut world = world(http3::Config::client());
    let names: Vec<String> = (0..300).map(|number| format!("x-{number}")).collect();
    let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let id = world.get("/bytes/1", &fields);
    world.finish(SECONDS);
    let seen = world.client.messages.seen(id);
    assert_eq!((seen.statuses.as_slice(), seen.stopped), (&[431][..], None));
    assert!(seen.fields.iter().any(|(name, value)| name == "date" && value.ends_with(" GMT")));
    assert!(seen.bytes > 0);
}

/// RFC 9110 §7.4: the server is no origin of other schemes.
#[test]
fn other_schemes_are_misdirected() {
    let mut world = world(http3::Config::client());
    let lines = [(":method", "GET"), (":scheme", "ftp"), (":authority", "localhost"), (":path", "/bytes/1")];
    let lines = lines.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let request = http3::EncodedRequest::of_lines(lines, BodyLength::Empty);
    let id = world.client.connection.request_encoded(&mut world.client_transport, &request).unwrap();
    world.client.messages.seen(id);
    world.finish(SECONDS);
    assert_eq!(world.client.messages.seen(id).statuses, [421]);
}

/// Issue 10: small responses were logged with 0 seconds. From the head's arrival to the acknowledgement of all, which here is
/// at least a round trip.
#[test]
fn the_log_says_how_long_it_took() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("log");
    let log = AccessLog::start(Target::File(path.clone())).unwrap();
    let server = Server::new(Files::new(FileOptions::default()), log.recorder());
    let mut world = World::new(server, http3::Config::client(), Client::default());
    world.connect();
    world.get("/bytes/10", &[]);
    let id = world.ask("POST", "/bytes/10", &[], BodyLength::Known(100));
    (0..5).for_each(|_| world.step());
    world.send(id, 100);
    world.client.connection.finish(&mut world.client_transport, id).unwrap();
    world.finish(SECONDS);
    (0..10).for_each(|_| world.step());
    drop(world);
    drop(log);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<(&str, f64)> = text
        .lines()
        .map(|line| (line, line.rsplit(' ').next().and_then(|last| last.parse().ok()).unwrap()))
        .collect();
    let [(get, first), (post, second)] = lines[..] else { panic!("{text}") };
    assert!(get.contains("GET") && (0.005..0.2).contains(&first), "{text}");
    assert!(
        post.contains("POST") && (0.05..0.3).contains(&second),
        "content came for five round trips: {text}"
    );
}
