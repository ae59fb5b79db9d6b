//! What a peer with keys, or a third party without, sends to do harm. Each row was a bug of some other implementation.

use super::*;
use crate::TransportError;
use crate::connection::arrival::Arrival;
use crate::connection::frames::dispatch;
use crate::space::SpaceId;
use base::rng::Rng;
use crypto::RetryIntegrity;
use wire::Side;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::packet::{write_retry, write_version_negotiation};
use wire::writer::Writer;

/// Hands the frames of an authentic packet to a connection.
pub(super) fn frames(
    pair: &mut Pair,
    to: Side,
    space: SpaceId,
    payload: &[u8],
) -> Result<(), TransportError> {
    let now = pair.now;
    let end = if to == Side::Server { &mut pair.server } else { &mut pair.client };
    let Some(connection) = &mut end.connection else { return Ok(()) };
    let (path, dcid) = (connection.paths.active_id(), connection.components.local_cids.first());
    let (rtt, sink) = (Duration::from_millis(1), &mut end.sink);
    let mut arrival = Arrival {
        now,
        arrived: now,
        space,
        packet: crate::connection::frames::permission(space),
        path,
        pn: 1,
        dcid,
        rtt,
        sink,
        eliciting: recovery::ack::Eliciting::No,
        non_probing: false,
    };
    dispatch(connection, &mut arrival, payload)
}

fn connected() -> Pair {
    Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never)
}

/// CVE-2026-26080 (half a frame type), CVE-2023-42805 (an unknown one), CVE-2025-4820 (an acknowledgement of what was never
/// sent), GHSA-9q54-f358-3fqf (CRYPTO data far ahead), and frames where they must not stand.
#[test]
fn frames_that_must_not_be_close_the_connection() {
    use SpaceId::{Application, Handshake, Initial};
    let table: [(SpaceId, &[u8], Code); 22] = [
        (Application, &[], Code::PROTOCOL_VIOLATION),
        (Application, &[0x40], Code::FRAME_ENCODING_ERROR),
        (Application, &[0x40, 0x01], Code::PROTOCOL_VIOLATION),
        (Initial, &[0xc0, 0, 0, 0, 0, 0, 0, 0x06], Code::PROTOCOL_VIOLATION),
        (Application, &[0x40, 0x41], Code::FRAME_ENCODING_ERROR),
        (Initial, &[0x1f], Code::PROTOCOL_VIOLATION),
        (Handshake, &[0x40, 0xaf, 0, 1, 0x80, 0, 0x61, 0xa8, 1], Code::PROTOCOL_VIOLATION),
        (Application, &[0x32], Code::FRAME_ENCODING_ERROR),
        (Application, &[0x40, 0xaf], Code::FRAME_ENCODING_ERROR),
        (Application, &[0x42, 0xf5, 1], Code::FRAME_ENCODING_ERROR),
        (Handshake, &[0x42, 0xf5, 1], Code::PROTOCOL_VIOLATION),
        (Application, &[0x40, 0xaf, 0, 1, 0x43, 0xe7, 1], Code::PROTOCOL_VIOLATION),
        (Application, &[0x1e], Code::PROTOCOL_VIOLATION),
        (Application, &[0x07, 1, 0], Code::PROTOCOL_VIOLATION),
        (Application, &[0x07, 0], Code::PROTOCOL_VIOLATION),
        (Application, &[0x02, 0xbf, 0xff, 0xff, 0xff, 0, 0, 0], Code::PROTOCOL_VIOLATION),
        (Application, &[0x06, 0x80, 0x10, 0, 0, 1, 0], Code::CRYPTO_BUFFER_EXCEEDED),
        (Initial, &[0x08, 0, 0x61], Code::PROTOCOL_VIOLATION),
        (Handshake, &[0x1d, 0, 0], Code::PROTOCOL_VIOLATION),
        (Initial, &[0x24, 0, 0, 1, 1], Code::PROTOCOL_VIOLATION),
        (Application, &[0x24, 0, 0, 1, 2], Code::FRAME_ENCODING_ERROR),
        (Application, &[0x24, 1, 0, 1, 1], Code::STREAM_STATE_ERROR),
    ];
    for (space, payload, code) in table {
        let outcome = frames(&mut connected(), Side::Server, space, payload);
        assert_eq!(outcome.map_err(|error| error.code), Err(code), "{payload:x?} in {space:?}");
    }
    // A server may send tokens, but none that is empty (RFC 9000 §19.7).
    let empty = frames(&mut connected(), Side::Client, Application, &[0x07, 0]);
    assert_eq!(empty.map_err(|error| error.code), Err(Code::FRAME_ENCODING_ERROR));
}

