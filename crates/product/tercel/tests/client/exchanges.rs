//! Content in both directions, redirects, and what is dropped.

use crate::world::{PATIENCE, World};
use axum::Router;
use axum::extract::Request as Incoming;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response as Outgoing};
use axum::routing::{any, get, post};
use bytes::Bytes;
use http::{Request, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tercel::client::{HttpChoice, Kind, Redirects, Used};
use tercel::{Body, Client};
use tokio::time::timeout;
use tower_service::Service as _;

const VERSIONS: [HttpChoice; 3] = [HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3];

fn content(length: u32) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

fn echo() -> Router {
    Router::new().route("/echo", post(async |request: Incoming| Outgoing::new(request.into_body())))
}

async fn post_to(client: &Client, url: &str, content: impl Into<Body>) -> Response<Body> {
    client.request(Request::post(url).body(content.into()).unwrap()).await.unwrap()
}

/// Deleted, content could come back changed, or only whole.
#[tokio::test]
async fn content_streams_both_ways_at_the_same_time() {
    let world = World::new(echo());
    for version in VERSIONS {
        let client = world.client(version);
        let all = content(3_000_000);
        let response = post_to(&client, &world.url("/echo"), all.clone()).await;
        assert!(response.into_body().collect(1 << 22).await.unwrap() == all, "{version:?}");
        if version == HttpChoice::Http1 {
            // The server reads all of a request before it writes more than a bounded part of its response.
            continue;
        }
        let (mut sender, body) = Body::channel(1 << 16);
        let mut response = post_to(&client, &world.url("/echo"), body).await;
        for word in ["one", "two", "three"] {
            sender.send(word.into()).await.unwrap();
            let chunk = timeout(PATIENCE, response.body_mut().chunk()).await.unwrap().unwrap();
            assert_eq!(chunk, Some(Bytes::from(word)), "{version:?}: an answer to each word");
        }
        let trailers = HeaderMap::from_iter([("x-sum".parse().unwrap(), "3".parse().unwrap())]);
        sender.finish(Some(trailers));
        let trailers = response.body_mut().trailers().await.unwrap().unwrap();
        assert_eq!(trailers["x-sum"], "3", "{version:?}");
    }
}

/// Deleted, a slow reader would let content pile up in memory, here or at the server.
#[tokio::test]
async fn a_reader_that_waits_holds_up_the_writer() {
    let produced = Arc::new(AtomicU64::new(0));
    let ours = Arc::clone(&produced);
    let endless = async move || {
        let (mut sender, body) = Body::channel(1 << 16);
        tokio::spawn(async move {
            while sender.send(Bytes::from_static(&[7; 16_384])).await.is_ok() {
                ours.fetch_add(16_384, Ordering::Relaxed);
            }
        });
        Outgoing::new(axum::body::Body::new(body))
    };
    let never = async |_: Incoming| std::future::pending::<&'static str>().await;
    let world = World::new(Router::new().route("/endless", get(endless)).route("/never", post(never)));
    for version in VERSIONS {
        let client = world.client(version);
        produced.store(0, Ordering::Relaxed);
        let mut response = client.get(world.url("/endless")).await.unwrap();
        response.body_mut().chunk().await.unwrap().unwrap();
        let settled = settle(|| produced.load(Ordering::Relaxed)).await;
        assert!(settled < 32 << 20, "{version:?}: {settled} bytes");
        drop(response);
        // The handler of an upload that is never read.
        let (mut sender, body) = Body::channel(1 << 16);
        let sent = Arc::new(AtomicU64::new(0));
        let (url, count) = (world.url("/never"), Arc::clone(&sent));
        let upload = tokio::spawn(async move { post_to(&client, &url, body).await });
        let writer = tokio::spawn(async move {
            while sender.send(Bytes::from_static(&[7; 16_384])).await.is_ok() {
                count.fetch_add(16_384, Ordering::Relaxed);
            }
        });
        let settled = settle(|| sent.load(Ordering::Relaxed)).await;
        assert!(settled < 32 << 20, "{version:?}: {settled} bytes");
        upload.abort();
        // Its content is dropped with the request.
        timeout(PATIENCE, writer).await.unwrap_or_else(|_| panic!("{version:?}: content is kept")).unwrap();
    }
}

/// Deleted, a server could wait for a client that has given up both a response and what it sends, where the server reads neither.
#[tokio::test]
async fn dropping_the_content_ends_an_upload_that_the_server_does_not_read() {
    let held = Arc::new(AtomicUsize::new(0));
    let ours = Arc::clone(&held);
    let deaf = async move |request: Incoming| {
        let (mut sender, body) = Body::channel(1 << 16);
        ours.fetch_add(1, Ordering::Relaxed);
        let ours = Arc::clone(&ours);
        tokio::spawn(async move {
            let _unread = request;
            while sender.send(Bytes::from_static(&[7; 16_384])).await.is_ok() {}
            ours.fetch_sub(1, Ordering::Relaxed);
        });
        Outgoing::new(axum::body::Body::new(body))
    };
    let world = World::new(Router::new().route("/deaf", post(deaf)));
    // hyper keeps a stream of HTTP/2 until the server grants room for more content.
    for version in [HttpChoice::Http1, HttpChoice::Http3] {
        let client = world.client(version);
        let (mut sender, body) = Body::channel(1 << 16);
        let response = post_to(&client, &world.url("/deaf"), body).await;
        let sent = AtomicU64::new(0);
        let full = async {
            while sender.send(Bytes::from_static(&[7; 16_384])).await.is_ok() {
                sent.fetch_add(16_384, Ordering::Relaxed);
            }
        };
        tokio::select! {
            () = full => panic!("{version:?}: the upload ends"),
            sent = settle(|| sent.load(Ordering::Relaxed)) => assert!(sent < 64 << 20, "{version:?}: {sent} bytes"),
        }
        assert_eq!(held.load(Ordering::Relaxed), 1);
        drop(response);
        let heard = async {
            while held.load(Ordering::Relaxed) != 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, heard).await.unwrap_or_else(|_| panic!("{version:?}: the server waits"));
    }
}

/// A number once it does not grow any more.
async fn settle(number: impl Fn() -> u64) -> u64 {
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let now = number();
        if now == before && now > 0 || now > 1 << 30 {
            return now;
        }
        before = now;
    }
}

