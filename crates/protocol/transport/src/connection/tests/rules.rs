//! Rules that the hub alone keeps once packets flow: the idle timeout, timeouts and probes, windows, keys, datagrams.

use super::forged::Forged;
use super::*;
use crate::config::Switch;
use crate::space::SpaceId;
use crypto::RetryIntegrity;
use wire::Side;
use wire::packet::write_retry;
use wire::writer::Writer;

const MS: Duration = Duration::from_millis(1);

fn with(transport: TransportConfig) -> Pair {
    let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
    // What the beginning of a connection has to say is said.
    pair.run(60);
    pair
}

fn connected() -> Pair {
    with(TransportConfig::default())
}

/// An ACK frame of one packet with this delay, as the frame says it.
fn ack(pn: u64, delay: u64) -> Vec<u8> {
    let mut bytes = [0; 40];
    let mut writer = Writer::new(&mut bytes);
    [2, pn, delay, 0, 0].into_iter().for_each(|value| writer.varint(value));
    writer.written().to_vec()
}

/// How long from now the client lasts when nothing that it sends arrives, in steps of `step`.
fn lonely(pair: &mut Pair, step: Duration) -> Duration {
    let began = pair.now;
    for _ in 0..1_000 {
        pair.now = pair.now + step;
        pair.client.send(pair.now);
        if pair.client.events.contains(&Event::Closed(CloseReason::IdleTimeout)) {
            return pair.now.saturating_since(began);
        }
    }
    panic!("it lasts for ever");
}

/// RFC 9000 §10.1: else a lost packet and its repetition would look like silence.
#[test]
fn the_idle_timeout_is_three_probe_timeouts_at_least() {
    let transport = TransportConfig { idle_timeout: MS * 20, ..TransportConfig::default() };
    let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
    pair.run(5);
    let (three, began) = (closing(pair.client()), pair.client().timers.active_at());
    lonely(&mut pair, MS);
    let lasted = pair.now.saturating_since(began);
    assert!(three > MS * 40 && lasted >= three, "{lasted:?}, three PTO are {three:?}");
}

/// RFC 9000 §10.1: a question begins the period anew, those behind it do not, or a dead path would keep its connection for ever.
#[test]
fn the_idle_period_begins_with_the_last_packet_received_and_the_first_question_after_it() {
    let mut pair = connected();
    pair.now = pair.now + Duration::from_secs(20);
    pair.client().components.control_frames.ping();
    pair.client.send(pair.now);
    let lasted = lonely(&mut pair, MS * 500);
    assert!((MS * 29_500..MS * 30_600).contains(&lasted), "{lasted:?}");
    let mut pair = connected();
    for _ in 0..3 {
        pair.now = pair.now + Duration::from_secs(20);
        pair.server().components.control_frames.ping();
        pair.run(2);
    }
    assert!(!pair.client().is_closed(), "what arrives begins it anew too");
}

/// RFC 9000 §10.3.1.
#[test]
fn after_a_stateless_reset_nothing_more_is_sent() {
    let mut pair = connected();
    let (now, token) = (pair.now, pair.server().components.local_cids.first_reset_token());
    let id = pair.client().open(Dir::Bidi).expect("stream");
    pair.client().write(id, Bytes::from(vec![1; 5_000])).expect("writes");
    let cid = pair.client().components.local_cids.first();
    let reset = [&[0x41], cid.as_slice(), &[9; 20], &token[..]].concat();
    pair.client.receive(now, reset, None);
    for _ in 0..100 {
        assert!(pair.client.send(pair.now).is_empty());
        pair.now = pair.now + MS * 50;
    }
    assert!(pair.client.events.contains(&Event::Closed(CloseReason::StatelessReset)));
    assert!(pair.client().is_gone());
}

/// RFC 9000 §13.1: who acknowledges a packet has done what it says.
#[test]
fn a_packet_whose_frames_are_refused_is_not_acknowledged() {
    for (payload, accepted) in [(&[0x1e][..], false), (&[0x01], true)] {
        let mut pair = connected();
        let packet = Forged { payload, ..Forged::default() }.short(pair.client());
        pair.hand_to_server(&packet);
        assert_eq!(pair.server().spaces.application.acks.is_duplicate(1_000), accepted, "{payload:?}");
    }
}

