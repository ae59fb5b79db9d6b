//! Handshake data that goes again before a timeout, and acknowledgements that do. Source: RFC 9002 §5.3, §6.2.3.

use super::*;
use crate::space::SpaceId;
use base::rng::SparseRng;
use recovery::ack::Eliciting;
use wire::frame;
use wire::reader::Reader;

/// A client whose hello has arrived, and what the server answers.
fn begun() -> (Pair, Vec<Vec<u8>>) {
    let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    let now = pair.now;
    let hello = pair.client.send(now);
    let config = Some(&pair.config);
    hello.into_iter().for_each(|datagram| pair.server.receive(now, datagram, config));
    let answer = pair.server.send(now);
    (pair, answer)
}

fn handshake_in_flight(connection: &Connection) -> u32 {
    let in_space = |id| connection.spaces.space(id).map_or(0, |space| space.ledger.ack_eliciting_in_flight());
    in_space(SpaceId::Initial) + in_space(SpaceId::Handshake)
}

/// Deleted, a server whose answer was lost would wait for a timeout of its own; without the limit, two ends that hear each other
/// late could repeat themselves for ever.
#[test]
fn a_repeated_hello_is_answered_again_at_once_and_not_for_ever() {
    let (mut pair, _lost) = begun();
    let mut answers = Vec::new();
    for _ in 0..8 {
        pair.now = pair.now + Duration::from_millis(20);
        let now = pair.now;
        pair.client().owe_probes(SpaceId::Initial, 2);
        let repeated = pair.client.send(now);
        repeated.into_iter().for_each(|datagram| pair.server.receive(now, datagram, None));
        let before = handshake_in_flight(pair.server());
        assert!(!pair.server.send(now).is_empty(), "an acknowledgement at least");
        answers.push(handshake_in_flight(pair.server()) - before);
    }
    assert_eq!(pair.server().counters().probe_timeouts, 0);
    let (early, late) = answers.split_at(4);
    assert!(early.iter().all(|packets| *packets > 1), "{answers:?}");
    assert!(late.iter().all(|packets| *packets == 0), "{answers:?}");
}

/// Deleted, a client that lacks the first packet of an answer would wait for a timeout before it says so.
#[test]
fn a_client_that_cannot_read_what_follows_says_its_hello_again_at_once() {
    let (mut pair, answer) = begun();
    let [_lost, rest, _probe] = &answer[..] else { panic!("{} datagrams", answer.len()) };
    let now = pair.now;
    pair.client.receive(now, rest.clone(), None);
    let repeated = pair.client.send(now);
    assert!(!repeated.is_empty() && pair.client().counters().probe_timeouts == 0);
    repeated.into_iter().for_each(|datagram| pair.server.receive(now, datagram, None));
    pair.server.send(now).into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    pair.run(5);
    assert!(pair.client.events.contains(&Event::Connected), "nothing waited for a timeout");
}

/// Deleted, the timeouts after a handshake would be those of a path on which a packet takes a second.
#[test]
fn an_acknowledgement_that_comes_by_a_timeout_of_the_peer_is_no_round_trip() {
    let (mut pair, _lost) = begun();
    // As other servers do.
    pair.server().spaces.space_mut(SpaceId::Initial).expect("a space").repeats_acks = true;
    pair.now = pair.now + Duration::from_secs(1);
    let now = pair.now;
    let probes = pair.server.send(now);
    assert!(pair.server().counters().probe_timeouts == 1 && !probes.is_empty());
    probes.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    let client = pair.client();
    assert_eq!(handshake_in_flight(client), 0);
    assert!(!client.paths.active().rtt.has_sample());
}