/// Deleted, the server could go on with a request that was cancelled.
#[tokio::test]
async fn dropping_the_future_or_the_content_cancels_the_request() {
    struct Running(Arc<AtomicUsize>);
    impl Drop for Running {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let running = Arc::new(AtomicUsize::new(0));
    let ours = Arc::clone(&running);
    let enter = move || {
        ours.fetch_add(1, Ordering::Relaxed);
        Running(Arc::clone(&ours))
    };
    let entered = enter.clone();
    let slow = async move || {
        let _running = entered();
        std::future::pending::<&'static str>().await
    };
    let endless = async move || {
        let running = enter();
        let (mut sender, body) = Body::channel(1 << 16);
        tokio::spawn(async move {
            let _running = running;
            while sender.send(Bytes::from_static(&[7; 1_000])).await.is_ok() {}
        });
        Outgoing::new(axum::body::Body::new(body))
    };
    let world = World::new(Router::new().route("/slow", get(slow)).route("/endless", get(endless)));
    let until = async |count: usize| {
        let reached = async {
            while running.load(Ordering::Relaxed) != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("not {count} requests run"));
    };
    for version in VERSIONS {
        let client = world.client(version);
        let (asking, url) = (client.clone(), world.url("/slow"));
        let request = tokio::spawn(async move { asking.get(url).await });
        until(1).await;
        request.abort();
        until(0).await;
        let response = client.get(world.url("/endless")).await.unwrap();
        until(1).await;
        drop(response);
        until(0).await;
    }
}

fn redirecting() -> Router {
    let to =
        |status: u16, location: String| (StatusCode::from_u16(status).unwrap(), [("location", location)]);
    let step = async move |uri: Uri| {
        let left: u32 = uri.query().unwrap().parse().unwrap();
        match left {
            0 => "there".into_response(),
            left => to(302, format!("/step?{}", left - 1)).into_response(),
        }
    };
    let shown = async |request: Incoming| {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let secret = head.headers.contains_key("authorization");
        format!("{} {} {secret}", head.method, String::from_utf8_lossy(&body))
    };
    Router::new()
        .route("/step", get(step))
        .route("/shown", any(shown))
        .route("/see", post(async move || to(303, "/shown".to_owned())))
        .route("/keep", post(async move || to(307, "/shown".to_owned())))
        .route("/plain", get(async move || to(301, "http://localhost/".to_owned())))
}

#[tokio::test]
async fn redirects_are_followed_within_their_limit() {
    let world = World::new(redirecting());
    for version in VERSIONS {
        let client = world.client(version);
        let response = client.get(world.url("/step?10")).await.unwrap();
        let used = response.extensions().get::<Used>().unwrap();
        assert_eq!(used.uri.to_string(), world.url("/step?0"));
        assert_eq!(response.into_body().collect(99).await.unwrap(), "there");
        let error = client.get(world.url("/step?11")).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Redirect, "{error}");
        assert_eq!(client.get(world.url("/plain")).await.unwrap_err().kind(), Kind::Redirect);
        for (path, shown) in [("/see", "GET  true"), ("/keep", "POST content true")] {
            let request = Request::post(world.url(path)).header("authorization", "secret").body("content");
            let response = client.request(request.unwrap()).await.unwrap();
            assert_eq!(response.into_body().collect(99).await.unwrap(), shown, "{version:?}");
        }
        let client = world.builder(version).redirects(Redirects::None).build().unwrap();
        let response = client.get(world.url("/step?1")).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["location"]),
            (302, &"/step?0".parse().unwrap())
        );
    }
}

