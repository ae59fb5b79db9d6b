//! Outages: what leaves while nothing arrives, and what ends them. Source: RFC 9002 §6.2.1, §6.2.4.

use super::*;

/// A connection whose handshake is over, and that lasts.
fn patient() -> Pair {
    let transport = TransportConfig { idle_timeout: Duration::from_secs(300), ..TransportConfig::default() };
    let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
    pair.run(60);
    pair
}

/// The datagrams that an end sends in `span` while nothing arrives.
fn unheard(pair: &mut Pair, side: impl Fn(&mut Pair) -> &mut End, span: Duration) -> usize {
    let (end, mut sent) = (pair.now + span, 0);
    for _ in 0..10_000 {
        let now = pair.now;
        sent += side(pair).send(now).len();
        let next = side(pair).connection.as_ref().and_then(Connection::next_timeout);
        pair.now = next.unwrap_or(end).max(now + Duration::from_micros(1));
        if pair.now > end {
            pair.now = end;
            return sent;
        }
    }
    panic!("more than ten thousand timers in {span:?}");
}

/// The server has sent something on the client's stream, and the client has it.
fn answer(pair: &mut Pair, len: usize) -> StreamId {
    let id = pair.client().open(Dir::Bidi).expect("stream");
    pair.client().write(id, Bytes::from_static(b"request")).expect("writes");
    pair.run(2);
    pair.server().write(id, Bytes::from(vec![1; len])).expect("writes");
    for _ in 0..200 {
        if pair.client.sink.received.len() == len {
            return id;
        }
        pair.step();
    }
    panic!("{} of {len} bytes", pair.client.sink.received.len());
}

/// Deleted, an unreachable peer could get a storm.
#[test]
fn a_silent_peer_gets_two_packets_for_each_doubling() {
    let mut pair = patient();
    let id = pair.client().open(Dir::Uni).expect("stream");
    pair.client().write(id, Bytes::from(vec![1; 1_000_000])).expect("writes");
    let flight = unheard(&mut pair, |pair| &mut pair.client, Duration::from_millis(20));
    assert!(flight > 5, "the window: {flight}");
    let sent = unheard(&mut pair, |pair| &mut pair.client, Duration::from_secs(10));
    let later = unheard(&mut pair, |pair| &mut pair.client, Duration::from_secs(60));
    // A probe timeout of 30 ms doubles eight times in 10 s; a packet that repeats a larger one's frames may need a second.
    assert!((8..=40).contains(&sent), "{sent} packets in 10 s");
    assert!((1..=16).contains(&later), "{later} packets in another 60 s");
}

/// Deleted, a server that is gone could get PINGs without end, or a client that is cut off could learn of it only by the server's probes.
#[test]
fn a_client_that_is_cut_off_asks_for_ten_seconds() {
    let mut pair = patient();
    answer(&mut pair, 60_000);
    let soon = unheard(&mut pair, |pair| &mut pair.client, Duration::from_secs(1));
    // A probe timeout is about 30 ms here, and a round trip next to nothing.
    assert!((10..=60).contains(&soon), "{soon} packets in a second");
    let sent = unheard(&mut pair, |pair| &mut pair.client, Duration::from_secs(30));
    assert!((120..=200).contains(&sent), "{sent} packets in 30 s");
    let later = unheard(&mut pair, |pair| &mut pair.client, Duration::from_secs(60));
    assert!(later <= 10, "{later} packets in another minute");
}

/// Deleted, a limit that the client announced just before the path ended would leave it to its probes, which double: a download of a megabyte that
/// five seconds cut off went on 0.9 s later.
#[test]
fn a_client_that_has_something_outstanding_but_content_asks_as_well() {
    let mut pair = patient();
    answer(&mut pair, 60_000);
    pair.client().components.control_frames.ping();
    unheard(&mut pair, |pair| &mut pair.client, Duration::from_secs(2));
    let sent = unheard(&mut pair, |pair| &mut pair.client, Duration::from_secs(8));
    assert!((100..=160).contains(&sent), "{sent} packets from 2 to 10 s");
}

