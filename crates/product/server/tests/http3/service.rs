//! Services of `http` types over HTTP/3: both directions stream, and one request's trouble is its own.

use super::wire::World;
use super::{Client, SECONDS};
use body::{Body, BodyError};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http3::{Abort, BodyLength, Code};
use server::access_log::{AccessLog, Target};
use server::http3::Server;
use server::low::{Handler, Shared};
use server::service::{ServiceHandler, service_fn};
use server::{ConnectionInfo, InformationalError};
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration as StdDuration;
use tower_service::Service;
use transport::StreamId;

type Outcome<B = Body> = Result<Response<B>, Infallible>;

fn world<S>(service: S) -> World<Client, ServiceHandler<S>>
where
    ServiceHandler<S>: Handler,
{
    let log = AccessLog::start(Target::Off).unwrap();
    let handler = ServiceHandler::new(service, Shared::default());
    let mut world =
        World::new(Server::new(handler, log.recorder()), http3::Config::client(), Client::default());
    world.connect();
    world
}

impl<S> World<Client, ServiceHandler<S>>
where
    S: Service<Request<Body>>,
    ServiceHandler<S>: Handler,
{
    fn steps(&mut self, count: usize) {
        (0..count).for_each(|_| self.step());
    }

    fn write(&mut self, id: StreamId, bytes: usize) {
        let piece = Bytes::from(vec![7; bytes]);
        self.client.connection.write_body(&mut self.client_transport, id, piece).unwrap();
    }

    fn end(&mut self, id: StreamId) {
        self.client.connection.finish(&mut self.client_transport, id).unwrap();
    }

    fn statuses(&mut self, id: StreamId) -> Vec<u16> {
        self.client.messages.seen(id).statuses.clone()
    }

    fn field(&mut self, id: StreamId, name: &str) -> Option<String> {
        let fields = &self.client.messages.seen(id).fields;
        fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }
}

/// Deleted, an application could see less of a request than its client sent.
#[test]
fn a_service_gets_the_request_and_its_response_arrives() {
    async fn app(request: Request<Body>) -> Outcome {
        let (head, body) = request.into_parts();
        let content = body.collect(1_000).await.unwrap();
        let text = format!("{} {} {:?} {}", head.method, head.uri, head.version, content.len());
        let mine = head.headers.get("x-mine").cloned();
        let mut response = Response::new(Body::from(text));
        mine.into_iter().for_each(|mine| drop(response.headers_mut().insert("x-yours", mine)));
        response.headers_mut().insert("connection", "close".parse().unwrap());
        Ok(response)
    }
    let mut world = world(service_fn(app));
    let get = world.get("/a/b?c", &[("x-mine", "5")]);
    let post = world.ask("POST", "/", &[], BodyLength::Known(100));
    world.write(post, 100);
    world.end(post);
    let late = world.ask("PUT", "/late", &[], BodyLength::Unknown);
    world.steps(5);
    world.write(late, 10);
    world.steps(5);
    world.end(late);
    world.finish(SECONDS);
    let lengths = [
        "GET https://localhost/a/b?c HTTP/3.0 0",
        "POST https://localhost/ HTTP/3.0 100",
        "PUT https://localhost/late HTTP/3.0 10",
    ]
    .map(str::len);
    for (id, length) in [get, post, late].into_iter().zip(lengths) {
        assert_eq!((world.statuses(id), world.client.messages.seen(id).bytes), (vec![200], length));
        assert_eq!(world.field(id, "content-length"), Some(length.to_string()));
        assert!(world.field(id, "date").is_some_and(|date| date.ends_with(" GMT")));
        assert_eq!(world.field(id, "connection"), None, "RFC 9114 §4.2");
    }
    assert_eq!(world.field(get, "x-yours").as_deref(), Some("5"));
}

