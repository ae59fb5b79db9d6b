//! HTTP/3 over real QUIC connections: what the two crates must agree on (credit, the end of streams, resets, limits).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that meets an error has failed")]

mod wire;

use base::time::Instant;
use bytes::Bytes;
use http3::{Abort, BodyLength, Code, Goaway, MessageSink, RequestError, RequestHead, ResponseHead};
use std::collections::BTreeMap;
use transport::{StreamId, TransportConfig};
use wire::{End, Pair};

/// What an end knows of one stream.
#[derive(Debug, Default)]
struct Seen {
    path: String,
    status: u16,
    body: Vec<u8>,
    ended: bool,
    aborted: Option<Abort>,
    answered: bool,
    to_send: Bytes,
}

/// An application that takes `most` bytes at a time and answers `/bytes/N` with that many, and a POST with its content.
#[derive(Debug)]
struct Messages {
    streams: BTreeMap<StreamId, Seen>,
    most: usize,
    going_away: bool,
}

impl Default for Messages {
    fn default() -> Self {
        Messages { streams: BTreeMap::new(), most: usize::MAX, going_away: false }
    }
}

impl Messages {
    fn seen(&mut self, id: StreamId) -> &mut Seen {
        self.streams.entry(id).or_default()
    }
}

impl MessageSink for Messages {
    fn on_request(&mut self, id: StreamId, head: &RequestHead<'_>) {
        self.seen(id).path = String::from_utf8_lossy(head.path().unwrap_or(b"")).into_owned();
    }
    fn on_response(&mut self, id: StreamId, head: &ResponseHead<'_>) {
        self.seen(id).status = head.status();
    }
    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.most);
        self.seen(id).body.extend_from_slice(&bytes[..taken]);
        taken
    }
    fn on_end(&mut self, id: StreamId) {
        assert!(!self.seen(id).ended);
        self.seen(id).ended = true;
    }
    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        assert!(!self.seen(id).ended);
        self.seen(id).aborted = Some(abort);
    }
    fn on_goaway(&mut self) {
        self.going_away = true;
    }
}

fn content(len: usize) -> Bytes {
    (0..len).map(|place| (place % 251) as u8).collect::<Vec<u8>>().into()
}

/// The server answers what is complete, sends what streams take, and both ends take what they paused on.
fn act(end: &mut End<Messages>, now: Instant) {
    let Some(transport) = &mut end.transport else { return };
    let paused = end.session.messages.most < usize::MAX;
    let ids: Vec<StreamId> = end.session.messages.streams.keys().copied().collect();
    for id in ids {
        if paused {
            end.session.deliver(transport, now, id);
        }
        let connection = &mut end.session.connection;
        let seen = end.session.messages.seen(id);
        if connection.side().is_server() && seen.ended && !seen.answered {
            seen.answered = true;
            let len = seen.path.strip_prefix("/bytes/").and_then(|len| len.parse().ok());
            seen.to_send = len.map_or_else(|| Bytes::from(seen.body.clone()), content);
            let length = seen.to_send.len().to_string();
            let fields = [(&b"content-length"[..], length.as_bytes())];
            let body = BodyLength::Known(seen.to_send.len() as u64);
            connection.respond_with(transport, id, 200, fields, body).unwrap();
            if seen.to_send.is_empty() {
                connection.finish(transport, id).unwrap();
            }
        }
        let room = transport.send_capacity(id).min(seen.to_send.len()).min(100_000);
        if room > 0 {
            let piece = seen.to_send.split_to(room);
            connection.write_body(transport, id, piece).unwrap();
            if seen.to_send.is_empty() {
                connection.finish(transport, id).unwrap();
            }
        }
    }
}

fn run_until(pair: &mut Pair<Messages>, done: impl Fn(&mut Pair<Messages>) -> bool) {
    for _ in 0..30_000 {
        if done(pair) {
            return;
        }
        pair.step(act);
    }
    panic!(
        "it never came to an end: {:?} {:?}",
        pair.client.session.connection.failure(),
        pair.server.session.connection.failure()
    );
}

fn connected(transport: TransportConfig) -> Pair<Messages> {
    let mut pair = Pair::new(transport);
    run_until(&mut pair, |pair| pair.client.session.connection.peer_settings().is_some());
    run_until(&mut pair, |pair| pair.server.session.connection.peer_settings().is_some());
    pair
}

fn request(
    pair: &mut Pair<Messages>,
    method: &str,
    path: &str,
    body: BodyLength,
) -> Result<StreamId, RequestError> {
    let head = http::Request::builder().method(method).uri(format!("https://localhost{path}"));
    let head = head.body(()).unwrap().into_parts().0;
    let id = pair.client.session.connection.request(pair.client.transport.as_mut().unwrap(), &head, body)?;
    pair.client.session.messages.seen(id);
    Ok(id)
}

fn ended(pair: &mut Pair<Messages>, id: StreamId) -> bool {
    pair.client.session.messages.seen(id).ended
}

