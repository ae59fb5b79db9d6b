//! Content that is lent to a sink: order, pauses, ends.

use crate::world::{PATIENCE, World};
use axum::Router;
use axum::extract::Request as Incoming;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response as Outgoing};
use axum::routing::{any, get};
use bytes::Bytes;
use http::{Request, Response};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tercel::client::{BodySink, Control, HttpChoice, Kind, PathReport, Phase, Used};
use tercel::{Body, Client};
use tokio::time::timeout;

const VERSIONS: [HttpChoice; 3] = [HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3];

/// What a sink was told.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Connection,
    Head(u16),
    Bytes(usize),
    /// It took less than it was lent.
    Pause,
}

/// Takes this much in all, and pauses then until it is allowed more.
struct Sink {
    allowed: Arc<AtomicU64>,
    taken: Vec<u8>,
    tell: Sender<Told>,
    control: Arc<Mutex<Option<Control>>>,
}

impl BodySink for Sink {
    fn on_connection(&mut self, _: &Used, control: Control) {
        *self.control.lock().unwrap() = Some(control);
        let _ = self.tell.send(Told::Connection);
    }

    fn on_head(&mut self, head: &Response<()>) {
        let _ = self.tell.send(Told::Head(head.status().as_u16()));
    }

    fn on_body(&mut self, bytes: &[u8]) -> usize {
        let room = self.allowed.load(Ordering::SeqCst) - self.taken.len() as u64;
        let taken = bytes.len().min(usize::try_from(room).unwrap());
        self.taken.extend_from_slice(&bytes[..taken]);
        let _ = self.tell.send(if taken < bytes.len() { Told::Pause } else { Told::Bytes(taken) });
        taken
    }
}

/// A sink, what steers it, and what it was told.
struct Steered {
    allowed: Arc<AtomicU64>,
    control: Arc<Mutex<Option<Control>>>,
    told: Receiver<Told>,
}

impl Steered {
    fn new(allowed: u64) -> (Sink, Steered) {
        let (tell, told) = channel();
        let (allowed, control) = (Arc::new(AtomicU64::new(allowed)), Arc::default());
        let sink =
            Sink { allowed: Arc::clone(&allowed), taken: Vec::new(), tell, control: Arc::clone(&control) };
        (sink, Steered { allowed, control, told })
    }

    fn control(&self) -> Control {
        self.control.lock().unwrap().clone().unwrap()
    }

    /// Waits until the sink has begun a pause.
    async fn paused(&self) {
        let waiting = async {
            loop {
                match self.told.try_recv() {
                    Ok(Told::Pause) => return,
                    Ok(_) => {}
                    Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
                }
            }
        };
        timeout(PATIENCE, waiting).await.unwrap();
    }
}

fn content(length: u32) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

fn request(url: String) -> Request<Body> {
    Request::get(url).body(Body::empty()).unwrap()
}

