//! What HTTP/3 itself costs, without a transport: a small request and its response on a server, and content on its way to
//! the application. `cargo bench -p tercel-http3`.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::panic, reason = "what must not happen ends the benchmark")]

use base::time::Instant;
use bytes::Bytes;
use http3::{
    Abort, BodyLength, Config, Connection, EncodedHead, MessageSink, QuicConnection, RequestHead, Session,
};
use std::hint::black_box;
use std::sync::Arc;
use transport::{Dir, Event, Fin, OpenError, Priority, StreamId, StreamSink, WriteError};
use wire::Side;

/// A transport that does nothing.
#[derive(Default)]
struct Nowhere {
    opened: u64,
    bytes: usize,
}

impl QuicConnection for Nowhere {
    fn open(&mut self, dir: Dir) -> Result<StreamId, OpenError> {
        self.opened += 1;
        Ok(StreamId::new(Side::Server, dir, self.opened))
    }
    fn write(&mut self, _: StreamId, bytes: Bytes) -> Result<(), WriteError> {
        self.bytes += black_box(bytes).len();
        Ok(())
    }
    fn finish(&mut self, _: StreamId) -> Result<(), WriteError> {
        Ok(())
    }
    fn reset(&mut self, _: StreamId, _: u64) {}
    fn stop_sending(&mut self, _: StreamId, _: u64) {}
    fn set_priority(&mut self, _: StreamId, _: Priority) {}
    fn defer(&mut self, _: StreamId) {}
    fn deliver(&mut self, _: Instant, _: StreamId, _: &mut impl StreamSink) {}
    fn next_event(&mut self) -> Option<Event> {
        None
    }
    fn close(&mut self, _: Instant, code: u64, reason: &[u8]) {
        panic!("closed: {code:#x} {}", reason.escape_ascii());
    }
    fn remembered(&self) -> Option<Vec<u8>> {
        None
    }
    fn remember(&mut self, _: &[u8]) {}
    fn is_early_data_accepted(&self) -> bool {
        false
    }
}

#[derive(Default)]
struct Counts {
    requests: usize,
    bytes: usize,
}

impl MessageSink for Counts {
    fn on_request(&mut self, _: StreamId, head: &RequestHead<'_>) {
        self.requests += usize::from(black_box(head.path()).is_some());
    }
    fn on_body(&mut self, _: StreamId, bytes: &[u8]) -> usize {
        self.bytes += black_box(bytes).len();
        bytes.len()
    }
    fn on_end(&mut self, _: StreamId) {}
    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        panic!("{id:?}: {abort:?}");
    }
}

fn server() -> (Session<Counts>, Nowhere) {
    let connection = Connection::new(Side::Server, Arc::new(Config::server()), Instant::ZERO);
    (Session { connection, messages: Counts::default() }, Nowhere::default())
}

fn headers(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut section = Vec::new();
    qpack::encode(lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut section);
    let mut frame = vec![0x01];
    wire::varint::append(&mut frame, section.len() as u64);
    frame.extend(section);
    frame
}

/// Nanoseconds for each of `count` calls, the best of several rounds.
fn measure(count: u64, mut round: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..9 {
        let start = std::time::Instant::now();
        round();
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / count as f64);
    }
    best
}

const RESPONSE: [(&[u8], &[u8]); 4] = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-length", b"630"),
    (b"date", b"Sat, 21 Nov 2026 10:20:30 GMT"),
    (b"server", b"tercel"),
];

fn requests(name: &str, head: &[u8], respond: impl Fn(&mut Connection, &mut Nowhere, StreamId)) {
    const COUNT: u64 = 100_000;
    let (mut session, mut nowhere) = server();
    let mut index = 0;
    let each = measure(COUNT, || {
        for _ in 0..COUNT / 10 {
            let first = index;
            for _ in 0..10 {
                let id = StreamId::new(Side::Client, Dir::Bidi, index);
                session.on_stream_data(id, black_box(head), Fin::End);
                index += 1;
            }
            session.on_turn(&mut nowhere, Instant::ZERO);
            for index in first..index {
                respond(&mut session.connection, &mut nowhere, StreamId::new(Side::Client, Dir::Bidi, index));
            }
        }
    });
    assert_eq!((session.messages.requests as u64, session.connection.open_exchanges()), (index, 0));
    println!("{name:50} {each:6.0} ns");
}

fn main() {
    let small = headers(&[
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "localhost:4433"),
        (":path", "/small.html"),
    ]);
    let content = vec![7; 630];
    let encoded = EncodedHead::response(200, RESPONSE, BodyLength::Known(630));
    let shared = Bytes::from(content.clone());
    requests("small request, response encoded, 630 bytes copied", &small, |connection, nowhere, id| {
        let sent = connection.respond_whole(nowhere, id, 200, RESPONSE, &content);
        assert_eq!(sent, Ok(()));
    });
    requests("small request, head encoded before, content shared", &small, |connection, nowhere, id| {
        let sent = connection
            .respond_encoded(nowhere, id, &encoded)
            .and_then(|()| connection.write_body(nowhere, id, shared.clone()))
            .and_then(|()| connection.finish(nowhere, id));
        assert_eq!(sent, Ok(()));
    });

    let (mut session, _) = server();
    let mut post = headers(&[
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "localhost:4433"),
        (":path", "/up"),
    ]);
    post.push(0x00);
    wire::varint::append(&mut post, 1 << 40);
    let id = StreamId::new(Side::Client, Dir::Bidi, 0);
    session.on_stream_data(id, &post, Fin::Open);
    const PACKETS: u64 = 1_000_000;
    let packet = vec![7; 1_400];
    let each = measure(PACKETS, || {
        for _ in 0..PACKETS {
            session.on_stream_data(id, black_box(&packet), Fin::Open);
        }
    });
    println!("{:50} {each:6.1} ns", "1,400 bytes of content to the application");
}
