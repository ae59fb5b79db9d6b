//! Connections that resume, and requests that go before the handshake is complete.

use crate::world::{PATIENCE, World};
use axum::Router;
use axum::extract::{Extension, State};
use axum::http::{Method, StatusCode};
use axum::routing::any;
use http::Request;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tercel::client::{EarlyData, HttpChoice, PathReport, Pool};
use tercel::quic::EarlyStatus;
use tercel::{Body, Client, ConnectionInfo};
use tokio::time::timeout;

/// The requests that the application was handed, and whether they were early.
type Seen = Arc<Mutex<Vec<(Method, bool)>>>;

/// Finds all early requests too early.
async fn refuse_early(
    State(seen): State<Seen>,
    Extension(info): Extension<ConnectionInfo>,
    method: Method,
) -> (StatusCode, &'static str) {
    seen.lock().unwrap().push((method, info.is_early()));
    if info.is_early() { (StatusCode::TOO_EARLY, "later") } else { (StatusCode::OK, "hello") }
}

fn world(rule: tercel::EarlyData) -> (World, Seen) {
    let seen = Seen::default();
    let app = Router::new().route("/", any(refuse_early)).with_state(Arc::clone(&seen));
    (World::with_early_data(app, rule), seen)
}

/// Each request of it has a connection of its own.
fn client(world: &World, early_data: EarlyData) -> Client {
    let pool = Pool::default().idle(Duration::ZERO);
    world.builder(HttpChoice::Http3).pool(pool).early_data(early_data).build().unwrap()
}

/// Asks, and returns the status and what the connection was like.
async fn ask(client: &Client, world: &World, method: Method, content: &'static str) -> (u16, PathReport) {
    let request = Request::builder().method(method).uri(world.url("/")).body(Body::from(content)).unwrap();
    let received = client.request_into(request, |bytes: &[u8]| bytes.len()).await.unwrap();
    let path = received.response.extensions().get::<PathReport>().unwrap().clone();
    (received.response.status().as_u16(), path)
}

/// Deleted, each connection of a client could have a full handshake, or early data could go without leave.
#[tokio::test]
async fn a_second_connection_resumes_and_sends_early_data_where_it_may() {
    let (world, seen) = world(tercel::EarlyData::Application);
    for (rule, expected) in
        [(EarlyData::Off, EarlyStatus::None), (EarlyData::SafeMethods, EarlyStatus::Accepted)]
    {
        let client = client(&world, rule);
        for (is_resumed, expected) in [(false, EarlyStatus::None), (true, expected), (true, expected)] {
            let (status, path) = ask(&client, &world, Method::GET, "").await;
            assert_eq!((status, path.is_resumed, path.early_data), (200, is_resumed, expected));
        }
        if rule == EarlyData::Off {
            assert!(seen.lock().unwrap().iter().all(|(_, was_early)| !was_early));
        }
    }
}

/// Deleted, a user could see 425 for what the client did by itself.
#[tokio::test]
async fn a_request_that_came_too_early_is_repeated_by_itself() {
    let (world, seen) = world(tercel::EarlyData::Application);
    let client = client(&world, EarlyData::SafeMethods);
    // Whether a request is faster than the handshake is decided by the machine; most are.
    let until_early = async {
        while !seen.lock().unwrap().iter().any(|(_, was_early)| *was_early) {
            assert_eq!(ask(&client, &world, Method::GET, "").await.0, 200);
        }
    };
    timeout(PATIENCE, until_early).await.unwrap();
    let last_two: Vec<bool> =
        seen.lock().unwrap().iter().rev().take(2).map(|(_, was_early)| *was_early).collect();
    assert_eq!(last_two, [false, true], "the early one was repeated");
}

/// Deleted, an attacker could have a POST carried out twice.
#[tokio::test]
async fn content_and_other_methods_wait_for_the_handshake() {
    let (world, seen) = world(tercel::EarlyData::Application);
    let client = client(&world, EarlyData::SafeMethods);
    for (method, content) in
        [(Method::GET, ""), (Method::POST, ""), (Method::DELETE, ""), (Method::POST, "x"), (Method::GET, "x")]
    {
        let (status, path) = ask(&client, &world, method.clone(), content).await;
        assert_eq!(status, 200, "{method} {content}");
        assert_eq!(path.is_resumed, !(method == Method::GET && content.is_empty()));
    }
    assert!(seen.lock().unwrap().iter().all(|(_, was_early)| !was_early));
}
