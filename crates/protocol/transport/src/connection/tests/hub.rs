//! Where the components meet: what each of them does right alone and the connection could still get wrong.

use super::*;
use crate::space::SpaceId;
use crypto::RetryIntegrity;
use wire::packet::write_retry;
use wire::writer::Writer;

fn pair(transport: TransportConfig) -> Pair {
    Pair::new(&TlsOptions::default(), transport, RetryPolicy::Never)
}

fn connected() -> Pair {
    Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never)
}

#[test]
fn data_that_overtakes_the_end_of_the_handshake_is_kept() {
    let mut pair = pair(TransportConfig::default());
    pair.step();
    let id = pair.client().open(Dir::Bidi).expect("stream");
    pair.client().write(id, Bytes::from(vec![7; 3_000])).expect("writes");
    let now = pair.now;
    let flight = pair.client.send(now);
    assert!(flight.len() > 2, "Finished in the first datagram, data in the others");
    for datagram in flight.into_iter().rev() {
        pair.server.receive(now, datagram, Some(&pair.config));
    }
    assert_eq!(pair.server.sink.received.len(), 3_000, "nothing had to be sent twice");
}

#[test]
fn a_peer_that_has_lost_its_state_ends_the_connection() {
    let mut pair = connected();
    pair.run(20);
    let lost = EndpointConfig { retry: RetryPolicy::Never, ..EndpointConfig::default() };
    pair.server.endpoint = Endpoint::new(lost, [2; 32]);
    pair.transfer_into_the_void();
    let replies = REPLIES.take();
    assert!(!replies.is_empty(), "a stateless reset was sent");
    let now = pair.now;
    pair.client.receive(now, replies[0].clone(), None);
    pair.client.send(now);
    assert!(
        pair.client.events.contains(&Event::Closed(CloseReason::StatelessReset)),
        "{:?}",
        pair.client.events
    );
}

/// RFC 9000 §20.1. Deleted, a client that is turned away would try on until its handshake times out.
#[test]
fn a_client_that_is_refused_in_its_handshake_hears_of_it() {
    let mut pair = pair(TransportConfig::default());
    let now = pair.now;
    for datagram in pair.client.send(now) {
        pair.server.receive(now, datagram, Some(&pair.config));
    }
    pair.server().refuse(now);
    pair.run(3);
    let refused = Event::Closed(CloseReason::PeerTransport {
        code: wire::error::Code::CONNECTION_REFUSED,
        reason: "refused".to_owned(),
    });
    assert!(pair.client.events.contains(&refused), "{:?}", pair.client.events);
}

#[test]
fn a_token_that_was_not_fetched_gives_way_to_the_next() {
    let mut pair = connected();
    let before = pair.client().events.len();
    for byte in 0..100u8 {
        let token = wire::frame::NewToken { token: &[byte] };
        let Connection { handshake, events, .. } = pair.client();
        crate::connection::handshake::on_new_token(handshake, events, &token);
    }
    assert!(pair.client().events.len() <= before + 1, "{} wait", pair.client().events.len());
    let last = pair.client().events.back().cloned();
    assert_eq!(last, Some(Event::NewToken { token: vec![99] }));
}

impl Pair {
    /// The client sends, the server's endpoint answers on its own.
    fn transfer_into_the_void(&mut self) {
        let id = self.client().open(Dir::Bidi).expect("stream");
        self.client().write(id, Bytes::from(vec![1; 500])).expect("writes");
        let now = self.now;
        for datagram in self.client.send(now) {
            self.server.receive(now, datagram, None);
        }
    }
}

/// RFC 9000 §14.1: whatever else is in them.
#[test]
fn datagrams_with_an_initial_are_never_small() {
    for extra in (700..1_240).step_by(20) {
        let mut pair = pair(TransportConfig::default());
        let now = pair.now;
        for datagram in pair.client.send(now) {
            pair.server.receive(now, datagram, Some(&pair.config));
        }
        pair.server()
            .spaces
            .space_mut(SpaceId::Initial)
            .expect("its keys are there")
            .crypto
            .push(&vec![1; extra]);
        let small = |datagram: &Vec<u8>| datagram[0] & 0xf0 == 0xc0 && datagram.len() < 1_200;
        let datagrams = pair.server.send(now);
        let lens: Vec<usize> = datagrams.iter().map(Vec::len).collect();
        assert!(!datagrams.iter().any(small), "{extra}: {lens:?}");
    }
}

/// RFC 9000 §17.2.5.1: a Retry that would change nothing.
#[test]
fn a_retry_that_repeats_the_connection_id_is_dropped() {
    let mut pair = pair(TransportConfig::default());
    let (client, original) =
        (pair.client().components.local_cids.first(), pair.client().components.peer_cids.active());
    let mut retry = [0; 128];
    let mut writer = Writer::new(&mut retry);
    write_retry(&mut writer, 0, Version::V1, &client, &original, b"token");
    let mut retry = writer.written().to_vec();
    retry.extend(RetryIntegrity::tag(Version::V1, original.as_slice(), &retry).expect("fits"));
    let now = pair.now;
    pair.client.receive(now, retry, None);
    assert!(pair.client().handshake.token().is_empty());
    pair.run(12);
    assert!(pair.client.events.contains(&Event::Connected));
}

