//! Datagrams of connections that a process has whose place this one has taken.

use super::*;

/// Worker 1 of 2, of the process of this generation, whose predecessors are of `generations`.
fn server(generation: u8, generations: Vec<u8>, handshakes: Vec<(ConnectionId, Predecessor)>) -> Server {
    let predecessors = Arc::new(Predecessors::new(generations, handshakes));
    Server::new(EndpointConfig {
        worker: 1,
        workers: 2,
        generation,
        predecessors,
        reset_key: Some([7; 32]),
        ..EndpointConfig::default()
    })
}

/// Deleted, an upgrade would reset the connections of the process before, or keep its clients from its workers.
#[test]
fn short_headers_go_to_the_process_that_issued_their_connection_id() {
    let mut old = server(3, Vec::new(), Vec::new());
    let first = incoming(old.route(0, CLIENT, &initial(DCID, &[])));
    let theirs = old.accept(first);
    let theirs = old.connections.entry(theirs).unwrap().first();
    let mut new = server(4, vec![3], Vec::new());
    for datagram in [
        short(theirs.as_slice(), 60),
        long(LongType::Handshake, Version::V1, theirs.as_slice(), &[]),
        long(LongType::Handshake, Version::V2, theirs.as_slice(), &[]),
    ] {
        // Not by its source port either: the other process may know the client well.
        for peer in [CLIENT, "10.0.0.1:53"] {
            let expected = Route::Predecessor(Predecessor { generation: 3, worker: 1 });
            assert_eq!(new.route(0, peer, &datagram), expected);
        }
    }
    // Those of the other worker go there directly.
    let other = [7, 7, 7, 2 * 3, 7, 7, 7, 7];
    let expected = Route::Predecessor(Predecessor { generation: 3, worker: 0 });
    assert_eq!(new.route(0, CLIENT, &short(&other, 60)), expected);
    // Its own, and those of no process that is known, are judged here: the other worker has them, or they are reset.
    let own = [7, 7, 7, 2 * 4, 7, 7, 7, 7];
    assert_eq!(new.route(0, CLIENT, &short(&own, 60)), Route::Elsewhere(0));
    let unknown = [7, 7, 7, 2 * 5 + 1, 7, 7, 7, 7];
    assert_eq!(new.route(0, CLIENT, &short(&unknown, 60)), Route::Reply);
    assert_eq!(new.endpoint.counters().elsewhere, 8);
}

#[test]
fn handshakes_under_way_end_where_they_began() {
    let mut old = server(0, Vec::new(), Vec::new());
    let [pending, complete] = [&b"dcid-one"[..], b"dcid-other"].map(|dcid| {
        let first = incoming(old.route(0, CLIENT, &initial(dcid, &[])));
        old.accept(first)
    });
    old.endpoint.on_established(complete, Version::V1, Version::V1);
    let ours = old.connections.entry(pending).unwrap().first();
    let listed = old.endpoint.handshakes();
    assert_eq!(listed, [cid(b"dcid-one"), ours], "those of the handshake that is not complete");
    let at = Predecessor { generation: 0, worker: 1 };
    let mut new = server(1, vec![0], listed.into_iter().map(|cid| (cid, at)).collect());
    for ty in [LongType::Initial, LongType::ZeroRtt] {
        for dcid in [&b"dcid-one"[..], ours.as_slice()] {
            assert_eq!(new.route(0, CLIENT, &long(ty, Version::V1, dcid, &[])), Route::Predecessor(at));
        }
    }
    // Whatever a client makes up for a new connection is no other process's, even where the byte of the generation says so. What the
    // other worker of this process may have issued goes there.
    for byte in 0..=255 {
        let route = new.route(0, CLIENT, &initial(&[0xe7, 7, 7, byte, 7, 7, 7, 7], &[]));
        assert!(matches!(route, Route::Incoming(_)) || (byte, route) == (2, Route::Elsewhere(0)), "{byte}");
    }
    // Version Negotiation answers each client that asks.
    let mut unknown = initial(DCID, &[]);
    unknown[1..5].copy_from_slice(&0x1a2a_3a4a_u32.to_be_bytes());
    assert_eq!(new.route(0, CLIENT, &unknown), Route::Reply);
}

/// Deleted, datagrams could circulate between two processes, or clients of one that has ended would hear nothing.
#[test]
fn what_was_handed_over_is_judged_here() {
    let at = Predecessor { generation: 0, worker: 1 };
    let mut new = server(1, vec![0], vec![(cid(DCID), at)]);
    let mut judge = |datagram: &[u8]| {
        let mut bytes = datagram.to_vec();
        let segment_size = bytes.len();
        let train = Train { bytes: &mut bytes, segment_size, addresses: from(CLIENT), ecn: Ecn::NotEct };
        new.endpoint.route_handed_over(super::at(0), &train)
    };
    assert_eq!(judge(&short(&[7, 7, 7, 1, 7, 7, 7, 7], 60)), Route::Reply, "a stateless reset");
    let first = incoming(judge(&initial(DCID, &[])));
    let handle = new.accept(first);
    let mut bytes = initial(DCID, &[]);
    let train =
        Train { segment_size: bytes.len(), bytes: &mut bytes, addresses: from(CLIENT), ecn: Ecn::NotEct };
    assert_eq!(new.endpoint.route_handed_over(super::at(0), &train), Route::Connection(handle));
}
