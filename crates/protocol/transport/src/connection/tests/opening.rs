//! Rules of the handshake's packets that the hub alone keeps: whose packets count, which keys there are, what may be said when.

use super::forged::Forged;
use super::*;
use crate::crypto_stream::CryptoStream;
use crate::space::SpaceId;
use crypto::{RetryIntegrity, TlsSession};
use wire::Side;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::packet::{LongType, Packet, write_retry};
use wire::transport_parameters::{TransportParameters, VersionInformation};
use wire::writer::Writer;

fn begun() -> Pair {
    Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never)
}

/// A client that has sent its first flight, and a server that has received it and answered nothing.
fn greeted() -> Pair {
    let mut pair = begun();
    let (now, config) = (pair.now, pair.config.clone());
    let hello = pair.client.send(now);
    hello.into_iter().for_each(|datagram| pair.server.receive(now, datagram, Some(&config)));
    pair
}

/// The same, and the client has received the server's flight.
fn answered() -> Pair {
    let mut pair = greeted();
    let now = pair.now;
    let flight = pair.server.send(now);
    flight.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    pair
}

/// RFC 9000 §7.2: a destination that someone can guess lets them make the server's Initial keys before it is on its way.
#[test]
fn a_first_destination_is_long_and_another_each_time() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("certificate");
    let roots = Roots::Pem(made.cert.pem().into_bytes());
    let tls = ClientTls::new(&roots, &TlsOptions::default()).expect("client tls");
    let config = ClientConfig { tls, transport: Arc::new(TransportConfig::default()), token: Vec::new() };
    let mut destinations = std::collections::HashSet::new();
    for seed in [1, 2] {
        let mut endpoint = Endpoint::new(EndpointConfig::default(), [seed; 32]);
        let mut slab = Slab::new();
        for _ in 0..20 {
            let (handle, place) = (slab.insert(()), ("localhost", addresses(1, 2)));
            let connection = endpoint.connect(Instant::ZERO, handle, &config, place).expect("connects");
            let destination = connection.components.peer_cids.active();
            assert!(destination.as_slice().len() >= 8, "{destination:?}");
            destinations.insert(destination);
        }
    }
    assert_eq!(destinations.len(), 40);
}

/// RFC 9000 §7.2: who answers first has chosen; another source is someone else's packet.
#[test]
fn a_handshake_packet_from_another_connection_id_is_dropped() {
    let mut pair = answered();
    let now = pair.now;
    let scid = ConnectionId::new(&[9; 8]);
    for (scid, heard) in [(scid, 0), (None, 1)] {
        let packet = Forged { scid, ..Forged::default() }.long(pair.server(), SpaceId::Initial);
        let (received, dropped) =
            (pair.client().counters().received_packets, pair.client().counters().dropped_malformed);
        pair.client.receive(now, packet, None);
        assert_eq!(pair.client().counters().received_packets, received + heard, "{scid:?}");
        assert_eq!(pair.client().counters().dropped_malformed, dropped + 1 - heard, "{scid:?}");
    }
    pair.run(12);
    assert!(pair.client.events.contains(&Event::Connected));
}

/// What the peer of this end says truthfully of the connection.
fn truthful(pair: &mut Pair, of: Side) -> TransportParameters {
    let original = pair.client().components.peer_cids.active();
    let scids = [pair.client().components.local_cids.first(), pair.server().components.local_cids.first()];
    let version_information = Some(VersionInformation { chosen: Version::V1, available: vec![Version::V1] });
    match of {
        Side::Client => TransportParameters {
            initial_source_connection_id: Some(scids[0]),
            version_information,
            ..TransportParameters::default()
        },
        Side::Server => TransportParameters {
            initial_source_connection_id: Some(scids[1]),
            original_destination_connection_id: Some(original),
            version_information,
            ..TransportParameters::default()
        },
    }
}

