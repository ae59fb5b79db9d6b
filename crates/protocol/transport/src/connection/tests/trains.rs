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

/// Small messages are written whole: what is there leaves with its end, and nothing can follow it.
#[test]
fn a_stream_written_whole_is_what_its_parts_would_be() {
    let mut pair = pair();
    let id = pair.client().open(Dir::Uni).expect("stream");
    assert!(pair.client().has_room(id, 8));
    let pieces = [Bytes::from_static(b"head"), Bytes::from_static(b"body")];
    pair.client().write_whole(id, pieces.clone()).expect("writes");
    assert_eq!(pair.client().unacknowledged_bytes(), 8);
    assert!(pair.client().write_whole(id, pieces).is_err(), "it has ended");
    assert!(!pair.client().has_room(id, 1), "it has ended");
    let before = (pair.server.sink.received.len(), pair.server.sink.ended);
    pair.run(3);
    assert_eq!(pair.server.sink.received.get(before.0..), Some(&b"headbody"[..]));
    assert_eq!((pair.server.sink.ended, pair.client().unacknowledged_bytes()), (before.1 + 1, 0));
    let id = pair.client().open(Dir::Uni).expect("stream");
    pair.client().write_whole(id, [Bytes::new(), Bytes::new()]).expect("writes");
    pair.run(3);
    assert_eq!(pair.server.sink.ended, before.1 + 2, "an end without bytes");
}

/// What the application hands over before it is asked is bounded as what it is asked for: by a share, by memory, and by the peer.
#[test]
fn room_for_a_small_message_ends_where_memory_or_credit_does() {
    let mut pair = pair();
    let id = pair.client().open(Dir::Uni).expect("stream");
    assert!(pair.client().has_room(id, 16 * 1024) && !pair.client().has_room(id, 16 * 1024 + 1));
    pair.client().limit_memory(Some(1_000));
    assert!(pair.client().has_room(id, 1_000) && !pair.client().has_room(id, 1_001));
    pair.client().limit_memory(None);
    let stream = crate::StreamConfig {
        initial_stream_window: 500,
        max_stream_window: 500,
        ..crate::StreamConfig::default()
    };
    let transport = TransportConfig { streams: stream, ..TransportConfig::default() };
    let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
    let id = pair.client().open(Dir::Uni).expect("stream");
    assert!(pair.client().has_room(id, 500) && !pair.client().has_room(id, 501));
}