/// A silence of `ms` in the midst of an answer: a part of it has come, the acknowledgements of that have not.
fn interrupted(ms: u64) -> (Pair, StreamId) {
    let mut pair = patient();
    let id = answer(&mut pair, 60_000);
    pair.run(60);
    pair.server().write(id, Bytes::from(vec![2; 60_000])).expect("writes");
    let now = pair.now;
    let flight = pair.server.send(now);
    assert!(flight.len() > 30, "{} datagrams", flight.len());
    flight.into_iter().take(20).for_each(|datagram| pair.client.receive(now, datagram, None));
    unheard(&mut pair, |pair| &mut pair.client, Duration::from_millis(5));
    unheard(&mut pair, |pair| &mut pair.server, Duration::from_millis(ms));
    (pair, id)
}

/// Deleted, a server could repeat what its client has already, and what is missing would take another round trip.
#[test]
fn a_question_says_what_is_there() {
    let (mut pair, _) = interrupted(600);
    // One question comes through, and its answer.
    let before = pair.client.sink.received.len();
    assert!(before > 60_000, "the first part");
    let now = pair.now;
    let question = pair.client.send(now);
    assert!(!question.is_empty(), "it asks");
    question.iter().for_each(|datagram| pair.hand_to_server(datagram));
    pair.server.send(now).into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    assert!(pair.client.sink.received.len() > before, "what was missing, {before} bytes");
}

/// Deleted, new data could go before what was lost, which would follow a round trip later.
#[test]
fn what_a_silence_has_taken_goes_before_what_is_new() {
    // The last probe left long ago, or just now.
    for silent_ms in (500..600).step_by(10) {
        let (mut pair, id) = interrupted(silent_ms);
        pair.server().write(id, Bytes::from(vec![3; 30_000])).expect("writes");
        let (now, before) = (pair.now, pair.client.sink.received.len());
        let question = pair.client.send(now);
        assert!(!question.is_empty(), "it asks");
        question.iter().for_each(|datagram| pair.hand_to_server(datagram));
        // A worker may send before it looks at timers.
        let mut wire = Wire::default();
        pair.server().transmit(now, &mut wire);
        assert!(wire.datagrams.len() > 3, "there is room for new data");
        wire.datagrams.into_iter().take(3).for_each(|datagram| pair.client.receive(now, datagram, None));
        assert!(pair.client.sink.received.len() > before, "{silent_ms} ms: what was missing, {before} bytes");
    }
}

/// Deleted, a client that lacks only the end of an answer, and whose acknowledgements are lost, could get what it has.
#[test]
fn a_timeout_repeats_the_newest_beside_the_oldest() {
    let mut pair = patient();
    let id = answer(&mut pair, 1_000);
    pair.run(60);
    pair.server().write(id, Bytes::from(vec![2; 10_000])).expect("writes");
    let mut flight = Vec::new();
    for _ in 0..5 {
        let now = pair.now;
        flight.extend(pair.server.send(now));
        pair.now = now + Duration::from_millis(1);
    }
    let (now, last) = (pair.now, flight.pop());
    assert!(last.is_some() && flight.len() >= 5, "{} datagrams", flight.len());
    flight.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    assert!(pair.client.sink.received.len() < 11_000);
    let timeout = pair.server().next_timeout().expect("a probe timeout");
    pair.now = timeout;
    let probes = pair.server.send(timeout);
    assert_eq!(probes.len(), 2);
    probes.into_iter().for_each(|datagram| pair.client.receive(timeout, datagram, None));
    assert_eq!(pair.client.sink.received.len(), 11_000, "nothing is missing");
}

/// Deleted, a run of losses that takes what the client sends would last for as many of the server's probes as it has packets.
#[test]
fn a_client_whose_acknowledgements_are_lost_asks_beside_probes() {
    let mut pair = patient();
    answer(&mut pair, 60_000);
    let mut sent = Vec::new();
    for _ in 0..4 {
        pair.now = pair.server().next_timeout().expect("a probe timeout").max(pair.now);
        let now = pair.now;
        pair.server.send(now).into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
        sent.push(unheard(&mut pair, |pair| &mut pair.client, Duration::from_millis(20)));
    }
    // A round trip is next to nothing here, and a client that has not heard anything waits for 60 ms.
    assert!(sent.iter().all(|sent| (3..=30).contains(sent)), "{sent:?} packets in 20 ms after each probe");
}

