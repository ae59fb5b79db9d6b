//! A server that moves connections to the version that it prefers. Source: RFC 9368 §2.3, RFC 9369 §4.

use crate::loss::exchange;
use crate::setup::Setup;
use crate::world::{Fate, World};
use base::time::Duration;
use transport::{EndpointConfig, Event, RetryPolicy, TransportConfig};
use wire::Side;
use wire::version::Version;

const BOTH: [(Version, Version); 2] = [(Version::V1, Version::V2), (Version::V2, Version::V1)];

/// A client that begins with one version, and a server that prefers the other.
fn moving((version, preferred): (Version, Version)) -> Setup {
    Setup {
        client: TransportConfig { version, ..TransportConfig::default() },
        server: TransportConfig { preferred_version: Some(preferred), ..TransportConfig::default() },
        ..Setup::default()
    }
}

/// The versions of the packets with long headers at the beginning of each datagram of a side.
fn long_versions(world: &World, side: Side) -> Vec<Version> {
    let long = world.log.iter().filter(|datagram| datagram.from == side && datagram.bytes[0] & 0x80 != 0);
    let version = |bytes: &[u8]| Version(u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]));
    long.map(|datagram| version(&datagram.bytes)).collect()
}

fn both_use(world: &mut World, version: Version) {
    for side in [Side::Client, Side::Server] {
        assert_eq!(world.connection(side).version(), version, "{side:?}");
    }
}

#[test]
fn a_server_moves_a_client_to_the_version_that_it_prefers_without_a_round_trip_more() {
    let without = exchange(&mut Setup::default().begin());
    for (version, preferred) in BOTH {
        let mut world = moving((version, preferred)).begin();
        assert_eq!(exchange(&mut world), without);
        both_use(&mut world, preferred);
        let sent = long_versions(&world, Side::Client);
        let first = sent.iter().take_while(|sent| **sent == version).count();
        assert!(first > 0 && sent.len() > first, "{sent:?}");
        assert!(sent[first..].iter().all(|sent| *sent == preferred), "it does not go back: {sent:?}");
        assert_eq!(long_versions(&world, Side::Server).last(), Some(&preferred));
        let counters = world.server.endpoint.counters();
        let moved = [counters.moved_to_v1, counters.moved_to_v2];
        assert_eq!(moved, if preferred == Version::V2 { [0, 1] } else { [1, 0] }, "once");
        // A server that prefers what the client has begun with leaves it there.
        let mut world = moving((preferred, preferred)).begin();
        exchange(&mut world);
        both_use(&mut world, preferred);
    }
}

/// The server's first packets may be acknowledgements in the first version, of a ClientHello that is not whole.
#[test]
fn no_loss_keeps_a_connection_from_the_preferred_version() {
    let without = exchange(&mut Setup::default().begin());
    for versions in BOTH {
        for side in [Side::Client, Side::Server] {
            for lost in 0..8 {
                let mut world = moving(versions).begin();
                world.judge = Box::new(move |datagram| {
                    let is_it = (datagram.from, datagram.number) == (side, lost);
                    if is_it { Fate::Lost } else { Fate::Arrives }
                });
                let took = exchange(&mut world);
                let most = without + Duration::from_millis(1_100);
                assert!(took <= most, "without datagram {lost} of {side:?}: {took:?}, else {without:?}");
                both_use(&mut world, versions.1);
            }
        }
    }
}

/// A part of the ClientHello that comes late is acknowledged in the first version before the server can choose.
#[test]
fn what_the_server_acknowledges_before_it_chooses_does_not_settle_the_version() {
    let mut world = moving(BOTH[0]).begin();
    world.judge = Box::new(|datagram| match (datagram.from, datagram.number) {
        (Side::Client, 1) => Fate::Late(Duration::from_millis(400)),
        _ => Fate::Arrives,
    });
    exchange(&mut world);
    both_use(&mut world, Version::V2);
    let sent = long_versions(&world, Side::Server);
    assert_eq!((sent.first(), sent.last()), (Some(&Version::V1), Some(&Version::V2)), "{sent:?}");
}

#[test]
fn a_client_that_was_sent_a_retry_is_moved_all_the_same() {
    for versions in BOTH {
        let endpoint = EndpointConfig { retry: RetryPolicy::Always, ..EndpointConfig::default() };
        let mut world = Setup { endpoint, ..moving(versions) }.begin();
        exchange(&mut world);
        both_use(&mut world, versions.1);
        assert_eq!(world.server.endpoint.counters().retries, 1);
    }
}

/// RFC 9369 §4.1: a header alone proves nothing. The attacker sees the packets and changes the version of the server's first ones.
#[test]
fn a_packet_that_is_not_authentic_does_not_change_the_version() {
    let mut world = Setup::default().begin();
    world.judge = Box::new(|datagram| {
        if datagram.from.is_server() && datagram.number < 2 && datagram.bytes[0] & 0x80 != 0 {
            datagram.bytes[1..5].copy_from_slice(&Version::V2.0.to_be_bytes());
            // The same type of packet in the numbers of version 2.
            let ty = ((datagram.bytes[0] >> 4) + 1) & 3;
            datagram.bytes[0] = datagram.bytes[0] & 0xcf | ty << 4;
        }
        Fate::Arrives
    });
    world.run_until("the handshake", |world| world.server.events.contains(&Event::Connected));
    both_use(&mut world, Version::V1);
    assert!(long_versions(&world, Side::Client).iter().all(|sent| *sent == Version::V1));
    assert!(world.connection(Side::Client).counters().dropped_forged > 0);
}
