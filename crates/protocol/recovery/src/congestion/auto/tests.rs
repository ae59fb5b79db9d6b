//! What acknowledgements and losses make of the judge.

use super::*;
use crate::congestion::CongestionCause;
use crate::congestion::tests::{acked, sign};

const MIN: u64 = 40;

/// A flow with a judge, whose rounds have ten acknowledgements.
struct Flow {
    judge: Judge,
    now: Instant,
    app_limited: bool,
    /// At the next reduction, in bytes.
    window: u64,
}

impl Flow {
    fn new() -> Flow {
        let now = Instant::ZERO + Duration::from_secs(1);
        Flow { judge: Judge::new(), now, app_limited: false, window: 100_000 }
    }

    /// A round whose round trips grow from the one to the other; before some of its acknowledgements packets were lost, all of one recovery.
    fn round(&mut self, (from, to): (u64, u64), lost: &[u64]) -> Option<Cause> {
        let round_trips: Vec<u64> = (0..10).map(|index| from + (to - from) * index / 9).collect();
        self.round_of(&round_trips, lost)
    }

    /// A round with an acknowledgement for each of these round trips, in milliseconds.
    fn round_of(&mut self, round_trips: &[u64], lost: &[u64]) -> Option<Cause> {
        let sent_at = self.now;
        let mut change = None;
        for (index, rtt) in (0..).zip(round_trips) {
            if lost.contains(&index) {
                let sign = sign(sent_at, CongestionCause::Loss);
                let after = if Some(&index) == lost.first() { self.window * 7 / 10 } else { self.window };
                self.judge.on_lost(self.now, &sign, self.window, after);
            }
            let rtt = Duration::from_millis(*rtt);
            let largest_sent_at = if index == 0 { sent_at } else { sent_at - Duration::from_nanos(1) };
            let acked = AckedBytes {
                rtt,
                latest_rtt: Some(rtt),
                app_limited: self.app_limited,
                ..acked(10_000, largest_sent_at)
            };
            self.now = self.now + Duration::from_millis(1);
            change = change.or(self.judge.on_ack(self.now, &acked));
        }
        if let Some(cause) = change {
            self.judge.on_changed(cause);
        }
        change
    }

    /// A round trip of `MIN`, and then so many milliseconds until it is heard of; the peer says that it waited so many of them.
    fn acknowledge_late(&mut self, late: u64, delay: u64) {
        let (rtt, ack_delay) = (Duration::from_millis(MIN + late), Duration::from_millis(delay));
        let sent_at = self.now - rtt;
        let acked = AckedBytes { rtt, latest_rtt: Some(rtt), ack_delay, ..acked(10_000, sent_at) };
        assert_eq!(self.judge.on_ack(self.now, &acked), None);
    }

    /// So many packets, the earliest sent then, arrive that had been declared lost.
    fn arrive(&mut self, earliest: Instant, packets: u64) {
        let late = AckedBytes { spurious: packets, spurious_from: Some(earliest), ..acked(0, earliest) };
        assert_eq!(self.judge.on_ack(self.now, &AckedBytes { latest_rtt: None, ..late }), None);
    }
}

#[test]
fn a_judge_is_as_large_as_decision_023_says() {
    assert_eq!(size_of::<Judge>(), 232);
}

/// Deleted, a page would be half there before slow start goes on that one loss has ended.
#[test]
fn the_first_loss_counts_twice_if_nothing_waits() {
    let mut flow = Flow::new();
    flow.round((MIN, MIN), &[]);
    assert_eq!(flow.round((MIN, MIN + 2), &[3]), Some(Cause::RandomLoss));
    let mut flow = Flow::new();
    flow.round((MIN, MIN), &[]);
    assert_eq!(flow.round((MIN, MIN + 20), &[5]), None, "but not where something does");
}

/// Deleted, the end of slow start's overflow could be chance: it is declared lost when the queue has become shorter.
#[test]
fn losses_speak_for_chance_once_in_a_recovery() {
    let overflow = [MIN + 3, MIN + 3, MIN + 1, MIN + 1];
    let mut flow = Flow::new();
    flow.round((MIN, MIN + 3), &[]);
    assert_eq!(flow.round_of(&overflow, &[1, 2, 3]), None);
    assert_eq!(flow.round((MIN, MIN + 1), &[2, 3, 4]), None, "once");
    assert_eq!(flow.round((MIN, MIN + 1), &[2]), Some(Cause::RandomLoss), "twice");
}

