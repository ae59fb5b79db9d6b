//! One low-level handler serves three versions of HTTP.

use crate::world::{PATIENCE, VERSIONS, World, text};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;
use tercel::client::HttpChoice;
use tercel::low::{
    self, Content, ContentError, Context, Handler, Head, Received, RequestHead, Trailers, Upload,
};
use tercel::{Body, Client};
use tokio::time::timeout;

/// Content that begins with it is taken up to here, and then when the gate opens.
const PAUSES: u8 = b'P';
const BEFORE_PAUSE: usize = 1_000;
/// Content that begins with it is kept, by what the handler says, in this much memory: bytes.
const KEEPS: u8 = b'K';
const KEPT: usize = 1 << 30;
/// Content that begins with it makes the handler panic.
const PANICS: u8 = b'X';

/// What is kept of a head.
#[derive(Default)]
struct Kept {
    method: Vec<u8>,
    path: Vec<u8>,
    mine: Option<Vec<u8>>,
    refused: u16,
}

impl Head for Kept {
    fn on_request(&mut self, request: &RequestHead<'_>) {
        self.method = request.method().to_vec();
        self.path = request.path().unwrap_or_default().to_vec();
        self.mine = request.field(b"x-mine").map(<[u8]>::to_vec);
        assert_eq!(request.scheme(), Some(&b"https"[..]));
        assert!(request.authority().is_some_and(|authority| authority.starts_with(b"localhost:")));
        assert!(self.path != b"/panic/head", "on purpose");
    }

    fn on_refused(&mut self, status: u16) {
        self.refused = status;
    }

    fn has_begun(&self) -> bool {
        self.path == b"/begun"
    }
}

/// What paused content waits for.
#[derive(Default)]
struct Gate {
    is_open: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl Gate {
    fn open(&self) {
        self.is_open.store(true, Ordering::Release);
        self.wakers.lock().unwrap().drain(..).for_each(Waker::wake);
    }
}

/// Counts.
#[derive(Default)]
struct Count {
    bytes: usize,
    trailers: usize,
    has_ended: bool,
    pauses: bool,
    keeps: bool,
    gate: Option<Arc<Gate>>,
}

impl Upload for Count {
    fn on_body(&mut self, bytes: &[u8]) -> usize {
        if self.bytes == 0 {
            assert!(bytes[0] != PANICS, "on purpose");
            self.pauses = bytes[0] == PAUSES;
            self.keeps = bytes[0] == KEEPS;
        }
        let is_open = self.gate.as_ref().is_some_and(|gate| gate.is_open.load(Ordering::Acquire));
        let limit = if self.pauses && !is_open { BEFORE_PAUSE - self.bytes } else { usize::MAX };
        let taken = bytes.len().min(limit);
        self.bytes += taken;
        taken
    }

    fn on_trailers(&mut self, trailers: &Trailers<'_>) {
        self.trailers += trailers.fields().len();
    }

    fn on_end(&mut self) {
        self.has_ended = true;
    }

    fn has_room(&self) -> bool {
        !self.pauses
            || self.bytes < BEFORE_PAUSE
            || self.gate.as_ref().is_some_and(|gate| gate.is_open.load(Ordering::Acquire))
    }

    fn memory(&self) -> usize {
        if self.keeps { KEPT } else { 0 }
    }
}

/// Gives each byte of a text by itself, after another thread has called.
struct Slow {
    left: Bytes,
    is_called: bool,
}

impl Content for Slow {
    fn poll_chunk(&mut self, _: usize, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, ContentError>> {
        assert!(self.left.first() != Some(&b'?'), "on purpose");
        if self.left.first() == Some(&b'!') {
            return Poll::Ready(Err(ContentError));
        }
        if !std::mem::replace(&mut self.is_called, true) {
            let waker = cx.waker();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(1));
                waker.wake();
            });
            return Poll::Pending;
        }
        self.is_called = false;
        let len = self.left.len().min(1);
        Poll::Ready(Ok((len > 0).then(|| self.left.split_to(len))))
    }

    fn remaining(&self) -> Option<u64> {
        // Of unknown length while there is any.
        self.left.is_empty().then_some(0)
    }

    fn trailers(&mut self) -> Option<HeaderMap> {
        Some(HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("end"))]))
    }
}

struct Echo(Arc<Gate>);

fn respond(status: u16, text: String) -> low::Response<HeaderMap, Slow> {
    let mut fields = HeaderMap::new();
    if text.is_empty() {
        fields.insert(header::CONTENT_LENGTH, 0.into());
    }
    low::Response { status, fields, body: Slow { left: text.into(), is_called: false } }
}

