//! The endpoint against strangers, and against clients that behave.

use super::reply::MIN_RESET;
use super::*;
use crate::cid::CidChange;
use base::net::Ecn;
use base::rng::Rng;
use base::slab::Slab;
use base::time::Duration;
use crypto::token::NEW_TOKEN_LEN;
use crypto::{RetryIntegrity, initial_keys};
use proptest::prelude::*;
use std::collections::HashSet;
use wire::Side;
use wire::frame::{ConnectionClose, Frame};
use wire::packet::{LongHeader, ShortHeader, patch_length, versions};
use wire::reader::Reader;
use wire::version::Version;
use wire::writer::Writer;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(60_000 + ms)
}

fn cid(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

fn from(peer: &str) -> Addresses {
    Addresses { local: "192.0.2.1:443".parse().unwrap(), peer: peer.parse().unwrap() }
}

const CLIENT: &str = "198.51.100.1:1000";
const CLIENT_CID: [u8; 5] = *b"scid.";

/// An endpoint, and the connections that an embedder would keep.
struct Server {
    endpoint: Endpoint,
    connections: Slab<LocalCids>,
}

impl Server {
    fn new(config: EndpointConfig) -> Server {
        Server { endpoint: Endpoint::new(config, [3; 32]), connections: Slab::new() }
    }

    fn default() -> Server {
        Server::new(EndpointConfig::default())
    }

    fn route(&mut self, ms: u64, peer: &str, datagram: &[u8]) -> Route {
        let mut bytes = datagram.to_vec();
        let segment_size = bytes.len().max(1);
        let train = Train { bytes: &mut bytes, segment_size, addresses: from(peer), ecn: Ecn::NotEct };
        let route = self.endpoint.route(at(ms), &train);
        if route == Route::Reply {
            assert!(self.endpoint.reply().len() < datagram.len(), "an answer is smaller than its cause");
            assert!(!self.endpoint.reply().is_empty());
        }
        route
    }

    fn accept(&mut self, incoming: Incoming) -> Handle {
        let handle = self.connections.next_handle();
        self.endpoint.admit(handle, &incoming);
        let mut cids = self.endpoint.local_cids();
        cids.take_changes(|change| self.endpoint.register(handle, change));
        self.connections.insert(cids)
    }

    fn close(&mut self, handle: Handle) {
        self.endpoint.forget(handle);
        self.connections.remove(handle);
    }

    /// What a client is told to do by a Retry: where to send, and with which token.
    fn retry(&mut self, ms: u64, peer: &str, dcid: &[u8]) -> (ConnectionId, Vec<u8>) {
        assert_eq!(self.route(ms, peer, &initial(dcid, &[])), Route::Reply);
        let reply = self.endpoint.reply().to_vec();
        let Ok(Packet::Retry { dcid: to, scid, token, version, .. }) = Packet::parse(&reply, 8) else {
            panic!("not a Retry")
        };
        assert_eq!(to, cid(&CLIENT_CID));
        assert!(RetryIntegrity::verify(version, dcid, &reply));
        (scid, reply[token].to_vec())
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.endpoint.counters().dropped(reason)
    }
}

fn long(ty: LongType, version: Version, dcid: &[u8], token: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; 1_200];
    let header = LongHeader { ty, version, dcid: cid(dcid), scid: cid(&CLIENT_CID), token };
    let mut writer = Writer::new(&mut datagram);
    let mark = header.write(&mut writer, 0, 1);
    patch_length(&mut datagram, mark, 1_200);
    datagram
}

fn initial(dcid: &[u8], token: &[u8]) -> Vec<u8> {
    long(LongType::Initial, Version::V1, dcid, token)
}

fn short(dcid: &[u8], len: usize) -> Vec<u8> {
    let mut datagram = vec![0x55; len.max(1 + dcid.len())];
    datagram[0] = 0x40;
    datagram[1..1 + dcid.len()].copy_from_slice(dcid);
    datagram.truncate(len);
    datagram
}

