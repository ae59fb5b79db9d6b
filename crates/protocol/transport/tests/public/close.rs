//! The end of a connection, told or in silence, and what remains of it.

use crate::setup::Setup;
use crate::world::{DELAY, Fate, World};
use base::time::Duration;
use bytes::Bytes;
use transport::{CloseReason, Dir, Endpoint, EndpointConfig, Event, TransportConfig};
use wire::Side;

/// RFC 9000 §10.2, §19.19: the peer's application is told code and reason; all state goes three PTO later.
#[test]
fn a_close_tells_the_other_end_its_code_and_reason() {
    for side in [Side::Client, Side::Server] {
        let mut world = Setup::default().connected();
        let now = world.now;
        world.connection(side).close(now, 0x1234, b"enough\nfor today");
        world.connection(side).close(now, 0x5678, b"a second close changes nothing");
        world.run_until("the other end", |world| !world.end(side.other()).ends().is_empty());
        assert_eq!(world.end(side).ends(), [CloseReason::Local { code: 0x1234 }]);
        let told =
            CloseReason::PeerApplication { code: 0x1234, reason: "enough\u{fffd}for today".to_owned() };
        assert_eq!(world.end(side.other()).ends(), [told]);
        assert!(world.connection(side).is_closed() && !world.connection(side).is_connected());
        world.run_until("the end", |world| world.client.peers.is_empty() && world.server.peers.is_empty());
        assert!(world.now.saturating_since(now) < Duration::from_secs(2));
    }
}

/// One answer that comes late makes the estimate of a round trip seconds long, and a PTO three times that.
#[test]
fn a_program_does_not_wait_long_for_the_end_of_what_it_has_closed() {
    let patient =
        TransportConfig { handshake_timeout: Duration::from_secs(60), ..TransportConfig::default() };
    let mut world = Setup::both(&patient).begin();
    let began = world.now;
    world.judge = Box::new(move |datagram| {
        let is_slow = datagram.sent_at < began + Duration::from_secs(5);
        if is_slow { Fate::Late(Duration::from_secs(6)) } else { Fate::Arrives }
    });
    world.run_until("the handshake", |world| world.client.events.contains(&Event::Connected));
    let now = world.now;
    let pto = world.connection(Side::Client).rtt() * 3;
    assert!(pto > Duration::from_secs(5), "{pto:?}");
    world.connection(Side::Client).close(now, 0, b"");
    world.run_until("the end", |world| world.client.peers.is_empty());
    assert!(world.now.saturating_since(now) <= Duration::from_secs(10));
}

/// RFC 9000 §10.2.1: packets after a close are answered by another close, less and less often, so that a lost close is made up for.
#[test]
fn a_lost_close_is_repeated_and_not_for_every_packet() {
    let mut world = Setup::default().connected();
    world.run_for(Duration::from_secs(1));
    let (now, first) = (world.now, world.sent(Side::Server).count());
    world.connection(Side::Server).close(now, 7, b"");
    world.judge = Box::new(move |datagram| {
        let is_early = datagram.number < first + 2;
        if datagram.from.is_server() && is_early { Fate::Lost } else { Fate::Arrives }
    });
    let id = world.connection(Side::Client).open(Dir::Uni).expect("a stream");
    for _ in 0..64 {
        world.connection(Side::Client).write(id, Bytes::from(vec![1; 1_000])).expect("writes");
        world.run_for(Duration::from_millis(1));
    }
    world.run_until("the client's end", |world| !world.client.ends().is_empty());
    assert!(matches!(world.client.ends()[..], [CloseReason::PeerApplication { code: 7, .. }]));
    let (heard, closes) = (world.sent(Side::Client).count(), world.sent(Side::Server).count() - first);
    assert!(closes >= 3 && closes * 3 < heard, "{closes} for {heard} datagrams");
}

fn idle(client: u64, server: u64) -> Setup {
    let lasting = |seconds| TransportConfig {
        idle_timeout: Duration::from_secs(seconds),
        ..TransportConfig::default()
    };
    Setup { client: lasting(client), server: lasting(server), ..Setup::default() }
}

/// RFC 9000 §10.1: the lower of both timeouts holds at both ends, and nothing is sent.
#[test]
fn silence_ends_a_connection_after_the_lower_timeout() {
    for (client, server) in [(5, 30), (30, 5), (0, 5)] {
        let mut world = idle(client, server).connected();
        world.run_for(Duration::from_secs(1));
        let last = world.log.last().expect("a datagram").sent_at;
        let sent = world.log.len();
        world.run_until("the end", |world| world.client.peers.is_empty() && world.server.peers.is_empty());
        assert_eq!(world.client.ends(), [CloseReason::IdleTimeout]);
        assert_eq!(world.server.ends(), [CloseReason::IdleTimeout]);
        let after = world.now.saturating_since(last);
        assert!(after >= Duration::from_secs(5) && after <= Duration::from_secs(5) + DELAY * 2, "{after:?}");
        assert_eq!(world.log.len(), sent, "in silence");
    }
}