fn site() -> Router {
    let trailers = async || {
        let (mut sender, body) = Body::channel(1 << 16);
        tokio::spawn(async move {
            let _ = sender.send("content".into()).await;
            sender.finish(Some(HeaderMap::from_iter([("x-sum".parse().unwrap(), "3".parse().unwrap())])));
        });
        Outgoing::new(axum::body::Body::new(body))
    };
    Router::new()
        .route("/content", get(async || content(500_000)))
        .route("/trailers", get(trailers))
        .route(
            "/found",
            get(async || (axum::http::StatusCode::FOUND, [("location", "/content")], "elsewhere")),
        )
        .route(
            "/kept",
            any(async |_: Incoming| (axum::http::StatusCode::FOUND, "no location").into_response()),
        )
        .route("/never", get(async || std::future::pending::<&'static str>().await))
}

/// Deleted, a sink could get the content of a redirect, or bytes before their head.
#[tokio::test]
async fn a_sink_gets_connection_head_and_content_in_this_order() {
    let world = World::new(site());
    for version in VERSIONS {
        let client = world.client(version);
        for (path, connections) in [("/content", 1), ("/found", 2)] {
            let (sink, steered) = Steered::new(u64::MAX);
            let received = client.request_into(request(world.url(path)), sink).await.unwrap();
            assert!(received.sink.taken == content(500_000), "{version:?} {path}");
            assert_eq!((received.bytes, received.response.status().as_u16()), (500_000, 200));
            let used = received.response.extensions().get::<Used>().unwrap();
            assert_eq!(used.uri.path(), "/content");
            let report = received.response.extensions().get::<PathReport>();
            assert_eq!(report.is_some(), version == HttpChoice::Http3);
            assert!(report.is_none_or(|report| report.received_packets > 0 && report.peer == used.peer));
            let told: Vec<Told> = steered.told.try_iter().collect();
            let begins: Vec<Told> =
                (0..connections).map(|_| Told::Connection).chain([Told::Head(200)]).collect();
            assert_eq!(told[..=connections], begins, "{version:?} {path}");
            assert!(told[connections + 1..].iter().all(|told| matches!(told, Told::Bytes(1..))));
        }
        let closure = |bytes: &[u8]| bytes.len();
        let received = client.request_into(request(world.url("/trailers")), closure).await.unwrap();
        assert_eq!(received.bytes, 7, "{version:?}");
        if version != HttpChoice::Http1 {
            // RFC 9112 §7.1.2: a server sends none there to a client that does not ask.
            assert_eq!(received.trailers.unwrap()["x-sum"], "3", "{version:?}");
        }
        let (sink, _steered) = Steered::new(u64::MAX);
        let kept = client.request_into(request(world.url("/kept")), sink).await.unwrap();
        assert_eq!((kept.response.status().as_u16(), kept.sink.taken), (302, b"no location".to_vec()));
    }
}

/// Deleted, a sink that is slow would have content pile up, or hear of no more of it after its pause.
#[tokio::test]
async fn a_sink_that_takes_less_holds_up_the_server_until_it_resumes() {
    let produced = Arc::new(AtomicU64::new(0));
    let ours = Arc::clone(&produced);
    let many = async move || {
        let (mut sender, body) = Body::channel(1 << 16);
        tokio::spawn(async move {
            for _ in 0..4_096 {
                if sender.send(Bytes::from_static(&[7; 16_384])).await.is_err() {
                    return;
                }
                ours.fetch_add(16_384, Ordering::SeqCst);
            }
            sender.finish(None);
        });
        Outgoing::new(axum::body::Body::new(body))
    };
    let world = World::new(Router::new().route("/many", get(many)));
    for version in VERSIONS {
        produced.store(0, Ordering::SeqCst);
        // The pause is no silence of the server.
        let client = world.builder(version).silence(Some(Duration::from_millis(100))).build().unwrap();
        let (sink, steered) = Steered::new(100_000);
        let request = request(world.url("/many"));
        let receiving = tokio::spawn(async move { client.request_into(request, sink).await });
        steered.paused().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let held_up = produced.load(Ordering::SeqCst);
        assert!(held_up < 48 << 20, "{version:?}: {held_up} bytes");
        assert!(!receiving.is_finished(), "{version:?}");
        steered.allowed.store(u64::MAX, Ordering::SeqCst);
        steered.control().resume();
        let received = timeout(PATIENCE, receiving).await.unwrap().unwrap().unwrap();
        assert_eq!(received.bytes, 64 << 20, "{version:?}");
        assert_eq!(received.sink.taken.len(), 64 << 20, "{version:?}");
    }
}

/// Deleted, a sink that panics could end the connections of all requests, or a request that was given up could go on.
#[tokio::test]
async fn panics_and_cancellation_end_one_request_alone() {
    let world = World::new(site());
    for version in VERSIONS {
        let client = world.client(version);
        let panics = |_: &[u8]| -> usize { panic!("as the test wants it") };
        let error = client.request_into(request(world.url("/content")), panics).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Sink, "{version:?}: {error}");
        let (sink, steered) = Steered::new(1_000);
        let (asking, asked) = (client.clone(), request(world.url("/content")));
        let receiving = tokio::spawn(async move { asking.request_into(asked, sink).await });
        steered.paused().await;
        steered.control().cancel();
        let error = timeout(PATIENCE, receiving).await.unwrap().unwrap().unwrap_err();
        assert_eq!(error.kind(), Kind::Cancelled, "{version:?}: {error}");
        assert_eq!(error.path().is_some(), version == HttpChoice::Http3, "{version:?}");
        let response = client.get(world.url("/content")).await.unwrap();
        assert_eq!(response.into_body().collect(1 << 20).await.unwrap().len(), 500_000, "{version:?}");
        if version == HttpChoice::Http3 {
            let reused = client.get(world.url("/content")).await.unwrap();
            assert!(reused.extensions().get::<Used>().unwrap().is_reused);
        }
    }
}

/// Deleted, a sink could outlive its future for ever, or a silent server hold up a request.
#[tokio::test]
async fn a_dropped_future_drops_its_sink_and_silence_ends_it() {
    let world = World::new(site());
    for version in VERSIONS {
        let client = world.builder(version).silence(Some(Duration::from_millis(200))).build().unwrap();
        let (sink, _steered) = Steered::new(u64::MAX);
        let error = client.request_into(request(world.url("/never")), sink).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Timeout(Phase::Silence), "{version:?}: {error}");
        let (sink, steered) = Steered::new(1_000);
        let (asking, asked): (Client, _) = (client.clone(), request(world.url("/content")));
        let receiving = tokio::spawn(async move { asking.request_into(asked, sink).await });
        steered.paused().await;
        receiving.abort();
        let dropped = async {
            while !matches!(steered.told.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected)) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(PATIENCE, dropped).await.unwrap_or_else(|_| panic!("{version:?}: the sink is kept"));
    }
}