/// RFC 9000 §7.3, RFC 9369 §4.1: someone on the way may have changed what the Initial packets say, whose keys everybody has.
#[test]
fn what_the_parameters_say_of_the_connection_must_be_so() {
    use TransportParameters as Said;
    let wrong = Some(ConnectionId::new(&[9; 8]).expect("short"));
    let other = Some(VersionInformation { chosen: Version::V2, available: vec![Version::V2] });
    let parameters = Some(Code::TRANSPORT_PARAMETER_ERROR);
    type Change<'a> = &'a dyn Fn(Said) -> Said;
    let table: [(Side, Change<'_>, Option<Code>); 10] = [
        (Side::Client, &|said| said, None),
        (Side::Client, &|said| Said { initial_source_connection_id: wrong, ..said }, parameters),
        (Side::Client, &|said| Said { initial_source_connection_id: None, ..said }, parameters),
        (
            Side::Client,
            &|said| Said { version_information: other.clone(), ..said },
            Some(Code::VERSION_NEGOTIATION_ERROR),
        ),
        (Side::Server, &|said| said, None),
        (Side::Server, &|said| Said { initial_source_connection_id: wrong, ..said }, parameters),
        (Side::Server, &|said| Said { original_destination_connection_id: wrong, ..said }, parameters),
        (Side::Server, &|said| Said { original_destination_connection_id: None, ..said }, parameters),
        (Side::Server, &|said| Said { retry_source_connection_id: wrong, ..said }, parameters),
        (
            Side::Server,
            &|said| Said { version_information: other.clone(), ..said },
            Some(Code::VERSION_NEGOTIATION_ERROR),
        ),
    ];
    for (row, (of, change, code)) in table.into_iter().enumerate() {
        let mut pair = greeted();
        let said = change(truthful(&mut pair, of));
        let outcome = if of == Side::Client {
            pair.server().on_peer_parameters(said)
        } else {
            // The source of the server's first packet is known before its parameters are.
            let first = Forged::default().long(pair.server(), SpaceId::Initial);
            pair.client.receive(pair.now, first, None);
            pair.client().on_peer_parameters(said)
        };
        assert_eq!(outcome.err().map(|error| error.code), code, "row {row}");
    }
}

/// RFC 9000 §7.3: a client that was sent elsewhere by a Retry hears of it from the server that it then found.
#[test]
fn a_retry_must_be_confirmed() {
    for confirmed in [true, false] {
        let mut pair = greeted();
        let said = truthful(&mut pair, Side::Server);
        let (client, original) =
            (pair.client().components.local_cids.first(), pair.client().components.peer_cids.active());
        let source = pair.server().components.local_cids.first();
        let mut retry = [0; 128];
        let mut writer = Writer::new(&mut retry);
        write_retry(&mut writer, 0, Version::V1, &client, &source, b"token");
        let mut retry = writer.written().to_vec();
        retry.extend(RetryIntegrity::tag(Version::V1, original.as_slice(), &retry).expect("fits"));
        pair.client.receive(pair.now, retry, None);
        let retry_source_connection_id = confirmed.then_some(source);
        let keys = crypto::initial_keys(Version::V1, source.as_slice(), Side::Server);
        pair.server().keys.install(SpaceId::Initial, keys);
        let first = Forged::default().long(pair.server(), SpaceId::Initial);
        pair.client.receive(pair.now, first, None);
        let outcome =
            pair.client().on_peer_parameters(TransportParameters { retry_source_connection_id, ..said });
        assert_eq!(outcome.is_ok(), confirmed);
    }
}

/// RFC 9000 §7.4: max_udp_payload_size of 100.
#[test]
fn parameters_that_cannot_be_close_with_their_code() {
    let mut pair = begun();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("certificate");
    let roots = Roots::Pem(made.cert.pem().into_bytes());
    let tls = ClientTls::new(&roots, &TlsOptions::default()).expect("client tls");
    let server = crypto::ServerId { name: "localhost", port: 443 };
    let mut session = TlsSession::client(&tls, Version::V1, &server, &[3, 2, 0x40, 100]).expect("a session");
    let mut hello = Vec::new();
    session.write(&mut hello);
    let space = pair.client().spaces.space_mut(SpaceId::Initial).expect("its keys are there");
    space.crypto = CryptoStream::default();
    space.crypto.push(&hello);
    let (now, config) = (pair.now, pair.config.clone());
    let flight = pair.client.send(now);
    flight.into_iter().for_each(|datagram| pair.server.receive(now, datagram, Some(&config)));
    assert_eq!(pair.refusal(), Some(Code::TRANSPORT_PARAMETER_ERROR));
}

/// RFC 9001 §8.2: TLS may be content without the extension; QUIC is not.
#[test]
fn a_handshake_without_transport_parameters_fails() {
    const MISSING_EXTENSION: u8 = 109;
    let mut pair = begun();
    let now = pair.now;
    let outcome = pair.client().on_handshake_complete(now);
    assert_eq!(outcome.err().map(|error| error.code), Some(Code::crypto(MISSING_EXTENSION)));
}

/// RFC 9000 §17.2.2: only a client has a token to show.
#[test]
fn a_client_drops_an_initial_with_a_token() {
    let mut pair = greeted();
    let now = pair.now;
    for (token, heard) in [(&[7][..], 0), (&[], 1)] {
        let packet = Forged { token, ..Forged::default() }.long(pair.server(), SpaceId::Initial);
        pair.client.receive(now, packet, None);
        assert_eq!(pair.client().counters().received_packets, heard, "{token:?}");
        assert_eq!(pair.client().counters().dropped_malformed, 1);
    }
}

/// RFC 9000 §17.2, §17.3.1: reserved bits are zero once protection is removed, and a short header has the fixed bit.
#[test]
fn bits_of_authentic_headers_are_what_they_must_be() {
    for bits in [0x04, 0x08, 0x0c] {
        let mut pair = greeted();
        let packet = Forged { bits, ..Forged::default() }.long(pair.client(), SpaceId::Initial);
        pair.hand_to_server(&packet);
        assert_eq!(pair.refusal(), Some(Code::PROTOCOL_VIOLATION), "long header, {bits:#x}");
    }
    for bits in [0x08, 0x10, 0x18] {
        let mut pair = connected();
        let packet = Forged { bits, ..Forged::default() }.short(pair.client());
        pair.hand_to_server(&packet);
        assert_eq!(pair.refusal(), Some(Code::PROTOCOL_VIOLATION), "short header, {bits:#x}");
    }
    for (bits, heard) in [(0x40, 0), (0, 1)] {
        let mut pair = connected();
        // STREAM 0, with a length, of one byte.
        let packet = Forged { bits, payload: &[0x0a, 0, 1, 7], ..Forged::default() }.short(pair.client());
        pair.hand_to_server(&packet);
        assert_eq!((pair.server.sink.received.len(), pair.refusal()), (heard, None), "{bits:#x}");
    }
}

fn connected() -> Pair {
    Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never)
}

