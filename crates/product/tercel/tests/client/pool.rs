//! Connections without requests.

use crate::world::{PATIENCE, World};
use axum::Router;
use axum::routing::get;
use std::time::Duration;
use tercel::Client;
use tercel::client::{HttpChoice, Pool, Used};
use tokio::time::{sleep, timeout};

fn world() -> World {
    World::new(Router::new().route("/", get(async || "hello")))
}

/// Asks, and returns whether the connection had served requests before.
async fn is_reused(client: &Client, world: &World) -> bool {
    let response = client.get(world.url("/")).await.unwrap();
    let is_reused = response.extensions().get::<Used>().unwrap().is_reused;
    assert_eq!(response.into_body().collect(9).await.unwrap(), "hello");
    is_reused
}

/// Deleted, each request could make a connection of its own, or connections could be kept for ever.
#[tokio::test]
async fn a_connection_is_used_again_until_it_was_idle_for_too_long() {
    let world = world();
    for version in [HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3] {
        let kept = world.client(version);
        assert!(!is_reused(&kept, &world).await);
        // A connection of HTTP/1.1 comes back to the pool a moment after its content was read.
        let again = async { while !is_reused(&kept, &world).await {} };
        timeout(PATIENCE, again).await.unwrap_or_else(|_| panic!("{version:?}: no connection is kept"));
        let short = Pool::default().idle(Duration::from_millis(30));
        let client = world.builder(version).pool(short).build().unwrap();
        let expired = async {
            let _ = is_reused(&client, &world).await;
            loop {
                sleep(Duration::from_millis(100)).await;
                if !is_reused(&client, &world).await {
                    return;
                }
            }
        };
        timeout(PATIENCE, expired).await.unwrap_or_else(|_| panic!("{version:?}: it does not expire"));
    }
}

/// Deleted, a program that is idle could keep a radio awake.
#[tokio::test]
async fn an_idle_connection_sends_nothing_unless_it_is_told_to() {
    let world = world();
    for (interval, is_silent) in [(None, true), (Some(Duration::from_millis(20)), false)] {
        let client = world.builder(HttpChoice::Http3).keep_alive(interval).build().unwrap();
        assert!(!is_reused(&client, &world).await);
        let settled = async {
            // The search for the packet size is over, and all is acknowledged.
            let mut before = client.stats().sent_datagrams;
            loop {
                sleep(Duration::from_millis(200)).await;
                let now = client.stats().sent_datagrams;
                if now == before {
                    return;
                }
                before = now;
            }
        };
        let settles = timeout(Duration::from_secs(if is_silent { 30 } else { 2 }), settled).await;
        assert_eq!(settles.is_ok(), is_silent, "{interval:?}");
        assert!(client.stats().received_datagrams > 0);
    }
}
