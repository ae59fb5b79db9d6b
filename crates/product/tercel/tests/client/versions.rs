//! Which version of HTTP a request uses.

use crate::world::{Relay, Udp, World};
use axum::Router;
use axum::routing::get;
use http::{Response, Version};
use tercel::client::{HttpChoice, Kind, Used};
use tercel::{Body, Client};

fn hello() -> Router {
    Router::new().route("/", get(async || "hello"))
}

fn used(response: &Response<Body>) -> &Used {
    response.extensions().get().unwrap()
}

async fn version(client: &Client, url: &str) -> Version {
    let response = client.get(url).await.unwrap();
    let version = response.version();
    assert_eq!(response.into_body().collect(99).await.unwrap(), "hello");
    version
}

#[tokio::test]
async fn each_version_is_spoken_where_it_is_chosen_and_connections_are_kept() {
    let world = World::new(hello());
    let expected = [
        (HttpChoice::Auto, Version::HTTP_3),
        (HttpChoice::Http3, Version::HTTP_3),
        (HttpChoice::Http2, Version::HTTP_2),
        (HttpChoice::Http1, Version::HTTP_11),
    ];
    for (choice, spoken) in expected {
        let client = world.client(choice);
        assert_eq!(version(&client, &world.url("/")).await, spoken);
        if choice == HttpChoice::Http1 {
            continue;
        }
        for _ in 0..20 {
            let response = client.get(world.url("/")).await.unwrap();
            assert!(used(&response).is_reused, "{choice:?}");
            assert_eq!(used(&response).peer, world.server.local_addr());
        }
    }
}

#[tokio::test]
async fn a_hundred_requests_at_a_time_share_a_connection() {
    let world = World::new(hello());
    for choice in [HttpChoice::Http2, HttpChoice::Http3, HttpChoice::Http1] {
        let client = world.client(choice);
        let requests: Vec<_> = (0..100)
            .map(|_| {
                let (client, url) = (client.clone(), world.url("/"));
                tokio::spawn(async move { client.get(url).await.unwrap() })
            })
            .collect();
        let mut new = 0;
        for request in requests {
            let response = request.await.unwrap();
            new += usize::from(!used(&response).is_reused);
            assert_eq!(response.into_body().collect(99).await.unwrap(), "hello");
        }
        if choice != HttpChoice::Http1 {
            assert_eq!(new, 1, "{choice:?}");
        }
    }
}

/// Deleted, a firewall that drops UDP would cut a client off, or each of its connections would wait.
#[tokio::test]
async fn where_udp_is_blocked_tcp_is_used() {
    let world = World::new(hello());
    for udp in [Udp::Silent, Udp::Closed] {
        let relay = Relay::new(world.server.local_addr(), udp).await;
        // Without Alt-Svc, which would lead around the relay.
        let client = world.client(HttpChoice::Auto);
        let response = client.get(relay.url("/")).await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2, "{udp:?}");
        let only_quic = world.client(HttpChoice::Http3);
        if udp == Udp::Closed {
            let error = only_quic.get(relay.url("/")).await.unwrap_err();
            assert_eq!(error.kind(), Kind::Connect, "{error}");
        }
    }
}

/// Deleted, what a server announces would be of no use until the client is made anew.
#[tokio::test]
async fn alt_svc_moves_the_next_request_to_http3() {
    let world = World::new(hello());
    let relay = Relay::new(world.server.local_addr(), Udp::Closed).await;
    let client = world.client(HttpChoice::Auto);
    let first = client.get(relay.url("/")).await.unwrap();
    assert_eq!(first.version(), Version::HTTP_2);
    assert!(first.headers().contains_key("alt-svc"), "the server announces HTTP/3 at its own port");
    let second = client.get(relay.url("/")).await.unwrap();
    assert_eq!(second.version(), Version::HTTP_3);
    assert_eq!(used(&second).peer, world.server.local_addr());
    assert_eq!(version(&client, &relay.url("/")).await, Version::HTTP_3);
    assert_eq!(relay.connections(), 1);
}

#[tokio::test]
async fn an_announcement_that_leads_nowhere_costs_one_head_start() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let world = World::new(hello());
    let relay = Relay::new(world.server.local_addr(), Udp::Closed).await;
    // What the server announces is its own port, which leads to the silent one here.
    let announced = ("localhost", world.server.local_addr().port());
    let builder = world.builder(HttpChoice::Auto);
    let nowhere = silent.local_addr().unwrap().port();
    let client = builder.connect_to(announced, ("127.0.0.1", nowhere)).build().unwrap();
    for _ in 0..4 {
        assert_eq!(version(&client, &relay.url("/")).await, Version::HTTP_2);
    }
    assert_eq!(relay.connections(), 1, "the connection that exists is used on");
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_an_error_of_its_own() {
    let (world, other) = (World::new(hello()), World::new(hello()));
    for choice in [HttpChoice::Auto, HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3] {
        let error = other.client(choice).get(world.url("/")).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Certificate, "{choice:?}: {error}");
    }
}