/// Deleted, an application could not tell its clients or names apart.
#[test]
fn a_request_carries_its_connection() {
    async fn app(request: Request<Body>) -> Outcome {
        let info = request.extensions().get::<ConnectionInfo>().unwrap();
        let name = info.server_name.as_deref().unwrap_or_default();
        let text = format!("{} {} {} {name}", info.peer.port(), info.local.port(), info.alpn);
        Ok(Response::builder().header("x-info", text).body(Body::empty()).unwrap())
    }
    let mut world = world(service_fn(app));
    let [first, second] = ["/a", "/b"].map(|path| world.get(path, &[]));
    world.finish(SECONDS);
    for id in [first, second] {
        assert_eq!(world.field(id, "x-info").as_deref(), Some("1 2 h3 localhost"));
    }
}

/// Deleted, content or trailers could be lost, or wait for the end of the other direction.
#[test]
fn content_and_trailers_stream_in_both_directions_at_once() {
    async fn echo(request: Request<Body>) -> Outcome {
        Ok(Response::new(request.into_body()))
    }
    let mut world = world(service_fn(echo));
    let id = world.ask("POST", "/", &[], BodyLength::Unknown);
    for round in 1..=20 {
        world.write(id, 100_000);
        world.steps(20);
        let seen = world.client.messages.seen(id);
        assert_eq!((seen.bytes, seen.has_ended), (round * 100_000, false));
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", 7.into());
    world.client.connection.write_trailers(&mut world.client_transport, id, &trailers).unwrap();
    world.finish(SECONDS);
    assert_eq!(world.client.messages.seen(id).trailers, [("x-sum".to_owned(), "7".to_owned())]);
}

/// Deleted, content that an application does not read could grow without bound.
#[test]
fn an_application_that_does_not_read_slows_its_client() {
    const ALL: usize = 60_000_000;
    let gate = Arc::new(tokio::sync::Notify::new());
    let ours = Arc::clone(&gate);
    let mut world = world(service_fn(move |request: Request<Body>| {
        let gate = Arc::clone(&gate);
        async move {
            gate.notified().await;
            let mut body = request.into_body();
            let mut sum = 0;
            while let Some(chunk) = body.chunk().await.unwrap() {
                sum += chunk.len();
            }
            Outcome::Ok(Response::new(Body::from(vec![0; sum / 1_000_000])))
        }
    }));
    let id = world.ask("POST", "/", &[], BodyLength::Unknown);
    world.write(id, ALL);
    world.end(id);
    world.steps(100);
    let delivered = world.client_transport.delivered_bytes();
    world.steps(200);
    assert_eq!(world.client_transport.delivered_bytes(), delivered);
    assert!(delivered < 20_000_000, "{delivered} bytes");
    ours.notify_one();
    world.finish(base::time::Duration::from_secs(60));
    assert_eq!(world.client.messages.seen(id).bytes, ALL / 1_000_000);
}

/// Deleted, one bad request could end a thread with all its connections.
#[test]
fn a_panic_ends_one_request() {
    async fn app(request: Request<Body>) -> Outcome {
        match request.uri().path() {
            "/early" => panic!("on purpose"),
            "/late" => {
                let (mut sender, body) = Body::channel(1_000);
                sender.send(Bytes::from_static(b"some")).await.unwrap();
                std::mem::forget(sender);
                Ok(Response::new(Body::new(Bomb(body))))
            }
            "/drop" => {
                let _bomb = Trap;
                pending().await
            }
            _ => Ok(Response::new(Body::from("fine"))),
        }
    }
    let mut world = world(service_fn(app));
    let [early, late, dropped, fine] = ["/early", "/late", "/drop", "/"].map(|path| world.get(path, &[]));
    world.steps(5);
    world.client.connection.cancel(&mut world.client_transport, dropped, Code::REQUEST_CANCELLED);
    world.steps(5);
    assert_eq!(world.statuses(early), [500]);
    assert_eq!(world.statuses(fine), [200]);
    assert_eq!(world.client.messages.seen(late).aborted, Some(Abort::Peer(Code::INTERNAL_ERROR)));
    let again = world.get("/", &[]);
    world.steps(5);
    assert_eq!(world.statuses(again), [200]);
}

struct Trap;

impl Drop for Trap {
    #[expect(clippy::panic, reason = "what a panic does is tested")]
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

/// Panics at its second chunk.
struct Bomb(Body);

impl http_body::Body for Bomb {
    type Data = Bytes;
    type Error = BodyError;
    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        let polled = std::pin::Pin::new(&mut self.0).poll_frame(cx);
        assert!(polled.is_ready(), "on purpose");
        polled
    }
}

/// Deleted, work could go on for clients that have gone.
#[test]
fn futures_are_dropped_when_the_client_gives_up_or_goes() {
    let alive = Arc::new(());
    let ours = Arc::clone(&alive);
    let mut world = world(service_fn(move |_: Request<Body>| {
        let alive = Arc::clone(&alive);
        async move {
            let _alive = alive;
            pending::<Outcome>().await
        }
    }));
    let whole = world.get("/", &[]);
    let part = world.ask("POST", "/", &[], BodyLength::Unknown);
    world.get("/", &[]);
    world.steps(5);
    let alive = || Arc::strong_count(&ours) - 2;
    assert_eq!(alive(), 3);
    world.client.connection.cancel(&mut world.client_transport, whole, Code::REQUEST_CANCELLED);
    world.client.connection.cancel(&mut world.client_transport, part, Code::REQUEST_CANCELLED);
    world.steps(5);
    assert_eq!(alive(), 1);
    let now = world.now;
    world.client.connection.close(&mut world.client_transport, now);
    world.steps(5);
    assert_eq!(alive(), 0);
}

/// Deleted, responses of known length, of none, and those to HEAD could be framed wrongly.
#[test]
fn lengths_are_as_the_response_says() {
    async fn app(request: Request<Body>) -> Outcome {
        let (mut sender, body) = Body::channel(1_000);
        let _ = sender.send(Bytes::from_static(b"0123456789")).await;
        sender.finish(None);
        let response = Response::builder();
        Ok(match request.uri().path() {
            "/known" => response.body(Body::from("0123456789")),
            "/none" => response.status(StatusCode::NO_CONTENT).body(Body::empty()),
            "/empty" => response.body(Body::empty()),
            "/short" => response.header("content-length", "20").body(Body::new(Wrong(20))),
            "/long" => response.header("content-length", "5").body(Body::new(Wrong(5))),
            _ => response.body(body),
        }
        .unwrap())
    }
    let mut world = world(service_fn(app));
    let rows = [
        ("GET", "/known", 200, 10, Some("10")),
        ("HEAD", "/known", 200, 0, Some("10")),
        ("GET", "/none", 204, 0, None),
        ("GET", "/empty", 200, 0, Some("0")),
        ("GET", "/", 200, 10, Some("10")),
        ("HEAD", "/", 200, 0, Some("10")),
    ];
    let ids = rows.map(|(method, path, ..)| world.ask(method, path, &[], BodyLength::Empty));
    world.finish(SECONDS);
    for ((method, path, status, bytes, length), id) in rows.into_iter().zip(ids) {
        let found =
            (world.statuses(id), world.client.messages.seen(id).bytes, world.field(id, "content-length"));
        assert_eq!(found, (vec![status], bytes, length.map(str::to_owned)), "{method} {path}");
    }
    for path in ["/short", "/long"] {
        let id = world.get(path, &[]);
        world.steps(5);
        let seen = world.client.messages.seen(id);
        assert_eq!(
            (seen.aborted, seen.has_ended),
            (Some(Abort::Peer(Code::INTERNAL_ERROR)), false),
            "{path}"
        );
    }
}

/// Says that it has this many bytes, and has ten.
struct Wrong(u64);

impl http_body::Body for Wrong {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let is_first = std::mem::take(&mut self.0) > 0;
        std::task::Poll::Ready(
            is_first.then(|| Ok(http_body::Frame::data(Bytes::from_static(b"0123456789")))),
        )
    }
    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.0)
    }
}