fn nothing_left(pair: &mut Pair<Messages>) {
    run_until(pair, |pair| {
        pair.client.session.connection.open_exchanges() + pair.server.session.connection.open_exchanges() == 0
    });
    assert_eq!(pair.client.session.connection.failure(), None);
    assert_eq!(pair.server.session.connection.failure(), None);
}

#[test]
fn downloads_of_every_size() {
    let mut pair = connected(TransportConfig::default());
    for len in [0, 1, 1_200, 65_536, 3_000_000] {
        let id = request(&mut pair, "GET", &format!("/bytes/{len}"), BodyLength::Empty).unwrap();
        run_until(&mut pair, |pair| ended(pair, id));
        let seen = pair.client.session.messages.seen(id);
        assert_eq!((seen.status, seen.body.len()), (200, len));
        assert!(seen.body == content(len));
    }
    nothing_left(&mut pair);
}

/// An application that takes little at a time holds the peer back and loses nothing, also when packets are lost.
#[test]
fn an_upload_to_a_slow_server_on_a_lossy_wire() {
    let mut pair = connected(TransportConfig::default());
    pair.lose_every = 23;
    pair.server.session.messages.most = 5_000;
    let len = 400_000;
    let id = request(&mut pair, "POST", "/echo", BodyLength::Known(len)).unwrap();
    pair.client.session.messages.seen(id).to_send = content(len as usize);
    run_until(&mut pair, |pair| ended(pair, id));
    assert!(pair.client.session.messages.seen(id).body == content(len as usize));
    nothing_left(&mut pair);
}

/// More requests than streams: the limit is met, waited for, and met again.
#[test]
fn more_requests_than_streams() {
    let mut pair = connected(TransportConfig::default());
    pair.lose_every = 50;
    let mut ids = Vec::new();
    let mut refused = 0;
    while ids.len() < 500 {
        match request(&mut pair, "GET", "/bytes/700", BodyLength::Empty) {
            Ok(id) => ids.push(id),
            Err(RequestError::NoStream) => {
                refused += 1;
                pair.step(act);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 0, "the limit of 100 streams was never met");
    for id in ids {
        run_until(&mut pair, |pair| ended(pair, id));
        assert_eq!(pair.client.session.messages.seen(id).body.len(), 700);
    }
    nothing_left(&mut pair);
}

#[test]
fn a_request_that_is_cancelled_on_the_way() {
    let mut pair = connected(TransportConfig::default());
    let id = request(&mut pair, "GET", "/bytes/50000000", BodyLength::Empty).unwrap();
    run_until(&mut pair, |pair| pair.client.session.messages.seen(id).body.len() > 100_000);
    let client = &mut pair.client;
    client.session.connection.cancel(client.transport.as_mut().unwrap(), id, Code::REQUEST_CANCELLED);
    pair.server.session.messages.seen(id).to_send = Bytes::new();
    nothing_left(&mut pair);
    let next = request(&mut pair, "GET", "/bytes/10", BodyLength::Empty).unwrap();
    run_until(&mut pair, |pair| ended(pair, next));
}

#[test]
fn a_head_that_is_too_large_is_refused_and_the_connection_lives() {
    let mut pair = connected(TransportConfig::default());
    // The client knows the limit and would not send this; a peer that does not care is played by its transport.
    let transport = pair.client.transport.as_mut().unwrap();
    let id = transport.open(transport::Dir::Bidi).unwrap();
    let mut head = vec![0x01, 0x80, 0x01, 0x38, 0x80];
    head.resize(80_005, 0);
    transport.write(id, Bytes::from(head)).unwrap();
    (0..40).for_each(|_| pair.step(act));
    assert_eq!(pair.server.session.connection.open_exchanges(), 0);
    assert!(pair.server.session.messages.streams.is_empty(), "the application never heard of it");
    let next = request(&mut pair, "GET", "/bytes/10", BodyLength::Empty).unwrap();
    run_until(&mut pair, |pair| ended(pair, next));
}

#[test]
fn a_server_leaves_without_losing_a_request() {
    let mut pair = connected(TransportConfig::default());
    let before = request(&mut pair, "GET", "/bytes/1000000", BodyLength::Empty).unwrap();
    pair.step(act);
    pair.step(act);
    let server = &mut pair.server;
    server.session.connection.goaway(server.transport.as_mut().unwrap(), Goaway::Final);
    let after = request(&mut pair, "GET", "/bytes/10", BodyLength::Empty).unwrap();
    run_until(&mut pair, |pair| ended(pair, before));
    assert!(pair.client.session.messages.going_away);
    let aborted = pair.client.session.messages.seen(after).aborted;
    assert_eq!(aborted, Some(Abort::Peer(Code::REQUEST_REJECTED)));
    assert_eq!(request(&mut pair, "GET", "/", BodyLength::Empty), Err(RequestError::GoingAway));
    nothing_left(&mut pair);
    let now = pair.now;
    let server = &mut pair.server;
    server.session.connection.close(server.transport.as_mut().unwrap(), now);
    run_until(&mut pair, |pair| pair.client.transport.as_ref().unwrap().is_closed());
}
