//! Packets that could leave in one train do.

use super::*;
use recovery::pacer::Pacing;

/// A pair between which a window of several trains is open.
fn pair() -> Pair {
    let transport = TransportConfig { pacing: Pacing::Off, ..TransportConfig::default() };
    let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
    pair.transfer(2_000_000);
    pair.run(5);
    pair
}

/// Each train is a datagram batch of its own for the kernel, and at the peer. Some of these lengths leave less room at the end of a packet
/// than a STREAM frame is begun in.
#[test]
fn short_streams_of_any_length_share_a_train() {
    let mut pair = pair();
    for len in (300..1_100).step_by(7) {
        let before = (pair.server.sink.received.len(), pair.server.sink.ended);
        for _ in 0..12 {
            let id = pair.client().open(Dir::Uni).expect("stream");
            pair.client().write(id, Bytes::from(vec![1; len])).expect("writes");
            pair.client().finish_stream(id).expect("finishes");
        }
        let now = pair.now;
        let mut wire = Wire::default();
        assert_eq!(pair.client().transmit(now, &mut wire), Transmitted::All);
        assert_eq!(wire.departs.len(), 1, "trains for streams of {len} bytes");
        let sizes: Vec<usize> = wire.datagrams.iter().map(Vec::len).collect();
        let (_, full) = sizes.split_last().expect("datagrams");
        assert!(full.iter().all(|size| *size == full[0]), "{len}: {sizes:?}");
        wire.datagrams.into_iter().for_each(|datagram| pair.server.receive(now, datagram, None));
        pair.run(3);
        let after = (pair.server.sink.received.len(), pair.server.sink.ended);
        assert_eq!((after.0 - before.0, after.1 - before.1), (12 * len, 12));
    }
}

/// Padding is for the packet that follows: where none does, a packet is as long as what it says.
#[test]
fn the_last_packet_is_not_padded() {
    let mut pair = pair();
    let mut alone = Vec::new();
    for len in 1_380..1_430 {
        let id = pair.client().open(Dir::Uni).expect("stream");
        pair.client().write(id, Bytes::from(vec![1; len])).expect("writes");
        let now = pair.now;
        let mut wire = Wire::default();
        pair.client().transmit(now, &mut wire);
        if let [datagram] = &wire.datagrams[..] {
            alone.push(datagram.len());
        }
        wire.datagrams.into_iter().for_each(|datagram| pair.server.receive(now, datagram, None));
        pair.run(3);
    }
    let longest = alone.iter().max().expect("streams that fit into a packet");
    let full = alone.iter().filter(|size| *size == longest).count();
    assert!(alone.len() > 20 && full <= 4, "{full} of {alone:?}");
}
