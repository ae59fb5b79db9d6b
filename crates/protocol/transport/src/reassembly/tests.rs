//! What would break without these: bytes out of order reach the reader wrong or twice, or a peer makes us hold more
//! than it sent.

use super::*;
use proptest::prelude::*;

fn byte_at(offset: u64) -> u8 {
    (offset ^ (offset >> 8)) as u8
}

fn bytes_of(start: u64, len: u64) -> Vec<u8> {
    (start..start + len).map(byte_at).collect()
}

/// Reads everything that is in order from `read` on.
fn drain(buffer: &mut Reassembly, mut read: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(piece) = buffer.next_piece(read) {
        out.extend_from_slice(piece);
        read += piece.len() as u64;
    }
    buffer.discard_below(read);
    out
}

proptest! {
    /// Any order, overlap and repetition gives the bytes of the stream, and the counts stay true.
    #[test]
    fn agrees_with_a_plain_map(
        frames in prop::collection::vec((0u64..3_000, 0u64..400), 0..80),
        reads in prop::collection::vec(0u64..200, 0..20),
    ) {
        let mut buffer = Reassembly::default();
        let mut plain = std::collections::BTreeSet::new();
        for &(offset, len) in &frames {
            buffer.insert(offset, &bytes_of(offset, len)).unwrap();
            plain.extend(offset..offset + len);
            prop_assert_eq!(buffer.held().bytes, plain.len());
            prop_assert_eq!(buffer.pieces.values().map(Vec::len).sum::<usize>(), plain.len());
        }
        for offset in 0..3_400 {
            prop_assert_eq!(buffer.next_piece(offset).map(|piece| piece[0]), plain.contains(&offset).then(|| byte_at(offset)));
        }
        let mut read = 0;
        for step in reads {
            read += step;
            let got = drain(&mut buffer, read);
            let expected: Vec<u8> = (read..).take_while(|offset| plain.contains(offset)).map(byte_at).collect();
            prop_assert_eq!(&got, &expected);
            read += got.len() as u64;
        }
        buffer.discard_below(4_000);
        prop_assert_eq!(buffer.held(), BufferedBytes::default());
    }
}

/// CVE-2026-25800: frames of one byte with gaps of one byte pin memory far beyond their size.
#[test]
fn single_bytes_with_gaps_are_refused_after_a_bounded_number() {
    let mut buffer = Reassembly::default();
    let refused = (0u64..).find(|index| buffer.insert(1 + index * 2, &[1]).is_err());
    assert!(refused.is_some_and(|count| count <= MAX_PIECES as u64 + 2), "{refused:?}");
}

/// The same byte by byte from behind, and with the gaps filled afterwards: no pile of tiny pieces remains.
#[test]
fn tiny_pieces_that_touch_are_merged() {
    let mut buffer = Reassembly::default();
    for index in 0..1_000 {
        buffer.insert(1 + index * 2, &[1]).unwrap();
    }
    for index in 1..1_000 {
        buffer.insert(index * 2, &[1]).unwrap();
    }
    assert_eq!(buffer.held(), BufferedBytes { pieces: 1, bytes: 1_999 });
    let mut backwards = Reassembly::default();
    for index in (1..5_000).rev() {
        backwards.insert(index, &[1]).unwrap();
    }
    assert!(backwards.held().pieces <= 4_999 / MERGED_SIZE * 2, "{:?}", backwards.held());
}

/// Honest loss of one packet in three, with a full window behind: never refused.
#[test]
fn heavy_loss_of_whole_packets_is_no_attack() {
    let mut buffer = Reassembly::default();
    let packet = vec![0; 1_170];
    for index in (0..14_000u64).filter(|index| index % 3 != 0) {
        buffer.insert(index * 1_170, &packet).unwrap();
    }
    assert_eq!(buffer.held().pieces, 4_667);
}

/// GHSA-9q54-f358-3fqf: a byte at a high offset must cost a byte.
#[test]
fn a_high_offset_costs_nothing() {
    let mut buffer = Reassembly::default();
    buffer.insert((1 << 62) - 2, &[1]).unwrap();
    assert_eq!(buffer.held(), BufferedBytes { pieces: 1, bytes: 1 });
    assert!(buffer.pieces.values().all(|piece| piece.capacity() <= 16));
}

/// The packets behind one lost packet become few pieces.
#[test]
fn packets_in_a_row_are_gathered() {
    let mut buffer = Reassembly::default();
    for index in 1..=1_000u64 {
        buffer.insert(index * 1_200, &[0; 1_200]).unwrap();
    }
    assert!(buffer.held().pieces <= 1_000 * 1_200 / PIECE_SIZE + 1);
}
