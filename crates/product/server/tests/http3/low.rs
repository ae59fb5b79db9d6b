//! A handler of a program's own on the low-level seam: whole heads, content in both directions, backpressure.

use super::wire::World;
use super::{Client, SECONDS};
use base::time::Duration;
use bytes::Bytes;
use http::HeaderMap;
use http3::{Abort, BodyLength, Code, RequestHead, Trailers};
use server::access_log::{AccessLog, RequestLine, Target};
use server::http3::Server;
use server::low::{Content, ContentError, Context, Handler, Head, Received, Request, Response, Upload};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Poll, Waker};
use transport::StreamId;

/// What a request and its response have in common.
#[derive(Default)]
struct Exchange {
    head: Vec<(String, String)>,
    /// Content that arrived, and how much may be held.
    content: VecDeque<u8>,
    taken: usize,
    room: usize,
    trailers: Vec<(String, String)>,
    has_ended: bool,
    was_aborted: bool,
    /// The handler holds back its response.
    is_held: bool,
    is_unwanted: bool,
    waker: Option<Waker>,
}

type Shared = Rc<RefCell<Exchange>>;

/// Sends back what arrives, as it arrives.
struct Echo {
    next: Shared,
}

#[derive(Default)]
struct Lines {
    lines: Vec<(String, String)>,
}

impl Head for Lines {
    fn on_request(&mut self, request: &RequestHead<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.lines = request.lines().map(|line| (text(line.name), text(line.value))).collect();
    }
    fn on_refused(&mut self, _: u16) {}
    fn recycle(&mut self) {
        self.lines.clear();
    }
    fn memory(&self) -> usize {
        0
    }
    fn expects_continue(&self) -> bool {
        self.lines.iter().any(|(name, _)| name == "expect")
    }
    fn line(&self) -> RequestLine<'_> {
        RequestLine::default()
    }
}

#[derive(Default)]
struct Inlet(Option<Shared>);

impl Inlet {
    fn note(&self, act: impl FnOnce(&mut Exchange)) {
        if let Some(shared) = &self.0 {
            let mut shared = shared.borrow_mut();
            act(&mut shared);
            shared.waker.iter().for_each(Waker::wake_by_ref);
        }
    }
}

impl Upload for Inlet {
    fn on_body(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        self.note(|shared| {
            taken = bytes.len().min(shared.room.saturating_sub(shared.content.len()));
            shared.content.extend(&bytes[..taken]);
            shared.taken += taken;
        });
        taken
    }
    fn on_trailers(&mut self, trailers: &Trailers<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.note(|shared| {
            shared.trailers = trailers.fields().map(|line| (text(line.name), text(line.value))).collect();
        });
    }
    fn on_end(&mut self) {
        self.note(|shared| shared.has_ended = true);
    }
    fn on_abort(&mut self) {
        self.note(|shared| shared.was_aborted = true);
    }
    fn has_room(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.borrow().content.len() < shared.borrow().room)
    }
    fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| !shared.borrow().is_unwanted)
    }
    fn is_awaited(&self) -> bool {
        self.0.is_some()
    }
}

struct Outlet(Shared);

impl Content for Outlet {
    fn poll_chunk(&mut self, max: usize, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, ContentError>> {
        let mut shared = self.0.borrow_mut();
        if shared.was_aborted {
            return Poll::Ready(Err(ContentError));
        }
        if shared.content.is_empty() && !shared.has_ended {
            shared.waker = Some(cx.waker());
            return Poll::Pending;
        }
        let len = shared.content.len().min(max);
        let chunk: Bytes = shared.content.drain(..len).collect();
        Poll::Ready(Ok((!chunk.is_empty()).then_some(chunk)))
    }
    fn remaining(&self) -> Option<u64> {
        None
    }
    fn trailers(&mut self) -> Option<HeaderMap> {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-taken", self.0.borrow().taken.into());
        Some(trailers)
    }
}

impl Handler for Echo {
    type Head = Lines;
    type Upload = Inlet;
    type Content = Outlet;
    type Fields = HeaderMap;