/// Deleted, an outage would make BBR of CUBIC, from the window to which it has collapsed.
#[test]
fn losses_of_an_outage_speak_for_nothing() {
    for is_outage in [true, false] {
        let mut flow = Flow::new();
        flow.round((MIN, MIN), &[]);
        let sign = sign(flow.now, CongestionCause::Loss);
        flow.judge.on_lost(flow.now, &sign, 100_000, 2_400);
        if is_outage {
            flow.judge.on_persistent_congestion();
        }
        let change = flow.round((MIN, MIN), &[]);
        assert_eq!(change, (!is_outage).then_some(Cause::RandomLoss));
        assert_eq!(flow.round((MIN, MIN), &[3]), is_outage.then_some(Cause::RandomLoss), "the next may");
    }
}

/// Deleted, a few packets that are 20 ms late would be a radio link's losses.
#[test]
fn losses_that_prove_to_be_none_speak_for_nothing() {
    let mut flow = Flow::new();
    flow.round((MIN, MIN), &[]);
    assert_eq!(flow.round((MIN, MIN + 6), &[8, 9]), None, "the queue is full");
    for _ in 0..10 {
        let sent_at = flow.now;
        assert_eq!(flow.round((MIN, MIN), &[3, 6]), None);
        flow.arrive(sent_at, 2);
    }
    let sent_at = flow.now;
    assert_eq!(flow.round((MIN, MIN), &[3, 6]), None);
    flow.arrive(sent_at, 1);
    assert_eq!(flow.round((MIN, MIN), &[5]), Some(Cause::RandomLoss), "one is still missing");
}

/// Deleted, a full queue of 4 ms would look far from full beside what the peer waits or a late wake-up of an end, which reads several frames
/// then, and its overflow like chance.
#[test]
fn frames_that_come_late_are_no_queue() {
    for frames in [&[(25, 25), (25, 25)][..], &[(8, 0)], &[(9, 0), (8, 0), (7, 0)]] {
        let mut flow = Flow::new();
        flow.round((MIN, MIN + 4), &[]);
        flow.now = flow.now + Duration::from_millis(1);
        frames.iter().for_each(|(late, delay)| flow.acknowledge_late(*late, *delay));
        assert_eq!(flow.round((MIN + 4, MIN + 4), &[3, 6]), None, "{frames:?}");
    }
}

/// Deleted, wake-ups that are a millisecond late now and then would do the same.
#[test]
fn waits_that_differ_by_a_millisecond_are_the_same() {
    let mut flow = Flow::new();
    flow.round((MIN, MIN + 5), &[]);
    flow.acknowledge_late(5, 0);
    assert_eq!(flow.round((MIN + 3, MIN + 3), &[3, 6]), None);
}

/// A queue that let others wait four times as long was not full. Deleted, one loss by chance beside a wait would be worth as much as one beside none, and
/// a megabyte over a deep queue that loses 1 % by chance would take a tenth longer.
#[test]
fn a_loss_far_from_where_others_waited_is_chance() {
    for (longest, change) in [(20, Some(Cause::RandomLoss)), (6, None)] {
        let mut flow = Flow::new();
        flow.round((MIN, MIN), &[]);
        assert_eq!(flow.round((MIN + longest, MIN + longest), &[5]), None, "the first says nothing");
        assert_eq!(flow.round((MIN, MIN), &[3]), change, "{longest} ms");
    }
}

#[test]
fn losses_while_nothing_waits_speak_for_bbr() {
    let mut flow = Flow::new();
    assert_eq!(flow.round((MIN, MIN), &[]), None);
    assert_eq!(flow.round((MIN, MIN + 6), &[8, 9]), None, "the queue is full");
    assert_eq!(flow.round((MIN, MIN), &[3, 6]), None, "one is chance");
    assert_eq!(flow.round((MIN, MIN), &[4]), Some(Cause::RandomLoss));
    assert_eq!(flow.judge.window_before(), 100_000);
    assert_eq!(flow.judge.cause(), Some(Cause::RandomLoss));
}