fn incoming(route: Route) -> Incoming {
    match route {
        Route::Incoming(incoming) => incoming,
        other => panic!("{other:?}"),
    }
}

const DCID: &[u8] = b"dcid-chosen";

#[test]
fn a_client_is_announced_once_and_then_routed() {
    let mut server = Server::default();
    let first = incoming(server.route(0, CLIENT, &initial(DCID, &[])));
    assert_eq!((first.dcid, first.original_dcid, first.scid), (cid(DCID), cid(DCID), cid(&CLIENT_CID)));
    assert!(!first.is_validated() && first.retry_scid.is_none());
    let handle = server.accept(first);
    assert_eq!(server.endpoint.half_open(), 1);
    // A copy, or the second datagram of a long ClientHello.
    assert_eq!(server.route(0, CLIENT, &initial(DCID, &[])), Route::Connection(handle));
    let ours = server.connections.entry(handle).unwrap().first();
    for datagram in
        [short(ours.as_slice(), 40), long(LongType::Handshake, Version::V1, ours.as_slice(), &[]), short(ours.as_slice(), 9)]
    {
        assert_eq!(server.route(0, CLIENT, &datagram), Route::Connection(handle));
    }
    server.endpoint.on_established(handle);
    server.endpoint.on_established(handle);
    assert_eq!(server.endpoint.half_open(), 0);
    server.close(handle);
    assert_eq!(server.endpoint.routes.entries(), 0);
    assert_ne!(server.route(0, CLIENT, &short(ours.as_slice(), 40)), Route::Connection(handle));
    assert!(matches!(server.route(0, CLIENT, &initial(DCID, &[])), Route::Incoming(_)));
}

