//! Retry, NEW_TOKEN, and the limits on half-open connections.

use super::*;

#[test]
fn retry_proves_the_address() {
    let mut server = Server::new(EndpointConfig { retry: RetryPolicy::Always, ..EndpointConfig::default() });
    let (retry_scid, token) = server.retry(0, CLIENT, DCID);
    assert_eq!(server.endpoint.routes.entries(), 0, "nothing is kept");
    let again = incoming(server.route(50, CLIENT, &initial(retry_scid.as_slice(), &token)));
    assert!(again.is_validated());
    assert_eq!(
        (again.original_dcid, again.retry_scid, again.dcid),
        (cid(DCID), Some(retry_scid), retry_scid)
    );
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
        let Ok(Frame::ConnectionClose(ConnectionClose::Transport { code, .. })) =
            Frame::parse_next(&mut reader)
        else {
            panic!("no close in {close:?}")
        };
        assert_eq!(code, Code::INVALID_TOKEN);
        assert!(reader.is_empty());
    }
    assert_eq!(server.endpoint.counters().refusals, 4);
    assert!(matches!(
        server.route(15_000, CLIENT, &initial(retry_scid.as_slice(), &token)),
        Route::Incoming(_)
    ));
}

/// CVE-2026-44894, CVE-2026-26081, CVE-2026-42764: whatever is not ours proves nothing and breaks nothing.
#[test]
fn foreign_tokens_count_as_none() {
    let mut server = Server::new(EndpointConfig { retry: RetryPolicy::Never, ..EndpointConfig::default() });
    let mut strict = Server::new(EndpointConfig { retry: RetryPolicy::Always, ..EndpointConfig::default() });
    let mut foreign = Endpoint::new(EndpointConfig::default(), [4; 32]);
    let mut tokens = vec![foreign.new_token(at(0), from(CLIENT)).to_vec()];
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
    assert_ne!(
        token,
        server.endpoint.new_token(at(0), from(CLIENT)),
        "RFC 9000 §8.1.3: every token is unique"
    );
    let day = 24 * 3_600_000;
    let other_port = "198.51.100.1:4711";
    for (ms, peer, good) in [
        (day + 1, CLIENT, false),
        (0, "198.51.100.2:1000", false),
        (0, CLIENT, true),
        (day, other_port, true),
    ] {
        let token = server.endpoint.new_token(at(0), from(CLIENT));
        let route = server.route(ms, peer, &initial(DCID, &token));
        assert_eq!(
            matches!(route, Route::Incoming(incoming) if incoming.is_validated()),
            good,
            "{ms} {peer}"
        );
        assert_eq!(route == Route::Reply, !good);
    }
    // Another process with the same key and a clock of its own.
    let key = EndpointConfig { token_key: Some([5; 32]), ..EndpointConfig::default() };
    for (hours, good) in [(23, true), (25, false)] {
        let token = Endpoint::new(key.clone(), [1; 32]).new_token(at(0), from(CLIENT));
        let config = EndpointConfig { clock_offset: Duration::from_secs(hours * 3_600), ..key.clone() };
        let route = Server::new(config).route(0, CLIENT, &initial(DCID, &token));
        assert_eq!(incoming(route).is_validated(), good);
    }
}

/// RFC 9000 §8.1.4: a token that was seen on the wire, or given away, spares no other client a second Retry, whichever worker it reaches.
#[test]
fn a_new_token_counts_once_among_all_workers() {
    let config = EndpointConfig {
        retry: RetryPolicy::Always,
        token_key: Some([5; 32]),
        workers: 2,
        ..EndpointConfig::default()
    };
    let mut workers = [0, 1].map(|worker| Server::new(EndpointConfig { worker, ..config.clone() }));
    let token = workers[0].endpoint.new_token(at(0), from(CLIENT));
    assert!(incoming(workers[1].route(0, CLIENT, &initial(DCID, &token))).is_validated());
    for worker in &mut workers {
        assert_eq!(worker.route(1, CLIENT, &initial(b"another one", &token)), Route::Reply, "a Retry");
    }
    // What the first packet of a connection is dropped for does not use its token up.
    let full = EndpointConfig { max_half_open: 0, ..config.clone() };
    let token = workers[0].endpoint.new_token(at(0), from(CLIENT));
    let dropped = Server::new(full).route(0, CLIENT, &initial(DCID, &token));
    assert_eq!(dropped, Route::Drop(DropReason::HalfOpenLimit));
    assert!(incoming(workers[0].route(0, CLIENT, &initial(DCID, &token))).is_validated());
}

/// An address of a network of its own.
fn distant(n: u64) -> String {
    format!("10.{n}.0.1:1000")
}

#[test]
fn retry_begins_above_the_threshold_and_the_cap_holds() {
    let config =
        EndpointConfig { retry: RetryPolicy::Above(10), max_half_open: 20, ..EndpointConfig::default() };
    let mut server = Server::new(config);
    let mut handles = Vec::new();
    for n in 0..10_u64 {
        let first = incoming(server.route(0, &distant(n), &initial(&n.to_be_bytes(), &[])));
        handles.push(server.accept(first));
    }
    for n in 10..20_u64 {
        let (retry_scid, token) = server.retry(0, &distant(n), &n.to_be_bytes());
        let first = incoming(server.route(0, &distant(n), &initial(retry_scid.as_slice(), &token)));
        handles.push(server.accept(first));
    }
    assert_eq!(server.endpoint.half_open(), 20);
    assert_eq!(server.route(0, CLIENT, &initial(b"one-more", &[])), Route::Drop(DropReason::HalfOpenLimit));
    server.endpoint.on_established(handles[0], Version::V1, Version::V1);
    server.close(handles[1]);
    assert_eq!(server.endpoint.half_open(), 18);
    assert_eq!(server.route(0, CLIENT, &initial(b"one-more", &[])), Route::Reply);
    (2..20).for_each(|index| server.close(handles[index]));
    assert_eq!(server.endpoint.half_open(), 0);
    assert!(matches!(server.route(0, CLIENT, &initial(b"one-more", &[])), Route::Incoming(_)));
}