/// RFC 9001 §9.5: a packet number must not be told by how long its packet takes; so duplicates are opened first.
#[test]
fn duplicates_are_looked_for_behind_the_seal() {
    let mut pair = connected();
    let packet = Forged::default().short(pair.client());
    let mut forged = packet.clone();
    *forged.last_mut().expect("a tag") ^= 1;
    for (datagram, dropped) in [(&packet, [0, 0]), (&forged, [1, 0]), (&packet, [1, 1])] {
        pair.hand_to_server(datagram);
        let counters = pair.server().counters();
        assert_eq!([counters.dropped_forged, counters.dropped_duplicate], dropped);
    }
}

/// RFC 9001 §6.6: the last forged packet that the keys endure ends the connection, whatever its phase, and an authentic one between
/// does not begin the count anew.
#[test]
fn forged_packets_end_the_connection_at_the_integrity_limit() {
    let mut pair = connected();
    pair.server().keys.one_rtt.as_mut().expect("keys").endure_forged(3);
    let forge = |pair: &mut Pair, pn| {
        let mut packet = Forged { pn, ..Forged::default() }.short(pair.client());
        *packet.last_mut().expect("a tag") ^= 1;
        pair.hand_to_server(&packet);
    };
    forge(&mut pair, 1_000);
    let authentic = Forged { pn: 1_001, ..Forged::default() }.short(pair.client());
    pair.hand_to_server(&authentic);
    let until = pair.now + Duration::from_secs(1);
    pair.client().keys.one_rtt.as_mut().expect("keys").update(until);
    forge(&mut pair, 1_002);
    assert_eq!(pair.refusal(), None, "one is left");
    forge(&mut pair, 1_003);
    assert_eq!(pair.refusal(), Some(wire::error::Code::AEAD_LIMIT_REACHED));
}

/// RFC 9001 §5.4.2: header protection samples sixteen bytes, four behind the beginning of the packet number.
#[test]
fn the_smallest_packet_is_long_enough_to_sample() {
    let mut pair = connected();
    pair.client().components.control_frames.ping();
    let datagrams = pair.client.send(pair.now);
    assert_eq!(datagrams.iter().map(Vec::len).collect::<Vec<_>>(), [1 + 8 + 4 + 16]);
    let before = pair.server().counters().received_packets;
    pair.hand_to_server(&datagrams[0]);
    assert_eq!(pair.server().counters().received_packets, before + 1);
}

/// RFC 9001 §6.4, §6.5: what was sent before an update and comes after it is read for three PTO; what the old keys seal later
/// is not the peer's.
#[test]
fn old_keys_read_older_packets_for_three_probe_timeouts() {
    for (wait, read) in [(MS * 10, 1), (Duration::from_secs(5), 0)] {
        let mut pair = connected();
        let late = Forged { pn: 1_000, payload: &[0x0a, 2, 1, 7], ..Forged::default() }.short(pair.client());
        let ahead = Forged { pn: 3_000, payload: &[0x0a, 6, 1, 7], ..Forged::default() }.short(pair.client());
        let until = pair.now + Duration::from_secs(1);
        pair.client().keys.one_rtt.as_mut().expect("keys").update(until);
        let update = Forged { pn: 2_000, ..Forged::default() }.short(pair.client());
        pair.hand_to_server(&update);
        assert_eq!(pair.server().counters().key_updates, 1);
        pair.now = pair.now + wait;
        pair.server.send(pair.now);
        pair.hand_to_server(&late);
        pair.hand_to_server(&ahead);
        assert_eq!(pair.server.sink.received.len(), read, "after {wait:?}");
        assert_eq!(pair.server().counters().dropped_forged, 2 - read as u64, "after {wait:?}");
    }
}

