//! Early data: accepted, rejected, lost, reordered, copied.

use super::*;
use crate::builder::PacketBuilder;
use crate::connection::arrival::Arrival;
use crate::connection::components::{Permission, Target, fill_early};
use crate::connection::frames::{ZERO_RTT, dispatch};
use crate::connection::keys::EarlyKeys;
use crate::space::SpaceId;
use crate::streams::StreamConfig;
use crypto::{EarlyStatus, MemorySessions, StrikeRegister, TicketKeys, TicketOptions};
use wire::Side;
use wire::error::Code;
use wire::frame;
use wire::reader::Reader;
use wire::writer::Writer;

/// A server that takes early data, and a client that knows it.
struct Acquaintance {
    server: ServerConfig,
    client: ClientConfig,
    tickets: TicketOptions,
    identity: Identity,
    endpoint: EndpointConfig,
    seed: u8,
}

impl Acquaintance {
    fn of(transport: TransportConfig, options: &TlsOptions) -> Acquaintance {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("certificate");
        let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(pem.as_bytes(), key.as_bytes()).expect("identity");
        let keys = Arc::new(TicketKeys::in_memory(1_000));
        let register = Arc::new(StrikeRegister::new(64));
        let tickets = TicketOptions { early_data: Some(register), ..TicketOptions::new(keys) };
        let tls = ClientTls::new(&Roots::Pem(pem.into_bytes()), options).expect("client tls");
        let tls = tls.with_sessions(Arc::new(MemorySessions::default())).with_early_data();
        let transport = Arc::new(transport);
        let client = ClientConfig { tls, transport: Arc::clone(&transport), token: Vec::new() };
        let tls = ServerTls::new(&identity, options).expect("server tls").with_tickets(tickets.clone());
        let endpoint = EndpointConfig { retry: RetryPolicy::Never, ..EndpointConfig::default() };
        let server = ServerConfig { tls, transport };
        let mut made = Acquaintance { server, client, tickets, identity, endpoint, seed: 0 };
        let mut first = made.connect();
        first.run(12);
        assert!(first.client.events.contains(&Event::Connected), "{:?}", first.client.events);
        assert_eq!(first.client().early_status(), EarlyStatus::None);
        assert!(!first.client().is_resumed() && !first.server().is_resumed());
        made
    }

    fn new() -> Acquaintance {
        Acquaintance::of(TransportConfig::default(), &TlsOptions::default())
    }

    /// A client that has begun to connect.
    fn connect(&mut self) -> Pair {
        self.seed += 2;
        let end = |seed| End {
            endpoint: Endpoint::new(self.endpoint.clone(), [seed; 32]),
            connection: None,
            sink: Sink::default(),
            events: vec![],
        };
        let (now, config) = (Instant::from_nanos(1 << 40), self.server.clone());
        let mut pair = Pair { now, client: end(self.seed), server: end(self.seed + 1), config };
        let handle = Slab::<()>::new().next_handle();
        let peer = ("localhost", addresses(1, 2));
        let connection = pair.client.endpoint.connect(now, handle, &self.client, peer);
        pair.client.connection = Some(connection.expect("connects"));
        pair
    }

    /// The server takes early data no more.
    fn refuse(&mut self) {
        let options = TicketOptions { early_data: None, ..self.tickets.clone() };
        let tls = ServerTls::new(&self.identity, &TlsOptions::default()).expect("server tls");
        self.server.tls = tls.with_tickets(options);
    }

    /// The server's streams and windows are others now.
    fn change_streams(&mut self, streams: StreamConfig) {
        let transport = TransportConfig { streams, ..TransportConfig::default() };
        self.server.transport = Arc::new(transport);
    }
}

fn content(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|place| ((place + seed) % 251) as u8).collect()
}

impl Pair {
    fn write(&mut self, dir: Dir, bytes: &[u8]) -> StreamId {
        let id = self.client().open(dir).expect("a stream before the handshake");
        self.client().write(id, Bytes::copy_from_slice(bytes)).expect("writes");
        self.client().finish_stream(id).expect("finishes");
        id
    }