/// RFC 9110 §10.1.1: 100 (Continue) leaves when the application reads, and not if it answers without.
#[test]
fn a_client_that_waits_is_told_to_go_on_when_the_application_reads() {
    async fn app(request: Request<Body>) -> Outcome {
        if request.uri().path() == "/refused" {
            return Ok(Response::builder().status(403).body(Body::empty()).unwrap());
        }
        let content = request.into_body().collect(100).await.unwrap();
        Ok(Response::new(Body::from(content)))
    }
    let mut world = world(service_fn(app));
    let fields = [("expect", "100-continue")];
    let read = world.ask("POST", "/", &fields, BodyLength::Known(10));
    let refused = world.ask("POST", "/refused", &fields, BodyLength::Known(10));
    world.steps(5);
    assert_eq!((world.statuses(read), world.statuses(refused)), (vec![100], vec![403]));
    world.write(read, 10);
    world.end(read);
    world.steps(5);
    assert_eq!(world.statuses(read), [100, 200]);
}

/// RFC 9110 §15.2. Deleted, early hints could come late, or a task that outlives its request could speak into a later one.
#[test]
fn informational_responses_leave_before_the_final_one() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let gate = Arc::new(tokio::sync::Notify::new());
    let ours = Arc::clone(&gate);
    let mut world = world(service_fn(move |request: Request<Body>| {
        let (gate, sender) = (Arc::clone(&gate), sender.clone());
        async move {
            let informational = request.extensions().get::<ConnectionInfo>().unwrap().informational();
            let fields = HeaderMap::from_iter([(http::header::LINK, "</style.css>".parse().unwrap())]);
            informational.send(StatusCode::EARLY_HINTS, fields).unwrap();
            gate.notified().await;
            informational.send(StatusCode::PROCESSING, HeaderMap::new()).unwrap();
            sender.send(informational).unwrap();
            Outcome::Ok(Response::new(Body::from("done")))
        }
    }));
    let id = world.get("/", &[]);
    world.steps(5);
    assert_eq!(world.statuses(id), [103]);
    assert_eq!(world.field(id, "link").as_deref(), Some("</style.css>"));
    ours.notify_one();
    world.steps(5);
    assert_eq!(world.statuses(id), [103, 102, 200]);
    let informational = receiver.recv().unwrap();
    let late = || informational.send(StatusCode::EARLY_HINTS, HeaderMap::new());
    assert_eq!(late(), Err(InformationalError::Late));
    let next = world.get("/", &[]);
    world.steps(5);
    assert_eq!(late(), Err(InformationalError::Late), "the head is used again");
    // From another thread, while the connection sleeps.
    let [first, second] = [world.get("/", &[]), world.get("/", &[])];
    world.steps(5);
    ours.notify_waiters();
    world.steps(5);
    for id in [next, first, second] {
        assert_eq!(world.statuses(id), [103, 102, 200]);
    }
}