impl Handler for Echo {
    type Head = Kept;
    type Upload = Count;
    type Content = Slow;
    type Fields = HeaderMap;

    fn handle(
        &mut self,
        request: low::Request<'_, Echo>,
        cx: &Context<'_>,
    ) -> Poll<low::Response<HeaderMap, Slow>> {
        let low::Request { head, upload, received, connection } = request;
        if head.refused > 0 {
            return Poll::Ready(respond(head.refused, String::new()));
        }
        match head.path.as_slice() {
            b"/early" => return Poll::Ready(respond(403, String::new())),
            b"/broken" => return Poll::Ready(respond(200, "a!".to_owned())),
            b"/panic/content" => return Poll::Ready(respond(200, "a?".to_owned())),
            b"/panic/handler" => assert!(head.mine.is_none(), "on purpose"),
            b"/peer" => return Poll::Ready(respond(200, connection.peer().to_string())),
            b"/paused" if upload.gate.is_none() => {
                self.0.wakers.lock().unwrap().push(cx.waker());
                upload.gate = Some(Arc::clone(&self.0));
                return Poll::Pending;
            }
            _ if received == Received::Open => return Poll::Pending,
            _ => {}
        }
        assert!(upload.has_ended);
        let method = String::from_utf8_lossy(&head.method).into_owned();
        let mine = head.mine.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
        let seen = format!("{method} {} {} {} {mine}", connection.alpn(), upload.bytes, upload.trailers);
        let text = if method == "HEAD" { String::new() } else { seen };
        Poll::Ready(respond(200, text))
    }

    fn put_off(&mut self, _: &Context<'_>) -> low::Response<HeaderMap, Slow> {
        respond(503, String::new())
    }
}

fn world(gate: &Arc<Gate>) -> World {
    let gate = Arc::clone(gate);
    World::by(|builder| builder.bind().unwrap().serve_handler(move |_| Echo(Arc::clone(&gate))).unwrap())
}

async fn ask(
    client: &Client,
    world: &World,
    method: Method,
    path: &str,
    content: Body,
) -> http::Response<Body> {
    let request = Request::builder().method(method).uri(world.url(path)).header("x-mine", "7");
    let asked = client.request(request.body(content).unwrap());
    timeout(PATIENCE, asked).await.unwrap().unwrap()
}

/// Deleted, a handler could miss parts of a request over one of the versions, or its response lose some.
#[tokio::test]
async fn one_handler_answers_alike_over_three_versions() {
    let world = world(&Arc::default());
    for (choice, alpn) in VERSIONS.into_iter().zip(["http/1.1", "h2", "h3"]) {
        let client = world.client(choice);
        for bytes in [0, 1, 999, 300_000] {
            let content = Body::from(vec![7; bytes]);
            let response = ask(&client, &world, Method::POST, "/", content).await;
            assert_eq!(text(response).await, format!("POST {alpn} {bytes} 0 7"), "{choice:?}");
        }
        assert_eq!(
            text(ask(&client, &world, Method::GET, "/", Body::empty()).await).await,
            format!("GET {alpn} 0 0 7")
        );
        let head = ask(&client, &world, Method::HEAD, "/", Body::empty()).await;
        assert_eq!((head.status(), text(head).await.as_str()), (StatusCode::OK, ""), "{choice:?}");
    }
}

/// Deleted, trailers could be lost in one of the directions.
#[tokio::test]
async fn trailers_pass_in_both_directions_where_the_version_has_them() {
    let world = world(&Arc::default());
    for choice in [HttpChoice::Http2, HttpChoice::Http3] {
        let client = world.client(choice);
        let (mut sender, body) = Body::channel(100);
        sender.send("abc".into()).await.unwrap();
        sender.finish(Some(HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("1"))])));
        let mut response = ask(&client, &world, Method::POST, "/", body).await;
        let mut seen = Vec::new();
        while let Some(chunk) = response.body_mut().chunk().await.unwrap() {
            seen.extend_from_slice(&chunk);
        }
        assert!(seen.ends_with(b" 3 1 7"), "{choice:?}: {}", String::from_utf8_lossy(&seen));
        let trailers = response.body_mut().trailers().await.unwrap();
        assert_eq!(trailers.unwrap()["etag"], "end", "{choice:?}");
    }
}

/// Deleted, an answer could wait for content that it does not want, or a broken response pass for whole.
#[tokio::test]
async fn early_answers_and_broken_content_end_one_request() {
    let world = world(&Arc::default());
    for choice in VERSIONS {
        let client = world.client(choice);
        let (mut sender, body) = Body::channel(1_000);
        sender.send("abc".into()).await.unwrap();
        let early = ask(&client, &world, Method::POST, "/early", body).await;
        assert_eq!(early.status(), StatusCode::FORBIDDEN, "{choice:?}");
        drop(sender);
        let broken = ask(&client, &world, Method::GET, "/broken", Body::empty()).await;
        let content = timeout(PATIENCE, broken.into_body().collect(100)).await.unwrap();
        assert!(content.is_err(), "{choice:?}");
        assert_eq!(ask(&client, &world, Method::GET, "/", Body::empty()).await.status(), StatusCode::OK);
    }
}

