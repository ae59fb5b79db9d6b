//! Signatures that take long, on threads of the program's own.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use common::{build, client, run, server_config};
use quic::{ConnectionError, Endpoint, HandshakeStep, Identity, ServerConfig, TransportConfig};
use rcgen::{CertificateParams, KeyPair};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server whose key is one for RSA.
fn slow_config() -> ServerConfig {
    let key = KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
    let made = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let identity = Identity::from_pem(made.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    ServerConfig::with_identity(identity).unwrap()
}

/// A server that gives its steps to `take`, and how many it has given.
fn server(config: ServerConfig, take: fn(HandshakeStep)) -> (Endpoint, Arc<AtomicUsize>) {
    let given = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&given);
    let count_and_take = move |step| {
        count.fetch_add(1, Ordering::Relaxed);
        take(step);
    };
    (build(|builder| builder.server(config).slow_handshakes(count_and_take)), given)
}

fn on_a_thread(step: HandshakeStep) {
    std::thread::spawn(move || step.run());
}

async fn connect(server: &Endpoint) {
    let client = client(TransportConfig::default());
    let connecting = client.connect(server.local_addr().unwrap(), "localhost").unwrap();
    let (client_end, server_end) =
        tokio::join!(connecting, async { server.accept().await.unwrap().await.unwrap() });
    let mut send = client_end.unwrap().open_uni().await.unwrap();
    send.write_all(b"signed").await.unwrap();
    send.finish().unwrap();
    let mut recv = server_end.accept_uni().await.unwrap();
    assert_eq!(recv.read_to_end(99).await.unwrap(), b"signed");
}

#[test]
fn a_slow_key_signs_where_the_program_says() {
    run(|| async {
        let (server, given) = server(slow_config(), on_a_thread);
        for so_far in 1..=2 {
            connect(&server).await;
            assert_eq!(given.load(Ordering::Relaxed), so_far);
        }
    });
}

#[test]
fn a_fast_key_signs_on_the_drivers_thread() {
    run(|| async {
        let (server, given) = server(server_config(), on_a_thread);
        connect(&server).await;
        assert_eq!(given.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn a_step_that_is_dropped_ends_its_connection() {
    run(|| async {
        let (server, given) = server(slow_config(), drop);
        let client = client(TransportConfig::default());
        let ended = client.connect(server.local_addr().unwrap(), "localhost").unwrap().await;
        match ended {
            Err(ConnectionError::ConnectionClosed(_)) => assert_eq!(given.load(Ordering::Relaxed), 1),
            other => panic!("{other:?}"),
        }
    });
}