#[test]
fn the_table_follows_the_connection_ids() {
    let mut server = Server::default();
    let first = incoming(server.route(0, CLIENT, &initial(DCID, &[])));
    let handle = server.accept(first);
    let fresh = cid(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let datagram = short(fresh.as_slice(), 60);
    assert_eq!(server.route(0, CLIENT, &datagram), Route::Reply);
    server.endpoint.register(handle, CidChange::Added(fresh));
    assert_eq!(server.route(0, CLIENT, &datagram), Route::Connection(handle));
    server.endpoint.register(handle, CidChange::Removed(fresh));
    assert_eq!(server.route(0, CLIENT, &datagram), Route::Reply);
    // A handle of a later connection in the same place takes over, whatever was not forgotten.
    server.connections.remove(handle);
    let other = incoming(server.route(0, CLIENT, &initial(b"another-dcid", &[])));
    let later = server.accept(other);
    assert_eq!((handle.index(), handle == later), (later.index(), false));
    assert_eq!(server.endpoint.routes.entries(), 2);
    server.endpoint.forget(handle);
    assert_eq!(server.endpoint.routes.entries(), 2, "an old handle changes nothing");
}

/// CVE-2026-94450, and RFC 9000 §14.1.
#[test]
fn initials_that_cannot_be_are_dropped_first_of_all() {
    for retry in [RetryPolicy::Never, RetryPolicy::Always] {
        let mut server = Server::new(EndpointConfig { retry, ..EndpointConfig::default() });
        for len in 0..8 {
            let datagram = initial(&DCID[..len], &[1; 99]);
            assert_eq!(server.route(0, CLIENT, &datagram), Route::Drop(DropReason::ShortInitialCid));
        }
        assert_eq!(server.dropped(DropReason::ShortInitialCid), 8);
        let mut small = initial(DCID, &[]);
        small.truncate(1_199);
        let mark = LongHeader {
            ty: LongType::Initial,
            version: Version::V1,
            dcid: cid(DCID),
            scid: cid(&CLIENT_CID),
            token: &[],
        }
        .write(&mut Writer::new(&mut small), 0, 1);
        patch_length(&mut small, mark, 1_199);
        assert_eq!(server.route(0, CLIENT, &small), Route::Drop(DropReason::SmallDatagram));
    }
}

#[test]
fn other_packets_to_nobody_are_dropped() {
    let mut server = Server::default();
    for ty in [LongType::Handshake, LongType::ZeroRtt] {
        let datagram = long(ty, Version::V1, DCID, &[]);
        assert_eq!(server.route(0, CLIENT, &datagram), Route::Drop(DropReason::Unexpected));
    }
    assert_eq!(server.route(0, CLIENT, &[]), Route::Drop(DropReason::Empty));
    assert_eq!(server.route(0, CLIENT, &[0xc0, 0, 0]), Route::Drop(DropReason::Malformed));
    let mut unfixed = initial(DCID, &[]);
    unfixed[0] &= !0x40;
    assert_eq!(server.route(0, CLIENT, &unfixed), Route::Drop(DropReason::Malformed));
    // MsQuic GHSA-xh5m, aioquic 1.4: Version Negotiation to a server, and a server that answers it.
    let mut negotiation = vec![0x11; 1_200];
    wire::packet::write_version_negotiation(&mut Writer::new(&mut negotiation), 0, DCID, DCID, &[Version(5); 290]);
    negotiation.truncate(7 + 22 + 4 * 290);
    assert!(matches!(Packet::parse(&negotiation, 8), Ok(Packet::VersionNegotiation { .. })));
    assert_eq!(server.route(0, CLIENT, &negotiation), Route::Drop(DropReason::Unexpected));
}

#[test]
fn unknown_versions_are_negotiated_from_full_datagrams_only() {
    let mut server = Server::default();
    let mut datagram = vec![0x33; 1_200];
    datagram[0] = 0x80; // the other bits mean nothing in other versions, the fixed bit included
    datagram[1..5].copy_from_slice(&0xabcd_0001_u32.to_be_bytes());
    datagram[5] = 255;
    datagram[6 + 255] = 3;
    assert_eq!(server.route(0, CLIENT, &datagram), Route::Reply);
    let reply = server.endpoint.reply().to_vec();
    assert_eq!(reply[1..5], [0; 4]);
    assert_eq!(reply[5..9], [3, 0x33, 0x33, 0x33], "the connection IDs go back crosswise");
    assert_eq!(reply[9], 255);
    let list: Vec<Version> = versions(&reply[10 + 255..]).collect();
    assert_eq!(list.len(), 3);
    assert!(list[0].is_reserved() && list[1..] == Version::SUPPORTED);
    assert_eq!(server.endpoint.counters().version_negotiations, 1);
    datagram.truncate(1_199);
    assert_eq!(server.route(0, CLIENT, &datagram), Route::Drop(DropReason::SmallDatagram));
}

#[test]
fn both_versions_are_served() {
    let mut server = Server::default();
    for version in Version::SUPPORTED {
        let route = server.route(0, CLIENT, &long(LongType::Initial, version, DCID, &[]));
        assert_eq!(incoming(route).version(), version);
        let mut strict = Server::new(EndpointConfig { retry: RetryPolicy::Always, ..EndpointConfig::default() });
        assert_eq!(strict.route(0, CLIENT, &long(LongType::Initial, version, DCID, &[])), Route::Reply);
        assert!(RetryIntegrity::verify(version, DCID, strict.endpoint.reply()));
    }
}

#[test]
fn retry_proves_the_address() {
    let mut server = Server::new(EndpointConfig { retry: RetryPolicy::Always, ..EndpointConfig::default() });
    let (retry_scid, token) = server.retry(0, CLIENT, DCID);
    assert_eq!(server.endpoint.routes.entries(), 0, "nothing is kept");
    let again = incoming(server.route(50, CLIENT, &initial(retry_scid.as_slice(), &token)));
    assert!(again.is_validated());
    assert_eq!((again.original_dcid, again.retry_scid, again.dcid), (cid(DCID), Some(retry_scid), retry_scid));
    let handle = server.accept(again);
    assert_eq!(server.route(60, CLIENT, &initial(retry_scid.as_slice(), &token)), Route::Connection(handle));
    // A copy of the very first Initial still gets no state.
    assert_eq!(server.route(60, CLIENT, &initial(DCID, &[])), Route::Reply);
}

/// RFC 9000 §8.1.2: a Retry token that does not fit is refused with INVALID_TOKEN, readable by the client.
#[test]
fn a_retry_token_of_ours_that_does_not_fit_is_refused() {
    let mut server = Server::new(EndpointConfig { retry: RetryPolicy::Always, ..EndpointConfig::default() });
    let (retry_scid, token) = server.retry(0, CLIENT, DCID);
    let attempts = [
        (15_001, CLIENT, retry_scid),
        (0, "198.51.100.1:1001", retry_scid),
        (0, "198.51.100.2:1000", retry_scid),
        (0, CLIENT, cid(b"elsewhere")),
    ];
    for (ms, peer, dcid) in attempts {
        assert_eq!(server.route(ms, peer, &initial(dcid.as_slice(), &token)), Route::Reply);
        let mut reply = server.endpoint.reply().to_vec();
        let close = open_initial(&mut reply, dcid.as_slice());
        let mut reader = Reader::new(&close);
        let Ok(Frame::ConnectionClose(ConnectionClose::Transport { code, .. })) = Frame::parse_next(&mut reader) else {
            panic!("no close in {close:?}")
        };
        assert_eq!(code, Code::INVALID_TOKEN);
        assert!(reader.is_empty());
    }
    assert_eq!(server.endpoint.counters().refusals, 4);
    assert!(matches!(server.route(15_000, CLIENT, &initial(retry_scid.as_slice(), &token)), Route::Incoming(_)));
}

/// Opens an Initial packet as the client would that sent its own to `dcid`.
fn open_initial(packet: &mut [u8], dcid: &[u8]) -> Vec<u8> {
    let Ok(Packet::Long { ty: LongType::Initial, version, pn_offset, end, .. }) = Packet::parse(packet, 8) else {
        panic!("not an Initial")
    };
    assert_eq!(end, packet.len());
    let keys = initial_keys(version, dcid, Side::Client).peer;
    let mask = keys.header.mask(wire::packet::sample(packet, pn_offset).unwrap());
    packet[0] ^= mask[0] & 0x0f;
    let pn_len = wire::packet::packet_number_size(packet[0]);
    (0..pn_len).for_each(|index| packet[pn_offset + index] ^= mask[1 + index]);
    let header_len = pn_offset + pn_len;
    let len = keys.packet.open(0, packet, header_len).expect("sealed with the Initial keys");
    packet[header_len..header_len + len].to_vec()
}

/// CVE-2026-44894, CVE-2026-26081, CVE-2026-42764: whatever is not ours proves nothing and breaks nothing.
#[test]
fn foreign_tokens_count_as_none() {
    let mut server = Server::new(EndpointConfig { retry: RetryPolicy::Never, ..EndpointConfig::default() });
    let mut strict = Server::new(EndpointConfig { retry: RetryPolicy::Always, ..EndpointConfig::default() });
    let mut stranger = Endpoint::new(EndpointConfig::default(), [4; 32]);
    let mut tokens = vec![stranger.new_token(at(0), from(CLIENT)).to_vec()];
    let (_, genuine) = strict.retry(0, CLIENT, DCID);
    for len in 1..genuine.len() + 3 {
        let mut token = genuine.clone();
        token.resize(len, 0);
        token[len / 2] ^= u8::from(len == genuine.len());
        tokens.push(token);
    }
    tokens.extend((1..200).map(|len| vec![len as u8; len]));
    for token in tokens {
        let datagram = initial(DCID, &token);
        assert!(!incoming(server.route(0, CLIENT, &datagram)).is_validated());
        assert_eq!(strict.route(0, CLIENT, &datagram), Route::Reply);
        assert!(matches!(Packet::parse(strict.endpoint.reply(), 8), Ok(Packet::Retry { .. })));
    }
}

#[test]
fn a_new_token_spares_the_retry_for_a_day() {
    let mut server = Server::new(EndpointConfig { retry: RetryPolicy::Always, ..EndpointConfig::default() });
    let token = server.endpoint.new_token(at(0), from(CLIENT));
    assert_eq!(token.len(), NEW_TOKEN_LEN);
    assert_ne!(token, server.endpoint.new_token(at(0), from(CLIENT)), "RFC 9000 §8.1.3: every token is unique");
    let day = 24 * 3_600_000;
    let other_port = "198.51.100.1:4711";
    for (ms, peer, good) in
        [(0, CLIENT, true), (day, other_port, true), (day + 1, CLIENT, false), (0, "198.51.100.2:1000", false)]
    {
        let route = server.route(ms, peer, &initial(DCID, &token));
        assert_eq!(matches!(route, Route::Incoming(incoming) if incoming.is_validated()), good, "{ms} {peer}");
        assert_eq!(route == Route::Reply, !good);
    }
    // Another process with the same key and a clock of its own.
    let key = EndpointConfig { token_key: Some([5; 32]), ..EndpointConfig::default() };
    let token = Endpoint::new(key.clone(), [1; 32]).new_token(at(0), from(CLIENT));
    for (hours, good) in [(23, true), (25, false)] {
        let config = EndpointConfig { clock_offset: Duration::from_secs(hours * 3_600), ..key.clone() };
        let route = Server::new(config).route(0, CLIENT, &initial(DCID, &token));
        assert_eq!(incoming(route).is_validated(), good);
    }
}

#[test]
fn retry_begins_above_the_threshold_and_the_cap_holds() {
    let config = EndpointConfig { retry: RetryPolicy::Above(10), max_half_open: 20, ..EndpointConfig::default() };
    let mut server = Server::new(config);
    let mut handles = Vec::new();
    for n in 0..10_u64 {
        let first = incoming(server.route(0, CLIENT, &initial(&n.to_be_bytes(), &[])));
        handles.push(server.accept(first));
    }
    for n in 10..20_u64 {
        let (retry_scid, token) = server.retry(0, CLIENT, &n.to_be_bytes());
        let first = incoming(server.route(0, CLIENT, &initial(retry_scid.as_slice(), &token)));
        handles.push(server.accept(first));
    }
    assert_eq!(server.endpoint.half_open(), 20);
    assert_eq!(server.route(0, CLIENT, &initial(b"one-more", &[])), Route::Drop(DropReason::HalfOpenLimit));
    server.endpoint.on_established(handles[0]);
    server.close(handles[1]);
    assert_eq!(server.endpoint.half_open(), 18);
    assert_eq!(server.route(0, CLIENT, &initial(b"one-more", &[])), Route::Reply);
    (2..20).for_each(|index| server.close(handles[index]));
    assert_eq!(server.endpoint.half_open(), 0);
    assert!(matches!(server.route(0, CLIENT, &initial(b"one-more", &[])), Route::Incoming(_)));
}

/// Initials by the hundred thousand: nothing grows (CVE-2025-54939, CVE-2026-14456).
#[test]
fn strangers_leave_nothing_behind() {
    let mut server = Server::default();
    for n in 0..100_000_u64 {
        let mut dcid = [0; 16];
        dcid[..8].copy_from_slice(&n.to_be_bytes());
        let route = server.route(0, CLIENT, &initial(&dcid, &[]));
        assert!(matches!(route, Route::Incoming(_)), "and forgotten by the embedder");
        server.route(0, CLIENT, &short(&dcid[..8], 60));
    }
    assert_eq!(server.endpoint.routes.entries(), 0);
    assert_eq!(server.endpoint.half_open(), 0);
}

#[test]
fn a_stateless_reset_is_smaller_than_its_cause_and_ends_with_the_token() {
    let mut server = Server::default();
    let gone = server.endpoint.local_cids();
    let mut sizes = HashSet::new();
    let mut peers = 0;
    for len in (1..100).chain([1_200, 1_452, 60_000]) {
        peers += 1;
        let peer = format!("10.0.0.{peers}:9");
        match server.route(0, &peer, &short(gone.first().as_slice(), len)) {
            Route::Reply => {
                let reply = server.endpoint.reply();
                assert!((MIN_RESET..len).contains(&reply.len()));
                assert_eq!(reply[0] & 0xc0, 0x40, "looks like a short header");
                assert_eq!(reply[reply.len() - 16..], gone.first_reset_token());
                assert!(len > 42 || reply.len() == len - 1, "RFC 9000 §10.3: one byte less than a short cause");
                sizes.insert(reply.len());
            }
            Route::Drop(DropReason::UnknownConnection) => assert!(len <= MIN_RESET, "{len}"),
            other => panic!("{other:?} for {len}"),
        }
    }
    assert!(sizes.len() > 30);
    // Two endpoints without state fall silent.
    let mut size = 1_500;
    let mut rounds = 0;
    while server.route(10_000 * rounds, CLIENT, &short(gone.first().as_slice(), size)) == Route::Reply {
        size = server.endpoint.reply().len();
        rounds += 1;
    }
    assert!(rounds < 40, "{rounds}");
    // CVE-2026-50009: nothing in the datagram tells the token.
    let other = Endpoint::new(EndpointConfig::default(), [99; 32]).cids.reset_token(&gone.first());
    assert_ne!(other, gone.first_reset_token());
    let same = EndpointConfig { reset_key: Some([8; 32]), ..EndpointConfig::default() };
    let tokens = [1, 2].map(|seed| Endpoint::new(same.clone(), [seed; 32]).cids.reset_token(&gone.first()));
    assert_eq!(tokens[0], tokens[1], "after a restart");
}

#[test]
fn another_workers_connections_are_not_reset() {
    let mut server = Server::new(EndpointConfig { worker: 2, ..EndpointConfig::default() });
    assert_eq!(server.route(0, CLIENT, &short(&[1; 8], 60)), Route::Drop(DropReason::OtherWorker));
    assert_eq!(server.route(0, CLIENT, &short(&[2; 8], 60)), Route::Reply);
}

#[test]
fn answers_are_limited_by_peer_and_in_all() {
    let mut server = Server::default();
    let datagram = short(&[0; 8], 60);
    let mut answered = |server: &mut Server, ms: u64, peer: &str| server.route(ms, peer, &datagram) == Route::Reply;
    assert_eq!((0..50).filter(|_| answered(&mut server, 0, CLIENT)).count(), 10);
    assert!(answered(&mut server, 0, "203.0.113.1:1"), "others are not silenced");
    assert!(answered(&mut server, 1_000, CLIENT), "a second later");
    let one_site = (0..50).filter(|n| answered(&mut server, 0, &format!("[2001:db8::{n}]:1"))).count();
    assert_eq!(one_site, 10, "a /64 is one peer");
    let mut server = Server::default();
    let everywhere = (0..9_000_u32)
        .filter(|n| answered(&mut server, 0, &format!("10.{}.{}.1:1", n >> 8, n & 255)))
        .count();
    assert!((900..=1_000).contains(&everywhere), "{everywhere}");
    assert!(server.dropped(DropReason::RateLimit) > 7_000);
    assert!((0..50).all(|_| matches!(server.route(0, CLIENT, &initial(DCID, &[])), Route::Incoming(_))));
}

#[test]
fn ports_of_reflectors_get_no_answer_but_connections_keep_theirs() {
    let mut server = Server::default();
    for port in [0, 17, 19, 53, 111, 123, 137, 138, 161, 389, 500] {
        let peer = format!("198.51.100.1:{port}");
        for datagram in [initial(DCID, &[]), short(&[0; 8], 60), vec![0x80; 1_200]] {
            assert_eq!(server.route(0, &peer, &datagram), Route::Drop(DropReason::SourcePort));
        }
    }
    let heard = (0..100)
        .filter(|n| {
            let port = [1_900, 3_702, 5_353, 5_355, 11_211][n % 5];
            matches!(server.route(0, &format!("198.51.100.1:{port}"), &initial(DCID, &[])), Route::Incoming(_))
        })
        .count();
    assert_eq!(heard, 10);
    let first = incoming(server.route(0, CLIENT, &initial(DCID, &[])));
    let handle = server.accept(first);
    let ours = server.connections.entry(handle).unwrap().first();
    let route = server.route(0, "198.51.100.1:53", &short(ours.as_slice(), 60));
    assert_eq!(route, Route::Connection(handle), "a client may talk to any server it chose");
}

#[test]
fn an_endpoint_that_does_not_serve_says_so_or_nothing() {
    let mut server = Server::new(EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() });
    let unknown_version = {
        let mut datagram = initial(DCID, &[]);
        datagram[1] = 0x55;
        datagram
    };
    for datagram in [initial(DCID, &[]), unknown_version] {
        assert_eq!(server.route(0, CLIENT, &datagram), Route::Drop(DropReason::NotServing));
    }
    server.endpoint.set_incoming(IncomingPolicy::Refuse);
    assert_eq!(server.route(0, CLIENT, &initial(DCID, &[])), Route::Reply);
    let mut reply = server.endpoint.reply().to_vec();
    let close = open_initial(&mut reply, DCID);
    assert_eq!(close[1], Code::CONNECTION_REFUSED.0 as u8);
}

