//! Packets that only acknowledge leave whatever congestion control and pacing say, so neither may count them.

use super::*;

/// A server that acknowledges each packet of its client at once.
fn connected() -> Pair {
    let transport = TransportConfig { ack_every: 1, ..TransportConfig::default() };
    Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never)
}

impl Pair {
    /// The client sends a byte, the server answers, all within an instant. Returns the answer.
    fn ask(&mut self, id: StreamId) -> Vec<Vec<u8>> {
        self.client().write(id, Bytes::from_static(b"x")).expect("writes");
        let now = self.now;
        for datagram in self.client.send(now) {
            self.server.receive(now, datagram, Some(&self.config));
        }
        self.server.send(now)
    }

    /// The same, and the answer arrives.
    fn nudge(&mut self, id: StreamId) {
        let now = self.now;
        self.ask(id).into_iter().for_each(|datagram| self.client.receive(now, datagram, None));
    }
}

/// RFC 9002 §7: no more than the window is in flight. A PING along with every sixty-fourth acknowledgement would be.
#[test]
fn acknowledgements_ask_for_none_while_the_window_is_full() {
    let mut pair = connected();
    let up = pair.client().open(Dir::Uni).expect("stream");
    let down = pair.server().open(Dir::Uni).expect("stream");
    pair.server().write(down, Bytes::from(vec![1; 1_000_000])).expect("writes");
    // The window leaves, and none of it arrives.
    for _ in 0..100 {
        let now = pair.now;
        pair.server.send(now);
        pair.now = now + Duration::from_micros(10);
    }
    pair.ask(up); // which may say what the client had not acknowledged yet
    let full = pair.server().spaces.in_flight_bytes();
    assert!(full + 1_452 > pair.server().paths.active().congestion.window(), "{full}");
    for round in 0..200 {
        assert_eq!(pair.ask(up).len(), 1, "round {round}");
        assert_eq!(pair.server().spaces.in_flight_bytes(), full, "round {round}");
    }
}

/// With room in the window the peer is asked now and then, and its answer lets the server forget what it has reported.
#[test]
fn acknowledgements_ask_for_one_now_and_then_where_the_window_has_room() {
    let mut pair = connected();
    let up = pair.client().open(Dir::Uni).expect("stream");
    pair.run(20);
    let asked = (0..200)
        .filter(|_| {
            let before = pair.server().spaces.application.ledger.last_ack_eliciting_at();
            pair.now = pair.now + Duration::from_micros(10);
            pair.nudge(up);
            pair.server().spaces.application.ledger.last_ack_eliciting_at() != before
        })
        .count();
    assert!((2..=6).contains(&asked), "{asked} of 200");
}

/// Or else a server that mostly listens would have no tokens when it has something to say.
#[test]
fn acknowledgements_cost_the_pacer_nothing() {
    let mut pair = connected();
    let up = pair.client().open(Dir::Uni).expect("stream");
    pair.run(20);
    pair.nudge(up);
    let now = pair.now;
    let rate = recovery::rate::Rate::new(10_000_000, Duration::from_secs(1), 1.0);
    pair.server().paths.active_mut().pacer.set_rate(rate, 1_200);
    let before = pair.server().paths.active_mut().pacer.allowance(now);
    assert!(before < 1_000_000, "the path is paced: {before}");
    for _ in 0..40 {
        assert!(!pair.ask(up).is_empty(), "it acknowledges");
    }
    assert_eq!(pair.server().paths.active_mut().pacer.allowance(now), before);
}
