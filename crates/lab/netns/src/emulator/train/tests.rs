use std::time::Duration;

use super::*;
use crate::emulator::options::{LinkOptions, Reorder};

/// An IPv4 super-packet of datagrams of 1,000 bytes; its payload begins at 52.
fn frame(payload_bytes: usize) -> (Vec<u8>, Layout) {
    let mut bytes = vec![0; 52 + payload_bytes];
    bytes[..2].copy_from_slice(&[1, 5]);
    bytes[4..6].copy_from_slice(&1_000_u16.to_ne_bytes());
    bytes[22] = 8;
    bytes[24] = 0x45;
    bytes[33] = 17;
    let layout = Layout::of(&bytes);
    (bytes, layout)
}

/// When and what leaves of one frame that came at time 0, and the counters.
fn pieces(options: LinkOptions, payload_bytes: usize) -> (Vec<(u64, usize, usize)>, Counters) {
    pieces_below(u32::MAX, options, payload_bytes)
}

/// The same for a host that takes IP packets of up to `mtu` bytes.
fn pieces_below(
    mtu: u32,
    options: LinkOptions,
    payload_bytes: usize,
) -> (Vec<(u64, usize, usize)>, Counters) {
    let (mut bytes, layout) = frame(payload_bytes);
    let (mut judge, mut counters, mut pieces) = (LinkState::new(options), Counters::default(), Vec::new());
    judge.limit(mtu);
    let line = Line { judge: &mut judge, counters: &mut counters, pieces: &mut pieces };
    cut(&mut bytes, &layout, 0, line);
    (pieces.iter().map(|piece| (piece.at, piece.start, piece.end)).collect(), counters)
}

/// Would break: an undisturbed super-packet would be cut or copied.
#[test]
fn an_undisturbed_super_packet_is_one_piece() {
    let delay = Duration::from_micros(7);
    let (pieces, counters) = pieces(LinkOptions { delay, ..LinkOptions::default() }, 5_500);
    assert_eq!((pieces, counters), (vec![(7_000, 0, 5_552)], Counters::default()));
}

/// Would break: on a slow line the first datagram would wait until the last is sent: 5 ms at 100 Mbit/s.
#[test]
fn a_slow_line_cuts_super_packets() {
    // A datagram of 1,042 bytes takes 83,360 ns at 100 Mbit/s: two fit in a grain.
    let (pieces, _) = pieces(LinkOptions { rate_bits: Some(100_000_000), ..LinkOptions::default() }, 5_000);
    assert_eq!(pieces, [(166_720, 52, 2_052), (333_440, 2_052, 4_052), (416_800, 4_052, 5_052)]);
}

/// Would break: doubled or late datagrams would be counted and not sent so, or take neighbours with them.
#[test]
fn doubled_and_late_datagrams_go_by_themselves() {
    let (doubled, counters) = pieces(LinkOptions { duplicate: 1.0, ..LinkOptions::default() }, 2_000);
    assert_eq!(doubled, [(0, 52, 1_052), (0, 52, 1_052), (0, 1_052, 2_052), (0, 1_052, 2_052)]);
    assert_eq!(counters.duplicated, 2);
    let by = Duration::from_micros(1);
    let (late, counters) =
        pieces(LinkOptions { reorder: Some(Reorder { share: 1.0, by }), ..LinkOptions::default() }, 2_000);
    assert_eq!(late, [(1_000, 52, 1_052), (1_000, 1_052, 2_052)]);
    assert_eq!(counters.reordered, 2);
}

/// Would break: a lost frame would leave an empty piece.
#[test]
fn nothing_is_left_of_a_frame_that_is_lost() {
    let (pieces, counters) = pieces(LinkOptions { loss: 1.0, ..LinkOptions::default() }, 2_500);
    assert_eq!((pieces, counters.lost), (vec![], 3));
}

/// Would break: a host with a small MTU would get long datagrams as long as they come in a super-packet.
#[test]
fn datagrams_above_the_far_hosts_mtu_are_dropped_and_shorter_ones_pass() {
    let options = LinkOptions::default;
    let (passed, counters) = pieces_below(1_027, options(), 5_500);
    assert_eq!((passed, counters.refused), (vec![(0, 5_052, 5_552)], 5));
    let (passed, counters) = pieces_below(1_028, options(), 5_500);
    assert_eq!((passed, counters.refused), (vec![(0, 0, 5_552)], 0));
}

/// Would break: a TCP super-packet would be judged by its 64 KB, and no connection pass a limit.
#[test]
fn a_tcp_super_packet_is_judged_by_its_segments() {
    let (mut bytes, _) = frame(5_000);
    (bytes[1], bytes[33]) = (1, 6);
    // The TCP header begins behind 20 bytes of IPv4; its length is eight words.
    bytes[44 + 12] = 0x80;
    let mut passes = |mtu: u32| {
        let (mut judge, mut counters, mut pieces) =
            (LinkState::new(LinkOptions::default()), Counters::default(), Vec::new());
        judge.limit(mtu);
        let line = Line { judge: &mut judge, counters: &mut counters, pieces: &mut pieces };
        let layout = Layout::of(&bytes);
        cut(&mut bytes, &layout, 0, line);
        pieces.len()
    };
    assert_eq!((passes(20 + 32 + 1_000), passes(20 + 32 + 999)), (1, 0));
}

/// Would break: corruption would be caught by the receiving kernel's checksum, and be nothing but loss.
#[test]
fn one_byte_of_a_corrupted_datagram_changes_and_its_checksum_follows() {
    use crate::emulator::checksum::{add, fold};
    let rate = link::EventRate { ppm: 1_000_000, burst: link::Burst::None };
    let events = vec![link::Node::Corrupt(rate)];
    for (seed, payload_bytes) in (0..40).map(|seed| (seed, [7, 9, 1_000, 2_500][seed as usize % 4])) {
        let (mut bytes, _) = frame(payload_bytes);
        if payload_bytes <= 1_000 {
            // A single datagram with a whole checksum (the addresses are zero).
            bytes[..10].fill(0);
            let sum = !fold(add(0, &bytes[44..]));
            bytes[50..52].copy_from_slice(&sum.to_be_bytes());
        }
        let (before, layout) = (bytes.clone(), Layout::of(&bytes));
        let mut judge =
            LinkState::new(LinkOptions { events: events.clone(), seed, ..LinkOptions::default() });
        let (mut counters, mut pieces) = (Counters::default(), Vec::new());
        let line = Line { judge: &mut judge, counters: &mut counters, pieces: &mut pieces };
        cut(&mut bytes, &layout, 0, line);
        let datagrams = layout.datagrams();
        assert_eq!(counters.corrupted, datagrams as u64);
        let changed: Vec<_> = (52..bytes.len()).filter(|at| bytes[*at] != before[*at]).collect();
        assert_eq!(changed.len(), datagrams, "one byte of each");
        if payload_bytes <= 1_000 {
            assert_eq!(fold(add(0, &bytes[44..])), 0xffff, "{payload_bytes}: the checksum is right");
        }
    }
}
