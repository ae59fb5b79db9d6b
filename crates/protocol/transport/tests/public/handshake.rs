//! The beginning of a connection: versions, address validation, certificates, application protocols.

use crate::setup::Setup;
use crate::tls;
use crate::world::{Fate, Judge, World, home};
use base::time::Duration;
use crypto::{KeyExchange, TlsOptions};
use transport::{CloseReason, EndpointConfig, Event, IncomingPolicy, RetryPolicy, TransportConfig};
use wire::Side;
use wire::error::Code;
use wire::version::Version;

/// TLS alerts. Source: RFC 8446 §6.
const UNKNOWN_CA: u8 = 48;
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// A version that is never in use. Source: RFC 9000 §15.
const RESERVED: [u8; 4] = [0x1a, 0x2a, 0x3a, 0x4a];

/// RFC 9000 §7, RFC 9369 §4: both versions, whichever the client begins with.
#[test]
fn either_version_completes_the_handshake_and_both_ends_agree() {
    for version in [Version::V1, Version::V2] {
        let client = TransportConfig { version, ..TransportConfig::default() };
        let mut world = Setup { client, ..Setup::default() }.connected();
        for side in [Side::Client, Side::Server] {
            let events = core::mem::take(&mut world.end(side).events);
            assert_eq!(events.iter().filter(|event| **event == Event::Connected).count(), 1, "{events:?}");
            let connection = world.connection(side);
            assert_eq!((connection.side(), connection.version()), (side, version));
            assert!(connection.is_connected() && connection.suite().is_some());
            assert_eq!(connection.alpn(), Some(&b"h3"[..]));
            world.transfer(side, 10_000);
        }
        assert_eq!(world.connection(Side::Server).server_name(), Some(tls::SERVER_NAME));
        let started = world.sent(Side::Client).next().expect("a first datagram").sent_at;
        assert!(world.now.saturating_since(started) < Duration::from_millis(200), "in a few round trips");
    }
}

/// RFC 9000 §14.1: a path that does not carry 1,200 bytes must not carry QUIC.
#[test]
fn every_datagram_with_an_initial_packet_has_1200_bytes() {
    for version in [Version::V1, Version::V2] {
        let client = TransportConfig { version, ..TransportConfig::default() };
        let world = Setup { client, ..Setup::default() }.connected();
        // RFC 9000 §17.2.2, RFC 9369 §3.2: the type of an Initial packet.
        let initial = if version == Version::V1 { 0xc0 } else { 0xd0 };
        let initials = || world.log.iter().filter(|datagram| datagram.bytes[0] & 0xf0 == initial);
        assert!(initials().count() >= 2, "of either side");
        assert!(initials().all(|datagram| datagram.bytes.len() >= 1_200));
    }
}

/// RFC 9001 §4.1.2. Would break: where a server never repeats a lost HANDSHAKE_DONE, a client sends its Finished for ever, because the
/// acknowledgements of its 1-RTT probes keep the timeout short.
#[test]
fn an_acknowledged_1rtt_packet_confirms_the_handshake_to_a_client() {
    let mut world = Setup::default().begin();
    world.run_until("the handshake", |world| world.client.events.contains(&Event::Connected));
    let done = world.end(Side::Server).sent;
    world.judge = Box::new(move |datagram| {
        let is_done = datagram.from.is_server() && datagram.number == done;
        if is_done { Fate::Lost } else { Fate::Arrives }
    });
    world.run_for(Duration::from_millis(5));
    let id = world.connection(Side::Client).open(transport::Dir::Uni).expect("a stream");
    world.client.peer().send(id, 1_000);
    world.run_until("the confirmation", |world| world.connection(Side::Client).is_confirmed());
    let repeats = world.connection(Side::Server).counters().probe_timeouts;
    assert_eq!(repeats, 0, "the server has not sent HANDSHAKE_DONE again");
    world.transfer(Side::Client, 10_000);
}

fn retrying() -> Setup {
    Setup {
        endpoint: EndpointConfig { retry: RetryPolicy::Always, ..EndpointConfig::default() },
        client_tls: TlsOptions { key_exchange: KeyExchange::X25519, ..TlsOptions::default() },
        ..Setup::default()
    }
}

/// RFC 9000 §8.1.2: a server that asks for a token keeps no state for a client without one.
#[test]
fn a_retry_proves_the_address_before_there_is_a_connection() {
    let mut world = retrying().begin();
    world.run_until("the Retry", |world| world.server.endpoint.counters().retries > 0);
    assert!(world.server.peers.is_empty());
    world.run_until("the handshake", |world| world.server.events.contains(&Event::Connected));
    world.transfer(Side::Client, 10_000);
    let counters = world.server.endpoint.counters();
    assert_eq!((counters.retries, counters.incoming, counters.incoming_validated), (1, 1, 1));
}

