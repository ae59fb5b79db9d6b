use super::*;
use base::rng::Rng;
use std::collections::BTreeSet;

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Takes in ack-eliciting, unmarked packets at once; returns the urgency after the last.
fn receive(tracker: &mut AckTracker, pns: impl IntoIterator<Item = u64>) -> AckUrgency {
    pns.into_iter()
        .map(|pn| tracker.on_received(ms(pn), pn, Eliciting::Yes, Ecn::NotEct))
        .last()
        .unwrap_or(AckUrgency::None)
}

fn ranges(tracker: &AckTracker) -> Vec<Range<u64>> {
    tracker.ranges().collect()
}

#[test]
fn every_second_packet_or_after_the_delay() {
    let mut tracker = AckTracker::new(AckPolicy::EVERY_SECOND);
    assert_eq!(receive(&mut tracker, [0]), AckUrgency::Delayed);
    assert_eq!(tracker.next_timeout(), Some(ms(25)));
    assert_eq!(tracker.urgency(ms(24)), AckUrgency::Delayed);
    assert_eq!(tracker.urgency(ms(25)), AckUrgency::Immediate);
    assert_eq!(receive(&mut tracker, [1]), AckUrgency::Immediate);
    assert_eq!(ranges(&tracker).first(), Some(&(0..2)));
    assert_eq!(tracker.ack_delay(ms(4)), Duration::from_millis(3));
    tracker.on_ack_sent();
    assert_eq!((tracker.urgency(ms(99)), tracker.next_timeout()), (AckUrgency::None, None));
    let at_once = &mut AckTracker::new(AckPolicy::IMMEDIATE);
    assert_eq!(receive(at_once, [0]), AckUrgency::Immediate);
}

/// Without this, a sender whose window is smaller than the threshold waits for the whole delay with each flight.
#[test]
fn a_flight_below_the_threshold_waits_for_a_part_of_the_round_trip_only() {
    let policy = AckPolicy { eliciting_threshold: 10, ..AckPolicy::EVERY_SECOND };
    for (rtt, delay) in [
        (Duration::from_millis(8), Duration::from_millis(2)),
        (Duration::from_micros(80), LEAST_DELAY),
        (Duration::from_secs(1), Duration::from_millis(25)),
    ] {
        let mut tracker = AckTracker::new(policy);
        tracker.set_round_trip(rtt);
        for pn in 0..u64::from(STEADY_AFTER) {
            tracker.on_received(ms(0), pn, Eliciting::Yes, Ecn::NotEct);
        }
        tracker.on_ack_sent();
        for pn in 100..105 {
            assert_eq!(tracker.on_received(ms(7), pn, Eliciting::Yes, Ecn::NotEct), AckUrgency::Delayed);
            let waits = if pn == 100 { Duration::from_millis(25) } else { delay };
            assert_eq!(tracker.next_timeout(), Some(ms(7) + waits), "packet {pn}, round trip {rtt:?}");
        }
    }
    // What the sender has asked for holds.
    let mut tracker = AckTracker::new(AckPolicy { chooser: Chooser::Sender, ..policy });
    tracker.set_round_trip(Duration::from_millis(8));
    receive(&mut tracker, [0, 1, 2]);
    assert_eq!(tracker.next_timeout(), Some(ms(25)));
}

#[test]
fn what_is_not_ack_eliciting_waits_for_what_is() {
    let mut tracker = AckTracker::new(AckPolicy::IMMEDIATE);
    for pn in [0, 5, 3] {
        // RFC 9000 §13.2.1: not even for gaps, or two endpoints would acknowledge each other for ever.
        let urgency = tracker.on_received(ms(1), pn, Eliciting::No, Ecn::Ce);
        assert_eq!((urgency, tracker.next_timeout()), (AckUrgency::None, None));
    }
    receive(&mut tracker, [6]);
    assert_eq!(ranges(&tracker), [5..7, 3..4, 0..1]);
}

