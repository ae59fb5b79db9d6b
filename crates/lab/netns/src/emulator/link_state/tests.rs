use std::time::Duration;

use super::*;
use crate::emulator::options::{BurstLoss, Reorder};

const FRAME: Datagram = Datagram { frame_bytes: 1_250, ip_bytes: Some(1_236), is_corrupted: false };

fn lost(options: &LinkOptions, count: usize) -> Vec<usize> {
    let mut judge = LinkState::new(options.clone());
    (0..count).filter(|n| judge.decide(*n as u64, FRAME) == DatagramOutcome::Lost).collect()
}

/// Would break: an experiment could not be repeated, nor a failure be looked at again.
#[test]
fn the_same_seed_loses_the_same_datagrams() {
    let options = LinkOptions { loss: 0.01, seed: 7, ..LinkOptions::default() };
    let first = lost(&options, 100_000);
    assert_eq!(first, lost(&options, 100_000));
    assert!((900..1_100).contains(&first.len()), "{} of 100000 lost", first.len());
    assert_ne!(first, lost(&LinkOptions { seed: 8, ..options.clone() }, 100_000));
    // Pinned: a change of the generator or of its use changes every recorded experiment.
    assert_eq!(first[..4], [100, 102, 183, 244]);
    // Rate, delay, late and doubled datagrams do not shift the sequence.
    let reorder = Some(Reorder { share: 0.0, by: Duration::ZERO });
    let slow = LinkOptions {
        rate_bits: Some(1_000_000_000),
        queue_bytes: u64::MAX,
        delay: Duration::from_millis(3),
        reorder,
        ..options
    };
    assert_eq!(first, lost(&slow, 100_000));
}

/// Would break: eaten and overflowed datagrams would shift everybody else's luck.
#[test]
fn each_datagram_draws_once_whatever_becomes_of_it() {
    let options = LinkOptions { loss: 0.1, drops_above: Some(1_300), seed: 3, ..LinkOptions::default() };
    let plain = lost(&options, 1_000);
    let mut judge = LinkState::new(options);
    let large = Datagram { frame_bytes: 1_450, ip_bytes: Some(1_436), is_corrupted: false };
    let mixed: Vec<usize> = (0..1_000)
        .filter(|n| judge.decide(0, if n % 3 == 0 { large } else { FRAME }) == DatagramOutcome::Lost)
        .collect();
    assert_eq!(mixed, plain.into_iter().filter(|n| n % 3 != 0).collect::<Vec<_>>());
}

/// Would break: the rate would be wrong, or a full queue would not drop.
#[test]
fn the_line_takes_its_time_and_the_queue_its_bytes() {
    // 10 Mbit/s: 1,250 bytes take 1 ms. The queue holds four of them, the one being sent included.
    let delay = Duration::from_millis(5);
    let options =
        LinkOptions { rate_bits: Some(10_000_000), queue_bytes: 5_000, delay, ..LinkOptions::default() };
    let mut judge = LinkState::new(options);
    let fates: Vec<DatagramOutcome> = (0..6).map(|_| judge.decide(0, FRAME)).collect();
    let arrives = |ms: u64| DatagramOutcome::Arrives { at: ms * 1_000_000 };
    assert_eq!(
        fates,
        [
            arrives(6),
            arrives(7),
            arrives(8),
            arrives(9),
            DatagramOutcome::Overflowed,
            DatagramOutcome::Overflowed
        ]
    );
    assert_eq!(judge.decide(1_000_000, FRAME), arrives(10), "one has left the queue");
    assert_eq!(judge.decide(60_000_000, FRAME), arrives(66), "the line was idle");
    // 0, 1, 2 and 3 ms; 3 again; none. The delay of the link is no wait, and the two that found no room have none.
    assert_eq!((judge.waits().total(), judge.waits().mean().as_micros()), (6, 1_500));
}

/// Would break: a datagram longer than the queue could never be sent, and a test would hang.
#[test]
fn an_idle_line_takes_any_datagram() {
    let options = LinkOptions { rate_bits: Some(10_000_000), queue_bytes: 100, ..LinkOptions::default() };
    let mut judge = LinkState::new(options);
    assert_eq!(judge.decide(0, FRAME), DatagramOutcome::Arrives { at: 1_000_000 });
    assert_eq!(judge.decide(0, FRAME), DatagramOutcome::Overflowed);
}

/// Would break: path-MTU tests would see nothing eaten, or neighbour discovery would be eaten as well.
#[test]
fn the_black_hole_counts_bytes_of_the_ip_packet() {
    let mut judge =
        LinkState::new(LinkOptions { drops_above: Some(1_236), loss: 1.0, ..LinkOptions::default() });
    assert_eq!(judge.decide(0, FRAME), DatagramOutcome::Lost);
    assert_eq!(judge.decide(0, Datagram { ip_bytes: Some(1_237), ..FRAME }), DatagramOutcome::BlackHole);
    assert_eq!(
        judge.decide(5, Datagram { frame_bytes: 9_000, ip_bytes: None, is_corrupted: false }),
        DatagramOutcome::Arrives { at: 5 }
    );
}

