//! Techniques that a connection is to do without: each really is absent, and nothing else changes. An experiment whose
//! switch does nothing would call a technique worthless.

use super::*;
use crate::{Technique, Without};

fn without(techniques: &[Technique]) -> Pair {
    let set = techniques.iter().fold(Without::default(), |set, technique| set.with(*technique));
    let transport = TransportConfig { without: set, ..TransportConfig::default() };
    Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never)
}

const ALL: [Technique; 5] = [
    Technique::TrainMasks,
    Technique::MergedAcks,
    Technique::LentData,
    Technique::SharedBuffers,
    Technique::Runs,
];

#[test]
fn a_connection_without_any_of_them_carries_the_same_data() {
    for left_out in [&ALL[..], &ALL[..1], &ALL[1..2], &ALL[2..3], &ALL[3..4], &ALL[4..]] {
        without(left_out).transfer(500_000);
    }
}

/// Ranges that the client's streams hear of, and the packets that carried them.
fn acknowledged(left_out: &[Technique]) -> (u64, u64) {
    let mut pair = without(left_out);
    pair.transfer(100_000); // the window has grown
    let before = (pair.client().components.streams.acked_ranges, pair.client().counters().sent_packets);
    pair.transfer(2_000_000);
    let client = pair.client();
    (client.components.streams.acked_ranges - before.0, client.counters().sent_packets - before.1)
}

/// Adjacent acknowledged ranges merge before a stream hears of them.
#[test]
fn a_stream_hears_of_an_acknowledgement_once_and_not_packet_by_packet() {
    let (ranges, packets) = acknowledged(&[]);
    assert!(packets > 1_300 && ranges * 3 < packets, "{ranges} ranges for {packets} packets");
    let (ranges, packets) = acknowledged(&[Technique::MergedAcks]);
    assert!(ranges * 10 > packets * 9, "{ranges} ranges for {packets} packets");
}

/// What ends a stream is adjacent too: a message in two packets is heard of once.
#[test]
fn the_end_of_a_stream_is_heard_of_with_what_is_before_it() {
    for (left_out, expected) in [(&[][..], 1), (&[Technique::MergedAcks][..], 2)] {
        let mut pair = without(left_out);
        pair.transfer(100_000);
        let before = pair.client().components.streams.acked_ranges;
        pair.transfer(2_000);
        pair.run(3);
        assert_eq!(pair.client().components.streams.acked_ranges - before, expected, "{left_out:?}");
    }
}

#[test]
fn the_applications_buffers_are_shared_or_copied() {
    for (left_out, copies) in [(&[][..], false), (&[Technique::SharedBuffers][..], true)] {
        let mut pair = without(left_out);
        let id = pair.client().open(Dir::Uni).expect("a stream");
        let bytes = Bytes::from(vec![1; 100_000]);
        pair.client().write(id, bytes.clone()).expect("writes");
        assert_eq!(bytes.is_unique(), copies, "{left_out:?}");
    }
}

/// Whether the bytes it is lent lie in the datagram.
#[derive(Default)]
struct Witness {
    datagram: core::ops::Range<usize>,
    inside: usize,
    outside: usize,
}

impl StreamSink for Witness {
    fn on_stream_data(&mut self, _: StreamId, bytes: &[u8], _: Fin) -> usize {
        let is_inside = self.datagram.contains(&bytes.as_ptr().addr());
        *(if is_inside { &mut self.inside } else { &mut self.outside }) += bytes.len();
        bytes.len()
    }
}

#[test]
fn data_in_order_is_lent_or_copied() {
    for (left_out, lends) in [(&[][..], true), (&[Technique::LentData][..], false)] {
        let mut pair = without(left_out);
        let id = pair.client().open(Dir::Uni).expect("a stream");
        pair.client().write(id, Bytes::from(vec![1; 5_000])).expect("writes");
        let now = pair.now;
        let mut witness = Witness::default();
        for mut datagram in pair.client.send(now) {
            let start = datagram.as_ptr().addr();
            witness.datagram = start..start + datagram.len();
            let segment_size = datagram.len();
            let train =
                Train { bytes: &mut datagram, segment_size, addresses: addresses(2, 1), ecn: Ecn::Ect0 };
            pair.server().receive(now, train, &mut witness);
        }
        let (expected, other) =
            if lends { (witness.inside, witness.outside) } else { (witness.outside, witness.inside) };
        assert_eq!((expected, other), (5_000, 0), "{left_out:?}");
    }
}