/// RFC 9000 §13.2.1. Each row: ack-eliciting packets received and acknowledged, one that is not ack-eliciting, the next.
#[test]
fn gaps_are_reported_at_once() {
    let policy = AckPolicy { eliciting_threshold: 100, ..AckPolicy::EVERY_SECOND };
    for (before, other, next, urgency, why) in [
        (vec![0, 1], None, 2, AckUrgency::Delayed, "in order"),
        (vec![0, 1], None, 3, AckUrgency::Immediate, "a new gap"),
        (vec![0, 3], None, 1, AckUrgency::Immediate, "below another"),
        (vec![0, 3], None, 4, AckUrgency::Delayed, "the gap is old"),
        (vec![0, 1], Some(2), 3, AckUrgency::Delayed, "the number between was received"),
        (
            vec![0, 1],
            Some(3),
            4,
            AckUrgency::Immediate,
            "2 is missing between this one and the last ack-eliciting one",
        ),
        (vec![0, 1], Some(9), 2, AckUrgency::Delayed, "below one that is not ack-eliciting"),
    ] {
        let mut tracker = AckTracker::new(policy);
        receive(&mut tracker, before);
        tracker.on_ack_sent();
        if let Some(pn) = other {
            tracker.on_received(ms(9), pn, Eliciting::No, Ecn::NotEct);
        }
        assert_eq!(receive(&mut tracker, [next]), urgency, "{why}");
    }
}

#[test]
fn a_higher_reordering_threshold_waits_for_the_gap_to_age() {
    // draft-ietf-quic-ack-frequency §6.2.1, the example with a threshold of 3.
    let policy = AckPolicy { eliciting_threshold: 100, reordering_threshold: 3, ..asked(100) };
    let mut tracker = AckTracker::new(policy);
    assert_eq!(
        acked_after(&mut tracker, &[0, 1, 3, 4, 5, 8, 9, 10]),
        [5, 9, 10],
        "2 below 5; 6 below 9; 7 below 10"
    );
    assert_eq!(
        acked_after(&mut tracker, &[7, 6]),
        [7, 6],
        "both were given up: the sender sees that it erred"
    );
    tracker.set_policy(AckPolicy { reordering_threshold: 0, ..policy });
    assert_eq!(receive(&mut tracker, [20, 15]), AckUrgency::Delayed, "0 is never");
    // The example with a threshold of 5, where 4 is not reported with 2.
    let mut tracker = AckTracker::new(AckPolicy { reordering_threshold: 5, ..policy });
    assert_eq!(acked_after(&mut tracker, &[0, 1, 3, 5, 6, 7, 8, 9]), [7, 9]);
}

/// After which packets an acknowledgement goes.
fn acked_after(tracker: &mut AckTracker, pns: &[u64]) -> Vec<u64> {
    let mut after = Vec::new();
    for &pn in pns {
        if receive(tracker, [pn]) == AckUrgency::Immediate {
            after.push(pn);
            tracker.on_ack_sent();
        }
    }
    after
}

/// What a sender may ask for.
fn asked(eliciting_threshold: u32) -> AckPolicy {
    AckPolicy { eliciting_threshold, chooser: Chooser::Sender, ..AckPolicy::EVERY_SECOND }
}

/// Without it a sender in slow start, or one whose window has just been halved, waits for the tenth packet.
#[test]
fn a_receiver_is_frugal_on_a_steady_path_only() {
    let mut tracker = AckTracker::new(AckPolicy { eliciting_threshold: 10, ..AckPolicy::EVERY_SECOND });
    let steady = u64::from(STEADY_AFTER);
    let all = |from: u64, to: u64| (from..to).collect::<Vec<_>>();
    let begin = acked_after(&mut tracker, &all(0, steady));
    assert_eq!(begin.len(), STEADY_AFTER as usize / 2 - 1, "every second, until {:?}", begin.last());
    assert_eq!(acked_after(&mut tracker, &all(steady, 2 * steady)).len(), STEADY_AFTER as usize / 10);
    let (lost, again) = (2 * steady, u64::from(STEADY_AGAIN_AFTER));
    let after_loss = acked_after(&mut tracker, &all(lost + 1, lost + again));
    assert_eq!(after_loss.first(), Some(&(lost + 1)), "the gap at once");
    assert!(after_loss.len() >= STEADY_AGAIN_AFTER as usize / 2 - 1, "every second: {}", after_loss.len());
    assert_eq!(acked_after(&mut tracker, &all(lost + again, lost + again + 100)).len(), 10);
    // A sender that asks knows what it needs.
    let mut tracker = AckTracker::new(asked(10));
    assert_eq!(acked_after(&mut tracker, &all(0, 100)).len(), 10);
}

