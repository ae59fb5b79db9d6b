//! The table of components: what one of them wants makes a plan and is written, and every one of them uses the window.

use super::*;
use crate::builder::PacketBuilder;
use crate::connection::components::{COMPONENTS, Wanted};
use proptest::prelude::*;
use wire::writer::Writer;

/// The largest DATAGRAM frame that both sides accept here.
const MAX_FRAME: u16 = 2_000;

fn transport() -> TransportConfig {
    TransportConfig { max_datagram_frame_size: MAX_FRAME, ..TransportConfig::default() }
}

fn connected() -> Pair {
    let mut pair = Pair::connected(&TlsOptions::default(), transport(), RetryPolicy::Never);
    pair.run(20);
    pair
}

/// The client's window and packet size after some round trips from the handshake on. `feed` is called before each of them.
fn after_round_trips(mut feed: impl FnMut(&mut Connection)) -> (u64, u16) {
    let mut pair = Pair::new(&TlsOptions::default(), transport(), RetryPolicy::Never);
    while !pair.client().is_connected() {
        pair.step();
    }
    for _ in 0..15 {
        feed(pair.client());
        pair.step();
    }
    assert_eq!(pair.client().counters().lost_packets, 0);
    let path = pair.client().paths.active();
    (path.congestion.window(), path.max_packet_size)
}

fn feed_streams(client: &mut Connection) {
    let id = client.open(Dir::Uni).expect("stream");
    client.write(id, Bytes::from(vec![1; 200_000])).expect("writes");
}

fn feed_datagrams(client: &mut Connection) {
    for _ in 0..200 {
        client.send_datagram(Bytes::from(vec![1; 1_000])).expect("sends");
    }
}

/// RFC 9002 §7.8: a window that is used grows, whatever uses it.
#[test]
fn datagrams_alone_grow_the_window_as_streams_do() {
    let ((streams, _), (datagrams, _)) = (after_round_trips(feed_streams), after_round_trips(feed_datagrams));
    assert!(streams > 100_000, "{streams}");
    assert!(datagrams > streams / 2, "{datagrams} bytes, with streams {streams}");
}

/// RFC 8899 §3: else a sender of datagrams, which always has one waiting, would never find the larger size.
#[test]
fn datagrams_alone_leave_room_for_mtu_probes() {
    let ((_, streams), (_, datagrams)) = (after_round_trips(feed_streams), after_round_trips(feed_datagrams));
    assert_eq!((streams, datagrams), (1_452, 1_452));
}

/// A window that nothing uses does not grow, whichever component has sent a little.
#[test]
fn a_few_datagrams_do_not_grow_the_window() {
    let few = |client: &mut Connection| client.send_datagram(Bytes::from(vec![1; 1_000])).expect("sends");
    let idle = after_round_trips(|_| ());
    assert_eq!(after_round_trips(few).0, idle.0);
}

/// Gives the client's component of this name something to send, and no other.
fn make_want(name: &str, pair: &mut Pair) {
    let now = pair.now;
    let client = pair.client();
    match name {
        "ACK" => {
            let id = pair.server().open(Dir::Uni).expect("stream");
            pair.server().write(id, Bytes::from(vec![1; 6_000])).expect("writes");
            let flight = pair.server.send(now);
            flight.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
        }
        "CRYPTO" => client.spaces.application.crypto.push(b"a message of TLS"),
        "IMMEDIATE_ACK" | "probe" => client.spaces.application.owe_probes(1),
        "HANDSHAKE_DONE, NEW_TOKEN, PING" => client.components.control_frames.ping(),
        "ACK_FREQUENCY" => {
            // A window of this many packets is worth a request.
            let path = client.paths.active();
            let wanted = Wanted { packet_size: 1, span: Duration::ZERO };
            client.components.ack_frequency.on_path_state(Instant::ZERO, &path.congestion, &path.rtt, wanted);
        }
        "RETIRE_CONNECTION_ID" => assert!(client.components.peer_cids.switch()),
        "NEW_CONNECTION_ID" => {
            let used = client.components.local_cids.first();
            client.components.local_cids.on_retire(1, &used).expect("it was issued");
        }
        "lanes" => client.components.begin_lanes(3),
        "stream control" => {
            let id = client.open(Dir::Bidi).expect("stream");
            client.stop_sending(id, 1);
        }
        "DATAGRAM" => client.send_datagram(Bytes::from_static(b"datagram")).expect("sends"),
        "STREAM" => {
            let id = client.open(Dir::Uni).expect("stream");
            client.write_slice(id, b"data").expect("writes");
        }
        other => panic!("{other}: say here how it comes to want"),
    }
}