#[test]
fn a_train_is_split_where_the_destination_changes() {
    let datagrams = [
        short(&[1; 8], 100),
        short(&[1; 8], 100),
        long(LongType::Handshake, Version::V1, &[1; 8], &[])[..100].to_vec(),
        short(&[2; 8], 100),
        short(&[2; 8], 30),
    ];
    let mut bytes = datagrams.concat();
    let mut rest = Some(Train { bytes: &mut bytes, segment_size: 100, addresses: from(CLIENT), ecn: Ecn::Ect0 });
    let mut sizes = Vec::new();
    while let Some(train) = rest {
        let (run, more) = split_run(train);
        assert_eq!(run.segment_size, 100);
        sizes.push(run.bytes.len());
        rest = more;
    }
    assert_eq!(sizes, [300, 130]);
    let (run, rest) =
        split_run(Train { bytes: &mut [], segment_size: 0, addresses: from(CLIENT), ecn: Ecn::NotEct });
    assert!(run.bytes.is_empty() && rest.is_none());
}

/// CIDs made to collide in a table without a secret must not collide in ours.
#[test]
fn hashes_depend_on_the_seed() {
    use core::hash::BuildHasher;
    let [one, other] = [1, 2].map(|seed| {
        let mut rng = Rng::from_u64(seed);
        (hash::KeyedHash::new(&mut rng), hash::LocalHash::new(&mut rng))
    });
    let low_bits = |number: u64| number & 0xff;
    let clustered: Vec<u64> =
        (0..1_000_000_u64).filter(|&n| low_bits(one.0.hash_one(cid(&n.to_be_bytes()))) == 0).collect();
    assert!(clustered.len() > 3_000);
    let still = clustered.iter().filter(|n| low_bits(other.0.hash_one(cid(&n.to_be_bytes()))) == 0).count();
    assert!(still < clustered.len() / 100, "{still} of {}", clustered.len());
    let spread: HashSet<u64> = (0..256_u64).map(|n| low_bits(one.1.hash_one(n << 40))).collect();
    assert!(spread.len() > 128, "{}", spread.len());
}