    fn early_statuses(&mut self) -> [EarlyStatus; 2] {
        [self.client().early_status(), self.server().early_status()]
    }

    /// The client's datagrams arrive at the server.
    fn deliver(&mut self, flight: Vec<Vec<u8>>) {
        let (now, config) = (self.now, self.config.clone());
        flight.into_iter().for_each(|datagram| self.server.receive(now, datagram, Some(&config)));
    }
}

#[test]
fn early_data_arrives_with_the_first_flight_and_is_answered_before_the_clients_finished() {
    for version in [Version::V1, Version::V2] {
        let transport = TransportConfig { version, ..TransportConfig::default() };
        let mut acquaintance = Acquaintance::of(transport, &TlsOptions::default());
        let mut pair = acquaintance.connect();
        assert_eq!(pair.client().early_status(), EarlyStatus::Offered);
        let bytes = content(5_000, 1);
        let id = pair.write(Dir::Bidi, &bytes);
        let flight = pair.client.send(pair.now);
        assert!(flight.iter().all(|datagram| datagram.len() <= 1_200));
        pair.deliver(flight);
        assert_eq!(pair.server.sink.received, bytes, "in the first flight");
        assert!(pair.server().is_early() && !pair.server().is_connected());
        pair.server().write(id, Bytes::from_static(b"answer")).expect("writes");
        let now = pair.now;
        let flight = pair.server.send(now);
        flight.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
        assert_eq!(pair.client.sink.received, b"answer", "before the server has heard of Finished");
        assert!(!pair.server().is_connected() && pair.server().is_early());
        pair.run(10);
        assert!(pair.client().is_resumed() && pair.server().is_resumed() && !pair.server().is_early());
        assert_eq!(pair.early_statuses(), [EarlyStatus::Accepted; 2]);
        let (sent, got) = (pair.client().counters().sent_early, pair.server().counters().received_early);
        assert!(sent >= 4 && sent == got, "{sent} sent, {got} received");
        assert_eq!(pair.client().counters().lost_packets, 0);
        assert_eq!(pair.server.sink.received.len(), bytes.len(), "nothing twice");
        pair.transfer(100_000);
    }
}

/// RFC 9001 §4.6.2. Content of each stream, in the order in which the streams were opened.
#[test]
fn rejected_early_data_goes_again_once_and_in_order_on_the_same_streams() {
    let mut acquaintance = Acquaintance::new();
    acquaintance.refuse();
    let mut pair = acquaintance.connect();
    let parts: Vec<Vec<u8>> = (0..7).map(|seed| content(900 * seed, seed)).collect();
    let ids: Vec<StreamId> = parts.iter().map(|part| pair.write(Dir::Uni, part)).collect();
    let flight = pair.client.send(pair.now);
    pair.deliver(flight);
    assert!(pair.server.sink.received.is_empty() && !pair.server().is_early());
    pair.run(20);
    assert_eq!(pair.early_statuses(), [EarlyStatus::Rejected; 2]);
    assert!(pair.server().is_resumed());
    assert_eq!(pair.server.sink.received, parts.concat());
    assert_eq!(pair.server.sink.ended, parts.len());
    assert_eq!(pair.client().counters().lost_packets, 0, "a rejection is no congestion");
    assert_eq!(pair.client().spaces.application.ledger.in_flight_bytes(), 0);
    let finished = |event: &&Event| matches!(event, Event::Finished { id } if ids.contains(id));
    assert_eq!(pair.client.events.iter().filter(finished).count(), parts.len());
    let connected = pair.client.events.iter().filter(|event| **event == Event::Connected).count();
    assert_eq!(connected, 1, "{:?}", pair.client.events);
    pair.transfer(50_000);
}

