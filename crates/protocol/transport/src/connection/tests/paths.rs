//! Paths besides the active one, and paths that are lost.

use super::*;

fn elsewhere() -> Addresses {
    Addresses { peer: ([127, 0, 0, 9], 9).into(), ..addresses(2, 1) }
}

/// What is in flight on the active path would else count as the window's use on the other one, and as its delivery rate.
#[test]
fn a_probe_on_another_path_tells_its_controller_nothing() {
    for congestion in [crate::Algorithm::Cubic, crate::Algorithm::Bbr] {
        let transport = TransportConfig { congestion, ..TransportConfig::default() };
        let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
        pair.run(10);
        let id = pair.server().open(Dir::Uni).expect("stream");
        pair.server().write(id, Bytes::from(vec![1; 1_000_000])).expect("writes");
        let now = pair.now;
        assert!(!pair.server.send(now).is_empty());
        let paths = &mut pair.server().paths;
        let other = paths.on_datagram(now, elsewhere(), 1_200).expect("a client may move");
        paths.on_path_challenge(now, other, [7; 8]);
        let state = |pair: &mut Pair| {
            let path = pair.server().paths.path(other).expect("was challenged");
            (format!("{:?}", path.congestion), path.amplification())
        };
        let before = state(&mut pair);
        assert!(pair.server().spaces.in_flight_bytes() > 10_000);
        assert_eq!(pair.server.send(now).len(), 1, "the response");
        let after = state(&mut pair);
        assert_eq!(after.0, before.0);
        assert_eq!(after.1, before.1 - 1_200, "but it counts towards the threefold limit");
    }
}

impl Pair {
    /// The client is at another address from now on, and the old one leads nowhere: one step of the wire.
    fn step_elsewhere(&mut self) {
        self.now = self.now + Duration::from_millis(1);
        let now = self.now;
        for datagram in self.client.send(now) {
            self.deliver_from(elsewhere(), datagram);
        }
        let mut wire = Wire::default();
        let End { connection, events, .. } = &mut self.server;
        let connection = connection.as_mut().expect("server");
        if connection.next_timeout().is_some_and(|at| at <= now) {
            connection.on_timeout(now);
        }
        connection.transmit(now, &mut wire);
        events.extend(core::iter::from_fn(|| connection.next_event()));
        let reaches = connection.paths.active().addresses == elsewhere();
        for datagram in wire.datagrams.into_iter().filter(|_| reaches) {
            self.client.receive(now, datagram, None);
        }
    }

    fn deliver_from(&mut self, addresses: Addresses, mut datagram: Vec<u8>) {
        let segment_size = datagram.len();
        let train = Train { bytes: &mut datagram, segment_size, addresses, ecn: Ecn::Ect0 };
        let (now, End { connection, sink, .. }) = (self.now, &mut self.server);
        connection.as_mut().expect("server").receive(now, train, sink);
    }
}

/// After how many flights of the client its address changes: none of the server's flight has arrived, or all of it has.
#[test]
fn a_client_whose_address_changes_in_the_handshake_completes_it() {
    for arrived in [false, true] {
        let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
        let now = pair.now;
        let config = pair.config.clone();
        pair.client
            .send(now)
            .into_iter()
            .for_each(|datagram| pair.server.receive(now, datagram, Some(&config)));
        let flight = pair.server.send(now);
        if arrived {
            flight.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
        }
        let began = pair.now;
        let connected = |pair: &Pair| pair.server.events.contains(&Event::Connected);
        while !(connected(&pair) && pair.client().is_confirmed()) {
            pair.step_elsewhere();
            assert!(pair.now < began + Duration::from_secs(3), "arrived: {arrived}");
        }
        (0..50).for_each(|_| pair.step_elsewhere());
        let path = pair.server().paths.active();
        assert!(path.addresses == elsewhere() && path.is_validated(), "arrived: {arrived}");
    }
}

/// It was told as silence, though the peer may have been heard of all the time.
#[test]
fn a_peer_that_does_not_answer_at_its_only_address_is_lost_and_not_idle() {
    let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    pair.step();
    // The end of the handshake comes from elsewhere, where no peer answers a challenge.
    let now = pair.now;
    pair.client.send(now).into_iter().for_each(|datagram| pair.deliver_from(elsewhere(), datagram));
    for _ in 0..100 {
        pair.now = pair.now + Duration::from_millis(200);
        pair.server.send(pair.now);
    }
    assert!(pair.server.events.contains(&Event::Closed(CloseReason::PathLost)), "{:?}", pair.server.events);
}
