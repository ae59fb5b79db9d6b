//! The ledger against a plain list of packets that does everything by RFC 9002's pseudocode, and its worked examples.

use super::*;
use crate::rtt::{LossThresholds, Rtt};
use crate::testing::pick;
use base::net::Ecn;
use base::rng::Rng;
use base::time::Duration;

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn data(pn: u64, sent_at: Instant) -> SentPacket {
    SentPacket { pn, sent_at, size: 1200, flags: PacketFlags::DATA }
}

fn thresholds(delay_ms: u64) -> LossThresholds {
    LossThresholds {
        delay: Duration::from_millis(delay_ms),
        packets: 3,
        persistent_from: Some(Instant::ZERO),
        acked_elsewhere: None,
        forget_after: Duration::from_millis(delay_ms * 3),
    }
}

/// A ledger with packets `0..count`, sent a millisecond apart, each with its number as its only frame.
fn filled(count: u64) -> Ledger<u64> {
    let mut ledger = Ledger::new();
    for pn in 0..count {
        ledger.on_sent(data(pn, ms(pn)), &[pn]);
    }
    ledger
}

fn ack(ledger: &mut Ledger<u64>, ranges: &[RangeInclusive<u64>]) -> (Result<AckOutcome, AckError>, Vec<u64>) {
    let mut frames = Vec::new();
    let outcome = ledger.on_ack(ranges.iter().cloned(), &mut |_, _, added| frames.extend_from_slice(added));
    (outcome, frames)
}

#[test]
fn acknowledged_once_ascending_within_a_range() {
    let mut ledger = filled(10);
    let (outcome, frames) = ack(&mut ledger, &[7..=8, 2..=4]);
    let outcome = outcome.unwrap();
    assert_eq!(frames, [7, 8, 2, 3, 4]);
    assert_eq!((outcome.packets, outcome.bytes, outcome.ack_eliciting), (5, 6000, 5));
    assert_eq!(outcome.largest, Some(LargestAcked { pn: 8, sent_at: ms(8), is_frame_largest: true }));
    assert_eq!(outcome.earliest_sent_at, Some(ms(2)), "of all ranges");
    assert_eq!(outcome.rtt_sample(ms(50)), Some(Duration::from_millis(42)));
    let (outcome, frames) = ack(&mut ledger, &[2..=8]);
    assert_eq!(frames, [5, 6], "only what is new");
    let outcome = outcome.unwrap();
    assert_eq!(outcome.rtt_sample(ms(60)), None, "the frame's largest is not new");
    assert_eq!(outcome.earliest_sent_at, Some(ms(5)), "of what is new");
    assert_eq!(ledger.in_flight_bytes(), 3 * 1200);
}

/// Deleted, a run could be remembered otherwise than its packets one by one.
#[test]
fn a_run_is_as_its_packets_one_by_one() {
    let mut rng = Rng::from_u64(25);
    for seed in 0..2_000 {
        let (mut run, mut single) = (Ledger::new(), Ledger::new());
        for step in 0..pick(&mut rng, 1, 20) {
            let (now, next) = (ms(step), run.largest_sent().map_or(0, |pn: u64| pn + 1));
            if rng.below(3) == 0 && next > 0 {
                let low = rng.below(next);
                let ranges = [low..=pick(&mut rng, low, next)];
                assert_eq!(ack(&mut run, &ranges), ack(&mut single, &ranges), "{seed}");
                let lost =
                    |ledger: &mut Ledger<u64>| ledger.detect_losses(now, thresholds(5), &mut |_, _| {});
                assert_eq!(lost(&mut run), lost(&mut single), "{seed}");
            }
            let is_skipped = rng.below(4) == 0;
            let first = data(next + u64::from(is_skipped), now);
            let count = rng.below(70);
            run.on_run_sent(first, count, |index| first.pn + index);
            for pn in first.pn..first.pn + count {
                single.on_sent(SentPacket { pn, ..first }, &[pn]);
            }
            // A run may make the ring grow before its first packet.
            for ledger in [&run, &single] {
                ledger.slots.steps.set(0);
            }
            assert_eq!(format!("{run:?}"), format!("{single:?}"), "{seed}");
        }
    }
}