#[test]
fn short_headers_are_read_as_by_the_parser() {
    let datagram = short(&[1, 2, 3, 4, 5, 6, 7, 8], 40);
    let parsed = ShortHeader::parse(&datagram, LOCAL_CID_LEN).unwrap();
    assert_eq!(Destination::of(&datagram), Some(Destination::Local(0x0102_0304_0506_0708)));
    assert_eq!(parsed.dcid.as_slice(), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(Destination::of(&datagram[..8]), None);
}

proptest! {
    /// Total on arbitrary bytes; never more out than in; nothing kept.
    #[test]
    fn arbitrary_datagrams_do_no_harm(
        datagrams in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..1_300)), 1..20),
        version in prop::sample::select(vec![0_u32, 1, 0x6b33_43cf, 0x1a2a_3a4a, 7]),
    ) {
        let mut server = Server::default();
        for (first, mut datagram) in datagrams {
            if let Some(byte) = datagram.first_mut() { *byte = first; }
            if first & 1 == 0 && datagram.len() > 5 { datagram[1..5].copy_from_slice(&version.to_be_bytes()); }
            if first & 2 == 0 && datagram.len() > 6 { datagram[5] %= 21; }
            server.route(0, CLIENT, &datagram);
        }
        prop_assert_eq!(server.endpoint.routes.entries(), 0);
    }

    /// The same with an Initial of which a few bytes are changed, a Retry token in it.
    #[test]
    fn mutated_initials_do_no_harm(changes in prop::collection::vec((0..200_usize, any::<u8>()), 0..6), cut in 0..1_201_usize) {
        let mut server = Server::new(EndpointConfig { retry: RetryPolicy::Always, ..EndpointConfig::default() });
        let (retry_scid, token) = server.retry(0, CLIENT, DCID);
        let mut datagram = initial(retry_scid.as_slice(), &token);
        for (index, byte) in changes { datagram[index] = byte; }
        if cut % 3 == 0 { datagram.truncate(cut); }
        server.route(0, CLIENT, &datagram);
        prop_assert_eq!(server.endpoint.routes.entries(), 0);
    }

    /// CVE-2024-45311 (quinn): accept, retry, refuse and ignore in any order, with copies of every Initial, against a model.
    #[test]
    fn clients_come_and_go_in_any_order(actions in prop::collection::vec((0..8_u8, 0..6_u64), 1..200)) {
        let mut server = Server::new(EndpointConfig { retry: RetryPolicy::Never, max_half_open: 4, ..EndpointConfig::default() });
        // What an honest embedder knows: which client has which connection.
        let mut alive: Vec<(u64, Handle, bool)> = Vec::new();
        for (action, n) in actions {
            let dcid = [n as u8; 10];
            let known = alive.iter().position(|entry| entry.0 == n);
            match (action, server.route(0, CLIENT, &initial(&dcid, &[]))) {
                (_, Route::Connection(handle)) => {
                    prop_assert_eq!(known.map(|at| alive[at].1), Some(handle));
                    match (action, known) {
                        (5, Some(at)) => { server.endpoint.on_established(handle); alive[at].2 = true; }
                        (6 | 7, Some(at)) => { server.close(handle); alive.remove(at); }
                        _ => {}
                    }
                }
                (0..4, Route::Incoming(incoming)) => {
                    prop_assert!(known.is_none());
                    let handle = server.accept(incoming);
                    alive.push((n, handle, false));
                }
                (_, Route::Incoming(_)) => prop_assert!(known.is_none()),
                (_, Route::Drop(DropReason::HalfOpenLimit)) => prop_assert!(known.is_none()),
                (_, Route::Reply) => {}
                (_, other) => prop_assert!(false, "{other:?}"),
            }
            if action == 4 {
                let policy = if n % 2 == 0 { IncomingPolicy::Refuse } else { IncomingPolicy::Accept };
                server.endpoint.set_incoming(policy);
                server.endpoint.config.retry = if n == 3 { RetryPolicy::Always } else { RetryPolicy::Never };
            }
            if server.endpoint.config.incoming == IncomingPolicy::Refuse { server.endpoint.limits = Limits::new(&EndpointConfig::default(), &mut Rng::from_u64(n)); }
            prop_assert_eq!(server.endpoint.half_open(), alive.iter().filter(|entry| !entry.2).count());
            prop_assert!(server.endpoint.half_open() <= 4);
            prop_assert_eq!(server.endpoint.routes.entries(), 2 * alive.len());
        }
    }
}