/// A server whose limits are lower than those remembered: what went within the old ones must not count.
#[test]
fn rejected_early_data_keeps_to_the_limits_of_the_new_connection() {
    let small = StreamConfig {
        initial_connection_window: 3_000,
        initial_stream_window: 1_000,
        max_bidi_streams: 2,
        max_uni_streams: 1,
        ..StreamConfig::default()
    };
    let mut acquaintance = Acquaintance::new();
    acquaintance.change_streams(small);
    let mut pair = acquaintance.connect();
    let parts: Vec<Vec<u8>> = (0..5).map(|seed| content(2_500, seed)).collect();
    for part in &parts {
        pair.write(Dir::Bidi, part);
    }
    // Streams above the new limit with nothing but their end, and one that is given up.
    pair.write(Dir::Uni, b"u");
    pair.write(Dir::Uni, b"");
    let given_up = pair.client().open(Dir::Uni).expect("a stream");
    pair.client().write(given_up, Bytes::from(content(2_000, 9))).expect("writes");
    let flight = pair.client.send(pair.now);
    pair.deliver(flight);
    pair.client().reset(given_up, 7);
    pair.step();
    assert_eq!(pair.client().early_status(), EarlyStatus::Rejected);
    assert_eq!(pair.client().components.streams.withheld(), 3 + 2);
    for _ in 0..40 {
        pair.step();
        // The server is done with the streams of the client: it permits more.
        let open: Vec<StreamId> = (0..5).map(|index| StreamId::new(Side::Client, Dir::Bidi, index)).collect();
        for id in open {
            let _ = pair.server().finish_stream(id);
        }
    }
    let end = |event: &Event| matches!(event, Event::Closed(_));
    let ends: Vec<_> =
        pair.client.events.iter().chain(&pair.server.events).filter(|event| end(event)).collect();
    assert!(ends.is_empty(), "{ends:?}");
    assert_eq!(pair.server.sink.received.len(), 5 * 2_500 + 1);
    assert_eq!(pair.server.sink.ended, 5 + 2);
    assert!(pair.server.events.contains(&Event::StreamReset { id: given_up, code: 7 }));
    assert_eq!(pair.client().components.streams.withheld(), 0);
}

/// RFC 9000 §17.2.5.3, and our rule that there is no early data behind a Retry.
#[test]
fn behind_a_retry_early_data_is_rejected_and_goes_again() {
    let mut acquaintance = Acquaintance::new();
    acquaintance.endpoint.retry = RetryPolicy::Always;
    acquaintance.endpoint.held_datagrams = 16;
    let mut pair = acquaintance.connect();
    let bytes = content(4_000, 3);
    pair.write(Dir::Uni, &bytes);
    // The 0-RTT packets have no connection to go to.
    let (now, config) = (pair.now, pair.config.clone());
    let mut flight = pair.client.send(now).into_iter();
    pair.server.receive(now, flight.next().expect("an Initial"), Some(&config));
    let retry = REPLIES.take().pop().expect("a Retry");
    pair.client.receive(now, retry, None);
    pair.run(30);
    assert_eq!(pair.early_statuses(), [EarlyStatus::Rejected; 2]);
    assert_eq!(pair.server.sink.received, bytes);
    assert_eq!(pair.server().counters().received_early, 0);
}

#[test]
fn early_data_that_is_lost_goes_again() {
    for lost in 1..6 {
        let mut acquaintance = Acquaintance::new();
        let mut pair = acquaintance.connect();
        let bytes = content(5_000, lost);
        pair.write(Dir::Uni, &bytes);
        let mut flight = pair.client.send(pair.now);
        assert!(flight.len() >= 6, "{} datagrams", flight.len());
        flight.remove(lost);
        pair.deliver(flight);
        pair.run(300);
        assert_eq!(pair.server.sink.received, bytes, "without datagram {lost}");
        // Without the second half of the ClientHello nothing can be opened, and what waits for it is bounded.
        assert_eq!(pair.early_statuses(), [EarlyStatus::Accepted; 2]);
    }
}

fn classic() -> TlsOptions {
    TlsOptions { key_exchange: crypto::KeyExchange::X25519, ..TlsOptions::default() }
}