/// The token of a NEW_TOKEN frame.
fn token(world: &World) -> Vec<u8> {
    let token = |event: &Event| match event {
        Event::NewToken { token } => Some(token.clone()),
        _ => None,
    };
    world.client.events.iter().find_map(token).expect("a token")
}

/// RFC 9000 §8.1.3, §8.1.4: a token counts once, and only at the address that it was made for.
#[test]
fn a_token_of_an_earlier_connection_spares_one_retry() {
    let mut world = retrying().connected();
    world.run_for(Duration::from_millis(100));
    world.config.token = token(&world);
    let mut attempt = |seen_at| {
        world.seen_at = seen_at;
        let before = world.server.endpoint.counters().retries;
        let now = world.now;
        for side in [Side::Client, Side::Server] {
            world.connection(side).close(now, 0, b"");
        }
        world.run_until("the end", |world| world.client.peers.is_empty() && world.server.peers.is_empty());
        world.server.events.clear();
        world.connect();
        world.run_until("the handshake", |world| world.server.events.contains(&Event::Connected));
        world.server.endpoint.counters().retries - before
    };
    assert_eq!(attempt(crate::world::at(9, 40_000)), 1, "from another address");
    assert_eq!(attempt(home()), 0, "the first time");
    assert_eq!(attempt(home()), 1, "the second time");
}

/// Changes the version of the client's first flight.
fn with_reserved_version(datagram: &mut crate::world::Datagram) {
    if datagram.from.is_client() && datagram.number < 2 {
        datagram.bytes[1..5].copy_from_slice(&RESERVED);
    }
}

fn is_version_negotiation(bytes: &[u8]) -> bool {
    bytes[0] & 0x80 != 0 && bytes[1..5] == [0; 4]
}

/// RFC 9000 §6.1, §6.2: the server lists its versions; a client ignores a list that has its own version.
#[test]
fn an_unknown_version_is_answered_and_an_answer_with_the_clients_own_is_ignored() {
    let mut world = Setup::default().begin();
    world.judge = Box::new(|datagram| {
        with_reserved_version(datagram);
        Fate::Arrives
    });
    world.run_until("the handshake", |world| world.client.events.contains(&Event::Connected));
    let answer = world.sent(Side::Server).next().expect("an answer").bytes.clone();
    assert!(is_version_negotiation(&answer));
    let versions: Vec<&[u8]> =
        answer[7 + usize::from(answer[5]) + usize::from(answer[14])..].chunks(4).collect();
    for version in Version::SUPPORTED {
        assert!(versions.contains(&&version.0.to_be_bytes()[..]), "{version}: {versions:x?}");
    }
    assert!(world.server.endpoint.counters().version_negotiations > 0);
    // Two datagrams are a first flight. A timeout sends it again, and not the list.
    let times: Vec<_> = world.sent(Side::Client).map(|datagram| datagram.sent_at).collect();
    assert_eq!(times[0], times[1]);
    assert!(times[2].saturating_since(times[0]) > Duration::from_millis(900), "{times:?}");
    world.transfer(Side::Client, 10_000);
}

/// A wire that changes the version of the client's first flight, and the versions that the server lists in answer.
fn listing(versions: [[u8; 4]; 2]) -> Judge {
    Box::new(move |datagram| {
        with_reserved_version(datagram);
        if is_version_negotiation(&datagram.bytes) {
            let begin = 7 + usize::from(datagram.bytes[5]) + usize::from(datagram.bytes[14]);
            datagram.bytes.truncate(begin);
            datagram.bytes.extend(versions.concat());
        }
        Fate::Arrives
    })
}

/// RFC 9000 §6.2: the ends have no version in common.
#[test]
fn a_client_whose_version_the_server_does_not_speak_is_told() {
    let mut world = Setup::default().begin();
    world.judge = listing([RESERVED; 2]);
    world.run_until("the end", |world| world.client.peers.is_empty());
    assert_eq!(world.client.ends(), [CloseReason::VersionNegotiation]);
    assert!(world.server.peers.is_empty());
}

/// RFC 9368 §4, RFC 9369 §5: the client follows the list to its second version, and finds in the handshake that the server
/// speaks the first one as well.
#[test]
fn a_forged_list_of_versions_is_found_out() {
    let mut world = Setup::default().begin();
    world.judge = listing([Version::V2.0.to_be_bytes(), RESERVED]);
    world.run_until("the end", |world| !world.client.ends().is_empty() && !world.server.ends().is_empty());
    assert_eq!(world.connection(Side::Client).version(), Version::V2);
    let ends = world.client.ends();
    let [CloseReason::Violation(error)] = &ends[..] else { panic!("{ends:?}") };
    assert_eq!(error.code, Code::VERSION_NEGOTIATION_ERROR);
    assert!(!world.client.events.contains(&Event::Connected));
}

