//! Clients that come back to a server that issues tickets.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use quic::{ClientConfig, Endpoint, MemorySessions, Roots, ServerConfig, TicketKeys};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use std::time::Duration;

/// Longer than this no test waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

fn server_config() -> ServerConfig {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    ServerConfig::with_single_cert(vec![CertificateDer::from(made.cert)], key).unwrap()
}

/// Deleted, a program could not have resumption, or would not know that it has.
#[test]
fn a_client_with_a_store_resumes_and_both_ends_say_so() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let test = async {
        let mut config = server_config();
        config.ticket_keys(Arc::new(TicketKeys::in_memory(TicketKeys::DEFAULT_LIFETIME_S)));
        let server = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
        let client = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let (sessions, mut config) =
            (Arc::new(MemorySessions::default()), ClientConfig::with_roots(Roots::Insecure).unwrap());
        config.session_store(sessions.clone());
        for expected in [false, true, true] {
            let address = server.local_addr().unwrap();
            let connecting = client.connect_with(config.clone(), address, "localhost").unwrap();
            let (ours, theirs) =
                tokio::join!(connecting, async { server.accept().await.unwrap().await.unwrap() });
            let ours = ours.unwrap();
            for end in [&ours, &theirs] {
                assert_eq!(end.handshake_data().unwrap().is_resumed, expected);
            }
            // The tickets come before the first byte that the server sends now.
            let mut stream = theirs.open_uni().await.unwrap();
            stream.write_all(b"x").await.unwrap();
            stream.finish().unwrap();
            assert_eq!(ours.accept_uni().await.unwrap().read_to_end(9).await.unwrap(), b"x");
            assert!(sessions.tickets() > 0);
            ours.close(0_u8.into(), b"");
        }
    };
    let outcome = runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await });
    assert!(outcome.is_ok(), "the test takes too long");
}
