//! Losses that do not come from the rate: a radio link's, say. The draft bears 2 % of them, and answers more by a lower rate, round
//! after round, although a lower rate loses as much.
//!
//! A round that loses opens a question: is it the rate? The answer to it, as the draft has it, lowers the rate. Once the flow sends no
//! faster than the path delivered in that round or a later one, and still loses half as much and more, without a queue, the
//! losses are random. From then on so much loss is borne, and half as much again, and what the draft bears; more opens
//! the question anew. A queue closes it: losses beside which all packets wait are those of a queue that is full, unless jitter makes them wait;
//! and those that follow what is in flight are those of one that is too short to tell (`overrun.rs`).
//!
//! A policer has no queue either, but it lets the same rate pass whatever is sent: the rate sinks to that, and the losses end.
//!
//! Rejected: to bear all losses without a queue (a policer would lose most of what is sent); a lower bound for the rate (the same);
//! loss that follows the rate over a few rounds (too noisy at small windows).

use super::bounds::{deviation, is_too_high};
use super::loss_budget::LossBudget;
use super::overrun::Overrun;
use crate::congestion::jitter::Jitter;
use base::time::Duration;

/// Losses are a queue's if every round trip that was measured with them is longer than the shortest known, by such a part of it and by
/// a millisecond.
const QUEUE_PART: u64 = 16;
/// The least that is called a queue.
const LEAST_QUEUE: Duration = Duration::from_millis(1);
/// In jitter that makes round trips turn by such a part of what packets wait, waits say nothing of a queue.
const JITTER_PART: u32 = 200;
/// Shares are in ten-thousandths: of hundredths a loss rate below one would be forgotten in each round that loses nothing.
const HUNDREDTH: u64 = 100;
/// Of a round's packets so many may be lost at most for losses to be random.
const MOST: u64 = 60 * HUNDREDTH;
/// The same in Startup, where nothing was tried at a lower rate; and a standard deviation more, which for a window of 20 datagrams is much.
const MOST_IN_STARTUP: u64 = 40 * HUNDREDTH;
/// Datagrams in a row that are lost on average at most there: a burst that overflows a short queue loses more.
const LONGEST_RUN: u64 = 2;
/// What may be lost there in longer runs, in a round that delivered a quarter more: Startup sends twice as much each round, so a
/// path that loses no more than this by its limit has taken 60 % more.
const MOST_IN_RUNS: u64 = 20 * HUNDREDTH;
/// What the draft bears. Source: the draft, §2.8 (LossThresh).
const BORNE_ALWAYS: u64 = 2 * HUNDREDTH;
/// Datagrams of which a share says something; rounds of fewer are taken together.
const LEAST_DATAGRAMS: u64 = 20;

/// What a round was like.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossRound {
    /// The share of what was sent that was lost, rounded up.
    share: u64,
    /// The standard deviation of that at most, where each datagram is lost for itself.
    deviation: u64,
    /// Few are lost in a row.
    is_scattered: bool,
    /// All that left beside lost packets waited.
    has_queue: bool,
}

/// The losses of this round, and what is known of earlier ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct RandomLoss {
    lost: u64,
    /// Runs of lost packets.
    runs: u64,
    delivered_before: u64,
    /// Losses were declared since the last sample of a round trip.
    has_lost: bool,
    /// The shortest of those round trips that were measured with losses: by packets that left right after those that were lost.
    shortest: Duration,
    /// The round before this one; `None` if too little was sent in it.
    last: Option<LossRound>,
    /// What the path has delivered a second at most since the question was opened, and the share of the first round that was lost.
    question: Option<(u64, u64)>,
    /// The share that is lost whatever the rate.
    share: u64,
    /// That the path loses by chance was known when the flow took BBR.
    pub(super) is_known: bool,
    pub(super) budget: LossBudget,
    pub(super) overrun: Overrun,
    pub(super) jitter: Jitter,
}