    fn handle(&mut self, request: Request<'_, Echo>, cx: &Context<'_>) -> Poll<Response<HeaderMap, Outlet>> {
        let shared = Rc::clone(request.upload.0.get_or_insert_with(|| Rc::clone(&self.next)));
        let mut exchange = shared.borrow_mut();
        exchange.head.clone_from(&request.head.lines);
        exchange.has_ended |= request.received == Received::Whole;
        exchange.waker = Some(cx.waker());
        if exchange.is_held {
            return Poll::Pending;
        }
        drop(exchange);
        Poll::Ready(Response { status: 200, fields: HeaderMap::new(), body: Outlet(shared) })
    }

    fn put_off(&mut self, _: &Context<'_>) -> Response<HeaderMap, Outlet> {
        Response { status: 503, fields: HeaderMap::new(), body: Outlet(Rc::clone(&self.next)) }
    }
}

/// A server whose next request shares what is returned.
fn echo(room: usize) -> (World<Client, Echo>, Shared) {
    let shared = Rc::new(RefCell::new(Exchange { room, ..Exchange::default() }));
    let log = AccessLog::start(Target::Off).unwrap();
    let server = Server::new(Echo { next: Rc::clone(&shared) }, log.recorder());
    let mut world = World::new(server, http3::Config::client(), Client::default());
    world.connect();
    (world, shared)
}

fn change(shared: &Shared, act: impl FnOnce(&mut Exchange)) {
    let mut shared = shared.borrow_mut();
    act(&mut shared);
    shared.waker.iter().for_each(Waker::wake_by_ref);
}

impl World<Client, Echo> {
    fn steps(&mut self, count: usize) {
        (0..count).for_each(|_| self.step());
    }

