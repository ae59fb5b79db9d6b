//! Version Negotiation that a client follows, and the forged one that it finds out. Source: RFC 9000 §6.2, RFC 9368 §4.

use super::hostile::negotiation;
use super::*;
use wire::Side;
use wire::error::Code;
use wire::transport_parameters::TransportParameters;

const UNKNOWN: Version = Version(0x1a2a_3a4a);

/// A client that has sent its first flight in version 2, and is told of others.
fn told(versions: &[Version]) -> Pair {
    let transport = TransportConfig { version: Version::V2, ..TransportConfig::default() };
    let mut pair = Pair::new(&TlsOptions::default(), transport, RetryPolicy::Never);
    let now = pair.now;
    assert!(!pair.client.send(now).is_empty());
    for version in versions {
        let (ours, theirs) =
            (pair.client().components.local_cids.first(), pair.client().components.peer_cids.active());
        pair.client.receive(now, negotiation(&ours, &theirs, *version), None);
    }
    pair
}

/// It was told as a breach of the rules, and that another version should be tried.
#[test]
fn a_client_follows_version_negotiation_with_a_first_flight_of_its_own() {
    let mut pair = told(&[Version::V1]);
    assert_eq!(pair.client().version(), Version::V1);
    // As of a server that has never spoken version 2, unlike ours.
    pair.client().handshake.versions.refused = Some(UNKNOWN);
    pair.run(12);
    assert!(pair.client.events.contains(&Event::Connected), "{:?}", pair.client.events);
    assert_eq!(pair.server().version(), Version::V1);
    pair.transfer(20_000);
    assert_eq!(pair.client().counters().lost_packets, 0);
}

/// RFC 9368 §4: the server's own list has what the client would rather have used.
#[test]
fn a_version_that_was_forced_upon_the_client_is_found_out() {
    let mut pair = told(&[Version::V1]);
    pair.run(12);
    let found = |event: &Event| matches!(event, Event::Closed(CloseReason::Violation(error)) if error.code == Code::VERSION_NEGOTIATION_ERROR);
    assert!(pair.client.events.iter().any(found), "{:?}", pair.client.events);
    // A server that says nothing of its versions, or lists none, cannot clear the matter up.
    let mut pair = told(&[Version::V1]);
    pair.client().handshake.versions.refused = Some(UNKNOWN);
    pair.step();
    let mut said = pair.client().handshake.peer_parameters().expect("the server's flight has them").clone();
    let check = |pair: &mut Pair, said: &TransportParameters| {
        let handshake = &pair.client().handshake;
        handshake.versions.check(Side::Client, handshake.version, said).is_ok()
    };
    assert!(check(&mut pair, &said));
    if let Some(information) = &mut said.version_information {
        information.available.clear();
    }
    assert!(!check(&mut pair, &said));
    said.version_information = None;
    assert!(!check(&mut pair, &said));
}

#[test]
fn version_negotiation_is_followed_once_and_ends_where_no_version_is_common() {
    let closed = Event::Closed(CloseReason::VersionNegotiation);
    let mut pair = told(&[UNKNOWN]);
    pair.client.send(pair.now);
    assert!(pair.client.events.contains(&closed));
    for second in [Version::V2, UNKNOWN] {
        let mut pair = told(&[Version::V1, second]);
        pair.client.send(pair.now);
        assert_eq!((pair.client().version(), pair.client.events.contains(&closed)), (Version::V1, false));
    }
}

/// RFC 9368 §4, RFC 9369 §4.1: else an attacker could have changed it.
#[test]
fn a_server_that_changes_the_version_must_say_so() {
    let transport = TransportConfig { preferred_version: Some(Version::V2), ..TransportConfig::default() };
    let mut pair = Pair::new(&TlsOptions::default(), transport, RetryPolicy::Never);
    pair.run(12);
    assert_eq!([pair.client().version(), pair.server().version()], [Version::V2; 2]);
    let honest = |pair: &mut Pair, side| {
        let connection = if side == Side::Client { pair.client() } else { pair.server() };
        connection.handshake.peer_parameters().expect("the peer has said them").clone()
    };
    for side in [Side::Client, Side::Server] {
        let said = honest(&mut pair, side);
        let check = |pair: &mut Pair, said: &TransportParameters| {
            let connection = if side == Side::Client { pair.client() } else { pair.server() };
            connection.handshake.versions.check(side, Version::V2, said).map_err(|error| error.code)
        };
        assert_eq!(check(&mut pair, &said), Ok(()));
        let mut other = said.clone();
        if let Some(information) = &mut other.version_information {
            information.chosen = if side == Side::Client { Version::V1 } else { Version::V2 };
        }
        assert_eq!(check(&mut pair, &other), Err(Code::VERSION_NEGOTIATION_ERROR), "{side:?}");
        let silent = TransportParameters { version_information: None, ..said };
        let expected = if side == Side::Client { Err(Code::VERSION_NEGOTIATION_ERROR) } else { Ok(()) };
        assert_eq!(check(&mut pair, &silent), expected, "{side:?}");
    }
}

/// RFC 9368 §3: what it lists first is what it would rather have; its first flight is in the version that it is told to begin with.
#[test]
fn a_client_lists_the_version_that_it_prefers_first() {
    let (one, two) = (Version::V1, Version::V2);
    for (version, preferred, listed) in
        [(one, None, [one, two]), (two, None, [two, one]), (one, Some(two), [two, one])]
    {
        let client = TransportConfig { version, preferred_version: preferred, ..TransportConfig::default() };
        let mut pair = Pair::new(&TlsOptions::default(), client, RetryPolicy::Never);
        pair.step();
        pair.step();
        let said =
            pair.server().handshake.peer_parameters().and_then(|said| said.version_information.clone());
        assert_eq!(said.map(|said| (said.chosen, said.available)), Some((version, listed.to_vec())));
    }
}