impl RandomLoss {
    pub(super) const fn new() -> RandomLoss {
        RandomLoss {
            lost: 0,
            runs: 0,
            delivered_before: 0,
            has_lost: false,
            shortest: Duration::MAX,
            last: None,
            question: None,
            share: 0,
            is_known: false,
            budget: LossBudget::closed(),
            overrun: Overrun::new(),
            jitter: Jitter::new(),
        }
    }

    /// Whether these losses, after `delivered` bytes since the beginning, are more than are borne in jitter.
    pub(super) fn on_lost(&mut self, bytes: u64, runs: u64, delivered: u64, datagram: u64) -> bool {
        let bytes = if self.jitter.exceeds(JITTER_PART) {
            self.budget.cover(bytes, delivered, datagram)
        } else {
            bytes
        };
        if bytes == 0 {
            return false;
        }
        self.lost = self.lost.saturating_add(bytes);
        self.runs = self.runs.saturating_add(runs);
        self.has_lost = true;
        true
    }

    pub(super) fn on_sample(&mut self, rtt: Duration) {
        if core::mem::take(&mut self.has_lost) {
            self.shortest = self.shortest.min(rtt);
        }
    }

    /// Hundredths of what is in flight that may be lost beside what the draft bears.
    pub(super) fn borne(&self) -> u64 {
        self.borne_share() / HUNDREDTH
    }

    /// The share that may be lost beside what the draft bears.
    fn borne_share(&self) -> u64 {
        self.share + self.share / 2
    }

    /// Whether so much was lost of what was in flight that the rate is the reason. One of 40 datagrams is more than two hundredths: where the path is
    /// known to lose by chance, a small flow's probes would end by it, and a large one's go on.
    pub(super) fn is_too_high(&self, lost: u64, in_flight: u64, datagram: u64) -> bool {
        let borne = self.borne();
        let by_chance = if lost > 0 && self.is_known { deviation(in_flight, borne, datagram) } else { 0 };
        is_too_high(lost.saturating_sub(by_chance + self.budget.covered()), in_flight, borne)
    }

    /// A round is over; `delivered` bytes since the beginning, `min_rtt` is the shortest round trip known.
    pub(super) fn on_round(&mut self, delivered: u64, min_rtt: Option<Duration>, datagram: u64) {
        let sent = self.lost.saturating_add(delivered.saturating_sub(self.delivered_before));
        self.last = None;
        self.budget.on_round();
        if sent < datagram * LEAST_DATAGRAMS {
            return;
        }
        let (lost, runs) = (core::mem::take(&mut self.lost), core::mem::take(&mut self.runs));
        let is_scattered = lost <= runs.saturating_mul(datagram * LONGEST_RUN);
        self.delivered_before = delivered;
        let share = (u128::from(lost) * u128::from(100 * HUNDREDTH)).div_ceil(u128::from(sent.max(1)));
        let deviation = 50 * HUNDREDTH / (sent / datagram.max(1)).isqrt().max(1);
        let shortest = core::mem::replace(&mut self.shortest, Duration::MAX);
        let has_queue = lost > 0
            && !self.jitter.exceeds(JITTER_PART)
            && min_rtt.is_some_and(|min| shortest > min + (min / QUEUE_PART).max(LEAST_QUEUE));
        self.last = Some(LossRound {
            share: u64::try_from(share).unwrap_or(100 * HUNDREDTH),
            deviation,
            is_scattered,
            has_queue,
        });
    }

    /// Whether the last round of Startup is no reason to leave it: nothing waits, and its losses are few. `has_grown`: it delivered a quarter
    /// more than the one before.
    pub(super) fn is_harmless_in_startup(&self, has_grown: bool) -> bool {
        self.last.is_none_or(|last| {
            let is_scattered = last.is_scattered && last.share <= MOST_IN_STARTUP + last.deviation;
            let is_beside_growth = has_grown && last.share <= MOST_IN_RUNS;
            !last.has_queue && (is_scattered || is_beside_growth)
        })
    }