/// RFC 9002 §5.3: a delay that the peer admits to is taken off a sample, but not in the handshake, where it waits for nothing,
/// nor beyond what it promised.
#[test]
fn delays_count_as_far_as_the_peer_may_wait() {
    let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    assert!(pair.client.send(pair.now).len() > 1);
    for (pn, at, delay) in [(0, 10, 0), (1, 100, 6_000)] {
        pair.now = pair.now + MS * at;
        hostile::frames(&mut pair, Side::Client, SpaceId::Initial, &ack(pn, delay)).expect("a fine frame");
    }
    // Seven parts of 10 ms and one of 110, though 48 of them are said to be delay: more than half would be a repetition.
    assert_eq!(pair.client().rtt(), Duration::from_micros(22_500));
    let mut pair = connected();
    pair.client().components.control_frames.ping();
    pair.client.send(pair.now);
    let pn = pair.client().spaces.application.ledger.largest_sent().expect("a packet");
    let before = pair.client().rtt();
    pair.now = pair.now + MS * 200;
    // 150 ms are said to be delay, 25 were promised.
    hostile::frames(&mut pair, Side::Client, SpaceId::Application, &ack(pn, 18_750)).expect("a fine frame");
    assert_eq!(pair.client().rtt(), before / 8 * 7 + MS * 175 / 8);
}

/// RFC 9002 §5.3, RFC 9000 §13.2.5: deleted, a server whose client's Finished is late takes the wait for a round trip, its probe timeouts
/// become as long, and the client is told of none.
#[test]
fn what_waits_for_its_keys_is_not_on_the_way() {
    let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    let (now, config) = (pair.now, pair.config.clone());
    let hello = pair.client.send(now);
    hello.into_iter().for_each(|datagram| pair.server.receive(now, datagram, Some(&config)));
    pair.server.send(now).into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    let finished = pair.client.send(now);
    pair.server().components.control_frames.ping();
    pair.server.send(now);
    let pn = pair.server().spaces.application.ledger.largest_sent().expect("a packet");
    let acknowledgement = Forged { payload: &ack(pn, 0), ..Forged::default() }.short(pair.client());
    pair.now = pair.now + MS * 30;
    pair.hand_to_server(&acknowledgement);
    assert!(pair.server().paths.active().rtt.latest().is_zero(), "no key opens it yet");
    pair.now = pair.now + Duration::from_secs(5);
    let now = pair.now;
    finished.into_iter().for_each(|datagram| pair.server.receive(now, datagram, Some(&config)));
    assert!(pair.server().is_connected());
    assert_eq!(pair.server().paths.active().rtt.latest(), MS * 30);
    assert_eq!(pair.server().spaces.application.acks.ack_delay(now), Duration::from_secs(5));
}

/// Lets the next timeout pass; what it sends.
fn time_out(pair: &mut Pair) -> Vec<Vec<u8>> {
    let probes = pair.client().counters().probe_timeouts;
    for _ in 0..100 {
        pair.now = pair.client().next_timeout().expect("a timeout").max(pair.now);
        let sent = pair.client.send(pair.now);
        if pair.client().counters().probe_timeouts > probes {
            return sent;
        }
    }
    panic!("no probe timeout");
}

/// RFC 9002 §6.2.1: a server that does not know the client's address yet may be able to say no more than this.
#[test]
fn a_clients_back_off_lasts_until_the_server_knows_its_address() {
    let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    pair.client.send(pair.now);
    (0..3).for_each(|_| drop(time_out(&mut pair)));
    hostile::frames(&mut pair, Side::Client, SpaceId::Initial, &ack(0, 0)).expect("a fine frame");
    assert_eq!(pair.client().timers.back_off.timeouts(), 3);
    let mut pair = connected();
    pair.client().components.control_frames.ping();
    pair.client.send(pair.now);
    (0..3).for_each(|_| drop(time_out(&mut pair)));
    assert_eq!(pair.client().timers.back_off.timeouts(), 3);
    let pn = pair.client().spaces.application.ledger.largest_sent().expect("a packet");
    hostile::frames(&mut pair, Side::Client, SpaceId::Application, &ack(pn, 0)).expect("a fine frame");
    assert_eq!(pair.client().timers.back_off.timeouts(), 0);
}