/// RFC 9000 §8.1, RFC 9001 §4.9.1: a Handshake packet takes keys that only the one who reads at its address can have.
#[test]
fn a_handshake_packet_proves_the_address_and_ends_the_initial_keys() {
    let mut pair = answered();
    assert!(!pair.server().paths.active().is_validated() && pair.server().keys.has(SpaceId::Initial));
    let packet = Forged::default().long(pair.client(), SpaceId::Handshake);
    pair.hand_to_server(&packet);
    let server = pair.server();
    assert!(!server.handshake.is_complete(), "the client's Finished is still to come");
    assert!(server.paths.active().is_validated());
    assert!(!server.keys.has(SpaceId::Initial) && server.keys.has(SpaceId::Handshake));
}

/// RFC 9001 §4.9: keys go when neither side needs them any more, and not before.
#[test]
fn a_client_drops_initial_keys_with_its_first_handshake_packet_and_handshake_keys_when_confirmed() {
    let mut pair = answered();
    assert!(pair.client().keys.has(SpaceId::Initial) && pair.client().keys.has(SpaceId::Handshake));
    let now = pair.now;
    let flight = pair.client.send(now);
    assert!(pair.client().handshake.is_complete() && !pair.client().handshake.is_confirmed());
    assert!(!pair.client().keys.has(SpaceId::Initial) && pair.client().keys.has(SpaceId::Handshake));
    flight.into_iter().for_each(|datagram| pair.hand_to_server(&datagram));
    assert!(!pair.server().keys.has(SpaceId::Handshake), "a server that is done has no use for them");
    pair.run(3);
    assert!(pair.client().handshake.is_confirmed() && !pair.client().keys.has(SpaceId::Handshake));
}

/// RFC 9001 §5.7: until the client's Finished has come a server does not know who has read its flight.
#[test]
fn a_server_reads_no_data_before_the_clients_finished() {
    let mut pair = answered();
    let id = pair.client().open(Dir::Bidi).expect("stream");
    pair.client().write(id, Bytes::from(vec![7; 3_000])).expect("writes");
    let flight = pair.client.send(pair.now);
    let (finished, data) = flight.split_first().expect("datagrams");
    assert!(!data.is_empty());
    data.iter().for_each(|datagram| pair.hand_to_server(datagram));
    assert!(pair.server().keys.has(SpaceId::Application), "it has had the keys since its own Finished");
    assert_eq!(pair.server.sink.received.len(), 0);
    pair.hand_to_server(finished);
    assert_eq!(pair.server.sink.received.len(), 3_000);
}