/// Deleted, a client that waits could be told to go on twice.
#[test]
fn a_handler_may_say_100_itself() {
    async fn app(request: Request<Body>) -> Outcome {
        let informational = request.extensions().get::<ConnectionInfo>().unwrap().informational();
        informational.send(StatusCode::CONTINUE, HeaderMap::new()).unwrap();
        let content = request.into_body().collect(100).await.unwrap();
        Ok(Response::new(Body::from(content)))
    }
    let mut world = world(service_fn(app));
    let id = world.ask("POST", "/", &[("expect", "100-continue")], BodyLength::Known(3));
    world.steps(5);
    assert_eq!(world.statuses(id), [100]);
    world.write(id, 3);
    world.end(id);
    world.steps(5);
    assert_eq!(world.statuses(id), [100, 200]);
}

/// Deleted, an answer that another thread makes possible could wait for the client's next packet.
#[test]
fn a_future_that_another_thread_wakes_goes_on() {
    async fn app(_: Request<Body>) -> Outcome {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            std::thread::sleep(StdDuration::from_millis(1));
            let _ = sender.send("later");
        });
        Ok(Response::new(Body::from(receiver.await.unwrap())))
    }
    let mut world = world(service_fn(app));
    let ids: Vec<StreamId> = (0..50).map(|_| world.get("/", &[])).collect();
    let all_ended = |_| {
        world.step();
        std::thread::sleep(StdDuration::from_millis(1));
        ids.iter().all(|&id| world.client.messages.seen(id).has_ended)
    };
    assert!((0..20_000).any(all_ended));
}