#[test]
fn never_sent_and_skipped_numbers_are_an_error_for_good() {
    let mut ledger = filled(10);
    assert_eq!(ack(&mut ledger, &[9..=10]).0, Err(AckError::NeverSent(10)));
    for pn in (11..5_000).filter(|pn| *pn != 2_000) {
        ledger.on_sent(data(pn, ms(pn)), &[pn]);
    }
    assert_eq!(ack(&mut ledger.clone(), &[9..=12]).0, Err(AckError::NeverSent(10)), "in the ring");
    ack(&mut ledger, &[2_001..=4_900, 11..=1_999, 0..=9]).0.unwrap();
    assert_eq!(ledger.span(), 99, "everything below is settled");
    for ranges in [&[4_990..=4_999, 2_000..=2_000][..], &[4_990..=4_999, 0..=11], &[10..=4_999], &[10..=10]] {
        assert!(
            matches!(ack(&mut ledger.clone(), ranges).0, Err(AckError::NeverSent(2_000 | 10))),
            "{ranges:?}"
        );
    }
}

#[test]
fn rfc9002_example_of_persistent_congestion() {
    // RFC 9002 §7.6.3: seconds, and a PTO of 2; packets 2 to 8 are lost, over 7 > 2 × 3.
    let mut ledger: Ledger<u64> = Ledger::new();
    for (pn, second) in [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6), (8, 8), (9, 12)] {
        ledger.on_sent(data(pn, ms(second * 1000)), &[pn]);
        if pn == 2 {
            ack(&mut ledger, &[1..=1]).0.unwrap();
        }
    }
    ack(&mut ledger, &[9..=9, 1..=1]).0.unwrap();
    let thresholds = LossThresholds { persistent_from: Some(ms(900)), ..thresholds(2_250) };
    let mut lost = Vec::new();
    let outcome = ledger.detect_losses(ms(12_200), thresholds, &mut |packet, _| lost.push(packet.pn));
    assert_eq!(lost, [2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(outcome.persistent_span, Some(Duration::from_secs(7)));
    assert_eq!(outcome.congestion, Some(ms(8_000)));
}

#[test]
fn an_acknowledgement_between_ends_the_series() {
    let mut ledger = filled(20);
    ack(&mut ledger, &[19..=19, 10..=10]).0.unwrap();
    let outcome = ledger.detect_losses(ms(1_000), thresholds(50), &mut |_, _| {});
    assert_eq!(outcome.packets, 18);
    assert_eq!(
        outcome.persistent_span,
        Some(Duration::from_millis(8)),
        "1 to 9, or 11 to 18; 0 is too early"
    );
}

/// RFC 9002 §7.6.2: across all packet-number spaces, nothing between the two is acknowledged.
#[test]
fn an_acknowledgement_in_another_space_ends_the_series() {
    for (elsewhere, span, why) in [
        (Some(ms(5)), 12, "6 to 18"),
        (Some(ms(19)), 17, "it was sent later"),
        (Some(ms(0)), 17, "it was sent earlier"),
        (None, 17, "there is no other space"),
    ] {
        let mut ledger = filled(20);
        ack(&mut ledger, &[19..=19]).0.unwrap();
        assert_eq!(ledger.acked_sent_at(), Some(ms(19)));
        let thresholds = LossThresholds { acked_elsewhere: elsewhere, ..thresholds(50) };
        let outcome = ledger.detect_losses(ms(1_000), thresholds, &mut |_, _| {});
        assert_eq!(outcome.packets, 19);
        assert_eq!(outcome.persistent_span, Some(Duration::from_millis(span)), "{why}");
    }
}

#[test]
fn lost_by_packets_then_by_time() {
    let mut ledger = filled(10);
    ack(&mut ledger, &[5..=5]).0.unwrap();
    let mut lost = Vec::new();
    let outcome = ledger.detect_losses(ms(12), thresholds(10), &mut |packet, _| lost.push(packet.pn));
    assert_eq!(lost, [0, 1, 2], "three below the largest acknowledged");
    assert_eq!(outcome.bytes, 3600);
    assert_eq!(ledger.loss_time(), Some(ms(13)));
    let outcome = ledger.detect_losses(ms(13), thresholds(10), &mut |packet, _| lost.push(packet.pn));
    assert_eq!((outcome.packets, lost.last()), (1, Some(&3)));
    assert_eq!(ledger.loss_time(), Some(ms(14)));
    assert_eq!(ledger.in_flight_bytes(), 5 * 1200, "4 and 6 to 9");
}

#[test]
fn a_late_acknowledgement_of_a_lost_packet_is_spurious_until_it_is_forgotten() {
    let mut ledger = filled(10);
    ack(&mut ledger, &[9..=9]).0.unwrap();
    ledger.detect_losses(ms(20), thresholds(10), &mut |_, _| {});
    let (outcome, frames) = ack(&mut ledger, &[2..=3]);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.spurious, outcome.bytes, outcome.packets), (2, 0, 2));
    assert_eq!(frames, [2, 3], "their owners need not send them again");
    assert!(!outcome.is_largest_raised);
    assert_eq!((outcome.overtaken_by, outcome.overtaken_from), (8, Some(ms(2))), "2 came after 9");
    ledger.detect_losses(ms(51), thresholds(10), &mut |_, _| {});
    assert_eq!(ledger.span(), 0, "three PTOs later nothing is left");
    assert_eq!(ack(&mut ledger, &[0..=9]).0.unwrap(), AckOutcome::default());
}