/// CVE-2023-46239, CVE-2025-59530: some frame in some state. Whatever comes at whichever moment, nothing panics and the
/// connection can still be driven.
#[test]
fn any_frame_in_any_state_does_no_harm() {
    for seed in 0..48_u8 {
        let mut rng = Rng::from_seed([seed; 32]);
        let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
        pair.run(usize::from(seed % 6));
        for _ in 0..200 {
            let len = 1 + rng.below(24) as usize;
            let mut payload: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
            payload[0] = rng.below(0x32) as u8;
            // Small numbers reach further than large ones.
            payload.iter_mut().skip(1).step_by(1 + rng.below(3) as usize).for_each(|byte| *byte &= 0x07);
            if rng.below(8) == 0 {
                payload.splice(..1, [0x40, 0xaf]); // ACK_FREQUENCY
            }
            let space = SpaceId::ALL[rng.below(3) as usize];
            let to = if rng.below(2) == 0 { Side::Client } else { Side::Server };
            if let Err(error) = frames(&mut pair, to, space, &payload) {
                let now = pair.now;
                let end = if to == Side::Server { &mut pair.server } else { &mut pair.client };
                end.connection.as_mut().expect("it has failed").fail(now, error);
                break;
            }
            pair.client.send(pair.now);
            pair.server.send(pair.now);
        }
        pair.now = pair.now + Duration::from_secs(60);
        pair.client.send(pair.now);
        pair.server.send(pair.now);
    }
}

pub(super) fn negotiation(dcid: &ConnectionId, scid: &ConnectionId, version: Version) -> Vec<u8> {
    let mut bytes = [0; 64];
    let mut writer = Writer::new(&mut bytes);
    write_version_negotiation(&mut writer, 0, dcid.as_slice(), scid.as_slice(), &[version]);
    writer.written().to_vec()
}

/// GHSA-xh5m-8qqp-c5x7 (a server that heeds Version Negotiation), aioquic 1.6 (a client that heeds it, or a Retry, late).
#[test]
fn version_negotiation_and_retry_count_only_at_the_beginning() {
    let closed = Event::Closed(CloseReason::VersionNegotiation);
    let unknown = Version(0x1a2a_3a4a);
    for (version, ends) in [(Version::V1, false), (unknown, true)] {
        let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
        let (ours, theirs) =
            (pair.client().components.local_cids.first(), pair.client().components.peer_cids.active());
        let now = pair.now;
        pair.client.receive(now, negotiation(&ours, &ours, unknown), None);
        pair.client.receive(now, negotiation(&ours, &theirs, version), None);
        pair.client.send(now);
        assert_eq!(pair.client.events.contains(&closed), ends, "{version}");
    }
    let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    let original = pair.client().components.peer_cids.active();
    pair.run(12);
    let (client, server) =
        (pair.client().components.local_cids.first(), pair.server().components.local_cids.first());
    let mut retry = [0; 128];
    let mut writer = Writer::new(&mut retry);
    write_retry(&mut writer, 0, Version::V1, &client, &server, b"token");
    let mut retry = writer.written().to_vec();
    retry.extend(RetryIntegrity::tag(Version::V1, original.as_slice(), &retry).expect("fits"));
    let now = pair.now;
    pair.client.receive(now, negotiation(&client, &original, unknown), None);
    pair.client.receive(now, retry, None);
    let config = pair.config.clone();
    pair.server.receive(now, negotiation(&server, &client, unknown), Some(&config));
    assert!(pair.client().handshake.token().is_empty());
    pair.transfer(10_000);
}

/// quinn 0.11.19: a token that leaves no room for the ClientHello in a client's first packet.
#[test]
fn a_token_too_long_for_a_first_packet_is_not_taken() {
    let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    let (client, original) =
        (pair.client().components.local_cids.first(), pair.client().components.peer_cids.active());
    let mut retry = [0; 1_400];
    let mut writer = Writer::new(&mut retry);
    write_retry(&mut writer, 0, Version::V1, &client, &client, &[7; 1_100]);
    let mut retry = writer.written().to_vec();
    retry.extend(RetryIntegrity::tag(Version::V1, original.as_slice(), &retry).expect("fits"));
    let now = pair.now;
    pair.client.receive(now, retry, None);
    assert!(pair.client().handshake.token().is_empty());
    pair.run(12);
    let mut frame = vec![0x07, 0x44, 0x4c];
    frame.resize(3 + 0x44c, 7);
    frames(&mut pair, Side::Client, SpaceId::Application, &frame).expect("is dropped in silence");
    pair.client.send(now);
    let long = |event: &Event| matches!(event, Event::NewToken { token } if token.len() > 512);
    assert!(!pair.client.events.iter().any(long));
}