/// draft-ietf-quic-ack-frequency §6.3: on a path that marks everything else there would be an acknowledgement per packet.
#[test]
fn of_marks_in_a_row_the_first_is_urgent() {
    for (policy, urgent) in [
        (asked(100), [true, false, false, true]),
        (asked(2), [true; 4]),
        (AckPolicy { eliciting_threshold: 100, ..AckPolicy::EVERY_SECOND }, [true; 4]),
    ] {
        let mut tracker = AckTracker::new(policy);
        let marked = [(1, Ecn::Ce), (2, Ecn::Ce), (3, Ecn::Ce), (4, Ecn::Ect0), (5, Ecn::Ce)];
        let mut seen = Vec::new();
        for (pn, mark) in marked {
            tracker.on_received(ms(1), pn - 1, Eliciting::Yes, mark);
            if mark == Ecn::Ce {
                seen.push(tracker.urgency(ms(1)) == AckUrgency::Immediate);
            }
            tracker.on_ack_sent();
        }
        assert_eq!(seen, urgent, "{policy:?}");
        assert_eq!(tracker.ecn_counts().ce, 4);
    }
}

#[test]
fn an_immediate_ack_and_the_end_of_a_stream_do_not_wait() {
    let mut tracker = AckTracker::new(asked(100));
    tracker.expedite();
    assert_eq!(receive(&mut tracker, [0]), AckUrgency::Immediate);
    tracker.on_ack_sent();
    assert_eq!(receive(&mut tracker, [1]), AckUrgency::Delayed, "it holds for one packet");
    tracker.on_end_of_stream();
    assert_eq!(receive(&mut tracker, [2]), AckUrgency::Delayed, "the sender has asked for this delay");
    let mut tracker = AckTracker::new(AckPolicy::EVERY_SECOND);
    tracker.on_end_of_stream();
    assert_eq!(receive(&mut tracker, [0]), AckUrgency::Immediate);
}

/// Else a packet that waits already is acknowledged when the old policy says, and the sender that asked thinks it lost.
#[test]
fn a_shorter_delay_holds_for_what_waits_already() {
    let mut tracker = AckTracker::new(asked(100));
    receive(&mut tracker, [0]);
    assert_eq!(tracker.next_timeout(), Some(ms(25)));
    tracker.set_policy(AckPolicy { max_ack_delay: Duration::from_millis(5), ..asked(100) });
    assert_eq!(tracker.next_timeout(), Some(ms(5)));
    tracker.set_policy(asked(100));
    assert_eq!(tracker.next_timeout(), Some(ms(5)), "a longer one for what comes");
}

#[test]
fn marks_are_counted_and_reported_at_once() {
    let mut tracker = AckTracker::new(AckPolicy { eliciting_threshold: 100, ..AckPolicy::EVERY_SECOND });
    tracker.on_received(ms(0), 0, Eliciting::Yes, Ecn::Ect0);
    assert_eq!(tracker.on_received(ms(0), 1, Eliciting::Yes, Ecn::Ce), AckUrgency::Immediate);
    assert_eq!(tracker.ecn_counts(), EcnCounts { ect0: 1, ect1: 0, ce: 1 });
}

#[test]
fn what_the_peer_knows_we_know_is_not_repeated() {
    let mut tracker = AckTracker::new(AckPolicy::default());
    receive(&mut tracker, (0..10).chain(20..30).chain(40..50));
    tracker.on_ack_of_ack(25);
    assert_eq!(ranges(&tracker), [40..50, 26..30]);
    assert!(tracker.is_duplicate(15), "too old to tell");
    assert!(!tracker.is_duplicate(35));
    tracker.on_ack_of_ack(u64::MAX);
    assert!(tracker.ranges().eq(core::iter::once(40..50)), "one range stays");
    assert_eq!(tracker.largest(), Some(49));
}

/// Deleted, a question after an outage could leave its peer without the acknowledgements that the outage took.
#[test]
fn what_was_acknowledged_can_go_again_with_what_is_sent_next() {
    let mut tracker = AckTracker::new(AckPolicy::EVERY_SECOND);
    tracker.repeat();
    assert_eq!(tracker.urgency(ms(0)), AckUrgency::None, "nothing has come");
    receive(&mut tracker, [0, 1, 2]);
    tracker.on_ack_sent();
    tracker.repeat();
    assert_eq!(
        (tracker.urgency(ms(9_000)), tracker.next_timeout()),
        (AckUrgency::Delayed, None),
        "not alone"
    );
    tracker.on_ack_sent();
    assert_eq!(tracker.urgency(ms(9_000)), AckUrgency::None, "once");
    tracker.repeat();
    assert_eq!(receive(&mut tracker, [3, 4]), AckUrgency::Immediate, "what is new does not wait for it");
}

