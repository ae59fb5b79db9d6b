//! The client moves: to another address of its own, or to the one that its server prefers.

use crate::ends::whole;
use crate::setup::Setup;
use crate::world::{Datagram, Fate, World, at, home, server_address};
use base::time::Duration;
use core::net::SocketAddr;
use transport::{Dir, Event, MigrateError, PreferredAddresses, StreamId, TransportConfig};
use wire::Side;

/// Bytes of a download.
const LEN: usize = 800_000;

/// Where clients move to.
fn new_home() -> SocketAddr {
    at(5, 41_000)
}

/// Where servers prefer to be reached.
fn preferred() -> SocketAddr {
    at(7, 8_443)
}

/// A client with two addresses has asked for `LEN` bytes, and some of them have arrived.
fn under_way(setup: Setup) -> (World, StreamId) {
    let mut world = setup.connected();
    world.others = vec![new_home(), at(6, 42_000)];
    world.run_for(Duration::from_millis(300));
    let id = world.connection(Side::Client).open(Dir::Bidi).expect("a stream");
    world.client.peer().send(id, 10);
    world.run_until("the request", |world| world.server.peer().received(id).has_ended);
    world.server.peer().send(id, LEN);
    world.run_for(Duration::from_millis(45));
    assert!(world.client.peer().received(id).bytes.len() < LEN);
    (world, id)
}

fn migrate(world: &mut World, local: SocketAddr) {
    let now = world.now;
    world.connection(Side::Client).migrate(now, local).expect("may move");
}

/// Runs until the download is complete, and a while longer.
fn complete(world: &mut World, id: StreamId) {
    world.run_until("the download", |world| world.client.peer().received(id).has_ended);
    assert!(world.client.peer().received(id) == &whole(id, LEN));
    world.run_for(Duration::from_secs(1));
}

/// Where the client has moved to, one time after the other.
fn moves(world: &World) -> Vec<SocketAddr> {
    let moved = |event: &Event| match event {
        Event::Migrated { addresses } => Some(addresses.local),
        _ => None,
    };
    world.client.events.iter().filter_map(moved).collect()
}

fn failed_moves(world: &World) -> usize {
    world.client.events.iter().filter(|event| matches!(event, Event::MigrationFailed { .. })).count()
}

/// Whether a datagram goes over the path from or to an address of the client.
fn is_on_path_of(datagram: &Datagram, client: SocketAddr) -> bool {
    datagram.source == client || datagram.destination == client
}

/// The destination connection IDs of what one end has sent over the path of a client's address.
fn cids(world: &World, from: Side, client: SocketAddr) -> Vec<[u8; 8]> {
    let on_path = world.sent(from).filter(|sent| is_on_path_of(sent, client) && sent.bytes[0] & 0x80 == 0);
    let mut cids: Vec<[u8; 8]> = on_path.filter_map(|sent| sent.bytes[1..].first_chunk().copied()).collect();
    cids.sort_unstable();
    cids.dedup();
    cids
}

fn sees_client_at(world: &mut World) -> SocketAddr {
    world.connection(Side::Server).addresses().peer
}

