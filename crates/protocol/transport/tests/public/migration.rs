//! The client's address changes, or seems to.

use crate::ends::{content, whole};
use crate::setup::Setup;
use crate::world::{Fate, World, at, home, server_address};
use base::time::Duration;
use core::net::SocketAddr;
use transport::{CloseReason, Dir, Event, StreamId};
use wire::Side;

/// The address of an attacker that copies packets.
fn attacker() -> SocketAddr {
    at(66, 6_666)
}

/// The client has asked for this many bytes, and some of them have arrived.
fn under_way(len: usize) -> (World, StreamId) {
    let mut world = Setup::default().connected();
    world.run_for(Duration::from_millis(300));
    let id = world.connection(Side::Client).open(Dir::Bidi).expect("a stream");
    world.client.peer().send(id, 10);
    world.run_until("the request", |world| world.server.peer().received(id).has_ended);
    world.server.peer().send(id, len);
    world.run_for(Duration::from_millis(45));
    (world, id)
}

fn sees_client_at(world: &mut World) -> SocketAddr {
    world.connection(Side::Server).addresses().peer
}

/// Bytes that the server sent to an address.
fn sent_to(world: &World, address: SocketAddr) -> usize {
    world.sent(Side::Server).filter(|sent| sent.destination == address).map(|sent| sent.bytes.len()).sum()
}

/// The destination connection ID of a short header, whose length at both ends is the same.
fn short_destination(bytes: &[u8]) -> Option<[u8; 8]> {
    if bytes[0] & 0x80 == 0 { bytes[1..].first_chunk().copied() } else { None }
}

