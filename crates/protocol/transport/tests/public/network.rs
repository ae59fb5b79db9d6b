//! What a connection finds out about its path and agrees on with its peer: packet sizes, ECN, acknowledgements, keys.

use crate::setup::Setup;
use crate::world::{Fate, World};
use base::net::Ecn;
use base::time::{Duration, Instant};
use transport::{Event, Switch, TransportConfig};
use wire::Side;

/// The wire carries datagrams of up to this many bytes.
fn narrow(most: usize) -> crate::world::Judge {
    Box::new(move |datagram| if datagram.bytes.len() > most { Fate::Lost } else { Fate::Arrives })
}

/// RFC 9000 §14.3, RFC 8899: padded probes find what the path carries; their loss is no sign of congestion.
#[test]
fn the_largest_packet_that_the_path_carries_is_found() {
    for (most, least) in [(1_300, 1_270), (1_400, 1_370), (9_000, 1_452)] {
        let mut world = Setup::default().begin();
        world.judge = narrow(most);
        world.transfer_when_connected(100_000);
        world.run_for(Duration::from_secs(10));
        for side in [Side::Client, Side::Server] {
            let connection = world.connection(side);
            let (size, report) = (usize::from(connection.packet_size()), connection.mtu_report());
            assert!((least..=most).contains(&size), "{size} bytes where {most} pass");
            assert_eq!((usize::from(report.size), report.black_holes), (size, 0));
            assert_eq!(report.probes_lost > 0, most < 1_452);
        }
    }
}

/// RFC 8899 §4.3: the loss of full packets alone shows that a path has become narrower.
#[test]
fn a_path_that_becomes_narrower_is_noticed_and_content_goes_on() {
    let mut world = Setup::default().connected();
    world.transfer(Side::Server, 500_000);
    assert_eq!(world.connection(Side::Server).packet_size(), 1_452);
    world.judge = narrow(1_250);
    world.transfer(Side::Server, 500_000);
    let size = world.connection(Side::Server).packet_size();
    assert!((1_200..=1_250).contains(&size), "{size} bytes");
    assert!(world.connection(Side::Server).mtu_report().black_holes > 0);
}

/// RFC 9000 §14.2: the limit of the interface holds at once.
#[test]
fn a_limit_of_the_interface_is_kept_from_the_first_packet_on() {
    let mut world = Setup::default().begin();
    world.connection(Side::Client).limit_packet_size(1_280);
    world.transfer_when_connected(200_000);
    world.run_for(Duration::from_secs(5));
    assert!(world.sent(Side::Client).all(|datagram| datagram.bytes.len() <= 1_280));
    assert_eq!(world.connection(Side::Client).packet_size(), 1_280);
}

/// RFC 9000 §14.2: a datagram that the interface refuses as too long is as good as a limit, told late.
#[test]
fn a_datagram_that_the_interface_refuses_ends_larger_ones() {
    const MOST: usize = 1_300;
    let mut world = Setup::default().begin();
    world.judge = narrow(MOST);
    world.run_until("the handshake", |world| world.client.events.contains(&Event::Connected));
    let mut told = 0;
    let id = world.connection(Side::Client).open(transport::Dir::Uni).expect("a stream");
    world.client.peer().send(id, 300_000);
    world.run_until("the transfer", |world| {
        let refused = world.sent(Side::Client).filter(|sent| sent.bytes.len() > MOST);
        let refused: Vec<usize> = refused.map(|sent| sent.bytes.len()).collect();
        for &size in &refused[told..] {
            let now = world.now;
            world.connection(Side::Client).on_too_large(now, size);
        }
        told = refused.len();
        world.server.peer().received(id).has_ended
    });
    let size = usize::from(world.connection(Side::Client).packet_size());
    assert!((1_200..=MOST).contains(&size), "{size} bytes");
    assert!((1..10).contains(&told), "{told} datagrams were too long");
}

/// The share of the server's last datagrams that were marked, of one hundred.
fn marked(world: &World) -> usize {
    let sent: Vec<Ecn> = world.sent(Side::Server).map(|datagram| datagram.ecn).collect();
    let last = &sent[sent.len() - 100..];
    last.iter().filter(|mark| **mark == Ecn::Ect0).count()
}

/// RFC 9000 §13.4.2: marks go on where the peer reports them as they were sent, and end where it does not.
#[test]
fn packets_carry_ecn_marks_for_as_long_as_the_path_leaves_them() {
    let mut world = Setup::default().connected();
    world.transfer(Side::Server, 400_000);
    assert_eq!(marked(&world), 100);
    for change in [Ecn::NotEct, Ecn::Ect1] {
        let mut world = Setup::default().connected();
        world.judge = Box::new(move |datagram| {
            datagram.ecn = change;
            Fate::Arrives
        });
        world.transfer(Side::Server, 400_000);
        assert_eq!(marked(&world), 0, "{change:?}");
    }
    let without = TransportConfig { ecn: Switch::Off, ..TransportConfig::default() };
    let mut world = Setup { server: without, ..Setup::default() }.connected();
    world.transfer(Side::Server, 400_000);
    assert!(world.sent(Side::Server).all(|datagram| datagram.ecn == Ecn::NotEct));
    assert!(
        world.sent(Side::Client).any(|datagram| datagram.ecn == Ecn::Ect0),
        "each end decides for itself"
    );
}

