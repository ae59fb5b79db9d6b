//! Certificates by the name that a client asks for, over TCP and QUIC.

use crate::client::{ask, certificate};
use crate::{builder, hello};
use body::Body;
use crypto::{Identity, Roots};
use http::{Request, Response};
use quic::{ClientConfig, Endpoint};
use rcgen::{CertificateParams, KeyPair};
use server::ConnectionInfo;
use server::handler::FileOptions;
use server::service::service_fn;
use std::convert::Infallible;
use std::net::SocketAddr;

/// The leaf that a QUIC client sees under `name`.
fn quic_leaf(server: SocketAddr, name: &str) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
        let config = ClientConfig::with_roots(Roots::Insecure).unwrap().alpn_protocols(&[b"h3"]).unwrap();
        let connection = endpoint.connect_with(config, server, name).unwrap().await.unwrap();
        connection.peer_identity()[0].to_vec()
    })
}

fn leaf(identity: &Identity) -> [u8; 32] {
    identity.spki_sha256()
}

/// The key of a certificate in DER, by the same digest.
fn leaf_of(der: &[u8]) -> [u8; 32] {
    use rustls::pki_types::CertificateDer;
    let parsed = rustls::server::ParsedCertificate::try_from(&CertificateDer::from(der))
        .unwrap()
        .subject_public_key_info();
    use sha2::Digest as _;
    sha2::Sha256::digest(parsed.as_ref()).into()
}

/// Deleted, an application could not tell its clients or names apart over TCP.
#[test]
fn a_request_over_tcp_carries_its_connection() {
    async fn app(request: Request<Body>) -> Result<Response<Body>, Infallible> {
        let info = request.extensions().get::<ConnectionInfo>().unwrap();
        let ConnectionInfo { peer, local, alpn, server_name, .. } = info;
        Ok(Response::new(format!("{} {local} {alpn} {server_name:?}", peer.ip()).into()))
    }
    let server = builder().serve(service_fn(app)).unwrap();
    let address = server.local_addr();
    let request = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    for (name, seen) in [("localhost", "Some(\"localhost\")"), ("127.0.0.1", "None")] {
        let (text, _) = ask(address, name, request);
        assert!(text.ends_with(&format!("127.0.0.1 {address} http/1.1 {seen}")), "{text}");
    }
}

/// Deleted, one server could not have several names, or an unknown one could get no answer.
#[test]
fn each_name_has_its_certificate_over_tcp_and_quic() {
    let [default, one, wildcard] =
        [&["localhost"][..], &["one.example.org"], &["*.example.org"]].map(certificate);
    let server = builder()
        .identity(default.clone())
        .identity_for("one.example.org", one.clone())
        .identity_for("*.example.org", wildcard.clone())
        .serve(service_fn(hello))
        .unwrap();
    let address = server.local_addr();
    for (name, expected) in [
        ("one.example.org", &one),
        ("two.example.org", &wildcard),
        ("example.org", &default),
        ("unknown.net", &default),
        ("127.0.0.1", &default),
    ] {
        let request = format!("GET / HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n");
        let (text, seen) = ask(address, name, &request);
        assert!(text.ends_with("hello") && leaf_of(&seen) == leaf(expected), "{name} over TCP: {text}");
        assert_eq!(leaf_of(&quic_leaf(address, name)), leaf(expected), "{name} over QUIC");
    }
    let refused = builder().identity_for("no name", one).bind().unwrap_err();
    assert!(refused.to_string().contains("no name"), "{refused}");
}

/// Deleted, a client could wait for ever for a signature that another thread has made, be the worker a task or a thread that sleeps.
#[test]
fn a_certificate_whose_key_signs_slowly_is_shown_over_quic() {
    let key = KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
    let made = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let slow = Identity::from_pem(made.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    let as_task = builder().identity(slow.clone()).serve(service_fn(hello)).unwrap();
    let as_thread =
        builder().identity(slow.clone()).bind().unwrap().serve_files(FileOptions::default()).unwrap();
    for server in [as_task, as_thread] {
        for _ in 0..3 {
            assert_eq!(leaf_of(&quic_leaf(server.local_addr(), "localhost")), leaf(&slow));
        }
    }
}
