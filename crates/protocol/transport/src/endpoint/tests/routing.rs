//! Which datagrams reach which connection, and which reach none.

use super::*;

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
    for datagram in [
        short(ours.as_slice(), 40),
        long(LongType::Handshake, Version::V1, ours.as_slice(), &[]),
        short(ours.as_slice(), 9),
    ] {
        assert_eq!(server.route(0, CLIENT, &datagram), Route::Connection(handle));
    }
    server.endpoint.on_established(handle, Version::V1, Version::V1);
    server.endpoint.on_established(handle, Version::V1, Version::V1);
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

/// Issue 10, section 4: memory was not returned after a peak.
#[test]
fn the_tables_give_memory_back_after_a_peak() {
    let mut server = Server::default();
    let mut slab = Slab::new();
    let numbers = 0..20_000_u64;
    let held: Vec<_> = numbers.map(|number| (slab.insert(()), cid(&number.to_be_bytes()))).collect();
    for (handle, cid) in &held {
        server.endpoint.register(*handle, CidChange::Added(*cid));
    }
    assert!(server.endpoint.routes.capacity() >= held.len());
    let (gone, left) = held.split_at(held.len() - 100);
    gone.iter().for_each(|(handle, _)| server.endpoint.forget(*handle));
    let capacity = server.endpoint.routes.capacity();
    assert!(capacity < 2_500, "room for {capacity} entries");
    for (handle, cid) in left {
        assert_eq!(server.route(0, CLIENT, &short(cid.as_slice(), 40)), Route::Connection(*handle));
    }
}

/// With a server ID 32 bits of an ID are left to chance: IDs do meet.
#[test]
fn an_id_that_is_taken_does_not_take_over() {
    let mut server = Server::default();
    let [one, other] = [&b"dcid-one"[..], b"dcid-other"].map(|dcid| {
        let first = incoming(server.route(0, CLIENT, &initial(dcid, &[])));
        server.accept(first)
    });
    let ours = server.connections.entry(one).unwrap().first();
    assert_eq!(server.endpoint.register(other, CidChange::Added(ours)), Registration::Taken);
    assert_eq!(server.endpoint.register(other, CidChange::Added(cid(b"dcid-one"))), Registration::Taken);
    let datagram = short(ours.as_slice(), 60);
    assert_eq!(server.route(0, CLIENT, &datagram), Route::Connection(one));
    // Nor does the newer connection take the ID along when it goes.
    assert_eq!(server.endpoint.register(other, CidChange::Removed(ours)), Registration::Done);
    server.close(other);
    assert_eq!(server.route(0, CLIENT, &datagram), Route::Connection(one));
    assert_eq!(server.route(0, CLIENT, &initial(b"dcid-one", &[])), Route::Connection(one));
    // The first ID of a connection, and that of a Retry, are looked up before they are given out.
    let twin = |server: &mut Server| {
        let layout = EndpointConfig::default().cid_layout();
        let key = Arc::new(StatelessResetKey::new([0; 32]));
        server.endpoint.cids = CidGenerator::new(layout, Rng::from_u64(5), key);
    };
    twin(&mut server);
    let next = server.endpoint.local_cids().first();
    server.endpoint.register(one, CidChange::Added(next));
    twin(&mut server);
    assert_ne!(server.endpoint.local_cids().first(), next);
    twin(&mut server);
    let next = server.endpoint.fresh_cid();
    server.endpoint.register(one, CidChange::Added(next));
    twin(&mut server);
    assert_ne!(server.endpoint.fresh_cid(), next);
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
    wire::packet::write_version_negotiation(
        &mut Writer::new(&mut negotiation),
        0,
        DCID,
        DCID,
        &[Version(5); 290],
    );
    negotiation.truncate(7 + 22 + 4 * 290);
    assert!(matches!(Packet::parse(&negotiation, 8), Ok(Packet::VersionNegotiation { .. })));
    assert_eq!(server.route(0, CLIENT, &negotiation), Route::Drop(DropReason::Unexpected));
}

#[test]
fn both_versions_are_served() {
    let mut server = Server::default();
    for version in Version::SUPPORTED {
        let route = server.route(0, CLIENT, &long(LongType::Initial, version, DCID, &[]));
        assert_eq!(incoming(route).version(), version);
        let mut strict =
            Server::new(EndpointConfig { retry: RetryPolicy::Always, ..EndpointConfig::default() });
        assert_eq!(strict.route(0, CLIENT, &long(LongType::Initial, version, DCID, &[])), Route::Reply);
        assert!(RetryIntegrity::verify(version, DCID, strict.endpoint.reply()));
    }
}

/// Initials by the hundred thousand: nothing grows (CVE-2025-54939, CVE-2026-14456).
#[test]
fn unknown_peers_leave_nothing_behind() {
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
fn a_train_is_split_where_the_destination_changes() {
    let datagrams = [
        short(&[1; 8], 100),
        short(&[1; 8], 100),
        long(LongType::Handshake, Version::V1, &[1; 8], &[])[..100].to_vec(),
        short(&[2; 8], 100),
        short(&[2; 8], 30),
    ];
    let mut bytes = datagrams.concat();
    let mut rest =
        Some(Train { bytes: &mut bytes, segment_size: 100, addresses: from(CLIENT), ecn: Ecn::Ect0 });
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