/// The components of the client that have something to send in 1-RTT packets.
fn wanting(pair: &mut Pair) -> Vec<&'static str> {
    let now = pair.now;
    let client = pair.client();
    let wants = COMPONENTS
        .iter()
        .filter(|component| (component.wants)(&client.components, &client.spaces.application, now));
    wants.map(|component| component.name).collect()
}

/// A component that is in the table but not asked would wait for ever, and one that is asked but never writes would spin.
#[test]
fn each_component_that_wants_alone_is_planned_and_written() {
    // It follows an ACK and never wants by itself: tests/timestamps.rs.
    for component in COMPONENTS.iter().filter(|component| component.name != "TIMESTAMP") {
        let mut pair = connected();
        assert_eq!(wanting(&mut pair), [""; 0], "nothing waits");
        make_want(component.name, &mut pair);
        let expected = match component.name {
            // A probe asks for an acknowledgement at once.
            "IMMEDIATE_ACK" | "probe" => vec!["IMMEDIATE_ACK", "probe"],
            name => vec![name],
        };
        assert_eq!(wanting(&mut pair), expected);
        let now = pair.now;
        assert!(pair.client().assembly().plan(now, u64::MAX).is_some(), "{}: is planned", component.name);
        assert_eq!(pair.client.send(now).len(), 1, "{}: fits one packet", component.name);
        assert_eq!(wanting(&mut pair), [""; 0], "{} is written", component.name);
        assert!(
            pair.client().assembly().plan(now, u64::MAX).is_none(),
            "{}: no more is planned",
            component.name
        );
    }
}

/// Something that an application, a peer or the time may do.
fn act(pair: &mut Pair, (action, size): (u8, u16)) {
    let now = pair.now;
    let ids: Vec<StreamId> = (0..8).map(|index| StreamId::from_u64(4 * index)).collect();
    let id = ids[usize::from(size) % ids.len()];
    let bytes = Bytes::from(vec![1; usize::from(size)]);
    let client = pair.client();
    match action {
        0 => drop(client.open(Dir::Bidi)),
        1 => drop(client.write(id, bytes)),
        2 => drop(client.finish_stream(id)),
        3 => client.reset(id, 1),
        4 => client.stop_sending(id, 1),
        5 => drop(client.send_datagram(bytes)),
        6 => client.components.control_frames.ping(),
        7 => drop(client.components.peer_cids.switch()),
        8 => drop(pair.server().write(id, bytes)),
        9 => drop(pair.client.send(now)), // lost
        10 => pair.now = now + Duration::from_millis(u64::from(size)),
        _ => drop(pair.step()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Else a train would be begun for packets that are empty.
    #[test]
    fn a_component_that_wants_writes_into_an_empty_packet(
        actions in prop::collection::vec((0u8..14, 0u16..3_000), 0..60),
    ) {
        let mut pair = connected();
        actions.into_iter().for_each(|action| act(&mut pair, action));
        let now = pair.now;
        for component in &COMPONENTS {
            let client = pair.client();
            if !(component.wants)(&client.components, &client.spaces.application, now) {
                continue;
            }
            let (mut room, mut frames) = ([0; 1_150], Vec::new());
            let mut packet = PacketBuilder::new(Writer::new(&mut room), &mut frames);
            (component.write)(&mut client.components, &mut client.spaces.application, now, &mut packet);
            let wrote = !packet.is_empty();
            let wants = (component.wants)(&client.components, &client.spaces.application, now);
            prop_assert!(wrote || !wants, "{} wants and writes nothing", component.name);
        }
    }
}
