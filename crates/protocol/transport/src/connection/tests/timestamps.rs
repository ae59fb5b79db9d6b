//! Each end tells the other its clock: over ways of different lengths, and where one end does without.

use super::*;
use crate::OneWayDelays;
use crate::config::Switch;

const MS: Duration = Duration::from_millis(1);

fn connected(timestamps: [Switch; 2]) -> Pair {
    let with = |timestamps| TransportConfig { timestamps, ..TransportConfig::default() };
    let [client, server] = timestamps.map(with);
    let mut pair = Pair::new(&TlsOptions::default(), client, RetryPolicy::Never);
    pair.config.transport = Arc::new(server);
    pair.run(12);
    assert!(pair.client.events.contains(&Event::Connected), "{:?}", pair.client.events);
    pair
}

/// The client sends a whole stream, which takes so long, and is answered at once, which takes so long.
fn exchange(pair: &mut Pair, there: Duration, back: Duration) {
    let id = pair.client().open(Dir::Uni).expect("stream");
    pair.client().write(id, Bytes::from_static(b"whole")).expect("writes");
    pair.client().finish_stream(id).expect("finishes");
    let up = pair.client.send(pair.now);
    pair.now = pair.now + there;
    up.into_iter().for_each(|datagram| pair.server.receive(pair.now, datagram, None));
    let down = pair.server.send(pair.now);
    assert!(!down.is_empty(), "an answer");
    pair.now = pair.now + back;
    down.into_iter().for_each(|datagram| pair.client.receive(pair.now, datagram, None));
}

/// Deleted, an embedder could not tell on which way a queue stands.
#[test]
fn delays_are_told_apart_by_way() {
    let mut pair = connected([Switch::On; 2]);
    let id = pair.server().open(Dir::Uni).expect("stream");
    pair.server().write(id, Bytes::from_static(b"news")).expect("writes");
    pair.run(15);
    assert!(pair.server().one_way_delays().is_some(), "the client acknowledges, too");
    // The handshake's ways took a millisecond each.
    for (there, back) in [(1, 1), (40, 1), (1, 30), (7, 9)] {
        exchange(&mut pair, MS * there, MS * back);
        let OneWayDelays { to_peer, from_peer } = pair.client().one_way_delays().expect("a sample");
        // The unit on the wire is 8 µs.
        let unit = Duration::from_micros(8);
        assert!(
            to_peer.abs_diff(MS * there) <= unit && from_peer.abs_diff(MS * back) <= unit,
            "{to_peer:?} {from_peer:?}"
        );
    }
}

/// Deleted, two ends could acknowledge each other's clocks without end.
#[test]
fn a_timestamp_asks_for_nothing() {
    let mut pair = connected([Switch::On; 2]);
    exchange(&mut pair, MS, MS);
    pair.run(100);
    let before = [pair.client().counters().sent_packets, pair.server().counters().sent_packets];
    pair.run(1_000);
    assert_eq!([pair.client().counters().sent_packets, pair.server().counters().sent_packets], before);
}

/// Deleted, a peer that does without would meet a frame that it does not know.
#[test]
fn it_takes_two() {
    for timestamps in [[Switch::On, Switch::Off], [Switch::Off, Switch::On], [Switch::Off; 2]] {
        let mut pair = connected(timestamps);
        exchange(&mut pair, MS, MS);
        pair.transfer(10_000);
        assert_eq!(
            [pair.client().one_way_delays(), pair.server().one_way_delays()],
            [None; 2],
            "{timestamps:?}"
        );
    }
}