/// RFC 9001 §5.7: packets that overtake the ClientHello, on the way to a connection or to none.
#[test]
fn early_data_that_overtakes_the_initial_packet_is_kept_where_there_is_room_and_else_goes_again() {
    for (held_datagrams, expected) in [(16, true), (0, false)] {
        let mut acquaintance = Acquaintance::of(TransportConfig::default(), &classic());
        acquaintance.endpoint.held_datagrams = held_datagrams;
        let mut pair = acquaintance.connect();
        let bytes = content(3_000, 5);
        pair.write(Dir::Uni, &bytes);
        let (now, config) = (pair.now, pair.config.clone());
        let flight = pair.client.send(now);
        for mut datagram in flight.into_iter().rev() {
            let copy = datagram.clone();
            let segment_size = datagram.len();
            let train =
                Train { bytes: &mut datagram, segment_size, addresses: addresses(2, 1), ecn: Ecn::Ect0 };
            if !matches!(pair.server.endpoint.route(now, &train), Route::Drop(_)) {
                pair.server.receive(now, copy, Some(&config));
            }
        }
        let early = pair.server().counters().received_early;
        assert_eq!(early >= 2, expected, "{early} packets");
        pair.run(300);
        assert_eq!(pair.server.sink.received, bytes);
        assert_eq!(pair.early_statuses(), [EarlyStatus::Accepted; 2]);
    }
}

/// Deleted, early data would reach a server before its application can take it.
#[test]
fn early_data_waits_until_the_application_has_met_the_connection() {
    let mut acquaintance = Acquaintance::new();
    let mut pair = acquaintance.connect();
    let bytes = content(9_000, 2);
    pair.write(Dir::Uni, &bytes);
    let mut flight = pair.client.send(pair.now).into_iter();
    pair.deliver(flight.by_ref().take(1).collect());
    pair.server().hold_early_data();
    pair.deliver(flight.collect());
    assert!(pair.server.sink.received.is_empty());
    let (now, End { connection, sink, .. }) = (pair.now, &mut pair.server);
    connection.as_mut().expect("server").release_early_data(now, sink);
    assert_eq!(pair.server.sink.received, bytes);
    pair.run(20);
    assert_eq!(pair.client().counters().lost_packets, 0);
}

/// RFC 8446 §8: the whole first flight, sent again by an attacker.
#[test]
fn a_copied_first_flight_does_nothing_but_cost_a_handshake() {
    let mut acquaintance = Acquaintance::new();
    let mut pair = acquaintance.connect();
    pair.write(Dir::Uni, b"pay");
    let flight = pair.client.send(pair.now);
    pair.deliver(flight.clone());
    assert_eq!(pair.server.sink.received, b"pay");
    for _ in 0..3 {
        let mut other = acquaintance.connect();
        other.client.connection = pair.client.connection.take();
        other.deliver(flight.clone());
        assert!(other.server.sink.received.is_empty() && !other.server().is_early());
        assert_eq!(other.server().early_status(), EarlyStatus::Rejected);
        pair.client.connection = other.client.connection.take();
    }
}

/// RFC 9000 §8.1: early data proves no address.
#[test]
fn a_server_that_takes_early_data_sends_three_times_what_it_got_at_most() {
    let mut acquaintance = Acquaintance::of(TransportConfig::default(), &classic());
    let mut pair = acquaintance.connect();
    let id = pair.write(Dir::Bidi, b"all of it");
    let flight = pair.client.send(pair.now);
    let received: usize = flight.iter().map(Vec::len).sum();
    pair.deliver(flight);
    pair.server().write(id, Bytes::from(vec![7; 1 << 20])).expect("writes");
    let mut sent = 0;
    for _ in 0..2_000 {
        pair.now = pair.now + Duration::from_millis(2);
        let flight = pair.server.send(pair.now);
        sent += flight.iter().map(Vec::len).sum::<usize>();
    }
    assert!(sent > 2 * received && sent <= 3 * received, "{sent} bytes for {received}");
}

