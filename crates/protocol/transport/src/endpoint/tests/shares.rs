//! One address, or one network, against all others: half-open handshakes, handshakes begun, connections.

use super::*;

/// Begins handshakes from `peer` until one is refused, at most `most`; returns their connections.
fn flood(server: &mut Server, ms: u64, peer: &str, most: u64) -> Vec<Handle> {
    let mut handles = Vec::new();
    for _ in 0..most {
        let dcid = server.endpoint.rng.next_u64().to_be_bytes();
        match server.route(ms, peer, &initial(&dcid, &[])) {
            Route::Incoming(incoming) => {
                server.endpoint.admit(at(ms), server.connections.next_handle(), &incoming);
                let cids = server.endpoint.local_cids();
                handles.push(server.connections.insert(cids));
            }
            _ => break,
        }
    }
    handles
}

fn server(max_half_open: usize) -> Server {
    Server::new(EndpointConfig { retry: RetryPolicy::Never, max_half_open, ..EndpointConfig::default() })
}

/// With 1,500 handshakes a second from one address, which had passed Retry, good clients waited 7.55 s.
#[test]
fn one_address_or_network_leaves_room_for_the_handshakes_of_others() {
    let mut server = server(300);
    let greedy = flood(&mut server, 0, "203.0.113.1:1", 10_000);
    assert_eq!(greedy.len(), 176, "alone it gets most of the places");
    assert_eq!(server.dropped(DropReason::HandshakeShare), 1);
    for host in 2..20 {
        let neighbour = flood(&mut server, 0, &format!("203.0.113.{host}:1"), 1);
        assert_eq!(neighbour.len(), 1, "another address of the same network");
    }
    for network in 0..40 {
        let newcomer = flood(&mut server, 0, &format!("10.0.{network}.1:1"), 1);
        assert_eq!(newcomer.len(), 1, "another network");
    }
    // It gets no more while others want some, and less than before when its own are over.
    assert!(flood(&mut server, 0, "203.0.113.1:1", 1).is_empty());
    greedy.into_iter().for_each(|handle| server.close(handle));
    assert!(flood(&mut server, 0, "203.0.113.1:2", 1_000).len() < 170);
}

#[test]
fn many_addresses_of_one_network_or_many_networks_leave_room_too() {
    let mut server = server(300);
    let flooded: usize =
        (0..=255).map(|host| flood(&mut server, 0, &format!("203.0.113.{host}:1"), 100).len()).sum();
    assert_eq!(flooded, 211, "one /24");
    let mut server = self::server(300);
    for site in 0..10 {
        assert!(flood(&mut server, 0, &format!("10.0.{site}.1:1"), 300).len() >= 4, "{site}");
    }
    assert_eq!(flood(&mut server, 0, "192.0.2.1:1", 1).len(), 1);
    let mut server = self::server(300);
    let v6 = |site: u64, host: u64| format!("[2001:db8:{site}:{host}::1]:1");
    let flooded: usize = (0..300).map(|host| flood(&mut server, 0, &v6(1, host), 300).len()).sum();
    assert_eq!(flooded, 211, "one /48");
    assert_eq!(flood(&mut server, 0, &v6(2, 1), 1).len(), 1);
}

#[test]
fn connections_are_limited_in_all_by_address_and_by_network_and_told_so() {
    let limits = EndpointConfig {
        retry: RetryPolicy::Never,
        max_connections: 12,
        max_connections_per_address: 4,
        max_connections_per_prefix: 8,
        ..EndpointConfig::default()
    };
    let mut server = Server::new(limits);
    let mut handles = Vec::new();
    for (peer, expected) in [
        ("203.0.113.1:1", 4),
        ("203.0.113.2:1", 4),
        ("203.0.113.3:1", 0),
        ("198.51.100.1:1", 4),
        ("192.0.2.1:1", 0),
    ] {
        let begun = flood(&mut server, 0, peer, 6);
        assert_eq!(begun.len(), expected, "{peer}");
        // Those that are complete count as well.
        begun.iter().for_each(|handle| server.endpoint.on_established(*handle, Version::V1, Version::V1));
        handles.extend(begun);
    }
    assert_eq!(server.route(0, "192.0.2.1:1", &initial(DCID, &[])), Route::Reply);
    let mut reply = server.endpoint.reply().to_vec();
    let close = open_initial(&mut reply, DCID);
    let told = Frame::parse_next(&mut Reader::new(&close)).expect("a frame");
    let Frame::ConnectionClose(ConnectionClose::Transport { code, .. }) = told else { panic!("{told:?}") };
    assert_eq!(code, Code::CONNECTION_REFUSED);
    let counters = *server.endpoint.counters();
    assert_eq!((counters.refused_connections, counters.refusals), (6, 6));
    // Room comes back with every end, and nothing is remembered of clients that are gone.
    server.close(handles[0]);
    assert_eq!(flood(&mut server, 1_000, "192.0.2.1:1", 6).len(), 1);
    handles.into_iter().for_each(|handle| server.close(handle));
    assert_eq!(server.endpoint.routes.shares.networks(), 2, "one connection");
}

/// Where handshakes make turns long, those of one address wait, and others do not.
#[test]
fn one_address_that_keeps_the_worker_busy_begins_a_few_handshakes_at_a_time() {
    let turn = Duration::from_millis(20);
    let mut server = server(100_000);
    let begun = |server: &mut Server, ms: u64, peer: &str| {
        let handles = flood(server, ms, peer, 100);
        handles.iter().for_each(|handle| server.endpoint.on_established(*handle, Version::V1, Version::V1));
        handles.len()
    };
    // Alone it is not limited, however long its handshakes take.
    assert_eq!(begun(&mut server, 0, "203.0.113.1:1"), 100);
    server.endpoint.on_turn(at(20), turn);
    assert_eq!(begun(&mut server, 20, "203.0.113.1:1"), 100);
    server.endpoint.on_turn(at(40), turn);
    assert_eq!(begun(&mut server, 40, "198.51.100.1:1"), 4, "a few, as everybody");
    assert_eq!(begun(&mut server, 40, "203.0.113.1:1"), 0, "it has had its own");
    assert_eq!(begun(&mut server, 40, "192.0.2.1:1"), 4);
    server.endpoint.on_turn(at(60), Duration::from_millis(3));
    assert_eq!(begun(&mut server, 160, "203.0.113.1:2"), 4, "a few in each tenth of a second");
    // Short turns end it, and so do long ones without handshakes.
    server.endpoint.on_turn(at(300), Duration::from_millis(3));
    server.endpoint.on_turn(at(320), turn);
    assert_eq!(begun(&mut server, 320, "203.0.113.1:3"), 100);
}

/// Deleted, one address could have all signatures that other threads make: no turn of the worker is long then.
#[test]
fn handshakes_that_wait_for_others_limit_who_begins_many() {
    let mut server = server(100_000);
    assert_eq!(flood(&mut server, 0, "203.0.113.1:1", 100).len(), 100);
    server.endpoint.on_delayed_handshakes(at(10));
    assert_eq!(flood(&mut server, 20, "198.51.100.1:1", 100).len(), 4, "a few, as everybody");
    assert_eq!(flood(&mut server, 20, "203.0.113.1:1", 100).len(), 0, "it has had its own");
    assert_eq!(flood(&mut server, 20, "192.0.2.1:1", 100).len(), 4);
    assert!(flood(&mut server, 320, "203.0.113.1:2", 100).len() > 50, "the line is gone");
}