/// RFC 9000 §9.1, §9.2, §9.5: deleted, a move could carry data before the server has answered, or show connection IDs of the old
/// path on the new one.
#[test]
fn a_client_moves_when_the_server_has_answered_there() {
    let (mut world, id) = under_way(Setup::default());
    let began = world.log.len();
    migrate(&mut world, new_home());
    world.run_until("the move", |world| moves(world) == [new_home()]);
    let sent: Vec<&Datagram> = world.log[began..].iter().filter(|sent| sent.source == new_home()).collect();
    let first = sent.first().expect("a probe").sent_at;
    let early: Vec<usize> = sent
        .iter()
        .filter(|sent| sent.sent_at < first + Duration::from_millis(20))
        .map(|sent| sent.bytes.len())
        .collect();
    assert_eq!(early, [1_200], "one full probe goes before the answer");
    let moved_at = world.now;
    complete(&mut world, id);
    assert_eq!(sees_client_at(&mut world), new_home());
    // The server challenges the old path, which is answered there (RFC 9000 §9.3.3).
    let is_data = |sent: &&Datagram| sent.sent_at > moved_at && sent.bytes.len() != 1_200;
    assert!(world.sent(Side::Client).filter(is_data).all(|sent| sent.source == new_home()));
    for side in [Side::Client, Side::Server] {
        assert_eq!(world.connection(side).counters().migrations, 1, "{side:?}");
        let (before, after) = (cids(&world, side, home()), cids(&world, side, new_home()));
        assert!(!after.is_empty() && after.iter().all(|cid| !before.contains(cid)), "{side:?}: linkable");
    }
    world.transfer(Side::Client, 50_000);
    world.transfer(Side::Server, 50_000);
}

/// Deleted, a lost challenge, response or first packet could leave the two ends on different paths.
#[test]
fn any_packet_of_a_move_may_be_lost() {
    for side in [Side::Client, Side::Server] {
        for lost in 0..8 {
            let (mut world, id) = under_way(Setup::default());
            let mut seen = 0;
            world.judge = Box::new(move |datagram| {
                let counts = datagram.from == side && is_on_path_of(datagram, new_home());
                seen += usize::from(counts);
                if counts && seen == lost + 1 { Fate::Lost } else { Fate::Arrives }
            });
            migrate(&mut world, new_home());
            complete(&mut world, id);
            assert_eq!(moves(&world), [new_home()], "{side:?} {lost}");
            assert_eq!(sees_client_at(&mut world), new_home(), "{side:?} {lost}");
            assert_eq!(failed_moves(&world), 0);
        }
    }
}

/// RFC 9000 §9.5: deleted, a client without a spare connection ID could answer at the address that it has left with the ID of the new
/// one.
#[test]
fn without_a_spare_connection_id_nothing_links_the_path_that_was_left() {
    let (mut world, id) = under_way(Setup::default());
    let (now, away) = (world.now, at(6, 42_000));
    // All spare IDs but one are used up, at one instant, so that none of these moves is seen.
    for place in [away, home()] {
        world.connection(Side::Client).migrate_at_once(now, place).expect("may move");
    }
    // For a while nothing of the server arrives but its probes, so no other connection IDs: on the new path they go first, and on the
    // other they are not as large as its data.
    let mut is_first = true;
    world.judge = Box::new(move |datagram| {
        let is_probe = match datagram.destination == new_home() {
            true => core::mem::take(&mut is_first),
            false => datagram.bytes.len() == 1_200,
        };
        let is_early = datagram.sent_at < now + Duration::from_millis(60);
        if datagram.from.is_server() && is_early && !is_probe { Fate::Lost } else { Fate::Arrives }
    });
    let began = world.log.len();
    migrate(&mut world, new_home());
    world.run_for(Duration::from_millis(60));
    assert_eq!(moves(&world).last(), Some(&new_home()));
    assert_eq!(world.connection(Side::Client).migrate(now, away), Err(MigrateError::NoConnectionId));
    let challenges = |sent: &&Datagram| sent.from.is_server() && sent.destination == home();
    let full = world.log[began..].iter().filter(challenges).filter(|sent| sent.bytes.len() == 1_200);
    assert!(full.count() > 0, "the path that was left is challenged");
    complete(&mut world, id);
    for side in [Side::Client, Side::Server] {
        let (before, after) = (cids(&world, side, home()), cids(&world, side, new_home()));
        assert!(!after.is_empty() && after.iter().all(|cid| !before.contains(cid)), "{side:?}: linkable");
    }
    world.transfer(Side::Client, 50_000);
}

