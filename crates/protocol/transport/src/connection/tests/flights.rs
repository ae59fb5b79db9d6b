//! A window leaves in parts, between which the caller looks at what has arrived.

use super::*;
use recovery::pacer::Pacing;

fn pair() -> Pair {
    let transport = TransportConfig { pacing: Pacing::Off, ..TransportConfig::default() };
    let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
    pair.transfer(2_000_000); // the window grows
    pair.run(5);
    pair
}

/// Or else both ends work in batches as large as the window, and one waits while the other works.
#[test]
fn a_quarter_of_the_window_leaves_at_a_time() {
    let mut pair = pair();
    let id = pair.client().open(Dir::Uni).expect("stream");
    pair.client().write(id, Bytes::from(vec![1; 8_000_000])).expect("writes");
    let now = pair.now;
    let window = pair.client().paths.active().congestion.window();
    assert!(window > 4 * 65_536, "{window}");
    let mut wire = Wire::default();
    let mut parts = Vec::new();
    loop {
        let before = pair.client().spaces.in_flight_bytes();
        let outcome = pair.client().transmit(now, &mut wire);
        parts.push(pair.client().spaces.in_flight_bytes() - before);
        if outcome != Transmitted::Paused {
            break;
        }
    }
    let whole: u64 = parts.iter().sum();
    assert!(parts.iter().all(|part| *part <= window / 4), "{parts:?} of {window}");
    assert!(whole <= window, "{whole} of {window}");
    assert!(parts.len() >= 3, "flow control may end it early: {parts:?}");
}

/// A small answer costs no turn more than before.
#[test]
fn what_fits_into_a_part_needs_one_turn() {
    let mut pair = pair();
    for len in [1, 1_000, 14_000, 20_000] {
        let id = pair.client().open(Dir::Uni).expect("stream");
        pair.client().write(id, Bytes::from(vec![1; len])).expect("writes");
        let now = pair.now;
        let mut wire = Wire::default();
        assert_eq!(pair.client().transmit(now, &mut wire), Transmitted::All, "{len}");
        wire.datagrams.into_iter().for_each(|datagram| pair.server.receive(now, datagram, None));
        pair.run(3);
    }
}

/// Deleted, the first flight of an answer could consist of packets of 1,200 bytes, and that of a client of padding.
#[test]
fn an_answer_begins_with_full_packets() {
    let transport = TransportConfig { pacing: Pacing::Off, ..TransportConfig::default() };
    let mut pair = Pair::new(&TlsOptions::default(), transport, RetryPolicy::Never);
    let full = usize::from(TransportConfig::default().max_packet_size);
    pair.step();
    let id = pair.client().open(Dir::Bidi).expect("stream");
    pair.client().write(id, Bytes::from_static(b"request")).expect("writes");
    let now = pair.now;
    let request = pair.client.send(now);
    assert!(request.iter().all(|datagram| datagram.len() < full), "a client does not probe early");
    request.iter().for_each(|datagram| pair.hand_to_server(datagram));
    pair.server().write(id, Bytes::from(vec![1; 8_000])).expect("writes");
    let answer: Vec<usize> = pair.server.send(now).iter().map(Vec::len).collect();
    assert!(answer.len() > 5 && answer[..5].iter().all(|len| *len == full), "{answer:?}");
}