    fn write(&mut self, id: StreamId, bytes: usize) {
        let piece = Bytes::from(vec![7; bytes]);
        self.client.connection.write_body(&mut self.client_transport, id, piece).unwrap();
    }
}

/// Deleted, an application could lose fields, pseudo-header fields or trailers of a request, or send no trailers.
#[test]
fn a_handler_gets_the_whole_head_content_and_trailers_and_gives_its_own() {
    let (mut world, shared) = echo(usize::MAX);
    let id = world.ask("PATCH", "/a?b=c", &[("x-mine", "1"), ("te", "trailers")], BodyLength::Unknown);
    world.write(id, 100_000);
    world.steps(10);
    // Both directions at the same time.
    assert_eq!(
        (world.client.messages.seen(id).bytes, world.client.messages.seen(id).has_ended),
        (100_000, false)
    );
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", 7.into());
    world.client.connection.write_trailers(&mut world.client_transport, id, &trailers).unwrap();
    world.finish(SECONDS);
    let shared = shared.borrow();
    let head: Vec<(&str, &str)> = shared.head.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    let right =
        [(":method", "PATCH"), (":scheme", "https"), (":authority", "localhost"), (":path", "/a?b=c")];
    assert_eq!(head[..4], right);
    assert_eq!(head[4..], [("x-mine", "1"), ("te", "trailers")]);
    assert_eq!(shared.trailers, [("x-sum".to_owned(), "7".to_owned())]);
    assert!(shared.has_ended);
    assert_eq!(world.client.messages.seen(id).trailers, [("x-taken".to_owned(), "100000".to_owned())]);
}

/// Deleted, a client could make an application that reads slowly hold any amount of content.
#[test]
fn a_paused_upload_earns_no_credit() {
    const ALL: usize = 60_000_000;
    let (mut world, shared) = echo(10_000);
    change(&shared, |shared| shared.is_held = true);
    let id = world.ask("POST", "/", &[], BodyLength::Unknown);
    world.write(id, ALL);
    world.steps(100);
    let delivered = world.client_transport.delivered_bytes();
    assert_eq!(shared.borrow().taken, 10_000);
    assert!(delivered < 20_000_000, "{delivered} bytes");
    world.steps(300);
    assert_eq!(world.client_transport.delivered_bytes(), delivered, "the window stays as it is");
    // The time of a pause is not the client's: it is not ended for being slow.
    assert_eq!(world.client.messages.seen(id).aborted, None);
    // Half of it is taken: that much comes, and no more.
    change(&shared, |shared| shared.content.clear());
    world.steps(100);
    assert_eq!(shared.borrow().taken, 20_000);
    // All that is sent back makes room again.
    change(&shared, |shared| {
        shared.is_held = false;
        shared.room = 1_000_000;
    });
    world.client.connection.finish(&mut world.client_transport, id).unwrap();
    world.finish(Duration::from_secs(100));
    assert_eq!(shared.borrow().taken, ALL);
    assert_eq!(world.client.messages.seen(id).bytes, ALL - 10_000, "what was thrown away did not come back");
}

/// RFC 9110 §10.1.1: a client that waits is told to go on when the handler asks for content.
#[test]
fn content_that_a_handler_awaits_is_asked_for_once() {
    let (mut world, shared) = echo(1_000);
    change(&shared, |shared| shared.is_held = true);
    let id = world.ask("PUT", "/", &[("expect", "100-continue")], BodyLength::Known(10));
    world.steps(5);
    assert_eq!(world.client.messages.seen(id).statuses, [100]);
    world.write(id, 10);
    world.client.connection.finish(&mut world.client_transport, id).unwrap();
    world.steps(5);
    change(&shared, |shared| shared.is_held = false);
    world.finish(SECONDS);
    assert_eq!(world.client.messages.seen(id).statuses, [100, 200]);
    assert_eq!(world.client.messages.seen(id).bytes, 10);
}

/// Deleted, a request could stay for ever whose handler was woken, or whose client has gone.
#[test]
fn a_handler_hears_of_wakes_and_of_clients_that_give_up() {
    let (mut world, shared) = echo(1_000);
    change(&shared, |shared| shared.is_held = true);
    let id = world.ask("POST", "/", &[], BodyLength::Unknown);
    world.write(id, 10);
    world.steps(5);
    assert!(world.client.messages.seen(id).statuses.is_empty());
    world.client.connection.cancel(&mut world.client_transport, id, Code::REQUEST_CANCELLED);
    world.steps(5);
    assert!(shared.borrow().was_aborted);
    assert_eq!(Rc::strong_count(&shared), 2, "nothing of the request is left");
}

/// Deleted, a client whose content is not wanted any more could pause for ever, or content that comes fail the connection.
#[test]
fn content_that_is_no_longer_wanted_is_discarded() {
    let (mut world, shared) = echo(1_000);
    let id = world.ask("POST", "/", &[], BodyLength::Known(50_000));
    change(&shared, |shared| shared.is_held = true);
    world.write(id, 50_000);
    world.client.connection.finish(&mut world.client_transport, id).unwrap();
    world.steps(5);
    assert_eq!(shared.borrow().taken, 1_000);
    change(&shared, |shared| {
        (shared.is_held, shared.is_unwanted, shared.has_ended) = (false, true, true);
    });
    world.finish(SECONDS);
    world.steps(5);
    assert_eq!(world.client.messages.seen(id).bytes, 1_000);
    assert_eq!(world.client_transport.unacknowledged_bytes(), 0);
    assert_eq!(world.client.connection.open_exchanges(), 0);
}

/// RFC 9114 §4.1: content that cannot be completed must not look complete.
#[test]
fn content_that_breaks_off_resets_the_stream() {
    let (mut world, shared) = echo(1_000);
    let id = world.ask("POST", "/", &[], BodyLength::Unknown);
    world.write(id, 10);
    world.steps(5);
    change(&shared, |shared| shared.was_aborted = true);
    world.steps(5);
    let seen = world.client.messages.seen(id);
    assert_eq!((seen.bytes, seen.has_ended), (10, false));
    assert_eq!(seen.aborted, Some(Abort::Peer(Code::INTERNAL_ERROR)));
    assert_eq!(Rc::strong_count(&shared), 2, "what took its content is gone too");
}