#[test]
fn mtu_probes_are_no_sign_of_congestion_nor_of_lost_marks() {
    let mut ledger: Ledger<u64> = Ledger::new();
    let flags = PacketFlags::DATA.with(PacketFlags::MTU_PROBE).with(PacketFlags::ECT0);
    ledger.on_sent(SentPacket { flags, ..data(0, ms(1)) }, &[]);
    ledger.on_sent(data(1, ms(2)), &[]);
    ack(&mut ledger, &[1..=1]).0.unwrap();
    let outcome = ledger.detect_losses(ms(100), thresholds(10), &mut |_, _| {});
    assert_eq!((outcome.bytes, outcome.congestion, outcome.ect), (1200, None, 0));
    let late = ack(&mut ledger, &[0..=0]).0.unwrap();
    assert_eq!((late.spurious, late.spurious_from), (0, None), "there is nothing to undo");
    assert_eq!((late.overtaken_by, late.overtaken_from), (2, Some(ms(1))), "of the order they are a sign");
}

/// Probes of a size are lost over and over where a path does not carry it: with a packet lost by chance before or after them
/// they do not look like a path that carries nothing.
#[test]
fn mtu_probes_make_no_persistent_congestion() {
    for probe in [0, 2] {
        let mut ledger: Ledger<u64> = Ledger::new();
        for (pn, at) in [(0, 2), (1, 3), (2, 900)] {
            let flags =
                if pn == probe { PacketFlags::DATA.with(PacketFlags::MTU_PROBE) } else { PacketFlags::DATA };
            ledger.on_sent(SentPacket { flags, ..data(pn, ms(at)) }, &[]);
        }
        ledger.on_sent(data(3, ms(901)), &[]);
        ack(&mut ledger, &[3..=3]).0.unwrap();
        let thresholds = LossThresholds { persistent_from: Some(ms(1)), ..thresholds(10) };
        let outcome = ledger.detect_losses(ms(2_000), thresholds, &mut |_, _| {});
        let span = if probe == 0 { 897 } else { 1 };
        assert_eq!(outcome.persistent_span, Some(Duration::from_millis(span)), "probe {probe}");
    }
}