/// RFC 9002 §6.2.2, §6.4: nothing of a space without keys will ever be acknowledged.
#[test]
fn with_its_keys_a_space_leaves_the_flight_and_the_back_off() {
    let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    pair.client.send(pair.now);
    (0..2).for_each(|_| drop(time_out(&mut pair)));
    assert!(pair.client().spaces.in_flight_bytes() >= 2_400 && pair.client().timers.back_off.timeouts() == 2);
    let Connection { spaces, keys, timers, .. } = pair.client();
    crate::connection::handshake::discard_space(SpaceId::Initial, spaces, keys, timers);
    assert_eq!((pair.client().spaces.in_flight_bytes(), pair.client().timers.back_off.timeouts()), (0, 0));
}

/// RFC 9002 §6.3: the server has spoken, and has kept nothing of what came before.
#[test]
fn a_retry_begins_recovery_anew() {
    let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    pair.client.send(pair.now);
    (0..2).for_each(|_| drop(time_out(&mut pair)));
    let (client, original) =
        (pair.client().components.local_cids.first(), pair.client().components.peer_cids.active());
    let mut retry = [0; 128];
    let mut writer = Writer::new(&mut retry);
    write_retry(&mut writer, 0, Version::V1, &client, &client, b"token");
    let mut retry = writer.written().to_vec();
    retry.extend(RetryIntegrity::tag(Version::V1, original.as_slice(), &retry).expect("fits"));
    let now = pair.now;
    pair.client.receive(now, retry, None);
    assert_eq!((pair.client().spaces.in_flight_bytes(), pair.client().timers.back_off.timeouts()), (0, 0));
    assert!(pair.client.send(now).len() > 1, "the hello goes again, with the token");
}

/// RFC 9002 §6.2.4: one packet could be lost as well; more than two would be a burst into a path that may be full.
#[test]
fn a_probe_timeout_asks_once_or_twice_and_by_a_ping_if_by_nothing_else() {
    for len in [0, 1, 100_000] {
        // Without IMMEDIATE_ACK, which asks as well.
        let transport = TransportConfig { ack_frequency: Switch::Off, ..TransportConfig::default() };
        let mut pair = with(transport);
        if len == 0 {
            pair.client().components.control_frames.ping();
        } else {
            let id = pair.client().open(Dir::Uni).expect("stream");
            pair.client().write(id, Bytes::from(vec![1; len])).expect("writes");
        }
        for _ in 0..100 {
            pair.client.send(pair.now);
            pair.now = pair.now + Duration::from_micros(100);
        }
        let before = pair.client().spaces.application.ledger.ack_eliciting_in_flight();
        let sent = time_out(&mut pair).len();
        let eliciting = pair.client().spaces.application.ledger.ack_eliciting_in_flight() - before;
        assert!((1..=2).contains(&sent) && eliciting as usize == sent, "{len}: {sent} sent, {eliciting} ask");
    }
}

/// RFC 9002 §6.2.4: deleted, the second probe of a timeout would be a PING, and all would depend on the first one.
#[test]
fn either_probe_of_a_timeout_carries_what_is_missing() {
    let mut pair = connected();
    let id = pair.client().open(Dir::Uni).expect("stream");
    pair.client().write(id, Bytes::from_static(b"missing")).expect("writes");
    pair.client.send(pair.now);
    let probes = time_out(&mut pair);
    let [_, second] = &probes[..] else { panic!("{} probes", probes.len()) };
    pair.hand_to_server(second);
    assert_eq!(pair.server.sink.received, b"missing");
}

/// Deleted, a peer whose acknowledgement was lost would send again what has arrived, and would not know what has not.
#[test]
fn a_probe_acknowledges_again() {
    let mut pair = connected();
    pair.server().components.control_frames.ping();
    let now = pair.now;
    pair.server.send(now).into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    pair.now = pair.now + MS * 30;
    assert!(!pair.client.send(pair.now).is_empty(), "an acknowledgement, which is lost");
    pair.client().components.control_frames.ping();
    pair.client.send(pair.now);
    assert_eq!(pair.server().spaces.application.ledger.ack_eliciting_in_flight(), 1);
    time_out(&mut pair).iter().for_each(|probe| pair.hand_to_server(probe));
    assert_eq!(pair.server().spaces.application.ledger.ack_eliciting_in_flight(), 0);
}