/// RFC 9000 §14.1: whichever datagram gets lost, so that others hold nothing but acknowledgements or come again.
#[test]
fn initials_of_either_side_fill_their_datagrams() {
    for lost in 0..8 {
        let mut pair = begun();
        let (config, mut count) = (pair.config.clone(), 0);
        let mut survives = |datagram: &Vec<u8>| {
            assert!(datagram[0] & 0xf0 != 0xc0 || datagram.len() >= 1_200, "{} bytes", datagram.len());
            count += 1;
            count != lost + 1
        };
        for _ in 0..30 {
            pair.now = pair.now + Duration::from_millis(300);
            let now = pair.now;
            let up: Vec<_> = pair.client.send(now).into_iter().filter(&mut survives).collect();
            up.into_iter().for_each(|datagram| pair.server.receive(now, datagram, Some(&config)));
            let down: Vec<_> = pair.server.send(now).into_iter().filter(&mut survives).collect();
            down.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
        }
        assert!(pair.client.events.contains(&Event::Connected), "without datagram {lost}");
    }
}

/// RFC 9000 §13.2.1: the other half of the client's hello waits for this, and the server has nothing else to say.
#[test]
fn an_initial_is_acknowledged_at_once() {
    let mut pair = begun();
    let (now, config) = (pair.now, pair.config.clone());
    let hello = pair.client.send(now);
    assert!(hello.len() > 1, "a post-quantum key share takes two");
    pair.server.receive(now, hello[0].clone(), Some(&config));
    assert!(!pair.server.send(now).is_empty());
}

/// The kinds of the packets in a datagram: long ones by name, `None` for a short one.
fn kinds(datagram: &[u8]) -> Vec<Option<LongType>> {
    let (mut rest, mut kinds) = (datagram.to_vec(), Vec::new());
    while let Ok(Packet::Long { ty, end, .. }) = Packet::parse(&rest, 8) {
        kinds.push(Some(ty));
        rest.drain(..end);
    }
    kinds.extend((!rest.is_empty()).then_some(None));
    kinds
}

/// RFC 9000 §10.2.3: before the handshake is confirmed it is unknown which keys the peer has.
#[test]
fn an_early_close_goes_in_every_space_and_says_nothing_of_the_application() {
    let mut pair = greeted();
    let now = pair.now;
    pair.server().close(now, 7, b"secret");
    let farewell = pair.server.send(now);
    let all = [Some(LongType::Initial), Some(LongType::Handshake), None];
    assert_eq!(farewell.iter().map(|datagram| kinds(datagram)).collect::<Vec<_>>(), [all]);
    farewell.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    pair.client.send(now);
    let heard = CloseReason::PeerTransport { code: Code::APPLICATION_ERROR, reason: String::new() };
    assert!(pair.client.events.contains(&Event::Closed(heard)), "{:?}", pair.client.events);
    let mut pair = connected();
    pair.run(3);
    let now = pair.now;
    pair.server().close(now, 7, b"not secret");
    assert_eq!(pair.server.send(now).iter().map(|datagram| kinds(datagram)).collect::<Vec<_>>(), [[None]]);
}

/// RFC 9000 §10.2.1, §8.1: a spoofed Initial must not draw more than three times its size, the end included.
#[test]
fn a_close_keeps_to_the_amplification_limit() {
    for (left, datagrams) in [(1_199, 0), (1_200, 1)] {
        let mut pair = greeted();
        let now = pair.now;
        let server = pair.server();
        let (id, credit) = (server.paths.active_id(), server.paths.active().amplification());
        server.paths.path_mut(id).expect("the only path").on_sent(credit - left);
        server.close(now, 7, b"");
        assert_eq!(pair.server.send(now).len(), datagrams, "{left} bytes may go");
    }
}

/// Deleted, a server whose client needs 1,200 bytes more before it says its Initial again would fall silent, though a small probe
/// may go. Source: RFC 9002 §6.2.2.1, RFC 9000 §8.1, §14.1.
#[test]
fn little_credit_is_enough_for_a_packet_of_the_handshake() {
    for (left, sizes) in [(127, &[][..]), (396, &[396])] {
        let mut pair = greeted();
        let now = pair.now;
        pair.server.send(now);
        let server = pair.server();
        let (id, credit) = (server.paths.active_id(), server.paths.active().amplification());
        server.paths.path_mut(id).expect("the only path").on_sent(credit.saturating_sub(left));
        assert_eq!(
            server.next_timeout().is_some_and(|at| at < now + Duration::from_secs(2)),
            !sizes.is_empty()
        );
        let later = now + Duration::from_secs(2);
        let sent = pair.server.send(later);
        assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), sizes, "{left} bytes may go");
        assert!(sent.iter().all(|datagram| kinds(datagram) == [Some(LongType::Handshake)]));
        let next = pair.server().next_timeout();
        assert!(next.is_none_or(|at| at > later), "no timer runs that nothing can come of");
    }
}