/// Deleted, a client could ask although it knows no more than that the server is there.
#[test]
fn a_client_whose_question_is_answered_asks_no_more() {
    let mut pair = patient();
    answer(&mut pair, 60_000);
    unheard(&mut pair, |pair| &mut pair.client, Duration::from_millis(500));
    pair.client().components.control_frames.ping();
    pair.client().spaces.application.acks.repeat();
    let now = pair.now;
    pair.client.send(now).iter().for_each(|datagram| pair.hand_to_server(datagram));
    let answers = pair.server.send(now);
    assert_eq!(answers.len(), 1, "all is acknowledged");
    answers.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    assert_eq!(unheard(&mut pair, |pair| &mut pair.client, Duration::from_secs(1)), 0);
}

/// The client has begun to send something of this size, and a part of it has arrived.
fn a_part_of_an_upload(pair: &mut Pair, len: usize) {
    let id = pair.client().open(Dir::Bidi).expect("stream");
    pair.client().write(id, Bytes::from(vec![1; len])).expect("writes");
    pair.client().finish_stream(id).expect("ends");
    for _ in 0..500 {
        let received = pair.server.sink.received.len();
        if received >= 50_000 {
            assert!(received < len, "it is not whole");
            return;
        }
        pair.step();
    }
    panic!("{} of {len} bytes", pair.server.sink.received.len());
}

/// Deleted, an upload could stand still for as long again as an outage was long, or a client that is gone get PINGs without end.
#[test]
fn a_server_that_is_cut_off_asks_for_ten_seconds() {
    let mut pair = patient();
    a_part_of_an_upload(&mut pair, 5_000_000);
    let soon = unheard(&mut pair, |pair| &mut pair.server, Duration::from_secs(1));
    assert!((10..=60).contains(&soon), "{soon} packets in a second");
    let sent = unheard(&mut pair, |pair| &mut pair.server, Duration::from_secs(30));
    assert!((120..=200).contains(&sent), "{sent} packets in 30 s");
    let later = unheard(&mut pair, |pair| &mut pair.server, Duration::from_secs(60));
    assert!(later <= 10, "{later} packets in another minute");
}

/// Deleted, each request could cost a server a PING once its client is quiet.
#[test]
fn a_server_that_has_all_of_a_request_does_not_ask() {
    let mut pair = patient();
    a_part_of_an_upload(&mut pair, 200_000);
    pair.run(300);
    assert_eq!(pair.server.sink.received.len(), 200_000);
    assert_eq!(unheard(&mut pair, |pair| &mut pair.server, Duration::from_secs(20)), 0, "nothing is awaited");
}

/// Deleted, a stream of events could cost a PING for each of them.
#[test]
fn a_client_that_gets_a_message_now_and_then_does_not_ask() {
    let mut pair = patient();
    let id = answer(&mut pair, 100);
    for _ in 0..10 {
        pair.server().write(id, Bytes::from_static(b"event")).expect("writes");
        pair.run(20);
        let sent = unheard(&mut pair, |pair| &mut pair.client, Duration::from_secs(1));
        assert_eq!(sent, 0, "nothing was to be said");
    }
}

/// Deleted, a transfer could stand still for as long again after the path is back.
#[test]
fn the_first_sign_of_life_is_answered_at_once_and_once() {
    let mut pair = patient();
    let id = answer(&mut pair, 1_000);
    // All is acknowledged.
    pair.run(60);
    pair.server().write(id, Bytes::from(vec![2; 3_000])).expect("writes");
    unheard(&mut pair, |pair| &mut pair.server, Duration::from_secs(5));
    let timeouts = pair.server().timers.back_off.timeouts();
    assert!(timeouts >= 3, "{timeouts}");
    let life = |pair: &mut Pair| {
        pair.client().components.control_frames.ping();
        let now = pair.now;
        pair.client.send(now).iter().for_each(|datagram| pair.hand_to_server(datagram));
        pair.server.send(now)
    };
    // The client's acknowledgements are lost.
    pair.now = pair.now + Duration::from_millis(200);
    let first = life(&mut pair);
    let eliciting = |pair: &mut Pair| pair.server().spaces.application.ledger.ack_eliciting_in_flight();
    let before = eliciting(&mut pair);
    life(&mut pair);
    assert_eq!(eliciting(&mut pair), before, "once");
    let now = pair.now;
    first.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    assert!(pair.client.sink.received.len() > 1_000, "it goes on at once");
    assert_eq!(pair.server().timers.back_off.timeouts(), timeouts, "nothing was acknowledged");
}