/// A full queue drops what waits longest, and it has waited longer here. Deleted, each loss by chance after slow start would speak
/// against BBR as long as some of slow start's queue is left.
#[test]
fn losses_in_a_queue_that_was_longer_before_are_chance() {
    let mut flow = Flow::new();
    flow.round((MIN, MIN * 2), &[]);
    flow.round((MIN * 2, MIN * 2), &[]);
    for _ in 0..2 {
        flow.round((MIN, MIN + 15), &[]);
    }
    assert_eq!(flow.round((MIN + 15, MIN + 15), &[1]), None);
    assert_eq!(flow.round((MIN + 15, MIN + 15), &[1]), Some(Cause::RandomLoss));
}

/// Deleted, losses by chance in the queue of a slow start would have to be made up for, one by one, when it is empty.
#[test]
fn losses_at_a_queue_do_not_count_for_ever() {
    let mut flow = Flow::new();
    flow.round((MIN, MIN), &[]);
    flow.round((MIN * 2, MIN * 2), &[]);
    for _ in 0..6 {
        flow.round((MIN * 2, MIN * 2), &[0]);
    }
    flow.round((MIN, MIN), &[]);
    assert_eq!(flow.round((MIN, MIN), &[1]), None);
    assert_eq!(flow.round((MIN, MIN), &[1]), Some(Cause::RandomLoss));
}

/// Deleted, a client that loses 30 % of its packets would pace its limits of flow control by a model of its little traffic, and 10 MB
/// would take twice as long.
#[test]
fn losses_of_a_flow_that_has_little_to_send_say_nothing() {
    let mut flow = Flow { app_limited: true, ..Flow::new() };
    flow.round((MIN, MIN), &[]);
    for _ in 0..10 {
        assert_eq!(flow.round((MIN, MIN), &[0, 3, 6]), None);
    }
}

/// What is lost in the handshake ends CUBIC's slow start all the same. Deleted, the download after it would go on with a window of seven packets until
/// the next loss.
#[test]
fn losses_before_a_flow_has_more_to_send_count_once_it_has() {
    let mut flow = Flow { app_limited: true, ..Flow::new() };
    flow.round((MIN, MIN), &[]);
    assert_eq!(flow.round((MIN, MIN), &[3]), None);
    flow.app_limited = false;
    assert_eq!(flow.round((MIN, MIN), &[]), Some(Cause::RandomLoss));
}

/// Deleted, packets that a socket's full buffer drops on loopback would make its flows BBR's.
#[test]
fn losses_on_shorter_paths_than_any_queue_say_nothing() {
    let mut flow = Flow::new();
    flow.round((0, 1), &[]);
    for _ in 0..10 {
        assert_eq!(flow.round((0, 3), &[0, 3, 6]), None);
    }
}

/// Deleted, CUBIC's share of a bottleneck could go to flows that call its queue a radio link.
#[test]
fn losses_at_a_full_queue_do_not() {
    let mut flow = Flow::new();
    for _ in 0..100 {
        assert_eq!(flow.round((MIN, MIN * 2), &[]), None);
        assert_eq!(flow.round((MIN * 2, MIN * 2 + 1), &[2, 5, 9]), None);
        assert_eq!(flow.round((MIN + 10, MIN * 2), &[9]), None, "the end of a burst");
    }
}

/// What a queue that drops early does: its packets waited longer before, and all of them wait. Deleted, such a queue's losses would
/// count as chance, and BBR would take three quarters of its link beside CUBIC.
#[test]
fn losses_at_a_queue_that_stands_are_not_random_however_short_it_has_become() {
    let mut flow = Flow::new();
    flow.round((MIN, MIN), &[]);
    for _ in 0..20 {
        for wait in [30, 30, 20, 10, 5] {
            assert_eq!(flow.round((MIN + wait, MIN + wait), &[]), None);
        }
        flow.now = flow.now + STANDING;
        assert_eq!(flow.round((MIN + 5, MIN + 5), &[3, 6]), None);
    }
}

/// A sixteenth of a long round trip is more than such a queue lets wait, but there all packets wait.
#[test]
fn a_short_queue_is_one_on_a_long_path_too() {
    let long = MIN * 5;
    let mut flow = Flow::new();
    flow.round((long, long), &[]);
    flow.round((long + 5, long + 5), &[]);
    flow.now = flow.now + Duration::from_millis(long + 1);
    assert_eq!(flow.round((long + 5, long + 5), &[3]), None);
    let mut flow = Flow::new();
    flow.round((long, long), &[]);
    assert_eq!(flow.round((long, long + 5), &[9]), Some(Cause::RandomLoss), "a burst of its own");
}