/// RFC 9000 §9.3, §9.5: the server follows, proves the address by a challenge, and uses another connection ID there.
#[test]
fn a_transfer_goes_on_at_the_clients_new_address() {
    const LEN: usize = 600_000;
    for new in [at(1, 50_000), at(3, 40_000)] {
        let (mut world, id) = under_way(LEN);
        let before = world.client.peer().received(id).bytes.len();
        assert!(before > 0 && before < LEN, "{before} bytes");
        world.seen_at = new;
        world.run_until("the transfer", |world| world.client.peer().received(id).has_ended);
        assert!(world.client.peer().received(id) == &whole(id, LEN));
        world.run_for(Duration::from_millis(500));
        assert_eq!(sees_client_at(&mut world), new);
        assert_eq!(world.connection(Side::Server).counters().migrations, 1);
        let used = |address| {
            let to = world.sent(Side::Server).filter(move |sent| sent.destination == address);
            let mut ids: Vec<_> = to.filter_map(|sent| short_destination(&sent.bytes)).collect();
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        let (old_ids, new_ids) = (used(home()), used(new));
        assert!(!new_ids.is_empty() && new_ids.iter().all(|id| !old_ids.contains(id)), "{new_ids:x?}");
        world.transfer(Side::Client, 50_000);
    }
}

/// RFC 9000 §9.3.1, §8.1: an address that is not proved gets three times what came from there, and the application is not told of it.
#[test]
fn a_copied_packet_moves_the_connection_for_a_moment_within_the_threefold_limit() {
    const LEN: usize = 600_000;
    let (mut world, id) = under_way(LEN);
    let mut is_done = false;
    world.judge = Box::new(move |datagram| {
        if datagram.from.is_client() && !core::mem::replace(&mut is_done, true) {
            return Fate::CopiedFrom(attacker());
        }
        Fate::Arrives
    });
    let copied = world.sent(Side::Client).count();
    let mut seen = Vec::new();
    world.run_until("the transfer", |world| {
        seen.push(sees_client_at(world));
        world.client.peer().received(id).has_ended
    });
    assert!(world.client.peer().received(id) == &whole(id, LEN));
    let drawn = sent_to(&world, attacker());
    let received = world.sent(Side::Client).nth(copied).expect("the copied one").bytes.len();
    assert!(drawn > 0 && drawn <= 3 * received, "{drawn} bytes for {received}");
    assert!(seen.iter().all(|address| *address == home()), "an application hears of proved addresses only");
    world.run_for(Duration::from_secs(5));
    assert!(world.connection(Side::Server).is_connected() && world.connection(Side::Client).is_connected());
    assert_eq!(sees_client_at(&mut world), home());
}

/// RFC 9000 §9.3.2: an address that does not answer is given up for the last one that did.
#[test]
fn a_path_that_is_not_validated_is_given_up_for_the_last_one() {
    let (mut world, _) = under_way(1_000);
    world.run_for(Duration::from_secs(1));
    // One packet arrives from another address, where no answer arrives; later packets come from the old one.
    world.seen_at = at(4, 4_000);
    world.judge = Box::new(|datagram| if datagram.from.is_server() { Fate::Lost } else { Fate::Arrives });
    let id = world.connection(Side::Client).open(Dir::Uni).expect("a stream");
    world.connection(Side::Client).write(id, content(id, 10)).expect("writes");
    world.run_for(Duration::from_millis(15));
    world.seen_at = home();
    assert!(sent_to(&world, at(4, 4_000)) > 0, "the server follows at once");
    assert_eq!(sees_client_at(&mut world), home(), "but tells the application of proved addresses only");
    world.judge = Box::new(|_| Fate::Arrives);
    world.client.peer().connection.finish_stream(id).expect("finishes");
    world.run_for(Duration::from_secs(5));
    assert_eq!(sees_client_at(&mut world), home());
    assert!(world.server.peer().received(id).has_ended);
    world.transfer(Side::Server, 100_000);
    assert!(world.client.ends().is_empty() && world.server.ends().is_empty());
}

/// RFC 9000 §9: servers do not move: an authentic packet from another address is dropped.
#[test]
fn a_client_drops_packets_from_another_address_than_its_servers() {
    let (mut world, id) = under_way(300_000);
    world.judge = Box::new(|datagram| {
        let is_copied = datagram.from.is_server() && datagram.number % 3 == 0;
        if is_copied { Fate::CopiedFrom(attacker()) } else { Fate::Arrives }
    });
    world.run_until("the transfer", |world| world.client.peer().received(id).has_ended);
    assert!(world.client.peer().received(id) == &whole(id, 300_000));
    let counters = *world.connection(Side::Client).counters();
    assert!(counters.dropped_path > 0 && counters.dropped_duplicate == 0, "{counters:?}");
    assert_eq!(world.connection(Side::Client).addresses().peer, server_address());
    assert!(world.sent(Side::Client).all(|sent| sent.destination == server_address()));
}

/// RFC 9000 §9, §8.1: the address changes before the handshake is confirmed, at any of its datagrams.
#[test]
fn the_clients_address_may_change_during_the_handshake() {
    for moved_at in 0..8 {
        for new in [at(1, 50_000), at(3, 40_000)] {
            let mut world = Setup::default().begin();
            let mut is_moved = false;
            world.run_until("the handshake", |world| {
                if !is_moved && world.log.len() > moved_at {
                    (world.seen_at, is_moved) = (new, true);
                }
                let events = [&world.client.events, &world.server.events];
                is_moved && events.iter().all(|events| events.contains(&Event::Connected))
            });
            world.transfer(Side::Client, 20_000);
            world.transfer(Side::Server, 20_000);
            world.run_for(Duration::from_secs(1));
            assert_eq!(sees_client_at(&mut world), new, "moved at datagram {moved_at}");
        }
    }
}

/// RFC 9000 §10.1: a path that carries nothing any more ends the connection at both ends after the idle timeout.
#[test]
fn a_path_that_carries_nothing_any_more_ends_the_connection() {
    let (mut world, _) = under_way(5_000_000);
    world.judge = Box::new(|_| Fate::Lost);
    world.run_until("both ends", |world| world.client.peers.is_empty() && world.server.peers.is_empty());
    assert_eq!(world.client.ends(), [CloseReason::IdleTimeout]);
    assert_eq!(world.server.ends(), [CloseReason::IdleTimeout]);
}