/// RFC 9002 §7.1, RFC 3168: a mark slows the sender down as a loss does, and nothing is sent again.
#[test]
fn congestion_marks_slow_the_sender_down_without_loss() {
    let took = |every: usize| {
        let mut world = Setup::default().connected();
        world.transfer(Side::Server, 50_000);
        world.judge = Box::new(move |datagram| {
            if datagram.from.is_server() && datagram.number % every == 0 && datagram.ecn == Ecn::Ect0 {
                datagram.ecn = Ecn::Ce;
            }
            Fate::Arrives
        });
        let began = world.now;
        world.transfer(Side::Server, 2_000_000);
        assert_eq!(world.connection(Side::Server).counters().lost_packets, 0);
        world.now.saturating_since(began)
    };
    let (free, congested) = (took(usize::MAX), took(50));
    assert!(congested > free * 2, "{congested:?} with marks, {free:?} without");
}

/// A wire that carries one datagram in this much time, so that they do not arrive together.
fn serial(each: Duration) -> crate::world::Judge {
    let mut free_at = Instant::ZERO;
    Box::new(move |datagram| {
        if datagram.from.is_client() {
            return Fate::Arrives;
        }
        free_at = datagram.sent_at.max(free_at) + each;
        Fate::Late(free_at.saturating_since(datagram.sent_at))
    })
}

/// Datagrams that the client sent while it received 1 MB.
fn acknowledgements(client: TransportConfig, server: TransportConfig) -> usize {
    let mut world = Setup { client, server, ..Setup::default() }.connected();
    world.judge = serial(Duration::from_micros(50));
    world.transfer(Side::Server, 200_000);
    let before = world.sent(Side::Client).count();
    world.transfer(Side::Server, 1_000_000);
    assert_eq!(world.connection(Side::Server).counters().lost_packets, 0);
    world.sent(Side::Client).count() - before
}

/// RFC 9000 §13.2.2, draft-ietf-quic-ack-frequency §4: the sender of data asks for fewer acknowledgements, if both ends support it.
#[test]
fn acknowledgements_are_as_frequent_as_configured_or_agreed() {
    let every =
        |ack_every, ack_frequency| TransportConfig { ack_every, ack_frequency, ..TransportConfig::default() };
    let (on, off) = (Switch::On, Switch::Off);
    let second = acknowledgements(every(2, off), every(2, off));
    let tenth = acknowledgements(every(10, off), every(10, off));
    let agreed = acknowledgements(every(2, on), every(2, on));
    let one_sided = acknowledgements(every(2, off), every(2, on));
    assert!(second > 200 && tenth * 3 < second, "{second} at two, {tenth} at ten");
    assert!(agreed * 4 < second, "{agreed} by agreement, {second} without");
    assert!(one_sided * 10 > second * 8, "{one_sided} where one end does not support it, {second} without");
}

/// RFC 9000 §13.2.1: a single packet is acknowledged within the delay that its receiver has announced, and not at once.
#[test]
fn a_single_packet_is_acknowledged_within_max_ack_delay() {
    for milliseconds in [5, 60] {
        let max_ack_delay = Duration::from_millis(milliseconds);
        let server =
            TransportConfig { max_ack_delay, ack_frequency: Switch::Off, ..TransportConfig::default() };
        let mut world = Setup { server, ..Setup::default() }.connected();
        let id = world.connection(Side::Client).open(transport::Dir::Uni).expect("a stream");
        for _ in 0..10 {
            world.run_for(Duration::from_secs(1));
            let began = world.now;
            world.connection(Side::Client).write_slice(id, b"a few bytes").expect("writes");
            world.run_until("its acknowledgement", |world| {
                world.connection(Side::Client).unacknowledged_bytes() == 0
            });
            let took = world.now.saturating_since(began).saturating_sub(crate::world::DELAY * 2);
            assert!(took <= max_ack_delay && took >= max_ack_delay / 2, "{took:?}");
        }
        assert_eq!(world.connection(Side::Client).counters().probe_timeouts, 0);
    }
}

/// RFC 9001 §6: either end changes the keys while packets are on their way both ways; none is lost.
#[test]
fn keys_change_while_content_flows_and_nothing_is_lost() {
    let mut world = Setup::default().connected();
    for round in 0..4 {
        let side = if round % 2 == 0 { Side::Client } else { Side::Server };
        world.run_for(Duration::from_secs(2));
        for from in [Side::Client, Side::Server] {
            let id = world.connection(from).open(transport::Dir::Uni).expect("a stream");
            world.end(from).peer().send(id, 300_000);
        }
        world.run_for(Duration::from_millis(35));
        let now = world.now;
        assert!(world.connection(side).update_keys(now), "round {round}");
        assert!(!world.connection(side).update_keys(now), "not before the other end has followed");
        // Each end in turn sends something that is acknowledged under the new keys: only then may they change again.
        world.transfer(side, 20_000);
        world.transfer(side.other(), 20_000);
        world.run_for(Duration::from_secs(1));
        for side in [Side::Client, Side::Server] {
            let counters = *world.connection(side).counters();
            assert_eq!((counters.key_updates, counters.lost_packets), (round + 1, 0), "{side:?}");
            assert_eq!((counters.dropped_forged, counters.dropped_no_keys), (0, 0), "{side:?}");
            assert_eq!(world.connection(side).unacknowledged_bytes(), 0);
        }
    }
}

/// RFC 9001 §6.6: keys are changed without a request, long before the limit of the AEAD.
#[test]
fn keys_that_have_sealed_enough_packets_are_changed() {
    let client = TransportConfig { key_update_after: 100, ..TransportConfig::default() };
    let mut world = Setup { client, ..Setup::default() }.connected();
    for _ in 0..3 {
        world.run_for(Duration::from_secs(2));
        world.transfer(Side::Client, 300_000);
    }
    let updates = world.connection(Side::Client).counters().key_updates;
    assert!((2..=4).contains(&updates), "{updates}");
    assert_eq!(world.connection(Side::Server).counters().key_updates, updates);
}