#[test]
fn losses_that_are_a_sign_are_summed_without_probes_and_by_runs() {
    let mut ledger = filled(20);
    let probe =
        SentPacket { size: 9_000, flags: PacketFlags::DATA.with(PacketFlags::MTU_PROBE), ..data(20, ms(20)) };
    ledger.on_sent(probe, &[20]);
    for pn in 21..30 {
        ledger.on_sent(data(pn, ms(pn)), &[pn]);
    }
    let (acked, _) = ack(&mut ledger, &[29..=29, 6..=16, 3..=3]);
    assert!(acked.is_ok());
    let outcome = ledger.detect_losses(ms(30), thresholds(1_000), &mut |_, _| {});
    // Lost: 0 to 2, 4 and 5, 17 to 19, the probe, 21 to 26.
    let size = u64::from(data(0, ms(0)).size);
    assert_eq!((outcome.packets, outcome.congestion_packets, outcome.congestion_ranges), (15, 14, 4));
    assert_eq!((outcome.bytes, outcome.congestion_bytes), (14 * size + 9_000, 14 * size));
}

#[test]
fn probes_take_the_oldest_first_and_repeat_only_when_all_were_taken() {
    let mut ledger = filled(3);
    let mut seen = Vec::new();
    for _ in 0..3 {
        ledger.probe(2, &mut |packet, frames| {
            seen.push((packet.pn, frames[0]));
            true
        });
    }
    assert_eq!(seen, [(0, 0), (1, 1), (2, 2), (0, 0), (0, 0), (1, 1)]);
    assert_eq!(ledger.in_flight_bytes(), 3600, "probed is not lost");
}

/// Deleted, the probes of a timeout would be empty where PINGs and probes of a size are the oldest.
#[test]
fn packets_with_nothing_to_repeat_take_no_probe() {
    let mut ledger = filled(4);
    let mut seen = Vec::new();
    for _ in 0..2 {
        ledger.probe(2, &mut |packet, _| {
            seen.push(packet.pn);
            packet.pn > 1
        });
    }
    assert_eq!(seen, [0, 1, 2, 3, 0, 1, 2, 3]);
}

/// Deleted, a receiver that lacks only the end could get what it has, timeout after timeout, where its acknowledgements are lost.
#[test]
fn the_two_probes_of_a_timeout_take_both_ends() {
    let probed = |rounds: usize, count: usize, has_any: fn(u64) -> bool| {
        let (mut ledger, mut seen) = (filled(5), Vec::new());
        for _ in 0..rounds {
            ledger.probe_ends(count, &mut |packet, _| {
                seen.push(packet.pn);
                has_any(packet.pn)
            });
        }
        seen
    };
    assert_eq!(probed(3, 2, |_| true), [0, 4, 1, 3, 2, 0]);
    assert_eq!(probed(1, 2, |pn| pn < 3), [0, 4, 3, 2], "what has nothing to repeat takes no probe");
    assert_eq!(probed(2, 1, |_| true), [0, 1], "one takes the oldest");
}

#[test]
fn acknowledgements_that_the_peer_never_acknowledges_are_bounded() {
    // What CVE-2026-63075 was about; and the packet in flight before them must not pin them.
    let mut ledger = filled(1);
    let limit = u64::from(MAX_ACK_ONLY);
    let mut lost = 0;
    for pn in 1..limit * 4 {
        ledger.on_sent(SentPacket { flags: PacketFlags::NONE, ..data(pn, ms(pn)) }, &[pn]);
        if ledger.loss_time().is_some_and(|at| at <= ms(pn)) {
            let outcome = ledger.detect_losses(ms(pn), thresholds(10), &mut |_, _| {});
            assert_eq!(outcome.congestion, None, "pushed out, not lost");
            lost += outcome.packets;
        }
        assert!(ledger.span() <= limit + 50, "{}", ledger.span());
    }
    assert_eq!((lost, ledger.in_flight_bytes()), (1, 0));
}

