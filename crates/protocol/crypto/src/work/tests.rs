//! Which handshakes give a step away, and how they go on.

use crate::config::{
    ClientTls, Identities, Identity, KeyExchange, Roots, ServerTls, SharedIdentities, TlsOptions,
};
use crate::level::Level;
use crate::resumption::{MemorySessions, TicketKeys, TicketOptions};
use crate::testing::Pair;
use crate::tls_error::TlsError;
use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm};
use rustls::crypto::aws_lc_rs::kx_group;
use std::sync::{Arc, OnceLock};
use wire::Version;

fn identity(kind: &'static SignatureAlgorithm) -> Identity {
    let key = KeyPair::generate_for(kind).unwrap();
    let made = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    Identity::from_pem(made.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap()
}

fn ecdsa() -> Identity {
    identity(&rcgen::PKCS_ECDSA_P256_SHA256)
}

/// Made once: a key for RSA takes long to make.
fn rsa() -> Identity {
    static MADE: OnceLock<Identity> = OnceLock::new();
    MADE.get_or_init(|| identity(&rcgen::PKCS_RSA_SHA256)).clone()
}

fn client(options: &TlsOptions) -> ClientTls {
    ClientTls::new(&Roots::Insecure, options).unwrap()
}

fn apart(identities: impl Into<SharedIdentities>) -> ServerTls {
    ServerTls::new(identities, &TlsOptions::default()).unwrap().with_slow_steps_apart()
}

/// Runs a handshake to its end, each step on a thread of its own. Returns how many steps the server has given away.
fn run(pair: &mut Pair) -> Result<usize, TlsError> {
    let mut steps = 0;
    loop {
        pair.run(1_000)?;
        let Some(work) = pair.server.tls.take_work() else { return Ok(steps) };
        assert!(pair.server.tls.is_waiting() && pair.server.tls.is_handshaking());
        assert!(pair.server.take_output().is_empty() && pair.server.tls.alpn().is_none());
        steps += 1;
        let outcome = std::thread::spawn(move || work.run()).join().unwrap();
        pair.server.tls.finish(outcome)?;
        assert!(!pair.server.tls.is_waiting());
    }
}

fn steps(server: &ServerTls) -> usize {
    let mut pair = Pair::new(Version::V1, &client(&TlsOptions::default()), server);
    let steps = run(&mut pair).unwrap();
    assert!(!pair.client.tls.is_handshaking() && !pair.server.tls.is_handshaking());
    assert!(pair.client.one_rtt.is_some() && pair.server.one_rtt.is_some());
    steps
}

/// Deleted, handshakes with fast keys could take the way over another thread, or those with slow ones hold up the worker.
#[test]
fn slow_keys_sign_apart_and_fast_ones_at_once() {
    for kind in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519] {
        assert_eq!(steps(&apart(&identity(kind))), 0, "{kind:?}");
    }
    assert_eq!(steps(&apart(&rsa())), 1);
    let inline = ServerTls::new(&rsa(), &TlsOptions::default()).unwrap();
    assert_eq!(steps(&inline), 0, "the caller has not asked for it");
}

#[test]
fn the_certificate_that_the_client_gets_counts_and_not_others_of_the_server() {
    let mut identities = Identities::from(&rsa());
    identities.insert("fast.example", &ecdsa()).unwrap();
    // A client of our own can check both kinds, and gets the first.
    identities.insert("both.example", &ecdsa()).unwrap();
    identities.insert("both.example", &rsa()).unwrap();
    let server = apart(&identities);
    for (name, expected) in [("localhost", 1), ("127.0.0.1", 1), ("fast.example", 0), ("both.example", 0)] {
        let mut pair = Pair::named(Version::V1, &client(&TlsOptions::default()), &server, name);
        assert_eq!(run(&mut pair), Ok(expected), "{name}");
        assert!(!pair.client.tls.is_handshaking(), "{name}");
    }
}

#[test]
fn certificates_that_are_replaced_count_from_then_on() {
    let shared = SharedIdentities::from(&ecdsa());
    let server = apart(shared.clone());
    assert_eq!(steps(&server), 0);
    shared.replace(Identities::from(&rsa()));
    assert_eq!(steps(&server), 1);
}

/// Whether rustls accepts a ticket rustls alone can say, so that a forged one must not bring the signature back.
#[test]
fn a_client_that_comes_back_resumes_by_way_of_the_other_thread() {
    let keys = Arc::new(TicketKeys::in_memory(1_000));
    let server = apart(&rsa()).with_tickets(TicketOptions::new(keys));
    let client = client(&TlsOptions::default()).with_sessions(Arc::new(MemorySessions::default()));
    let mut first = Pair::new(Version::V1, &client, &server);
    assert_eq!(run(&mut first), Ok(1));
    let mut second = Pair::new(Version::V1, &client, &server);
    assert_eq!(run(&mut second), Ok(1));
    assert!(second.server.tls.is_resumed() && second.client.tls.is_resumed());
}

/// RFC 8446 §4.1.4: the server asks for another ClientHello. Deleted, the second one could be taken for one too many, or be read on the worker.
#[test]
fn a_client_that_is_asked_for_another_hello_takes_two_steps() {
    let options = TlsOptions { key_exchange: KeyExchange::X25519, ..TlsOptions::default() };
    let server = ServerTls::new(&rsa(), &options).unwrap().with_slow_steps_apart();
    let client = client(&TlsOptions::default()).with_groups(vec![kx_group::SECP384R1, kx_group::X25519]);
    let mut pair = Pair::new(Version::V1, &client, &server);
    assert_eq!(run(&mut pair), Ok(2));
    assert!(pair.client.one_rtt.is_some() && pair.server.one_rtt.is_some());
}

#[test]
fn what_is_wrong_with_a_hello_is_told_when_the_step_is_back() {
    let speaks = |protocol: &[u8]| TlsOptions { alpn: vec![protocol.to_vec()], ..TlsOptions::default() };
    let server = ServerTls::new(&rsa(), &speaks(b"h3")).unwrap().with_slow_steps_apart();
    let mut pair = Pair::new(Version::V1, &client(&speaks(b"other")), &server);
    let error = run(&mut pair).unwrap_err();
    assert_eq!(error.alert, 120, "{error}");
    assert_eq!(pair.server.tls.read(Level::Initial, &[1]).unwrap_err(), error, "a failure is for good");
}

/// RFC 8446 §4.1.2: a client waits for the answer. What it says meanwhile is bounded by its being refused.
#[test]
fn a_second_message_while_the_step_is_out_is_refused() {
    let mut pair = Pair::new(Version::V1, &client(&TlsOptions::default()), &apart(&rsa()));
    let hello = pair.client.take_output().remove(0).1;
    pair.server.tls.read(Level::Initial, &hello).unwrap();
    assert!(pair.server.tls.has_work());
    assert_eq!(
        pair.server.tls.read(Level::Initial, &hello).unwrap_err().code,
        wire::Code::PROTOCOL_VIOLATION
    );
}