/// The datagram that ends the handshake ends the back-off, too, before its acknowledgement of 1-RTT packets is read. Deleted, the first
/// timeouts of a server that hears a client's probe first would take seconds.
#[test]
fn an_acknowledgement_that_comes_with_a_late_finished_is_no_round_trip() {
    let (mut pair, mut answer) = begun();
    let now = pair.now;
    pair.server().components.control_frames.ping();
    answer.extend(pair.server.send(now));
    answer.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    let _lost = pair.client.send(now);
    pair.now = pair.now + Duration::from_secs(1);
    let now = pair.now;
    pair.client.send(now).into_iter().for_each(|datagram| pair.server.receive(now, datagram, None));
    let server = pair.server();
    assert!(server.is_connected());
    assert_eq!(server.spaces.application.ledger.ack_eliciting_in_flight(), 0);
    assert!(!server.paths.active().rtt.has_sample(), "{:?}", server.paths.active().rtt);
}

/// Deleted, clients of other kinds would take a second for the first round trip, and wait three for what is lost after it.
#[test]
fn a_server_hello_that_goes_again_repeats_no_acknowledgement() {
    let (mut pair, _lost) = begun();
    pair.now = pair.now + Duration::from_secs(1);
    let now = pair.now;
    let before = handshake_in_flight(pair.client());
    let probes = pair.server.send(now);
    probes.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    assert_eq!(handshake_in_flight(pair.client()), before, "nothing was acknowledged");
    pair.run(5);
    assert!(pair.client.events.contains(&Event::Connected));
    let rtt = pair.client().paths.active().rtt.smoothed();
    assert!(rtt < Duration::from_millis(100), "{rtt:?}");
}

/// Deleted, a server would let a client wait that has data in flight and no Finished, until a timeout of one of them.
#[test]
fn a_server_that_cannot_read_yet_says_its_flight_again_at_once() {
    let (mut pair, answer) = begun();
    let now = pair.now;
    answer.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    let _finished = pair.client.send(now);
    let id = pair.client().open(Dir::Uni).expect("a stream");
    pair.client().write(id, Bytes::from_static(b"request")).expect("writes");
    let request = pair.client.send(now);
    assert!(!request.is_empty());
    let before = handshake_in_flight(pair.server());
    request.into_iter().for_each(|datagram| pair.server.receive(now, datagram, None));
    let repeated = pair.server.send(now);
    assert!(handshake_in_flight(pair.server()) > before && pair.server().counters().probe_timeouts == 0);
    repeated.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    pair.run(3);
    assert!(pair.server.events.contains(&Event::Connected), "{:?}", pair.server.events);
}

/// Deleted, a handshake would depend on the timers of the client, which in some begin at seconds and double from there; without the
/// back-off, a client that never says its Finished would be asked for it at the rate of round trips.
#[test]
fn a_server_that_lacks_the_finished_asks_for_it_more_and_more_rarely() {
    let (mut pair, _answer) = begun();
    let mut waits = Vec::new();
    for received in 0..7 {
        let now = pair.now;
        let server = pair.server();
        server.spaces.discard(SpaceId::Initial);
        // An acknowledgement of everything, and nothing else, has come.
        let space = server.spaces.space_mut(SpaceId::Handshake).expect("a space");
        space.acks.on_received(now, received, Eliciting::No, Ecn::NotEct);
        let last = space.next_packet_number(&mut SparseRng::from_u64(1)) - 1;
        let last = u8::try_from(last).expect("few packets");
        let bytes = [last, 0, 0, last];
        let ack = frame::Ack::parse(frame::ty::ACK, &mut Reader::new(&bytes)).expect("a frame");
        server.on_ack(now, now, SpaceId::Handshake, &ack).expect("an acknowledgement");
        assert!(server.awaits_finished());
        let at = server.next_timeout().expect("a timer");
        waits.push(at.saturating_since(now));
        assert!(pair.server.send(now).is_empty(), "not before");
        pair.now = at;
        assert!(!pair.server.send(at).is_empty());
        assert!(handshake_in_flight(pair.server()) > 0, "a PING");
    }
    let (early, late) = waits.split_at(4);
    let pto = pair.server().paths.active().rtt.pto(Duration::ZERO);
    assert!(early.iter().all(|wait| *wait >= pto * 8), "the client's own timers come first: {waits:?}");
    assert!(late.windows(2).all(|pair| pair[1] >= pair[0] + pair[0] / 2), "{waits:?}");
}