/// RFC 9001 §6.6: the end comes while packets are made, when the application takes no events.
#[test]
fn an_end_without_words_is_told_before_the_state_goes() {
    let mut pair = connected();
    let (now, reason) = (pair.now, CloseReason::HandshakeTimeout);
    pair.client().fall_silent(now, reason.clone());
    assert!(!pair.client().is_gone() && pair.client().next_timeout() == Some(now));
    assert!(pair.client.send(now).is_empty(), "in silence");
    assert!(pair.client().is_gone() && pair.client.events.contains(&Event::Closed(reason)));
}

/// A packet that waits in the data path for its departure must not make the path look long, nor be thought lost.
#[test]
fn what_is_handed_over_early_is_dated_by_its_departure() {
    let mut pair = connected();
    pair.transfer(300_000); // the window grows beyond a burst
    pair.run(10);
    pair.client().use_departure_times();
    let rate = recovery::rate::Rate::new(10_000_000, Duration::from_secs(1), 1.0);
    pair.client().paths.active_mut().pacer.set_rate(rate, 1_200);
    let id = pair.client().open(Dir::Bidi).expect("stream");
    pair.client().write(id, Bytes::from(vec![1; 1_000_000])).expect("writes");
    let now = pair.now;
    let mut wire = Wire::default();
    while pair.client().transmit(now, &mut wire) == Transmitted::Paused {}
    let departs: Vec<Instant> = wire.departs.iter().map(|departs| departs.unwrap_or(now)).collect();
    let last = *departs.last().expect("something is sent");
    assert!(departs.is_sorted() && departs[0] == now && last > now, "{departs:?}");
    assert!(last <= now + recovery::pacer::HORIZON);
    let space = &pair.client().spaces.application;
    assert_eq!(space.ledger.last_ack_eliciting_at(), Some(last));
    // A millisecond each way from then on.
    let millisecond = Duration::from_millis(1);
    for datagram in wire.datagrams {
        pair.server.receive(last + millisecond, datagram, None);
    }
    let answers = pair.server.send(last + millisecond);
    for datagram in answers {
        pair.client.receive(last + millisecond * 2, datagram, None);
    }
    assert_eq!(pair.client().paths.active().rtt.latest(), millisecond * 2);
    assert_eq!(pair.client().counters().lost_packets, 0);
}

impl Pair {
    /// The server gets a datagram of the client that left at another address than the one it is known by.
    fn receive_from_elsewhere(&mut self, mut datagram: Vec<u8>) {
        let peer = core::net::SocketAddr::from(([127, 0, 0, 9], 9));
        let addresses = Addresses { local: addresses(2, 1).local, peer };
        let segment_size = datagram.len();
        let train = Train { bytes: &mut datagram, segment_size, addresses, ecn: Ecn::Ect0 };
        let (now, End { connection, sink, .. }) = (self.now, &mut self.server);
        connection.as_mut().expect("server").receive(now, train, sink);
    }
}

/// A server that sends to a client which moves meanwhile. Returns what the client says of what it got at the old address.
fn moving() -> (Pair, Vec<Vec<u8>>) {
    let mut pair = connected();
    pair.run(10);
    let id = pair.server().open(Dir::Uni).expect("stream");
    let mut answers = Vec::new();
    for _ in 0..2 {
        pair.server().write(id, Bytes::from(vec![1; 4_000])).expect("writes");
        pair.now = pair.now + Duration::from_millis(1);
        let now = pair.now;
        let flight = pair.server.send(now);
        assert!(flight.len() > 2);
        flight.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
        pair.now = now + Duration::from_millis(30);
        answers.append(&mut pair.client.send(pair.now));
    }
    assert!(answers.len() >= 2, "two acknowledgements");
    (pair, answers)
}

/// RFC 9002 §5.1: else the first thing that a new path seems to be is slow.
#[test]
fn acknowledgements_of_the_old_path_do_not_measure_the_new_one() {
    let (mut pair, answers) = moving();
    for datagram in answers {
        pair.now = pair.now + Duration::from_millis(500);
        pair.receive_from_elsewhere(datagram);
    }
    assert_eq!(pair.server().counters().migrations, 1);
    let path = pair.server().paths.active();
    assert!(!path.rtt.has_sample(), "{:?}", path.rtt);
    assert_eq!(pair.server().spaces.application.ledger.ack_eliciting_in_flight(), 0, "though they count");
}

/// RFC 9000 §9.3: the token for the old address would not spare the client a round trip at the new one.
#[test]
fn a_client_that_moved_gets_a_token_for_its_new_address() {
    let (mut pair, answers) = moving();
    let tokens = |pair: &Pair| {
        pair.client.events.iter().filter(|event| matches!(event, Event::NewToken { .. })).count()
    };
    assert_eq!(tokens(&pair), 1);
    answers.into_iter().for_each(|datagram| pair.receive_from_elsewhere(datagram));
    for _ in 0..10 {
        pair.now = pair.now + Duration::from_millis(1);
        let now = pair.now;
        let down = pair.server.send(now);
        down.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
        let up = pair.client.send(now);
        up.into_iter().for_each(|datagram| pair.receive_from_elsewhere(datagram));
    }
    assert!(pair.server().paths.active().is_validated());
    assert_eq!(tokens(&pair), 2);
}