/// What packets wait in jitter and in a queue, one after the other or in successive rounds, in milliseconds.
const JITTER: [u64; 21] = [34, 17, 12, 15, 11, 12, 28, 14, 14, 19, 15, 7, 24, 19, 7, 4, 25, 8, 19, 9, 13];
const QUEUE: [u64; 21] = [9, 11, 19, 23, 17, 14, 11, 9, 6, 8, 13, 21, 20, 13, 9, 6, 6, 6, 13, 17, 23];

/// Packets are lost in each of five rounds where others wait so long; whether BBR follows.
fn becomes_bbr_by_losses_in(waits: &[u64]) -> bool {
    let mut flow = Flow::new();
    flow.round((MIN, MIN), &[]);
    let round_trips: Vec<u64> = waits.iter().map(|wait| MIN + wait).collect();
    (0..5).any(|_| {
        flow.now = flow.now + STANDING;
        flow.round_of(&round_trips, &[0, 11]).is_some()
    })
}

/// Deleted, a download over a mobile link whose jitter hides that its queue is empty would follow CUBIC's response function.
#[test]
fn losses_are_random_where_round_trips_turn() {
    assert!(becomes_bbr_by_losses_in(&JITTER));
    assert!(!becomes_bbr_by_losses_in(&QUEUE));
}

/// Deleted, what a flow's own pauses and bursts do to its queue would be jitter, and the losses at the full queue chance.
#[test]
fn a_queue_that_empties_in_a_pause_is_no_jitter() {
    let mut flow = Flow::new();
    flow.round((MIN, MIN), &[]);
    for _ in 0..3 {
        flow.app_limited = false;
        flow.round((MIN + 24, MIN + 50), &[]);
        flow.app_limited = true;
        flow.round((MIN, MIN + 2), &[]);
    }
    flow.app_limited = false;
    flow.round((MIN + 24, MIN + 50), &[]);
    assert_eq!(flow.round((MIN + 24, MIN + 50), &[1]), None);
}

#[test]
fn jitter_does_not_hide_random_losses() {
    let mut flow = Flow::new();
    flow.round((MIN, MIN + 40), &[]);
    assert_eq!(flow.round((MIN + 5, MIN + 40), &[1]), None);
    assert_eq!(flow.round((MIN + 5, MIN + 40), &[1]), Some(Cause::RandomLoss));
}

#[test]
fn losses_at_a_queue_bring_cubic_back_and_each_return_needs_more() {
    let mut flow = Flow::new();
    flow.round((MIN, MIN), &[]);
    assert_eq!(flow.round((MIN, MIN), &[3]), Some(Cause::RandomLoss));
    for _ in 1..-evidence::FIRST_DISPROOF {
        assert_eq!(flow.round((MIN, MIN * 2), &[9]), None);
    }
    assert_eq!(flow.round((MIN, MIN * 2), &[9]), None, "its end tells");
    assert_eq!(flow.round((MIN, MIN * 2), &[]), Some(Cause::QueueLoss));
    for _ in 0..3 {
        assert_eq!(flow.round((MIN, MIN), &[0]), None);
    }
    assert_eq!(flow.round((MIN, MIN), &[0]), Some(Cause::RandomLoss));
}

/// Deleted, a queue of half a millisecond would make BBR of CUBIC as soon as it is CUBIC again.
#[test]
fn after_an_overrun_losses_at_the_same_window_are_no_chance() {
    for (windows, becomes_bbr) in [([100_000, 95_000, 90_000], false), ([100_000, 80_000, 60_000], true)] {
        let mut flow = Flow::new();
        flow.round((MIN, MIN), &[]);
        assert_eq!(flow.judge.on_overrun(), None, "CUBIC is in use");
        assert_eq!(flow.round((MIN, MIN), &[3]), Some(Cause::RandomLoss));
        assert_eq!(flow.judge.on_overrun(), Some(Cause::Overrun));
        flow.judge.on_changed(Cause::Overrun);
        let mut changes = windows.into_iter().cycle().take(100).map(|window| {
            flow.window = window;
            flow.round((MIN, MIN), &[3])
        });
        assert_eq!(changes.any(|change| change == Some(Cause::RandomLoss)), becomes_bbr, "{windows:?}");
    }
}

/// What becomes of a flow that has returned in 200 rounds that wait so long in turn. Those lose a packet that wait at most so long, and those
/// that wait 12 ms.
fn after_a_return(waits: &[u64], most: u64) -> Option<Cause> {
    rounds_of(&mut returned(), waits, most)
}

