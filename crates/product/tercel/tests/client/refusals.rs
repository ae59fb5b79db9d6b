//! Servers that do not look at a request: what is sent again, and where.
//!
//! The server is QUIC of this library and HTTP/3 of a few bytes, so that it can do what a good server never does.

use crate::world::{PATIENCE, Relay, Udp, World};
use axum::Router;
use axum::routing::{get, post};
use http::{Request, Version};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tercel::client::{HttpChoice, Kind, Used};
use tercel::quic::{Connection, Endpoint, SendStream, VarInt};
use tokio::time::timeout;

const REQUEST_REJECTED: u32 = 0x10b;
const VERSION_FALLBACK: u32 = 0x110;
/// A control stream with empty SETTINGS. RFC 9114 §6.2.1 and §7.2.4.
const CONTROL: &[u8] = &[0x00, 0x04, 0x00];
/// GOAWAY with the first request's stream. RFC 9114 §7.2.6.
const GOAWAY: &[u8] = &[0x07, 0x01, 0x00];
/// HEADERS with `:status: 200` of QPACK's static table, and DATA with "ok". RFC 9114 §7.2, RFC 9204 appendix A.
const RESPONSE: &[u8] = &[0x01, 0x03, 0x00, 0x00, 0xd9, 0x00, 0x02, b'o', b'k'];

/// What is done with a request.
#[derive(Clone, Copy)]
enum Act {
    Respond,
    Reset(u32),
    /// GOAWAY says that it was not looked at.
    GoAway,
}

/// Serves by `act`, which is told the number of the request over all connections, from 0. Returns how many connections there were.
fn serve(endpoint: Endpoint, act: fn(usize) -> Act) -> Arc<AtomicUsize> {
    let connections = Arc::new(AtomicUsize::new(0));
    let (count, requests) = (Arc::clone(&connections), Arc::new(AtomicUsize::new(0)));
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let Ok(connecting) = incoming.accept() else { continue };
            count.fetch_add(1, Ordering::SeqCst);
            let requests = Arc::clone(&requests);
            tokio::spawn(async move {
                if let Ok(connection) = connecting.await {
                    converse(connection, &requests, act).await;
                }
            });
        }
    });
    connections
}

async fn converse(connection: Connection, requests: &AtomicUsize, act: fn(usize) -> Act) {
    let mut control = connection.open_uni().await.unwrap();
    control.write_all(CONTROL).await.unwrap();
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        match act(requests.fetch_add(1, Ordering::SeqCst)) {
            Act::Respond => {
                let _ = receive.read_to_end(1 << 20).await;
                respond(&mut send).await;
            }
            Act::Reset(code) => {
                let _ = send.reset(VarInt::from_u32(code));
                let _ = receive.stop(VarInt::from_u32(code));
            }
            Act::GoAway => {
                control.write_all(GOAWAY).await.unwrap();
                // The client closes the connection.
                let _ = connection.closed().await;
            }
        }
    }
}

async fn respond(send: &mut SendStream) {
    let _ = send.write_all(RESPONSE).await;
    let _ = send.finish();
}

/// Deleted, a request that the server has not looked at would fail, or one with content would come without it.
#[tokio::test]
async fn a_rejected_request_is_sent_again_three_times_whatever_its_method() {
    let world = World::new(Router::new());
    let endpoint = world.endpoint(0);
    let port = endpoint.local_addr().unwrap().port();
    // Of eight requests the fourth and the eighth are answered; then none is.
    let connections = serve(endpoint, |number| match number {
        3 | 7 => Act::Respond,
        _ => Act::Reset(REQUEST_REJECTED),
    });
    let client = world.client(HttpChoice::Http3);
    let ask = || Request::post(format!("https://localhost:{port}/")).body("content").unwrap();
    for _ in 0..2 {
        let response = timeout(PATIENCE, client.request(ask())).await.unwrap().unwrap();
        assert_eq!(response.into_body().collect(9).await.unwrap(), "ok");
    }
    let error = timeout(PATIENCE, client.request(ask())).await.unwrap().unwrap_err();
    assert!(error.kind() == Kind::Lost && error.is_retryable(), "{error:?}");
    assert_eq!(connections.load(Ordering::SeqCst), 1, "a rejected request leaves its connection");
}

/// Deleted, a server that leaves could take requests with it, or get more of them.
#[tokio::test]
async fn after_goaway_requests_go_to_another_connection() {
    let world = World::new(Router::new());
    let endpoint = world.endpoint(0);
    let port = endpoint.local_addr().unwrap().port();
    let connections = serve(endpoint, |number| if number == 0 { Act::GoAway } else { Act::Respond });
    let client = world.client(HttpChoice::Http3);
    let ask = || Request::post(format!("https://localhost:{port}/")).body("content").unwrap();
    for reused in [false, true] {
        let response = timeout(PATIENCE, client.request(ask())).await.unwrap().unwrap();
        assert_eq!(response.extensions().get::<Used>().unwrap().is_reused, reused);
        assert_eq!(response.into_body().collect(9).await.unwrap(), "ok");
        assert_eq!(connections.load(Ordering::SeqCst), 2);
    }
}

/// Deleted, a server could not ask for a request over another version (RFC 9114 §8.1).
#[tokio::test]
async fn a_version_fallback_leads_to_tcp() {
    let world = World::new(Router::new().route("/", post(async || "over TCP").get(async || "over TCP")));
    let relay = Relay::new(world.server.local_addr(), Udp::Closed).await;
    let connections = serve(world.endpoint(relay.port), |_| Act::Reset(VERSION_FALLBACK));
    let client = world.client(HttpChoice::Auto);
    let request = Request::post(relay.url("/")).body("content").unwrap();
    let response = timeout(PATIENCE, client.request(request)).await.unwrap().unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(response.into_body().collect(99).await.unwrap(), "over TCP");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

/// Deleted, credentials could follow a redirect to another origin.
#[tokio::test]
async fn credentials_do_not_follow_a_redirect_to_another_origin() {
    let shown = async |headers: axum::http::HeaderMap| {
        let of = |name| {
            headers.get(name).map_or("none", |value: &axum::http::HeaderValue| value.to_str().unwrap())
        };
        format!("{} {} {}", of("authorization"), of("cookie"), of("x-other"))
    };
    let other = World::new(Router::new().route("/shown", get(shown)));
    let away = [other.url("/shown"), "/shown".to_owned()];
    let to = |location: String| {
        get(async move || (axum::http::StatusCode::TEMPORARY_REDIRECT, [("location", location)]))
    };
    let [elsewhere, here] = away;
    let app =
        Router::new().route("/away", to(elsewhere)).route("/here", to(here)).route("/shown", get(shown));
    let world = World::new(app);
    for version in [HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3] {
        let client = world.builder(version).roots(world.roots_with(&other)).build().unwrap();
        for (path, expected) in [("/here", "secret crumb kept"), ("/away", "none none kept")] {
            let request = Request::get(world.url(path)).header("authorization", "secret");
            let request = request.header("cookie", "crumb").header("x-other", "kept").body("").unwrap();
            let response = timeout(PATIENCE, client.request(request)).await.unwrap().unwrap();
            assert_eq!(response.into_body().collect(99).await.unwrap(), expected, "{version:?}");
        }
    }
}