/// Deleted, what is begun could be lost with the client, or its threads could stay.
#[tokio::test]
async fn content_is_read_to_its_end_after_the_last_client_is_gone() {
    let world = World::new(echo());
    for version in VERSIONS {
        let client = world.client(version);
        let all = content(2_000_000);
        let response = post_to(&client, &world.url("/echo"), all.clone()).await;
        drop(client);
        assert!(timeout(PATIENCE, response.into_body().collect(1 << 22)).await.unwrap().unwrap() == all);
    }
}

#[tokio::test]
async fn a_client_is_a_tower_service() {
    let world = World::new(echo());
    let client = world.client(HttpChoice::Auto);
    let request = |body: &'static str| Request::post(world.url("/echo")).body(Body::from(body)).unwrap();
    let response = (&client).call(request("by reference")).await.unwrap();
    assert_eq!(response.into_body().collect(99).await.unwrap(), "by reference");
    let mut client = client;
    let foreign = request("foreign").map(axum::body::Body::new);
    let response = client.call(foreign).await.unwrap();
    assert_eq!(response.into_body().collect(99).await.unwrap(), "foreign");
}

/// Deleted, content of a request that fails could pass for a complete one.
#[tokio::test]
async fn content_that_fails_ends_the_request() {
    let world = World::new(echo());
    for version in VERSIONS {
        let client = world.client(version);
        let (mut sender, body) = Body::channel(1 << 16);
        sender.send("half".into()).await.unwrap();
        sender.abort("as the test wants it");
        let request = Request::post(world.url("/echo")).body(body).unwrap();
        let outcome = match client.request(request).await {
            Ok(response) => response.into_body().collect(99).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        assert!(outcome.is_err(), "{version:?}");
    }
}