/// RFC 9000 §10.1.2: a PING before the timeout keeps a connection without data.
#[test]
fn keep_alive_outlasts_the_idle_timeout() {
    let mut setup = idle(5, 5);
    setup.client.keep_alive = Some(Duration::from_secs(2));
    let mut world = setup.connected();
    world.run_for(Duration::from_secs(60));
    assert!(world.connection(Side::Client).is_connected() && world.connection(Side::Server).is_connected());
    let pings = world.sent(Side::Client).count();
    assert!((20..80).contains(&pings), "{pings} datagrams in a minute");
    world.transfer(Side::Server, 10_000);
}

/// RFC 9000 §10.3: a server without the connection's state, but with its reset key, ends the connection by one datagram.
#[test]
fn a_server_that_has_forgotten_resets_the_connection() {
    let endpoint = EndpointConfig { reset_key: Some([7; 32]), ..EndpointConfig::default() };
    let mut world = Setup { endpoint: endpoint.clone(), ..Setup::default() }.connected();
    world.run_for(Duration::from_millis(200));
    world.server.endpoint = Endpoint::new(endpoint, [3; 32]);
    world.server.peers = Default::default();
    let (id, before) = (world.connection(Side::Client).open(Dir::Bidi).expect("a stream"), world.log.len());
    world.client.peer().send(id, 100);
    world.run_until("the end", |world| !world.client.ends().is_empty());
    assert_eq!(world.client.ends(), [CloseReason::StatelessReset]);
    assert_eq!(world.server.endpoint.counters().stateless_resets, 1);
    // RFC 9000 §10.3.3: smaller than what it answers, and like any short packet.
    let [asked, reset] = &world.log[before..] else { panic!("{} datagrams", world.log.len() - before) };
    assert!(reset.bytes.len() < asked.bytes.len() && reset.bytes[0] & 0xc0 == 0x40);
}

/// RFC 9000 §10.3.1: a reset without the right token does not end the connection.
#[test]
fn a_server_with_another_reset_key_ends_nothing() {
    let mut world = Setup::default().connected();
    world.run_for(Duration::from_millis(200));
    let endpoint = Endpoint::new(EndpointConfig::default(), [3; 32]);
    let server = core::mem::replace(&mut world.server.endpoint, endpoint);
    let peers = core::mem::take(&mut world.server.peers);
    let id = world.connection(Side::Client).open(Dir::Bidi).expect("a stream");
    world.client.peer().send(id, 100);
    world.run_for(Duration::from_millis(500));
    assert!(world.server.endpoint.counters().stateless_resets > 0);
    assert!(world.client.ends().is_empty());
    (world.server.endpoint, world.server.peers) = (server, peers);
    world.run_until("the content", |world| world.server.peer().received(id).has_ended);
}

/// Ends every connection of the client in one of four ways, with streams in all states.
fn end_all(world: &mut World) {
    let now = world.now;
    for (place, (_, peer)) in world.client.peers.iter_mut().enumerate() {
        for dir in [Dir::Bidi, Dir::Uni] {
            let id = peer.connection.open(dir).expect("a stream");
            peer.connection.write(id, Bytes::from(vec![1; 5_000])).expect("writes");
            match place % 4 {
                0 => peer.connection.finish_stream(id).expect("finishes"),
                1 => peer.connection.reset(id, 1),
                2 => peer.connection.stop_sending(id, 2),
                _ => {}
            }
        }
        if place % 3 == 0 {
            peer.connection.close(now, 0, b"");
        }
    }
    world.run_for(Duration::from_millis(50));
    let now = world.now;
    for (place, (_, peer)) in world.server.peers.iter_mut().enumerate() {
        if place % 3 == 1 {
            peer.connection.close(now, 0, b"");
        }
    }
}

/// RFC 9000 §10: after closing, draining or idling all state goes, and what still arrives finds none.
#[test]
fn nothing_is_left_of_connections_that_have_ended() {
    const CONNECTIONS: usize = 12;
    let mut world = idle(5, 5).begin();
    (1..CONNECTIONS).for_each(|_| world.connect());
    world.run_until("the handshakes", |world| {
        let connected = |end: &crate::ends::End| {
            end.events.iter().filter(|event| **event == Event::Connected).count() == CONNECTIONS
        };
        connected(&world.client) && connected(&world.server)
    });
    assert_eq!((world.server.peers.len(), world.server.endpoint.half_open()), (CONNECTIONS, 0));
    end_all(&mut world);
    world.run_until("the end", |world| world.client.peers.is_empty() && world.server.peers.is_empty());
    assert_eq!(world.client.ends().len(), CONNECTIONS);
    assert_eq!(world.server.ends().len(), CONNECTIONS);
    assert_eq!(world.server.endpoint.half_open(), 0);
    // The last datagram of each connection comes again: nothing leads to what is gone.
    world.run_for(Duration::from_secs(1));
    let (old, before) = (world.log.clone(), world.server.endpoint.counters().incoming);
    let short: Vec<_> = old.into_iter().filter(|datagram| datagram.bytes[0] & 0x80 == 0).collect();
    assert!(short.len() > CONNECTIONS);
    short.into_iter().for_each(|datagram| world.repeat(datagram));
    world.run_for(Duration::from_secs(1));
    assert!(world.client.peers.is_empty() && world.server.peers.is_empty());
    assert_eq!(world.server.endpoint.counters().incoming, before);
}