/// Deleted, what a handler does not take could fill the memory, or a handler that takes again could get nothing.
#[tokio::test]
async fn content_that_is_not_taken_holds_back_the_client_over_three_versions() {
    for choice in VERSIONS {
        let gate = Arc::new(Gate::default());
        let world = world(&gate);
        let (mut sender, body) = Body::channel(100_000);
        let client = world.client(choice);
        let url = world.url("/paused");
        let asked = tokio::spawn(async move {
            let request = Request::post(url).header("x-mine", "7").body(body).unwrap();
            text(client.request(request).await.unwrap()).await
        });
        let chunk = Bytes::from(vec![PAUSES; 64 << 10]);
        let mut sent = 0;
        // What both ends and the kernel hold is a fraction of this.
        while sent < 64 << 20 {
            if timeout(Duration::from_millis(200), sender.send(chunk.clone())).await.is_err() {
                break;
            }
            sent += chunk.len();
        }
        assert!(sent < 64 << 20, "{choice:?}");
        gate.open();
        sender.send("end".into()).await.unwrap();
        sender.finish(None);
        let seen = timeout(PATIENCE, asked).await.unwrap().unwrap();
        let bytes: usize = seen.split(' ').nth(2).unwrap().parse().unwrap();
        assert_eq!(bytes, sent + 3, "{choice:?}");
    }
}

/// Deleted, a panic could end a connection of many requests, or a thread.
#[tokio::test]
async fn a_panic_of_a_handler_ends_one_request() {
    let world = world(&Arc::default());
    for choice in VERSIONS {
        let client = world.client(choice);
        let peer = async || text(ask(&client, &world, Method::GET, "/peer", Body::empty()).await).await;
        let before = peer().await;
        for path in ["/panic/head", "/panic/handler"] {
            let failed = ask(&client, &world, Method::GET, path, Body::empty()).await;
            assert_eq!(failed.status(), StatusCode::INTERNAL_SERVER_ERROR, "{choice:?} {path}");
        }
        let content = Body::from(vec![PANICS; 100]);
        let failed = ask(&client, &world, Method::POST, "/", content).await;
        assert_eq!(failed.status(), StatusCode::INTERNAL_SERVER_ERROR, "{choice:?}");
        let cut = ask(&client, &world, Method::GET, "/panic/content", Body::empty()).await;
        assert!(timeout(PATIENCE, cut.into_body().collect(100)).await.unwrap().is_err(), "{choice:?}");
        let after = peer().await;
        // HTTP/1.1 has no other way to cut a response than to close.
        assert!(choice == HttpChoice::Http1 || before == after, "{choice:?}: {before} {after}");
    }
}

/// Asks until the answer has this status.
async fn becomes(client: &Client, world: &World, status: StatusCode) {
    let asked = async {
        while ask(client, world, Method::GET, "/", Body::empty()).await.status() != status {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(PATIENCE, asked).await.is_ok(), "never {status}");
}

/// Deleted, a handler that keeps content could hold more than the server's limit over one of the versions.
#[tokio::test]
async fn what_a_handler_keeps_of_requests_counts_for_the_limit_of_memory() {
    let gate = Arc::default();
    let world = World::by(|builder| {
        let limits = tercel::Limits::default().memory(KEPT as u64 / 2);
        let gate = Arc::clone(&gate);
        builder.limits(limits).bind().unwrap().serve_handler(move |_| Echo(Arc::clone(&gate))).unwrap()
    });
    for choice in VERSIONS {
        let (holder, other) = (world.client(choice), world.client(choice));
        let (mut sender, body) = Body::channel(100);
        // It is not put off itself.
        let held = ask(&holder, &world, Method::POST, "/begun", body);
        let others = async {
            assert_eq!(ask(&other, &world, Method::GET, "/", Body::empty()).await.status(), StatusCode::OK);
            sender.send(vec![KEEPS; 100].into()).await.unwrap();
            becomes(&other, &world, StatusCode::SERVICE_UNAVAILABLE).await;
            sender.finish(None);
        };
        let (response, ()) = tokio::join!(held, others);
        assert_eq!(response.status(), StatusCode::OK, "{choice:?}");
        becomes(&other, &world, StatusCode::OK).await;
    }
}
