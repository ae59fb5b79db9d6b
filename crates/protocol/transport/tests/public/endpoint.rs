//! Datagrams that belong to no connection here, and limits on those that would begin one.

use crate::setup::Setup;
use crate::world::{World, at, server_address};
use base::net::{Addresses, Ecn, Train};
use base::rng::Rng;
use base::time::{Duration, Instant};
use core::net::SocketAddr;
use transport::{CloseReason, DropReason, Endpoint, EndpointConfig, Event, Route};
use wire::error::Code;

/// Where the low byte of an Initial packet's length is, if there is no token and both connection IDs have 8 bytes.
const LENGTH: usize = 25;

/// What an endpoint makes of a datagram that comes from `peer`.
fn route(endpoint: &mut Endpoint, peer: SocketAddr, bytes: &[u8]) -> Route {
    let mut bytes = bytes.to_vec();
    let segment_size = bytes.len().max(1);
    let addresses = Addresses { local: server_address(), peer };
    let now = Instant::from_nanos(1 << 40);
    endpoint.route(now, &Train { bytes: &mut bytes, segment_size, addresses, ecn: Ecn::NotEct })
}

/// The first datagram of a client.
fn hello() -> Vec<u8> {
    let mut world = Setup::default().begin();
    world.run_for(Duration::from_millis(1));
    world.log[0].bytes.clone()
}

/// RFC 9000 §5.2.2, §7.2, §14.1, §17.2: what begins no connection is dropped and counted, and an answer is always smaller.
#[test]
fn a_datagram_that_begins_no_connection_is_dropped_for_a_reason() {
    let hello = hello();
    let mut endpoint = Endpoint::new(EndpointConfig::default(), [5; 32]);
    assert!(matches!(route(&mut endpoint, at(1, 1_024), &hello), Route::Incoming(_)));
    let changed = |place: usize, byte: u8| {
        let mut bytes = hello.clone();
        bytes[place] = byte;
        bytes
    };
    let mut short_cid = changed(5, 7);
    short_cid.remove(6);
    short_cid.push(0);
    let rows = [
        (Vec::new(), DropReason::Empty),
        (hello[..1_199].to_vec(), DropReason::Malformed),
        (changed(LENGTH, hello[LENGTH] - 1)[..1_199].to_vec(), DropReason::SmallDatagram),
        (short_cid, DropReason::ShortInitialCid),
        (changed(0, 0xe0), DropReason::Unexpected),
        (vec![0x40; 20], DropReason::UnknownConnection),
    ];
    for (bytes, reason) in rows {
        assert_eq!(route(&mut endpoint, at(1, 1_024), &bytes), Route::Drop(reason));
        assert_eq!(endpoint.counters().dropped(reason), 1, "{reason:?}");
    }
    // RFC 9000 §21.5: the source port of a service that answers anything.
    assert_eq!(route(&mut endpoint, at(1, 53), &hello), Route::Drop(DropReason::SourcePort));
    let mut rng = Rng::from_u64(6);
    for _ in 0..5_000 {
        let mut bytes = vec![0; rng.below(1_500) as usize];
        rng.fill(&mut bytes);
        match route(&mut endpoint, at(rng.below(200) as u8, 1_024), &bytes) {
            Route::Reply => assert!(endpoint.reply().len() < bytes.len()),
            Route::Drop(_) => {}
            other => panic!("{other:?} of random bytes"),
        }
    }
}

/// Clients that connect one after the other, and how each attempt ends; those that are connected stay.
fn crowd(endpoint: EndpointConfig, clients: usize) -> (World, Vec<CloseReason>) {
    let mut world = Setup { endpoint, ..Setup::default() }.begin();
    for _ in 1..clients {
        world.run_for(Duration::from_secs(1));
        world.connect();
    }
    world.run_for(Duration::from_secs(1));
    let ends = world.client.ends();
    (world, ends)
}

/// RFC 9000 §5.2.2: a full server answers CONNECTION_REFUSED; its other connections go on.
#[test]
fn a_connection_beyond_the_limit_is_refused_and_the_others_go_on() {
    let limits = [
        EndpointConfig { max_connections: 3, ..EndpointConfig::default() },
        EndpointConfig { max_connections_per_address: 3, ..EndpointConfig::default() },
        EndpointConfig { max_connections_per_prefix: 3, ..EndpointConfig::default() },
    ];
    for endpoint in limits {
        let (mut world, ends) = crowd(endpoint, 5);
        assert_eq!(ends.len(), 2, "{ends:?}");
        for end in ends {
            let CloseReason::PeerTransport { code, .. } = end else { panic!("{end:?}") };
            assert_eq!(code, Code::CONNECTION_REFUSED);
        }
        assert_eq!(world.server.peers.len(), 3);
        assert!(world.server.endpoint.counters().refused_connections >= 2);
        // A connection that ends makes room.
        let now = world.now;
        world.client.peer().connection.close(now, 0, b"");
        world.run_until("room", |world| world.server.peers.len() == 2);
        world.connect();
        world.client.events.clear();
        world.run_until("another", |world| world.client.events.contains(&Event::Connected));
    }
}

/// RFC 9000 §5.1: a connection ID names the worker that issued it, so that any worker can tell where a datagram belongs.
#[test]
fn a_datagram_of_another_workers_connection_is_sent_there() {
    let of_worker = |worker| EndpointConfig { worker, workers: 3, ..EndpointConfig::default() };
    let mut world = Setup { endpoint: of_worker(2), ..Setup::default() }.connected();
    world.transfer(wire::Side::Client, 100);
    let last = world.sent(wire::Side::Client).last().expect("a datagram").bytes.clone();
    assert_eq!(last[0] & 0x80, 0, "a short header");
    for worker in [0, 1] {
        let mut other = Endpoint::new(of_worker(worker), [worker; 32]);
        assert_eq!(route(&mut other, at(1, 40_000), &last), Route::Elsewhere(2));
        assert_eq!(other.counters().elsewhere, 1);
    }
}
