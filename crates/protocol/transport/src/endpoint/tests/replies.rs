//! What is answered without a connection, how large it is, and how often.

use super::*;

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
                assert!(
                    len > 42 || reply.len() == len - 1,
                    "RFC 9000 §10.3: one byte less than a short cause"
                );
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
    let mut server = Server::new(EndpointConfig { worker: 2, workers: 3, ..EndpointConfig::default() });
    for byte in 0..=255_u8 {
        let expected = match byte % 3 {
            2 => None,
            other => Some(Route::Elsewhere(other)),
        };
        let dcid = [7, 7, 7, byte, 7, 7, 7, 7];
        let peer = format!("10.0.{byte}.1:9");
        assert_eq!(server.route(0, &peer, &short(&dcid, 60)), expected.unwrap_or(Route::Reply));
        let handshake = long(LongType::Handshake, Version::V1, &dcid, &[]);
        let unexpected = Route::Drop(DropReason::Unexpected);
        assert_eq!(server.route(0, &peer, &handshake), expected.unwrap_or(unexpected));
        // Not by its source port either: the other worker may know the client well.
        assert_eq!(expected, expected.map(|_| server.route(0, "10.0.0.1:53", &short(&dcid, 60))));
        // What a client made up stays where it came in: no ID of ours begins with 7.
        assert!(matches!(server.route(0, &peer, &initial(&dcid, &[])), Route::Incoming(_)));
        let early = long(LongType::ZeroRtt, Version::V1, &dcid, &[]);
        assert_eq!(server.route(0, &peer, &early), Route::Drop(DropReason::Unexpected));
    }
    assert_eq!(server.endpoint.counters().elsewhere, 3 * (256 - 85));
    assert_eq!(server.endpoint.counters().stateless_resets, 85);
}

/// Deleted, a client that has heard of one worker begins a connection at another one, in vain, with every packet of its handshake.
#[test]
fn first_packets_go_to_the_worker_that_issued_their_connection_id() {
    let config = EndpointConfig { worker: 2, workers: 3, generation: 4, ..EndpointConfig::default() };
    let mut server = Server::new(config);
    for byte in 0..=255_u8 {
        let elsewhere = match byte {
            12 | 13 => Some(Route::Elsewhere(byte % 3)),
            _ => None,
        };
        let dcid = [0xe7, 7, 7, byte, 7, 7, 7, 7];
        let peer = format!("10.0.{byte}.1:9");
        let first = server.route(0, &peer, &initial(&dcid, &[]));
        assert!(elsewhere.map_or(matches!(first, Route::Incoming(_)), |route| route == first), "{byte}");
        let early = server.route(0, &peer, &long(LongType::ZeroRtt, Version::V1, &dcid, &[]));
        assert_eq!(early, elsewhere.unwrap_or(Route::Drop(DropReason::Unexpected)), "{byte}");
    }
    assert_eq!(server.endpoint.counters().elsewhere, 4);
}

/// The byte is the one that steering programs look at, in IDs of any length.
#[test]
fn first_packets_at_a_shared_socket_go_to_the_worker_that_their_connection_id_names() {
    let mut server = Server::new(EndpointConfig { worker: 2, workers: 3, ..EndpointConfig::default() });
    server.endpoint.set_shared(true);
    for byte in 0..=255_u8 {
        for dcid in [vec![7, 7, 7, byte, 7, 7, 7, 7], [vec![9, 9, 9, byte], vec![9; 16]].concat()] {
            let first = server.route(0, CLIENT, &initial(&dcid, &[]));
            match byte % 3 {
                2 => assert!(matches!(first, Route::Incoming(_)), "{first:?}"),
                other => assert_eq!(first, Route::Elsewhere(other)),
            }
        }
    }
    server.endpoint.set_shared(false);
    assert!(matches!(server.route(0, CLIENT, &initial(&[7; 8], &[])), Route::Incoming(_)));
}

/// Servers that share a reset key could else be made to end each other's connections.
#[test]
fn another_servers_connections_are_not_reset() {
    let config = EndpointConfig { server_id: Some([1, 2]), config_rotation: 3, ..EndpointConfig::default() };
    let mut server = Server::new(config);
    let dcid = [3 << 5 | 7, 1, 3, 0, 9, 9, 9, 9];
    assert_eq!(server.route(0, CLIENT, &short(&dcid, 60)), Route::Drop(DropReason::OtherServer));
    let ours = server.endpoint.local_cids().first();
    assert_eq!(ours.as_slice()[..4], [3 << 5 | 7, 1, 2, 0]);
    assert_eq!(server.route(0, CLIENT, &short(ours.as_slice(), 60)), Route::Reply);
}

#[test]
fn answers_are_limited_by_peer_and_in_all() {
    let mut server = Server::default();
    let datagram = short(&[0; 8], 60);
    let answered =
        |server: &mut Server, ms: u64, peer: &str| server.route(ms, peer, &datagram) == Route::Reply;
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
            matches!(
                server.route(0, &format!("198.51.100.1:{port}"), &initial(DCID, &[])),
                Route::Incoming(_)
            )
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
    let mut server =
        Server::new(EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() });
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