fn rounds_of(flow: &mut Flow, waits: &[u64], most: u64) -> Option<Cause> {
    let rounds = waits.iter().cycle().take(200);
    let mut changes = rounds.map(|&wait| {
        let lost: &[u64] = if wait == 12 || wait <= most { &[5] } else { &[] };
        flow.round((MIN + wait, MIN + wait), lost)
    });
    changes.find_map(|change| change)
}

/// A flow that losses at a queue have made CUBIC again.
fn returned() -> Flow {
    let mut flow = Flow::new();
    flow.round((MIN, MIN), &[]);
    assert_eq!(flow.round((MIN, MIN), &[3]), Some(Cause::RandomLoss));
    assert!((0..40).any(|_| flow.round((MIN, MIN * 2), &[9]) == Some(Cause::QueueLoss)));
    flow
}

/// Deleted, of several flows that share a link which loses by chance one would be BBR and take most of it.
#[test]
fn losses_at_rest_outweigh_those_beside_a_queue_of_others() {
    let eighth = [12, 12, 12, 12, 12, 6, 0, 6];
    assert_eq!(after_a_return(&eighth, 0), Some(Cause::RandomLoss));
    let mut none = eighth;
    none[6] = 3;
    assert_eq!(after_a_return(&eighth, 6), Some(Cause::RandomLoss), "what waits less is lost as well");
    assert_eq!(after_a_return(&none, 3), None, "a queue that drops early lets wait as long");
}

/// Deleted, a flow that begins while the queue of others stands would stay CUBIC for good.
#[test]
fn losses_at_rest_outweigh_those_beside_a_queue_before_the_first_return_too() {
    let mut flow = Flow::new();
    flow.round((MIN, MIN + 12), &[]);
    assert_eq!(flow.round((MIN + 12, MIN + 12), &[5]), None);
    assert_eq!(rounds_of(&mut flow, &[12, 12, 12, 12, 12, 6, 0, 6], 0), Some(Cause::RandomLoss));
}

/// Deleted, what is declared lost late after an overflow, when the queue is empty, would be chance.
#[test]
fn losses_at_rest_that_follow_others_of_a_recovery_say_nothing() {
    let full = [MIN + 12; 5];
    let round_trips = [full, [MIN; 5]].concat();
    for (lost, becomes) in [(&[0, 1, 2, 9][..], None), (&[9], Some(Cause::RandomLoss))] {
        let mut flow = Flow::new();
        flow.round((MIN, MIN + 12), &[]);
        assert_eq!(flow.round((MIN + 12, MIN + 12), &[5]), None);
        let mut changes = (0..100).map(|_| flow.round_of(&round_trips, lost));
        assert_eq!(changes.find_map(|change| change), becomes, "{lost:?}");
    }
}

/// Deleted, flows of BBR's that share a link which loses by chance would become CUBIC again and again, each for seconds.
#[test]
fn after_losses_at_rest_more_losses_at_a_queue_are_needed() {
    let mut flow = returned();
    assert_eq!(rounds_of(&mut flow, &[12, 12, 12, 12, 12, 6, 0, 6], 0), Some(Cause::RandomLoss));
    assert!(flow.judge.is_chance_known() && !returned().judge.is_chance_known());
    let rounds = (0..400).find(|_| flow.round((MIN, MIN * 2), &[9]) == Some(Cause::QueueLoss));
    assert_eq!(rounds, Some(-4 * evidence::FIRST_DISPROOF));
}

#[test]
fn losses_at_rest_say_nothing_where_hardly_a_packet_is_at_rest() {
    let mut waits = [12; 20];
    waits[19] = 0;
    assert_eq!(after_a_return(&waits, 0), None);
}

/// Deleted, a sixteenth of 100 ms would be rest, which is more than CoDel lets wait.
#[test]
fn what_waits_as_at_a_queue_that_drops_early_is_not_at_rest_on_a_long_path() {
    let judge = Judge { min_rtt: Duration::from_millis(100), ..Judge::new() };
    assert!(judge.is_at_rest(Duration::from_millis(102)));
    assert!(!judge.is_at_rest(Duration::from_millis(103)));
    assert!(judge.is_empty(Duration::from_millis(103)));
}