    /// The last round was sent at `bound` bytes a second at most, and the path delivered `delivered` a second. Whether its losses
    /// are to be answered.
    pub(super) fn is_answered(&mut self, bound: u64, delivered: u64) -> bool {
        let Some(LossRound { share, has_queue, .. }) = self.last else { return self.share == 0 };
        if has_queue {
            self.question = None;
            return true;
        }
        if self.overrun.is_shown() {
            (self.question, self.share) = (None, 0);
            return true;
        }
        if share == 0 {
            self.share -= self.share.div_ceil(4);
            return true;
        }
        if self.share > 0 {
            if share <= self.borne_share() + BORNE_ALWAYS {
                self.share = (self.share * 3 + share).div_ceil(4).min(MOST);
                return false;
            }
            self.share = 0;
        }
        match self.question {
            Some((rate, first)) if bound <= rate.saturating_add(rate / 20) => {
                self.question = None;
                if share * 2 >= first && share <= MOST {
                    self.share = share;
                }
                self.share == 0
            }
            Some((rate, first)) => {
                // The round that opened it may have had little to send.
                self.question = Some((rate.max(delivered), first));
                true
            }
            None => {
                self.question = Some((delivered, share));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::events::AckedBytes;
    use crate::congestion::tests::acked;
    use base::time::Instant;

    const MIN: Option<Duration> = Some(Duration::from_millis(40));

    /// A round in which so much was lost of 100,000 bytes at `bound`, and so long a round trip was the shortest. Returns whether it
    /// is answered.
    fn round(losses: &mut RandomLoss, lost: u64, (bound, delivered): (u64, u64), rtt_ms: u64) -> bool {
        losses.on_lost(lost * 1_000, lost, 0, 1_000);
        losses.on_sample(Duration::from_millis(rtt_ms));
        losses.on_sample(Duration::from_millis(40));
        losses.on_round(losses.delivered_before + 100_000 - lost * 1_000, MIN, 1_000);
        losses.is_answered(bound, delivered)
    }

    /// Deleted, ten per cent of random loss could leave a fortieth of a link.
    #[test]
    fn losses_that_a_lower_rate_does_not_end_are_borne() {
        let mut losses = RandomLoss::new();
        assert!(round(&mut losses, 10, (1_000, 900), 41), "the first may be the rate's");
        assert_eq!(losses.borne(), 0);
        assert!(!round(&mut losses, 9, (900, 820), 41), "as much at a lower rate: it is not");
        assert_eq!(losses.borne(), 13);
        assert!(!round(&mut losses, 14, (1_000, 900), 41));
        assert!(round(&mut losses, 40, (1_000, 900), 41), "much more is another matter");
        assert_eq!(losses.borne(), 0);
    }

    #[test]
    fn a_policer_and_a_queue_are_answered() {
        let mut policed = RandomLoss::new();
        for (lost, bound) in [(80, 1_000), (71, 700), (59, 490), (42, 343), (17, 240)] {
            assert!(round(&mut policed, lost, (bound, 200), 40), "{bound}: faster than it delivers");
        }
        assert!(round(&mut policed, 5, (205, 200), 40), "the losses end with the rate");
        assert_eq!(policed.borne(), 0);
        let mut queue = RandomLoss::new();
        for _ in 0..10 {
            assert!(round(&mut queue, 10, (900, 900), 44));
        }
        assert_eq!(queue.borne(), 0);
    }

    /// Deleted, a question of a round that had little to send would lower the rate round after round, down to what that one had.
    #[test]
    fn what_a_later_round_delivers_can_be_the_answer() {
        let mut losses = RandomLoss::new();
        assert!(round(&mut losses, 3, (1_000, 130), 40), "the first, which had little to send");
        assert!(round(&mut losses, 3, (1_000, 970), 40));
        assert!(!round(&mut losses, 3, (970, 940), 40), "no faster than the path has delivered");
        let mut policed = RandomLoss::new();
        for (bound, delivered) in [(1_000, 130), (1_000, 200), (700, 200), (490, 200), (343, 200), (240, 200)]
        {
            assert!(round(&mut policed, 100 - 100 * delivered / bound, (bound, delivered), 40), "{bound}");
        }
    }

    /// Deleted, each burst on a radio link would end a probe and lower the rate; or a queue's losses would go unanswered.
    #[test]
    fn a_run_is_borne_in_jitter_only() {
        for (waits, is_open, is_answered) in
            [([1, 15], true, false), ([1, 15], false, true), ([8, 8], true, true)]
        {
            let mut losses = RandomLoss::new();
            if is_open {
                losses.budget.open();
            }
            for frame in 0..40 {
                let rtt = Duration::from_millis(40 + waits[frame % 2]);
                let frame = AckedBytes { latest_rtt: Some(rtt), rtt, ..acked(1_000, Instant::ZERO) };
                losses.jitter.on_sample(&frame, Duration::from_millis(40));
            }
            assert_eq!(losses.on_lost(8_000, 1, 400_000, 1_000), is_answered, "{waits:?} {is_open}");
            assert_eq!(losses.is_too_high(8_000, 40_000, 1_000), is_answered);
            losses.on_sample(Duration::from_millis(40));
            losses.on_round(440_000, MIN, 1_000);
            assert_eq!(losses.last.map(|round| round.share > 0), Some(is_answered));
        }
    }

    #[test]
    fn what_was_borne_is_forgotten_when_nothing_is_lost() {
        let mut losses = RandomLoss::new();
        round(&mut losses, 10, (1_000, 900), 40);
        round(&mut losses, 10, (900, 900), 40);
        assert_eq!(losses.borne(), 15);
        (0..12).for_each(|_| assert!(round(&mut losses, 0, (1_000, 1_000), 40)));
        assert_eq!(losses.borne(), 0);
    }

    /// Deleted, a loss in every third round would open the question anew each time, and lower the rate each time.
    #[test]
    fn a_rate_below_a_hundredth_outlives_rounds_without_loss() {
        let mut losses = RandomLoss::new();
        round(&mut losses, 1, (1_000, 990), 40);
        assert!(!round(&mut losses, 1, (990, 980), 40));
        for _ in 0..10 {
            (0..2).for_each(|_| assert!(round(&mut losses, 0, (1_000, 1_000), 40), "nothing to bear"));
            assert!(!round(&mut losses, 1, (1_000, 990), 40));
        }
    }

    #[test]
    fn startup_goes_on_where_little_is_lost_and_nothing_waits() {
        let mut losses = RandomLoss::new();
        round(&mut losses, 10, (1_000, 900), 41);
        assert!(losses.is_harmless_in_startup(false));
        round(&mut losses, 10, (1_000, 900), 60);
        assert!(!losses.is_harmless_in_startup(true));
        round(&mut losses, 45, (1_000, 900), 41);
        assert!(losses.is_harmless_in_startup(false), "a standard deviation more");
        round(&mut losses, 46, (1_000, 900), 41);
        assert!(!losses.is_harmless_in_startup(true));
    }

    /// Deleted, a burst on a radio link would end Startup for seconds; or an overrun queue would not.
    #[test]
    fn a_long_run_does_not_end_startup_in_a_round_that_has_grown() {
        let mut losses = RandomLoss::new();
        for (lost, has_grown, is_harmless) in [(20, false, false), (20, true, true), (21, true, false)] {
            losses.on_lost(lost * 1_000, 5, 0, 1_000);
            losses.on_sample(Duration::from_millis(40));
            losses.on_round(losses.delivered_before + 100_000 - lost * 1_000, MIN, 1_000);
            assert_eq!(losses.is_harmless_in_startup(has_grown), is_harmless, "{lost} {has_grown}");
        }
    }
}