#[test]
fn a_cumulative_range_costs_its_news_however_long_it_is() {
    // One packet is missing at the bottom, and every second one of the first thousand came in singly.
    let mut ledger = filled(100_000);
    for pn in (2..1_000).step_by(2).chain((1..1_000).step_by(2)) {
        ack(&mut ledger, &[pn..=pn]).0.unwrap();
    }
    ack(&mut ledger, &[1..=50_000]).0.unwrap();
    ledger.slots.steps.set(0);
    for largest in 50_001..60_000 {
        let low = 1 + largest % 40_000; // and wherever the peer begins
        ack(&mut ledger, &[low..=largest]).0.unwrap();
    }
    let steps = ledger.slots.steps.get();
    assert!(steps < 10_000 * 20, "{steps} steps for 9,999 acknowledgements of one packet each");
}

#[test]
fn memory_stays_as_the_window_slides() {
    let mut ledger = filled(1_000);
    let frames = [7u64; 3];
    let mut capacities = Vec::new();
    for pn in 1_000..200_000 {
        ledger.on_sent(data(pn, ms(pn)), &frames[..1 + (pn % 3) as usize]);
        ack(&mut ledger, &[0..=pn - 1_000]).0.unwrap();
        capacities.push((ledger.slots.capacity(), ledger.frames.capacity()));
    }
    assert_eq!(capacities[10_000], capacities[198_999], "no growth in steady state");
    assert_eq!(ledger.slots.capacity(), 1_024);
}

/// What a connection that is idle gives back, and what it must not.
#[test]
fn memory_goes_when_nothing_but_acknowledgements_is_outstanding() {
    let mut ledger = filled(3);
    ledger.release_memory(ms(9), Duration::ZERO);
    assert_eq!(ledger.span(), 3, "data may still be acknowledged");
    ack(&mut ledger, &[0..=2]).0.unwrap();
    ledger.on_sent(SentPacket { flags: PacketFlags::NONE, ..data(3, ms(3)) }, &[3]);
    ledger.release_memory(ms(9), Duration::ZERO);
    assert_eq!((ledger.span(), ledger.slots.capacity(), ledger.frames.capacity()), (0, 0, 0));
    assert_eq!(ack(&mut ledger, &[0..=3]).0.unwrap().packets, 0, "it was forgotten");
    assert!(ack(&mut ledger, &[4..=4]).0.is_err(), "never sent");
    for pn in 4..100 {
        ledger.on_sent(data(pn, ms(pn)), &[pn]);
    }
    assert_eq!(ack(&mut ledger, &[0..=99]).1, (4..100).collect::<Vec<_>>());
}

/// Deleted, packets could forget what they carried where the frames of one packet more need a ring that is twice as long again: seeds 765
/// and 1320 of the simulator lost stream data.
#[test]
fn a_ring_that_must_double_twice_keeps_its_frames() {
    let mut ledger = Ledger::new();
    let lists: Vec<Vec<u64>> = [15, 30, 1, 60, 3, 120].map(|len| (0..len).collect()).into();
    for (pn, frames) in lists.iter().enumerate() {
        ledger.on_sent(data(pn as u64, ms(1)), frames);
    }
    assert_eq!(ack(&mut ledger, &[0..=5]).1, lists.concat());
}

#[test]
fn positions_of_frames_wrap() {
    let mut ring = FrameRing::with_capacity(8, 0u64);
    ring.start_at(u32::MAX - 5);
    for round in 0..100u64 {
        let start = ring.push(&[round, round + 1, round + 2]).unwrap();
        assert_eq!(ring.slice(start, 3), [round, round + 1, round + 2]);
        ring.free_before(ring.position());
    }
}

/// What the model knows of a packet number.
#[derive(Clone, Debug)]
struct Known {
    packet: SentPacket,
    frames: Vec<u64>,
    state: State,
}

/// The ledger under test and the plain list.
struct Model {
    ledger: Ledger<u64>,
    list: Vec<Known>,
    now: Instant,
    frames: u64,
    seed: u64,
}