/// The handshake fails at the end `at` with this alert, and the other end is told.
fn fails_with(alert: u8, at: Side, setup: Setup) {
    let mut world = setup.begin();
    world.run_until("the end", |world| !world.client.ends().is_empty() && !world.server.ends().is_empty());
    let [CloseReason::Tls { alert: found, reason }] = &world.end(at).ends()[..] else {
        panic!("{:?}", world.end(at).ends());
    };
    assert_eq!(*found, alert, "{reason}");
    assert!(!reason.is_empty());
    let [CloseReason::PeerTransport { code, .. }] = &world.end(at.other()).ends()[..] else {
        panic!("{:?}", world.end(at.other()).ends());
    };
    assert_eq!(*code, Code::crypto(alert));
}

/// RFC 9001 §8.1: application protocols are not optional in QUIC.
#[test]
fn ends_without_a_common_application_protocol_part_with_alert_120() {
    let client_tls = TlsOptions { alpn: vec![b"other".to_vec()], ..TlsOptions::default() };
    fails_with(NO_APPLICATION_PROTOCOL, Side::Server, Setup { client_tls, ..Setup::default() });
}

/// RFC 9001 §4.4: the client authenticates the server; §4.8: the code of the close is that of the alert.
#[test]
fn a_certificate_of_an_unknown_authority_ends_the_handshake() {
    fails_with(UNKNOWN_CA, Side::Client, Setup { roots: tls::foreign().roots(), ..Setup::default() });
}

/// RFC 9001 §4.4: a valid certificate of another server.
#[test]
fn a_certificate_for_another_name_ends_the_handshake() {
    let mut world = Setup { name: "other.example", ..Setup::default() }.begin();
    world.run_until("the end", |world| !world.server.ends().is_empty());
    assert!(matches!(&world.client.ends()[..], [CloseReason::Tls { .. }]), "{:?}", world.client.ends());
    let code = match &world.server.ends()[..] {
        [CloseReason::PeerTransport { code, .. }] => *code,
        other => panic!("{other:?}"),
    };
    assert!(code.alert().is_some(), "{code:?}");
    assert!(!world.client.events.contains(&Event::Connected));
}

/// RFC 9000 §21.6: a handshake has a time limit, after which neither end has state.
#[test]
fn a_handshake_that_gets_no_answer_ends_in_time_at_both_ends() {
    let mut world = Setup::default().begin();
    world.judge = Box::new(|datagram| if datagram.from.is_server() { Fate::Lost } else { Fate::Arrives });
    let began = world.now;
    world.run_until("the end", |world| world.client.peers.is_empty() && world.server.peers.is_empty());
    assert_eq!(world.client.ends(), [CloseReason::HandshakeTimeout]);
    assert_eq!(world.server.ends(), [CloseReason::HandshakeTimeout]);
    let took = world.now.saturating_since(began);
    assert!(took >= Duration::from_secs(10) && took < Duration::from_millis(10_100), "{took:?}");
    assert_eq!(world.server.endpoint.half_open(), 0);
}

/// RFC 9000 §5.2.2: the refusal is one packet without state.
#[test]
fn a_server_that_takes_no_more_connections_refuses_them() {
    let mut world = Setup::default().begin();
    world.server.endpoint.set_incoming(IncomingPolicy::Refuse);
    world.run_until("the end", |world| !world.client.ends().is_empty());
    let ends = world.client.ends();
    assert!(
        matches!(&ends[..], [CloseReason::PeerTransport { code: Code::CONNECTION_REFUSED, .. }]),
        "{ends:?}"
    );
    assert!(world.server.peers.is_empty() && world.server.endpoint.counters().refusals > 0);
}

/// RFC 9000 §8.1: at most three times what an unproved address sent, probes included.
#[test]
fn a_server_sends_at_most_three_times_what_an_unproved_address_sent() {
    let client_tls = TlsOptions { key_exchange: KeyExchange::X25519, ..TlsOptions::default() };
    let patient =
        TransportConfig { handshake_timeout: Duration::from_secs(60), ..TransportConfig::default() };
    let mut world = Setup { client_tls, chain: 20, ..Setup::both(&patient) }.begin();
    world.judge = Box::new(|datagram| {
        let is_first = datagram.number == 0;
        if datagram.from.is_client() && is_first { Fate::Arrives } else { Fate::Lost }
    });
    world.run_for(Duration::from_secs(9));
    let received = 1_200;
    assert_eq!(world.sent(Side::Client).next().map(|datagram| datagram.bytes.len()), Some(received));
    let sent: usize = world.sent(Side::Server).map(|datagram| datagram.bytes.len()).sum();
    assert!(sent > 2 * received && sent <= 3 * received, "{sent} bytes");
    // Each datagram of the client permits three more.
    world.judge = Box::new(|_| Fate::Arrives);
    world.run_until("an answer", |world| {
        !world.client.ends().is_empty() || world.client.events.contains(&Event::Connected)
    });
    assert!(world.client.events.contains(&Event::Connected), "{:?}", world.client.events);
}