/// RFC 9000 §9.1: deleted, a failed probe could end the connection, or its connection ID link two paths.
#[test]
fn a_move_to_where_nothing_answers_leaves_the_connection_where_it_was() {
    let (mut world, id) = under_way(Setup::default());
    world.judge =
        Box::new(|datagram| if is_on_path_of(datagram, new_home()) { Fate::Lost } else { Fate::Arrives });
    migrate(&mut world, new_home());
    complete(&mut world, id);
    world.run_until("the end of the move", |world| failed_moves(world) == 1);
    assert!(moves(&world).is_empty() && sees_client_at(&mut world) == home());
    assert_eq!(world.connection(Side::Client).counters().migrations, 0);
    // It may move elsewhere, with an ID that was not seen at the first place.
    world.run_for(Duration::from_secs(1));
    migrate(&mut world, at(6, 42_000));
    world.run_until("the second move", |world| moves(world) == [at(6, 42_000)]);
    world.transfer(Side::Client, 50_000);
    let (first, second) = (cids(&world, Side::Client, new_home()), cids(&world, Side::Client, at(6, 42_000)));
    assert!(!first.is_empty() && second.iter().all(|cid| !first.contains(cid)), "linkable");
}

/// Deleted, a client that has moved to a network which then fails would be lost though the old one still works.
#[test]
fn a_path_that_falls_silent_after_a_move_is_left_for_the_old_one() {
    let (mut world, id) = under_way(Setup::default());
    migrate(&mut world, new_home());
    world.run_until("the move", |world| !moves(world).is_empty());
    world.run_for(Duration::from_millis(30));
    assert!(!world.client.peer().received(id).has_ended);
    world.judge =
        Box::new(|datagram| if is_on_path_of(datagram, new_home()) { Fate::Lost } else { Fate::Arrives });
    complete(&mut world, id);
    assert_eq!(moves(&world), [new_home(), home()]);
    assert_eq!(sees_client_at(&mut world), home());
    world.transfer(Side::Client, 50_000);
}

/// RFC 9000 §9.2: deleted, a client whose address is gone would wait for an answer that cannot come.
#[test]
fn a_client_whose_address_is_gone_moves_at_once() {
    for lost in 0..6 {
        let (mut world, id) = under_way(Setup::default());
        let mut seen = 0;
        world.judge = Box::new(move |datagram| {
            let is_new = is_on_path_of(datagram, new_home());
            seen += usize::from(is_new);
            // Whatever is not on the new path is lost, and one packet of those that are.
            if !is_new || seen == lost { Fate::Lost } else { Fate::Arrives }
        });
        let now = world.now;
        assert!(
            world.connection(Side::Client).forget_local_address(now, home().ip()),
            "it is the one in use"
        );
        world.connection(Side::Client).migrate_at_once(now, new_home()).expect("may move");
        complete(&mut world, id);
        assert_eq!(moves(&world), [new_home()]);
        assert_eq!(sees_client_at(&mut world), new_home());
        let now = world.now;
        assert!(!world.connection(Side::Client).forget_local_address(now, home().ip()));
    }
}

/// Moves one after the other: connection IDs come again as fast as they are used.
#[test]
fn a_client_may_move_to_and_fro() {
    let (mut world, id) = under_way(Setup::default());
    let mut expected = Vec::new();
    for round in 0..12 {
        let local = if round % 2 == 0 { new_home() } else { home() };
        migrate(&mut world, local);
        expected.push(local);
        world.run_until("a move", |world| moves(world).len() == expected.len());
        world.run_for(Duration::from_millis(200));
    }
    complete(&mut world, id);
    assert_eq!(moves(&world), expected);
    world.transfer(Side::Server, 50_000);
}