impl Model {
    fn send(&mut self, rng: &mut Rng) {
        if rng.below(40) == 0 {
            let packet = SentPacket { flags: PacketFlags::NONE, ..data(self.list.len() as u64, self.now) };
            self.list.push(Known { packet, frames: Vec::new(), state: State::Skipped });
        }
        if rng.below(6) == 0 {
            return self.send_run(rng);
        }
        let flags = match rng.below(8) {
            0 => PacketFlags::NONE,
            1 => PacketFlags::IN_FLIGHT,
            2 => PacketFlags::DATA.with(PacketFlags::of_ecn(Ecn::Ect0)),
            _ => PacketFlags::DATA,
        };
        let pn = self.list.len() as u64;
        let packet = SentPacket { pn, sent_at: self.now, size: 1 + rng.below(65_535) as u16, flags };
        let frames: Vec<u64> = (0..rng.below(5)).map(|index| self.frames + index).collect();
        self.frames += 5;
        self.ledger.on_sent(packet, &frames);
        self.list.push(Known { packet, frames, state: State::Outstanding });
    }

    /// Packets that are alike, in one step.
    fn send_run(&mut self, rng: &mut Rng) {
        let (pn, frame, count) = (self.list.len() as u64, self.frames, rng.below(40));
        let flags = if rng.below(2) == 0 { PacketFlags::ECT0 } else { PacketFlags::NONE };
        let size = 1_000 + rng.below(2) as u16;
        let first = SentPacket { size, flags: PacketFlags::DATA.with(flags), ..data(pn, self.now) };
        self.ledger.on_run_sent(first, count, |index| frame + index);
        self.frames += count;
        self.list.extend((0..count).map(|index| Known {
            packet: SentPacket { pn: pn + index, ..first },
            frames: vec![frame + index],
            state: State::Outstanding,
        }));
    }

    /// Ranges as an honest peer may send them: some of what was sent, none of what was skipped.
    fn ack(&mut self, rng: &mut Rng) {
        let density = 1 + rng.below(8);
        let low = rng.below(self.list.len() as u64 + 1);
        let high = pick(rng, low, self.list.len() as u64 + 1);
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        for pn in (low..high).rev() {
            if self.list[pn as usize].state == State::Skipped || rng.below(8) > density {
                continue;
            }
            match ranges.last_mut() {
                Some(range) if *range.start() == pn + 1 => *range = pn..=*range.end(),
                _ => ranges.push(pn..=pn),
            }
        }
        let base = self.ledger.base;
        let mut expected = Vec::new();
        let mut bytes = 0;
        for pn in ranges.iter().flat_map(|range| range.clone()) {
            let known = &mut self.list[pn as usize];
            let is_new = known.state == State::Outstanding || known.state == State::Lost && pn >= base;
            if is_new {
                let is_counted = known.state == State::Outstanding && known.packet.is_in_flight();
                bytes += if is_counted { u64::from(known.packet.size) } else { 0 };
                known.state = State::Acked;
                expected.push((pn, known.frames.clone()));
            }
        }
        let mut acked = Vec::new();
        let outcome = self
            .ledger
            .on_ack(ranges, &mut |packet, count, frames| {
                let each = frames.len() / count as usize;
                let of = |index: u64| frames[index as usize * each..][..each].to_vec();
                acked.extend((0..count).map(|index| (packet.pn + index, of(index))));
            })
            .unwrap();
        assert_eq!(acked, expected, "seed {}", self.seed);
        assert_eq!(outcome.bytes, bytes, "seed {}", self.seed);
        assert_eq!(outcome.largest.map(|largest| largest.pn), expected.iter().map(|acked| acked.0).max());
    }

    /// RFC 9002 A.10, word by word.
    fn detect(&mut self) {
        let rule = thresholds(30);
        let largest_acked = self.ledger.largest_acked();
        let mut expected = Vec::new();
        let mut loss_time = None;
        for known in self.list.iter_mut().filter(|known| known.state == State::Outstanding) {
            let Some(largest_acked) = largest_acked.filter(|pn| known.packet.pn <= *pn) else { break };
            if self.now.saturating_since(known.packet.sent_at) >= rule.delay
                || largest_acked >= known.packet.pn + rule.packets
            {
                known.state = State::Lost;
                expected.push((known.packet.pn, known.frames.clone()));
            } else {
                let at = known.packet.sent_at + rule.delay;
                loss_time = Some(loss_time.map_or(at, |earliest: Instant| earliest.min(at)));
            }
        }
        let mut lost = Vec::new();
        self.ledger
            .detect_losses(self.now, rule, &mut |packet, frames| lost.push((packet.pn, frames.to_vec())));
        assert_eq!(lost, expected, "seed {}", self.seed);
        assert_eq!(self.ledger.loss_time(), loss_time, "seed {}", self.seed);
    }