/// RFC 9001 §4.9.3.
#[test]
fn keys_of_early_data_go_with_the_handshake_and_at_the_server_three_timeouts_later() {
    let mut acquaintance = Acquaintance::new();
    let mut pair = acquaintance.connect();
    pair.write(Dir::Uni, &content(3_000, 1));
    let flight = pair.client.send(pair.now);
    let late = flight.last().expect("a 0-RTT packet").clone();
    pair.deliver(flight);
    pair.run(5);
    assert!(pair.client().is_connected() && matches!(pair.client().keys.early, EarlyKeys::None));
    assert!(matches!(pair.server().keys.early, EarlyKeys::Peer { until: Some(_), .. }));
    let dropped = pair.server().counters().dropped_duplicate;
    pair.deliver(vec![late.clone()]);
    assert_eq!(pair.server().counters().dropped_duplicate, dropped + 1, "it was opened");
    pair.now = pair.now + closing(pair.server()) + Duration::from_millis(1);
    let no_keys = pair.server().counters().dropped_no_keys;
    pair.deliver(vec![late]);
    assert_eq!(pair.server().counters().dropped_no_keys, no_keys + 1);
    let now = pair.now;
    pair.server().on_timeout(now);
    assert!(matches!(pair.server().keys.early, EarlyKeys::None));
}

/// RFC 9000 §7.4.1: a server that takes early data and has lowered a limit.
#[test]
fn limits_below_those_remembered_close_the_connection_where_early_data_is_taken() {
    let mut acquaintance = Acquaintance::new();
    let mut pair = acquaintance.connect();
    pair.client().handshake.remembered.as_mut().expect("it resumes").initial_max_streams_uni += 1;
    pair.run(4);
    let refused = |event: &Event| matches!(event, Event::Closed(CloseReason::Violation(error)) if error.code == Code::PROTOCOL_VIOLATION);
    assert!(pair.client.events.iter().any(refused), "{:?}", pair.client.events);
}

/// Hands the frames of a 0-RTT packet to the server.
fn early_frames(pair: &mut Pair, payload: &[u8]) -> Result<(), Code> {
    let End { connection, sink, .. } = &mut pair.server;
    let connection = connection.as_mut().expect("server");
    let mut arrival = Arrival {
        now: pair.now,
        arrived: pair.now,
        space: SpaceId::Application,
        packet: ZERO_RTT,
        path: connection.paths.active_id(),
        pn: 1,
        dcid: connection.components.local_cids.first(),
        rtt: Duration::from_millis(1),
        sink,
        eliciting: recovery::ack::Eliciting::No,
        non_probing: false,
    };
    dispatch(connection, &mut arrival, payload).map_err(|error| error.code)
}

/// RFC 9000 §12.4, table 3; §12.5.
#[test]
fn frames_that_must_not_stand_in_early_packets_close_the_connection() {
    let mut acquaintance = Acquaintance::new();
    for (payload, expected) in [
        (&[0x02, 0, 0, 0, 0][..], Err(Code::PROTOCOL_VIOLATION)),
        (&[0x03, 0, 0, 0, 0, 0, 0, 0], Err(Code::PROTOCOL_VIOLATION)),
        (&[0x06, 0, 1, 7], Err(Code::PROTOCOL_VIOLATION)),
        (&[0x07, 1, 7], Err(Code::PROTOCOL_VIOLATION)),
        (&[0x19, 0], Err(Code::PROTOCOL_VIOLATION)),
        (&[0x1b, 1, 2, 3, 4, 5, 6, 7, 8], Err(Code::PROTOCOL_VIOLATION)),
        (&[0x1e], Err(Code::PROTOCOL_VIOLATION)),
        (&[0x1f], Err(Code::PROTOCOL_VIOLATION)),
        (&[0x40, 0xaf, 0, 1, 0x43, 0xe8, 1], Err(Code::PROTOCOL_VIOLATION)),
        (&[0x32], Err(Code::FRAME_ENCODING_ERROR)),
        (&[], Err(Code::PROTOCOL_VIOLATION)),
        (&[0x00, 0x01], Ok(())),
        (&[0x04, 2, 0, 0], Ok(())),
        (&[0x0f, 2, 0, 1, 7], Ok(())),
        (&[0x0f, 3, 0, 1, 7], Err(Code::STREAM_STATE_ERROR)),
        (&[0x10, 0x40, 1], Ok(())),
        (&[0x1a, 1, 2, 3, 4, 5, 6, 7, 8], Ok(())),
        (&[0x1d, 0, 0], Ok(())),
    ] {
        let mut pair = acquaintance.connect();
        let flight = pair.client.send(pair.now);
        pair.deliver(flight);
        assert_eq!(early_frames(&mut pair, payload), expected, "{payload:x?}");
    }
}