/// Deleted, a program could ask for a move that breaks the protocol.
#[test]
fn a_connection_that_may_not_move_says_why() {
    let mut world = Setup::default().begin();
    let now = world.now;
    let asked = |world: &mut World, side, local| {
        let now = world.now;
        world.connection(side).migrate(now, local).expect_err("may not move")
    };
    assert_eq!(asked(&mut world, Side::Client, new_home()), MigrateError::NotConfirmed);
    let mut world = Setup::default().connected();
    assert_eq!(asked(&mut world, Side::Server, new_home()), MigrateError::Server);
    assert_eq!(asked(&mut world, Side::Client, home()), MigrateError::SamePath);
    let v6 = "[2001:db8::1]:4000".parse().expect("an address");
    assert_eq!(asked(&mut world, Side::Client, v6), MigrateError::OtherFamily);
    world.run_for(Duration::from_millis(300));
    world.connection(Side::Client).close(now, 0, b"");
    assert_eq!(asked(&mut world, Side::Client, new_home()), MigrateError::NotConfirmed);
}

fn preferring() -> Setup {
    let preferred_address = PreferredAddresses::default().with(preferred());
    Setup { server: TransportConfig { preferred_address, ..TransportConfig::default() }, ..Setup::default() }
}

/// The servers' addresses that the two ends use.
fn servers(world: &mut World) -> [SocketAddr; 2] {
    [world.connection(Side::Client).addresses().peer, world.connection(Side::Server).addresses().local]
}

/// RFC 9000 §9.6: whichever packet of the move is lost, both ends go on at the preferred address, and before the client has
/// shown there that it has moved, nothing but probes comes from it.
#[test]
fn a_client_moves_to_the_address_that_its_server_prefers() {
    for side in [Side::Client, Side::Server] {
        for lost in 0..6 {
            let mut world = preferring().connected();
            let mut seen = 0;
            world.judge = Box::new(move |datagram| {
                let counts =
                    datagram.from == side && [datagram.source, datagram.destination].contains(&preferred());
                seen += usize::from(counts);
                if counts && seen == lost { Fate::Lost } else { Fate::Arrives }
            });
            world.run_for(Duration::from_secs(5));
            assert_eq!(servers(&mut world), [preferred(); 2], "{side:?} {lost}");
            let from_there = world.sent(Side::Server).filter(|sent| sent.source == preferred());
            let non_probing_since = world
                .sent(Side::Client)
                .find(|sent| sent.destination == preferred() && sent.bytes.len() < 1_200)
                .map(|sent| sent.sent_at);
            let since = non_probing_since.expect("the client has moved");
            let small = from_there.filter(|sent| sent.bytes.len() < 1_200).all(|sent| sent.sent_at > since);
            assert!(small, "{side:?} {lost}: the server has gone first");
            world.transfer(Side::Client, 100_000);
            world.transfer(Side::Server, 100_000);
            assert_eq!(moves(&world), [home()]);
        }
    }
}

/// RFC 9000 §9.6.1: a preferred address that leads nowhere costs nothing but its probes.
#[test]
fn a_preferred_address_that_leads_nowhere_is_not_used() {
    let mut world = preferring().connected();
    world.judge = Box::new(|datagram| {
        let is_there = [datagram.source, datagram.destination].contains(&preferred());
        if is_there { Fate::Lost } else { Fate::Arrives }
    });
    world.transfer(Side::Server, 100_000);
    world.run_until("the end of the move", |world| failed_moves(world) == 1);
    assert_eq!(servers(&mut world), [server_address(); 2]);
    world.transfer(Side::Client, 100_000);
    assert!(world.client.ends().is_empty() && world.server.ends().is_empty());
}

/// RFC 9000 §9.6.3: a client that has moved to the preferred address may change its own address there.
#[test]
fn a_client_moves_on_from_the_preferred_address() {
    let mut world = preferring().connected();
    world.others = vec![new_home()];
    world.run_for(Duration::from_secs(2));
    assert_eq!(servers(&mut world), [preferred(); 2]);
    migrate(&mut world, new_home());
    world.run_for(Duration::from_secs(2));
    assert_eq!(moves(&world), [home(), new_home()]);
    assert_eq!((servers(&mut world), sees_client_at(&mut world)), ([preferred(); 2], new_home()));
    world.transfer(Side::Server, 100_000);
}
