//! A server at several addresses.

use crate::world::{PATIENCE, VERSIONS, World, text};
use axum::Router;
use axum::extract::Extension;
use axum::routing::get;
use requirements::ports::{is_free_over_tcp, is_free_over_udp};
use std::net::SocketAddr;
use tercel::client::HttpChoice;
use tercel::{BindError, ConnectionInfo, Server, Workers};
use tokio::time::timeout;

fn free(ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse().unwrap(), 0)
}

/// Where the server was asked.
async fn place(Extension(info): Extension<ConnectionInfo>) -> String {
    info.local.to_string()
}

/// Deleted, an address could be bound and not served by a version or a worker, or a response leave from another one.
#[tokio::test]
async fn every_version_is_served_at_every_address_by_every_worker() {
    let workers = Workers::Exactly(2.try_into().unwrap());
    let app = Router::new().route("/", get(place));
    let world = World::by(|builder| {
        let builder = builder.listen(free("::1")).listen(free("127.0.0.1")).listen(free("127.0.0.2"));
        builder.workers(workers).serve(app).unwrap()
    });
    let addresses = world.server.local_addrs();
    assert_eq!((addresses.len(), addresses.first()), (4, Some(&world.server.local_addr())));
    for address in addresses {
        for choice in VERSIONS {
            // Connections of their own: they spread over the workers.
            for _ in 0..4 {
                let client = world.client(choice);
                let url = format!("https://{address}/");
                let response = timeout(PATIENCE, client.get(url)).await.unwrap().unwrap();
                let announced =
                    response.headers().get("alt-svc").map(|value| value.to_str().unwrap().to_owned());
                let expected = format!("h3=\":{}\"; ma=86400", address.port());
                assert_eq!(
                    announced,
                    (choice != HttpChoice::Http3).then_some(expected),
                    "{address} {choice:?}"
                );
                assert_eq!(text(response).await, address.to_string(), "{choice:?}");
            }
        }
    }
}

/// Deleted, a server could begin with a part of its addresses, or keep those after a failure.
#[test]
fn an_address_that_cannot_be_had_is_named_and_the_others_are_given_back() {
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap();
    let first = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = tercel::tls::Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    let refused = Server::builder().listen(first).listen(taken).identity(identity).bind().unwrap_err();
    assert!(matches!(refused, BindError::Listen(at, _) if at == taken), "{refused}");
    assert!(
        refused.to_string().contains(&format!("TCP port {} on 127.0.0.1 is in use", taken.port())),
        "{refused}"
    );
    assert!(is_free_over_udp(first) && is_free_over_tcp(first));
}