/// The other side of the table: whatever a client has to say before it has 1-RTT keys.
#[test]
fn a_client_puts_nothing_into_early_packets_that_must_not_be_there() {
    let transport = TransportConfig { max_datagram_frame_size: 1_200, ..TransportConfig::default() };
    let mut acquaintance = Acquaintance::of(transport, &classic());
    let mut pair = acquaintance.connect();
    let now = pair.now;
    let client = pair.client();
    client.components.control_frames.ping();
    client.components.control_frames.announce_handshake_done();
    client.components.local_cids.issue();
    client.send_datagram(Bytes::from_static(b"datagram")).expect("the server took them the last time");
    let stopped = client.open(Dir::Bidi).expect("a stream");
    client.write(stopped, Bytes::from_static(b"stop")).expect("writes");
    client.stop_sending(stopped, 3);
    client.spaces.application.owe_probes(1);
    client.spaces.application.crypto.push(b"crypto");
    client.spaces.application.acks.on_received(now, 0, recovery::ack::Eliciting::Yes, Ecn::NotEct);
    let (mut room, mut frames) = ([0; 1_100], Vec::new());
    let mut packet = PacketBuilder::new(Writer::new(&mut room), &mut frames);
    let target = Target { now, space: SpaceId::Application, permission: Permission::All };
    fill_early(&mut client.components, &mut client.spaces, target, &mut packet);
    let written = packet.writer.written().to_vec();
    let mut reader = Reader::new(&written);
    let mut seen = Vec::new();
    while !reader.is_empty() {
        seen.push(frame::read_type(&mut reader.clone()).expect("a type"));
        frame::Frame::parse_next(&mut reader).expect("a frame");
    }
    assert_eq!(seen, [0x05, 0x31, 0x0a], "STOP_SENDING, DATAGRAM, STREAM with a length");
}

/// RFC 8446 §4.6.1: tickets are a few hundred bytes which would stay for the life of the connection.
#[test]
fn tickets_are_forgotten_when_they_are_acknowledged() {
    let mut acquaintance = Acquaintance::new();
    let mut pair = acquaintance.connect();
    pair.run(30);
    assert_eq!(pair.server().spaces.application.crypto.retained(), 0);
}

/// RFC 9369 §4.1, §5: early data goes in the version that the client begins with, and tickets are for the version that was negotiated.
#[test]
fn a_server_that_moves_to_another_version_takes_early_data_of_the_first_one() {
    let mut acquaintance = Acquaintance::new();
    let moving = TransportConfig { preferred_version: Some(Version::V2), ..TransportConfig::default() };
    acquaintance.server.transport = Arc::new(moving);
    let mut pair = acquaintance.connect();
    let bytes = content(5_000, 1);
    pair.write(Dir::Bidi, &bytes);
    let flight = pair.client.send(pair.now);
    pair.deliver(flight);
    assert_eq!(pair.server.sink.received, bytes, "in the first flight, which is in version 1");
    pair.run(12);
    assert_eq!([pair.client().version(), pair.server().version()], [Version::V2; 2]);
    assert!(pair.client().is_resumed() && pair.server().is_resumed());
    assert_eq!(pair.early_statuses(), [EarlyStatus::Accepted; 2]);
    assert_eq!(pair.server.sink.received.len(), bytes.len(), "nothing twice");
    pair.transfer(20_000);
    // Tickets of version 1 are used up; those of the connection that was moved serve version 2.
    let mut versions = Vec::new();
    for _ in 0..6 {
        let mut pair = acquaintance.connect();
        versions.push(pair.client().version());
        pair.run(12);
        assert!(pair.client().is_resumed() && pair.client().version() == Version::V2, "{versions:?}");
    }
    assert_eq!((versions[0], versions[5]), (Version::V1, Version::V2), "{versions:?}");
}