    fn leave(&mut self, rng: &mut Rng) {
        if rng.below(2) == 0 {
            self.ledger.on_path_change();
            for known in &mut self.list {
                known.packet.flags = known.packet.flags.without(PacketFlags::IN_FLIGHT);
            }
        } else {
            let mut seen = Vec::new();
            self.ledger.discard(&mut |packet, _| seen.push(packet.pn));
            let outstanding = self.list.iter_mut().filter(|known| known.state == State::Outstanding);
            let expected: Vec<_> = outstanding
                .map(|known| {
                    known.state = State::Acked;
                    known.packet.pn
                })
                .collect();
            assert_eq!(seen, expected, "seed {}", self.seed);
        }
    }

    fn check(&self) {
        let Model { ledger, list, seed, .. } = self;
        let outstanding: Vec<_> = list.iter().filter(|known| known.state == State::Outstanding).collect();
        let in_flight = outstanding.iter().filter(|known| known.packet.is_in_flight());
        let bytes: u64 = in_flight.map(|known| u64::from(known.packet.size)).sum();
        assert_eq!(ledger.in_flight_bytes(), bytes, "seed {seed}");
        let eliciting = outstanding.iter().filter(|known| known.packet.is_ack_eliciting()).count();
        assert_eq!(ledger.ack_eliciting_in_flight() as usize, eliciting, "seed {seed}");
        assert!(ledger.base <= ledger.first_outstanding && ledger.first_outstanding <= ledger.next);
        let first = outstanding.first().map_or(ledger.next, |known| known.packet.pn);
        assert!(ledger.first_outstanding <= first, "seed {seed}");
    }
}

#[test]
fn agrees_with_a_plain_list() {
    for seed in 0..100_000 {
        let mut rng = Rng::from_u64(seed);
        let mut model = Model { ledger: Ledger::new(), list: Vec::new(), now: ms(1), frames: 0, seed };
        for _ in 0..40 {
            match rng.below(32) {
                0..20 => model.send(&mut rng),
                20..26 => model.ack(&mut rng),
                26..29 => model.detect(),
                29 | 30 => model.now = model.now + Duration::from_millis(rng.below(40)),
                _ if rng.below(4) == 0 => model.leave(&mut rng),
                _ => model.ledger.probe(1, &mut |_, _| true),
            }
            model.check();
        }
    }
}

#[test]
fn hostile_ranges_never_break_it() {
    for seed in 0..100_000 {
        let mut rng = Rng::from_u64(seed);
        let mut ledger = Ledger::new();
        let mut now = ms(1);
        for _ in 0..30 {
            now = crate::testing::any_later(&mut rng, now);
            let pn = ledger.largest_sent().map_or(0, |largest| largest + 1) + u64::from(rng.below(9) == 0);
            ledger.on_sent(data(pn, now), &[pn; 3][..rng.below(4) as usize]);
            let ranges = (0..rng.below(5)).map(|_| rng.below(pn + 2)..=rng.below(pn + 2)).collect::<Vec<_>>();
            let mut rtt = Rtt::default();
            rtt.on_sample(now, crate::testing::any_span(&mut rng), Duration::ZERO);
            if ledger.on_ack(ranges, &mut |_, _, _| {}).is_err() {
                break; // the connection closes
            }
            ledger.detect_losses(now, rtt.loss_thresholds(), &mut |_, _| {});
            assert!(ledger.in_flight_bytes() <= (pn + 1) * 1200, "seed {seed}");
        }
        ledger.discard(&mut |_, _| {});
        assert_eq!(ledger.in_flight_bytes(), 0);
    }
}
