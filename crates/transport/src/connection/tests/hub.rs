//! Where the components meet: what each of them does right alone and the connection could still get wrong.

use super::*;

fn pair(transport: TransportConfig) -> Pair {
    Pair::new(&TlsOptions::default(), transport, RetryPolicy::Never)
}

fn connected() -> Pair {
    Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never)
}

#[test]
fn data_that_overtakes_the_end_of_the_handshake_is_kept() {
    let mut pair = pair(TransportConfig::default());
    pair.step();
    let id = pair.client().open(Dir::Bidi).expect("stream");
    pair.client().write(id, Bytes::from(vec![7; 3_000])).expect("writes");
    let now = pair.now;
    let flight = pair.client.send(now);
    assert!(flight.len() > 2, "Finished in the first datagram, data in the others");
    for datagram in flight.into_iter().rev() {
        pair.server.receive(now, datagram, Some(&pair.config));
    }
    assert_eq!(pair.server.sink.received.len(), 3_000, "nothing had to be sent twice");
}

#[test]
fn a_peer_that_has_lost_its_state_ends_the_connection() {
    let mut pair = connected();
    pair.run(20);
    let lost = EndpointConfig { retry: RetryPolicy::Never, ..EndpointConfig::default() };
    pair.server.endpoint = Endpoint::new(lost, [2; 32]);
    pair.transfer_into_the_void();
    let replies = REPLIES.take();
    assert!(!replies.is_empty(), "a stateless reset was sent");
    let now = pair.now;
    pair.client.receive(now, replies[0].clone(), None);
    pair.client.send(now);
    assert!(
        pair.client.events.contains(&Event::Closed(CloseReason::StatelessReset)),
        "{:?}",
        pair.client.events
    );
}

#[test]
fn a_token_that_was_not_fetched_gives_way_to_the_next() {
    let mut pair = connected();
    let before = pair.client().events.len();
    for byte in 0..100u8 {
        pair.client().on_new_token(&[byte]).expect("a client takes tokens");
    }
    assert!(pair.client().events.len() <= before + 1, "{} wait", pair.client().events.len());
    let last = pair.client().events.back().cloned();
    assert_eq!(last, Some(Event::NewToken { token: vec![99] }));
}

impl Pair {
    /// The client sends, the server's endpoint answers on its own.
    fn transfer_into_the_void(&mut self) {
        let id = self.client().open(Dir::Bidi).expect("stream");
        self.client().write(id, Bytes::from(vec![1; 500])).expect("writes");
        let now = self.now;
        for datagram in self.client.send(now) {
            self.server.receive(now, datagram, None);
        }
    }
}
