//! Properties over arbitrary input.

use super::*;

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
                        (5, Some(at)) => { server.endpoint.on_established(handle, Version::V1, Version::V1); alive[at].2 = true; }
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
                (_, Route::Drop(DropReason::HalfOpenLimit | DropReason::HandshakeShare)) => prop_assert!(known.is_none()),
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