/// Deleted, packets that come late would be losses at rest.
#[test]
fn losses_at_rest_that_prove_to_be_none_are_forgotten() {
    let mut flow = returned();
    for wait in [12, 12, 12, 12, 12, 6, 0, 6].into_iter().cycle().take(200) {
        let sent_at = flow.now;
        let lost: &[u64] = if wait == 0 { &[5] } else { &[] };
        assert_eq!(flow.round((MIN + wait, MIN + wait), lost), None);
        if wait == 0 {
            flow.arrive(sent_at, 1);
        }
    }
}

/// Deleted, BBR would be hard to end on a path that has lost nothing.
#[test]
fn chance_that_proves_to_be_none_is_not_known() {
    let mut flow = returned();
    assert_eq!(rounds_of(&mut flow, &[12, 12, 12, 12, 12, 6, 0, 6], 0), Some(Cause::RandomLoss));
    assert!(flow.judge.is_chance_known());
    flow.judge.on_changed(Cause::SpuriousLoss);
    assert!(!flow.judge.is_chance_known());
}

/// A flow that begins while others keep the queue full knows no better.
#[test]
fn a_shorter_round_trip_voids_the_evidence() {
    let mut flow = Flow::new();
    flow.round((MIN * 2, MIN * 2), &[]);
    assert_eq!(flow.round((MIN * 2, MIN * 2), &[3]), Some(Cause::RandomLoss));
    assert_eq!(flow.round((MIN * 2 - 2, MIN * 2), &[]), None);
    assert_eq!(flow.round((MIN, MIN), &[]), Some(Cause::ShorterRoundTrip));
}

/// Deleted, jitter of a few milliseconds on a short path would make CUBIC of BBR as soon as it lets a packet through.
#[test]
fn a_round_trip_that_is_shorter_by_less_than_a_queue_voids_nothing() {
    let mut flow = Flow::new();
    flow.round((12, 12), &[]);
    assert_eq!(flow.round((12, 12), &[3]), Some(Cause::RandomLoss));
    assert_eq!(flow.round((8, 12), &[]), None);
    assert_eq!(flow.round((7, 12), &[]), Some(Cause::ShorterRoundTrip));
}

#[test]
fn a_deep_queue_speaks_for_bbr_unless_others_fill_it() {
    let mut flow = Flow::new();
    flow.round((MIN, MIN * 4), &[]);
    let rounds = (0..100).find(|_| flow.round((MIN * 4, MIN * 5), &[]) == Some(Cause::DeepQueue));
    assert_eq!(rounds, Some(u64::from(FIRST_DEEP_ROUNDS)));
    let rounds = (0..100).find(|_| flow.round((MIN * 3, MIN * 4), &[]) == Some(Cause::Crowded));
    assert_eq!(rounds, Some(u64::from(CROWDED_ROUNDS) - 1));
    let rounds = (0..100).find(|_| flow.round((MIN * 4, MIN * 5), &[]) == Some(Cause::DeepQueue));
    assert_eq!(rounds, Some(u64::from(FIRST_DEEP_ROUNDS) * 4 - 1));
}

/// Whether CUBIC comes back if a packet is lost in each of these rounds with BBR in use, while it waits far shorter than others of late.
fn returns(waits: impl Iterator<Item = u64>) -> bool {
    let mut flow = Flow::new();
    flow.round((MIN, MIN), &[]);
    assert_eq!(flow.round((MIN, MIN), &[1]), Some(Cause::RandomLoss));
    let mut changes = waits.map(|wait| flow.round((MIN + wait, MIN + wait + 40), &[0]));
    changes.any(|change| change == Some(Cause::QueueLoss))
}

/// In a crowd at CoDel or PIE half of the losses are free. Deleted, a flow that the first ones have deceived would take two shares for as long as
/// chance has it; or BBR would end where jitter makes packets wait.
#[test]
fn losses_in_the_long_waves_of_a_queue_end_bbr() {
    assert!(returns(QUEUE.into_iter()));
    assert!(!returns(JITTER.into_iter().cycle().take(200)));
}

/// Deleted, two downloads by BBR over a radio link would take the queue that they fill together for what loses their packets.
#[test]
fn losses_while_nothing_waits_outweigh_those_in_a_queue_of_bbr_s_own() {
    let with_rest =
        |every: usize| (0..200).map(move |round| if round % every == 0 { 0 } else { QUEUE[round % 21] });
    assert!(!returns(with_rest(8)));
    assert!(returns(with_rest(32)), "now and then a queue that drops early is almost empty");
}