/// RFC 9002 §7, §7.5.
#[test]
fn nothing_but_a_probe_passes_the_window() {
    let mut pair = connected();
    let id = pair.client().open(Dir::Uni).expect("stream");
    pair.client().write(id, Bytes::from(vec![1; 500_000])).expect("writes");
    let probes = pair.client().counters().probe_timeouts;
    for _ in 0..10_000 {
        pair.now = pair.now + Duration::from_micros(100);
        let before = pair.client().spaces.in_flight_bytes();
        let sent = pair.client.send(pair.now);
        let client = pair.client();
        let (in_flight, window) =
            (client.spaces.in_flight_bytes(), client.paths.active().congestion.window());
        if client.counters().probe_timeouts > probes {
            assert!(before + 1_500 > window, "{before} of {window}: the window was full");
            assert!(
                !sent.is_empty() && in_flight > before,
                "{in_flight} of {window}: a probe went all the same"
            );
            return;
        }
        assert!(in_flight <= window, "{in_flight} of {window}");
    }
    panic!("no probe timeout");
}

/// RFC 9000 §9.4: neither its bytes nor its losses are the new path's.
#[test]
fn what_is_in_flight_leaves_with_the_path() {
    let mut pair = connected();
    let id = pair.server().open(Dir::Uni).expect("stream");
    pair.server().write(id, Bytes::from(vec![1; 4_000])).expect("writes");
    assert!(pair.server.send(pair.now).len() > 2 && pair.server().spaces.in_flight_bytes() > 4_000);
    pair.client().components.control_frames.ping();
    let now = pair.now;
    let mut datagram = pair.client.send(now).pop().expect("a PING");
    let elsewhere = Addresses { peer: core::net::SocketAddr::from(([127, 0, 0, 9], 9)), ..addresses(2, 1) };
    let segment_size = datagram.len();
    let train = Train { bytes: &mut datagram, segment_size, addresses: elsewhere, ecn: Ecn::Ect0 };
    pair.server().receive(now, train, &mut Sink::default());
    assert_eq!((pair.server().counters().migrations, pair.server().spaces.in_flight_bytes()), (1, 0));
}

/// A sink for DATAGRAM frames.
#[derive(Default)]
struct Ear(Vec<Vec<u8>>);

impl StreamSink for Ear {
    fn on_stream_data(&mut self, _: StreamId, bytes: &[u8], _: Fin) -> usize {
        bytes.len()
    }
    fn on_datagram(&mut self, bytes: &[u8]) {
        self.0.push(bytes.to_vec());
    }
}

/// Both speak for half a second, and the server is heard by this sink.
fn converse(pair: &mut Pair, ear: &mut Ear) {
    for _ in 0..100 {
        pair.now = pair.now + MS * 5;
        let now = pair.now;
        for mut datagram in pair.client.send(now) {
            let segment_size = datagram.len();
            let (addresses, ecn) = (addresses(2, 1), Ecn::Ect0);
            let train = Train { bytes: &mut datagram, segment_size, addresses, ecn };
            pair.server().receive(now, train, ear);
        }
        pair.server.send(now).into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    }
}

/// RFC 9221 §5, RFC 9000 §13.3.
#[test]
fn a_datagram_is_handed_on_whole_and_acknowledged_and_a_lost_one_does_not_go_again() {
    let mut pair = with(TransportConfig { max_datagram_frame_size: 1_000, ..TransportConfig::default() });
    let mut ear = Ear::default();
    pair.client().send_datagram(Bytes::from_static(b"lost")).expect("the server takes them");
    assert_eq!(pair.client.send(pair.now).len(), 1);
    let in_flight = |pair: &mut Pair| pair.client().spaces.application.ledger.ack_eliciting_in_flight();
    assert_eq!(in_flight(&mut pair), 1, "it asks for an acknowledgement");
    converse(&mut pair, &mut ear);
    assert_eq!(in_flight(&mut pair), 0, "it is known to be lost");
    let probes = pair.client().counters().probe_timeouts;
    pair.client().send_datagram(Bytes::from_static(b"whole")).expect("the server takes them");
    converse(&mut pair, &mut ear);
    assert_eq!(
        (in_flight(&mut pair), pair.client().counters().probe_timeouts),
        (0, probes),
        "it was acknowledged"
    );
    assert_eq!(ear.0, [b"whole".to_vec()]);
}