/// Would break: losses would come singly where bursts were asked for.
#[test]
fn bursts_have_the_asked_length_and_share() {
    let burst = Some(BurstLoss { begins: 0.01, ends: 0.25 });
    let lost = lost(&LinkOptions { burst, seed: 1, ..LinkOptions::default() }, 200_000);
    let bursts = 1 + lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    let mean = lost.len() as f64 / bursts as f64;
    assert!((3.7..4.3).contains(&mean), "mean length {mean}");
    // The share of time in the bad state: begins / (begins + ends).
    assert!((7_000..8_400).contains(&lost.len()), "{} of 200000 lost", lost.len());
}

/// Would break: late datagrams would be on time, or hold up those behind them.
#[test]
fn late_datagrams_do_not_hold_up_others() {
    let reorder = Some(Reorder { share: 0.5, by: Duration::from_millis(2) });
    let mut judge = LinkState::new(LinkOptions { reorder, seed: 2, ..LinkOptions::default() });
    let fates: Vec<DatagramOutcome> = (0..1_000).map(|_| judge.decide(10, FRAME)).collect();
    let late =
        fates.iter().filter(|link_state| **link_state == DatagramOutcome::Late { at: 2_000_010 }).count();
    assert!((400..600).contains(&late), "{late} of 1000 late");
    assert_eq!(
        fates.iter().filter(|link_state| **link_state == DatagramOutcome::Arrives { at: 10 }).count(),
        1_000 - late
    );
}

/// Would break: jitter would reorder, which is asked for by another option.
#[test]
fn jitter_keeps_the_order_and_its_bounds() {
    let options = LinkOptions {
        delay: Duration::from_nanos(100),
        jitter: Duration::from_nanos(50),
        ..LinkOptions::default()
    };
    let mut judge = LinkState::new(options);
    let mut last = 0;
    for now in (0..10_000).step_by(10) {
        judge.begin_frame();
        let DatagramOutcome::Arrives { at } = judge.decide(now, FRAME) else {
            panic!("nothing is lost here")
        };
        assert!(at >= last && (now + 100..=now + 150).contains(&at), "{now}: {at}");
        last = at;
    }
}

/// Would break: a new setting would not take effect, or the sequence would begin again with every setting.
#[test]
fn options_change_in_the_middle_of_the_sequence() {
    let options = LinkOptions { loss: 0.5, seed: 5, ..LinkOptions::default() };
    let whole = lost(&options, 200);
    let mut judge = LinkState::new(options.clone());
    let mut halves: Vec<usize> =
        (0..100).filter(|_| judge.decide(0, FRAME) == DatagramOutcome::Lost).collect();
    judge.change(&LinkOptions { delay: Duration::from_secs(1), ..options });
    halves.extend((100..200).filter(|_| judge.decide(0, FRAME) == DatagramOutcome::Lost));
    assert_eq!(halves, whole);
}

/// Would break: a scenario of the interoperability cases would not be the one that its name says.
#[test]
fn events_lose_by_list_and_by_time_and_corrupt_at_most_so_many_in_a_row() {
    let judge = |events: Vec<Node>| LinkState::new(LinkOptions { events, ..LinkOptions::default() });
    let mut listed = judge(vec![Node::Drop(vec![2, 3])]);
    let outcomes: Vec<_> = (0..4).map(|_| listed.decide(7, FRAME)).collect();
    let arrives = DatagramOutcome::Arrives { at: 7 };
    assert_eq!(outcomes, [arrives, DatagramOutcome::Lost, DatagramOutcome::Lost, arrives]);

    let (on, off) = (base::time::Duration::from_secs(5), base::time::Duration::from_secs(2));
    let mut blinking = judge(vec![Node::Blinking { on, off }]);
    // The time counts from the first datagram.
    let began = 1_000_000_000;
    let passes = |state: &mut LinkState, seconds: u64| {
        state.decide(began + seconds * 1_000_000_000, FRAME) != DatagramOutcome::Lost
    };
    let seen: Vec<_> = [0, 4, 5, 6, 7, 11, 12].map(|seconds| passes(&mut blinking, seconds)).into();
    assert_eq!(seen, [true, true, false, false, true, true, false]);

    let rate = EventRate { ppm: 900_000, burst: Burst::AtMost(3) };
    let mut corrupting = judge(vec![Node::Corrupt(rate)]);
    let hits: Vec<_> =
        (0..500).map(|_| corrupting.decide(0, FRAME) == DatagramOutcome::Corrupted { at: 0 }).collect();
    assert!(hits.windows(4).all(|four| four != [true; 4]), "more than three in a row");
    assert!(hits.windows(3).any(|three| three == [true; 3]));
}

/// Would break: what exceeds a policer's rate would wait, or a pause would not give its burst back.
#[test]
fn a_policer_loses_what_exceeds_its_burst_and_delays_nothing() {
    // 10 Mbit/s: a frame of 1,250 bytes is worth 1 ms. Three of them may come at once.
    let events = vec![Node::Police { bits_per_second: 10_000_000, burst_bytes: 3_750 }];
    let mut judge = LinkState::new(LinkOptions { events, ..LinkOptions::default() });
    let mut passed = |now: u64| match judge.decide(now, FRAME) {
        DatagramOutcome::Arrives { at } => {
            assert_eq!(at, now);
            true
        }
        outcome => {
            assert_eq!(outcome, DatagramOutcome::Lost);
            false
        }
    };
    let mut of_five = |now: u64| (0..5).filter(|_| passed(now)).count();
    assert_eq!([of_five(0), of_five(1_000_000), of_five(100_000_000)], [3, 1, 3]);
}
