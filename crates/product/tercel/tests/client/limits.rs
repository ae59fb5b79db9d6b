//! Limits of time, and errors.

use crate::world::{PATIENCE, World};
use axum::Router;
use axum::extract::Request as Incoming;
use axum::response::Response as Outgoing;
use axum::routing::{get, post};
use http::Request;
use std::time::Duration;
use tercel::client::{Error, HttpChoice, Kind, Phase};
use tercel::{Body, BodyError, Client};
use tokio::net::TcpListener;
use tokio::time::timeout;

const SHORT: Duration = Duration::from_millis(200);

fn silent() -> Router {
    let begun = async || {
        let (mut sender, body) = Body::channel(1 << 16);
        tokio::spawn(async move {
            let _ = sender.send("begun".into()).await;
            sender.closed_by_reader().await;
        });
        Outgoing::new(axum::body::Body::new(body))
    };
    let count = async |request: Incoming| {
        let body = axum::body::to_bytes(request.into_body(), 1 << 24).await.unwrap();
        body.len().to_string()
    };
    Router::new()
        .route("/never", get(async || std::future::pending::<&'static str>().await))
        .route("/begun", get(begun))
        .route("/count", post(count))
}

trait ClosedByReader {
    async fn closed_by_reader(&mut self);
}

impl ClosedByReader for tercel::BodySender {
    async fn closed_by_reader(&mut self) {
        while std::future::poll_fn(|cx| self.poll_ready(cx)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The error of a request, or of the content of its response.
async fn failure(client: &Client, url: String) -> Error {
    let outcome = timeout(PATIENCE, async {
        let mut response = client.get(url).await?;
        loop {
            match response.body_mut().chunk().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the response is complete"),
                Err(BodyError::Source(source)) => {
                    return Err(source.downcast_ref::<Error>().unwrap().clone());
                }
                Err(error) => panic!("{error}"),
            }
        }
    });
    let outcome: Result<(), Error> = outcome.await.unwrap();
    outcome.unwrap_err()
}

/// Deleted, a server that says nothing would hold up a request for ever.
#[tokio::test]
async fn silence_ends_a_request_before_and_within_its_response() {
    let world = World::new(silent());
    for version in [HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3] {
        let client = world.builder(version).silence(Some(SHORT)).build().unwrap();
        for path in ["/never", "/begun"] {
            let error = failure(&client, world.url(path)).await;
            assert_eq!(error.kind(), Kind::Timeout(Phase::Silence), "{version:?} {path}: {error}");
            assert!(error.is_timeout() && !error.is_retryable());
        }
    }
}

#[tokio::test]
async fn the_whole_exchange_has_a_limit() {
    let world = World::new(silent());
    for version in [HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3] {
        let builder = world.builder(version).silence(None).timeout(Some(Duration::from_millis(400)));
        let client = builder.build().unwrap();
        for path in ["/never", "/begun"] {
            let error = failure(&client, world.url(path)).await;
            assert_eq!(error.kind(), Kind::Timeout(Phase::Whole), "{version:?} {path}: {error}");
        }
    }
}

/// Deleted, an upload that takes longer than the limit of silence could be taken for silence.
#[tokio::test]
async fn an_upload_that_advances_is_not_silent() {
    let world = World::new(silent());
    for version in [HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3] {
        let client = world.builder(version).silence(Some(Duration::from_secs(1))).build().unwrap();
        let (mut sender, body) = Body::channel(1 << 16);
        tokio::spawn(async move {
            for _ in 0..15 {
                sender.send("x".into()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            sender.finish(None);
        });
        let request = Request::post(world.url("/count")).body(body).unwrap();
        let response = client.request(request).await.unwrap();
        assert_eq!(response.into_body().collect(99).await.unwrap(), "15", "{version:?}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_a_handshake_is_given_up() {
    let (tcp, _udp) = requirements::ports::over_tcp_and_udp();
    let port = tcp.local_addr().unwrap().port();
    let world = World::new(silent());
    let url = format!("https://localhost:{port}/");
    for version in [HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3, HttpChoice::Auto] {
        let client = world.builder(version).connect_timeout(SHORT).build().unwrap();
        let error = timeout(PATIENCE, client.get(&url)).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), Kind::Timeout(Phase::Connect), "{version:?}: {error}");
    }
}

#[tokio::test]
async fn errors_say_what_has_failed() {
    let world = World::new(silent());
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let client = world.client(HttpChoice::Auto);
    let table = [
        (format!("https://localhost:{closed}/"), Kind::Connect),
        ("https://nowhere.invalid/".to_owned(), Kind::Resolve),
        ("/relative".to_owned(), Kind::Request),
        ("ftp://localhost/".to_owned(), Kind::Request),
        ("https://user:secret@localhost/".to_owned(), Kind::Request),
        ("not a URI".to_owned(), Kind::Request),
    ];
    for (url, kind) in table {
        let error = timeout(PATIENCE, client.get(&url)).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), kind, "{url}: {error}");
        assert!(!error.to_string().is_empty());
    }
    let plain = world.client(HttpChoice::Http3).get("http://localhost/").await.unwrap_err();
    assert_eq!(plain.kind(), Kind::Request);
}