#[test]
fn ranges_are_bounded_and_the_forgotten_are_duplicates() {
    let mut tracker = AckTracker::new(AckPolicy::default());
    receive(&mut tracker, (0..100_000).step_by(2));
    assert_eq!(tracker.ranges().len(), MAX_RANGES);
    assert!(tracker.is_duplicate(1) && tracker.is_duplicate(99_998) && !tracker.is_duplicate(99_997));
    // A packet below what is remembered is never taken in, not even when the caller forgets to ask.
    assert_eq!(tracker.largest(), Some(99_998));
}

/// What would be lost without it: a packet taken in twice, or one acknowledged that never came.
#[test]
fn agrees_with_a_plain_set() {
    for seed in 0..20_000 {
        let mut rng = Rng::from_u64(seed);
        let mut tracker =
            AckTracker::new(AckPolicy { reordering_threshold: rng.below(4), ..AckPolicy::default() });
        let mut came = BTreeSet::new();
        let mut now = ms(0);
        for _ in 0..60 {
            now = crate::testing::any_later(&mut rng, now);
            let pn = rng.below(100);
            if tracker.is_duplicate(pn) {
                assert!(came.contains(&pn) || pn < tracker.floor, "seed {seed}");
                continue;
            }
            assert!(came.insert(pn), "seed {seed}: {pn} twice");
            let eliciting = if rng.below(3) == 0 { Eliciting::No } else { Eliciting::Yes };
            tracker.on_received(now, pn, eliciting, Ecn::NotEct);
            match rng.below(8) {
                0 => tracker.on_ack_sent(),
                1 => tracker.on_ack_of_ack(rng.below(100)),
                _ => {}
            }
            assert!(tracker.ranges().flatten().all(|pn| came.contains(&pn)), "seed {seed}");
            assert_eq!(tracker.largest(), came.last().copied(), "seed {seed}");
            assert!(
                tracker.ranges().next().is_some_and(|range| range.end - 1 == came.last().copied().unwrap())
            );
        }
    }
}

#[test]
fn an_acknowledgement_from_the_past_makes_its_own_packet_too_old() {
    let mut tracker = AckTracker::new(AckPolicy::EVERY_SECOND);
    receive(&mut tracker, (0..5).chain(7..10));
    tracker.on_ack_sent();
    assert!(!tracker.is_duplicate(6));
    tracker.on_ack_of_ack(9);
    assert_eq!(receive(&mut tracker, [6]), AckUrgency::None);
    assert_eq!(ranges(&tracker), vec![7..10]);
}

/// Deleted, a run could be acknowledged otherwise than its packets one by one.
#[test]
fn a_run_is_as_its_packets_one_by_one() {
    let mut runs = 0;
    for seed in 0..3_000 {
        let mut rng = Rng::from_u64(seed);
        let chooser = if rng.below(2) == 0 { Chooser::Receiver } else { Chooser::Sender };
        let policy = AckPolicy {
            eliciting_threshold: 1 + rng.below(30) as u32,
            max_ack_delay: Duration::from_millis(25),
            reordering_threshold: rng.below(3),
            chooser,
        };
        let (mut run, mut single) = (AckTracker::new(policy), AckTracker::new(policy));
        let (mut next, mut now) = (0, ms(1));
        for _ in 0..40 {
            now = now + Duration::from_micros(rng.below(30_000));
            let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][rng.below(4) as usize];
            let mut each = |apply: &mut dyn FnMut(&mut AckTracker)| [&mut run, &mut single].map(apply);
            match rng.below(6) {
                0 => _ = each(&mut |tracker| tracker.on_ack_sent()),
                1 => _ = each(&mut |tracker| tracker.set_round_trip(Duration::from_millis(seed % 50))),
                2 => _ = each(&mut |tracker| tracker.on_end_of_stream()),
                3 => {
                    next += rng.below(3);
                    let eliciting = if rng.below(4) == 0 { Eliciting::No } else { Eliciting::Yes };
                    each(&mut |tracker| _ = tracker.on_received(now, next, eliciting, ecn));
                    next += 1;
                }
                _ if single.next_in_order() == Some(next) && ecn != Ecn::Ce => {
                    let count = rng.below(70);
                    run.on_run_received(now, count, ecn);
                    for pn in next..next + count {
                        single.on_received(now, pn, Eliciting::Yes, ecn);
                    }
                    next += count;
                    runs += 1;
                }
                _ => {}
            }
            assert_eq!(format!("{run:?}"), format!("{single:?}"), "seed {seed}");
        }
    }
    assert!(runs > 5_000, "{runs}");
}