/// RFC 9001 §6.2: a peer that updates its keys twice before we could answer once.
#[test]
fn key_updates_without_an_answer_between_them_close() {
    let mut pair = connected();
    pair.transfer(1_000);
    let config = pair.config.clone();
    for _ in 0..2 {
        let now = pair.now;
        let client = pair.client();
        client.keys.one_rtt.as_mut().expect("keys").update(now + Duration::from_secs(1));
        let id = client.open(Dir::Uni).expect("stream");
        client.write(id, Bytes::from_static(b"hurry")).expect("writes");
        let up = pair.client.send(now);
        up.into_iter().for_each(|datagram| pair.server.receive(now, datagram, Some(&config)));
    }
    pair.server.send(pair.now);
    let refused = |event: &Event| matches!(event, Event::Closed(CloseReason::Violation(error)) if error.code == Code::KEY_UPDATE_ERROR);
    assert!(pair.server.events.iter().any(refused), "{:?}", pair.server.events);
}

/// HAProxy: a closing connection that answered every packet. Answers become rarer, and a draining connection gives none.
#[test]
fn a_closing_connection_answers_ever_more_rarely() {
    let mut pair = connected();
    let (now, config) = (pair.now, pair.config.clone());
    pair.client().close(now, 0, b"");
    let farewell = pair.client.send(now);
    farewell.into_iter().for_each(|datagram| pair.server.receive(now, datagram, Some(&config)));
    let (client, server) =
        (pair.client().components.local_cids.first(), pair.server().components.local_cids.first());
    let junk = |cid: &ConnectionId| [&[0x40], cid.as_slice(), &[9; 60]].concat();
    let mut answers = 0;
    for _ in 0..64 {
        pair.client.receive(now, junk(&client), None);
        answers += pair.client.send(now).len();
        pair.server.receive(now, junk(&server), Some(&config));
        assert!(pair.server.send(now).is_empty());
    }
    assert!((5..=7).contains(&answers), "{answers}");
}

/// aioquic 1.6, slowloris: a handshake that never ends takes its place for a bounded time only.
#[test]
fn a_handshake_that_does_not_end_is_given_up() {
    let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    let (now, config) = (pair.now, pair.config.clone());
    let hello = pair.client.send(now);
    hello.into_iter().for_each(|datagram| pair.server.receive(now, datagram, Some(&config)));
    for _ in 0..60 {
        pair.now = pair.now + Duration::from_millis(500);
        pair.client.send(pair.now);
        pair.server.send(pair.now);
    }
    for end in [&pair.client, &pair.server] {
        let closed = |event: &Event| {
            matches!(event, Event::Closed(CloseReason::HandshakeTimeout | CloseReason::IdleTimeout))
        };
        assert!(end.events.iter().any(closed), "{:?}", end.events);
    }
}

/// CVE-2024-25678, RFC 9000 §12.2: a packet behind the first of a datagram that is not for this connection.
#[test]
fn a_packet_for_another_connection_behind_the_first_is_dropped() {
    let mut pair = connected();
    let (now, config) = (pair.now, pair.config.clone());
    pair.transfer(1_000);
    let id = pair.client().open(Dir::Uni).expect("stream");
    pair.client().write(id, Bytes::from_static(b"for another client")).expect("writes");
    let short = pair.client.send(pair.now).pop().expect("a packet");
    let (client, server) =
        (pair.client().components.local_cids.first(), pair.server().components.local_cids.first());
    // A Handshake packet of no use in front, so that the endpoint routes by it, and a changed destination behind.
    let head = [&[0xe0, 0, 0, 0, 1, 8], server.as_slice(), &[8], client.as_slice()].concat();
    let mut datagram = [&head[..], &[0x40, 40], &[0; 40]].concat();
    let front = datagram.len();
    datagram.extend(&short);
    datagram[front + 8] ^= 1;
    let (before, heard) =
        (pair.server().counters().received_packets, pair.server().counters().dropped_malformed);
    pair.server.receive(now, datagram, Some(&config));
    assert_eq!(pair.server().counters().received_packets, before);
    assert_eq!(
        pair.server().counters().dropped_malformed,
        heard + 1,
        "the second packet, by its destination"
    );
}
