//! How late packets of a path arrive, learned from each that others have overtaken.
//!
//! The thresholds of loss detection begin at three packets and 9/8 of a round trip. A packet that is acknowledged after later ones, whether
//! it had been declared lost or not, says how large they should be:
//!
//! - the number of packets grows to eight times what a packet needed that was declared lost, and to twice what any other one needed. How
//!   many overtake a late packet depends on the rate, which doubles each round trip in slow start.
//! - the time grows to a round trip and what the packet took longer, with a quarter of that in reserve, up to two round trips.
//!
//! The first losses of all may be packets that come late, of a path that has had no time to say so: the initial window leaves within a fraction of
//! a round trip. So once some are declared lost in the first rounds, others wait for half of a round trip more, or until one of the former arrives.
//!
//! A probe of the packet size counts as any other packet: in a short download it is often the first that comes late.
//!
//! A true loss is then found later, by at most a round trip. So the thresholds return to where they began after
//! [`QUIET_RECOVERIES`] recoveries in which nothing came late.
//!
//! Rejected: a number that grows to what would have sufficed, which in slow start declares packets lost in every round (where 30 %
//! come 20 ms late, 8 % of a page's packets); growing by steps, which does the same; to learn from packets alone that were declared lost (3 %
//! of a page's packets); a time that is a multiple of the round trip, whose estimate shrinks as late packets leave it; time alone, as in
//! RFC 8985, by which true losses at a full queue are found a queue's length later.
//!
//! RFC 9002 §6.1.1, §6.1.2 permit both to grow; RFC 8985 §6.2, §7.1 is the same for TCP.

use crate::rtt::{LossThresholds, PACKET_THRESHOLD};
use base::time::{Duration, Instant};

/// The packet threshold grows no further.
pub const MOST_PACKETS: u64 = 10_000;
/// It grows to so many times what would have sufficed: 2 for each round trip of slow start to come.
const ROUNDS_AHEAD: u64 = 8;
/// The same for a packet for which it did suffice.
const NEXT_ROUND: u64 = 2;
/// The part of a round trip by which the first time threshold exceeds it. Source: RFC 9002 §6.1.2.
const FIRST_PART: u64 = 8;
/// The part of the lateness that is added to it.
const RESERVE: u64 = 4;
/// The first losses may be late packets if they come so many halves of a round trip after the first one was measured, or sooner.
const YOUNG: u64 = 4;
/// Recoveries in a row in which nothing came late, after which the path counts as orderly. Source: RFC 8985 §7.1.
const QUIET_RECOVERIES: u32 = 16;

/// The thresholds of one path.
#[derive(Clone, Copy, Debug)]
pub struct Reordering {
    packets: u64,
    /// How much longer than a round trip a packet may take; zero while the first threshold suffices.
    late: Duration,
    /// Recoveries since a packet came late.
    quiet: u32,
    /// When the last of them began.
    recovered_at: Instant,
    first: FirstLosses,
}

/// What is known of a path's first losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstLosses {
    /// There was none.
    Awaited,
    /// They may be late packets.
    Doubtful,
    /// The thresholds are what the path has taught.
    Known,
}

impl Default for Reordering {
    fn default() -> Reordering {
        Reordering {
            packets: PACKET_THRESHOLD,
            late: Duration::ZERO,
            quiet: 0,
            recovered_at: Instant::ZERO,
            first: FirstLosses::Awaited,
        }
    }
}

impl Reordering {
    /// Packets were acknowledged after later ones: the farthest was `distance` numbers below the largest acknowledged before, the
    /// oldest left `age` ago. `rtt` is the smoothed round trip.
    #[cold]
    pub fn on_late(&mut self, distance: u64, age: Duration, rtt: Duration) {
        if distance > PACKET_THRESHOLD {
            let rounds = if distance > self.packets { ROUNDS_AHEAD } else { NEXT_ROUND };
            self.packets = self.packets.max(distance.saturating_mul(rounds).min(MOST_PACKETS));
            (self.quiet, self.first) = (0, FirstLosses::Known);
        }
        let late = age.saturating_sub(rtt);
        if late > rtt / FIRST_PART {
            self.late = self.late.max(late + late / RESERVE);
            (self.quiet, self.first) = (0, FirstLosses::Known);
        }
    }

    /// Packets are declared lost.
    pub fn on_losses(&mut self, now: Instant, rtt: Duration) {
        if self.packets == PACKET_THRESHOLD && self.late.is_zero() {
            if self.first == FirstLosses::Awaited {
                (self.first, self.recovered_at) = (FirstLosses::Doubtful, now);
            }
            return;
        }
        if now.saturating_since(self.recovered_at) > rtt {
            self.recovered_at = now;
            self.quiet += 1;
        }
        if self.quiet > QUIET_RECOVERIES {
            *self = Reordering { recovered_at: now, first: FirstLosses::Known, ..Reordering::default() };
        }
    }

    /// `thresholds`, as large as this path needs them.
    #[inline]
    pub fn widen(&self, now: Instant, thresholds: LossThresholds) -> LossThresholds {
        let mut delay = thresholds.delay;
        let round_trip = || delay * FIRST_PART / (FIRST_PART + 1);
        if self.first == FirstLosses::Doubtful {
            let half = round_trip() / 2;
            let is_young =
                thresholds.persistent_from.is_some_and(|from| self.recovered_at <= from + half * YOUNG);
            if is_young && now < self.recovered_at + half {
                return LossThresholds { packets: MOST_PACKETS, delay: delay + half, ..thresholds };
            }
        }
        if !self.late.is_zero() {
            let round_trip = round_trip();
            // RFC 8985 §7.1: no more than a round trip longer.
            delay = delay.max(round_trip + self.late.min(round_trip));
        }
        LossThresholds { packets: self.packets, delay, ..thresholds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtt::Rtt;

    const RTT: Duration = Duration::from_millis(80);

    fn thresholds(reordering: &Reordering) -> (u64, Duration) {
        thresholds_at(Instant::ZERO + Duration::from_secs(100), reordering)
    }

    /// Of a path whose first round trip was measured at zero.
    fn thresholds_at(now: Instant, reordering: &Reordering) -> (u64, Duration) {
        let mut rtt = Rtt::default();
        rtt.on_sample(Instant::ZERO, RTT, Duration::ZERO);
        let LossThresholds { packets, delay, .. } = reordering.widen(now, rtt.loss_thresholds());
        (packets, delay)
    }

    /// Deleted, all late packets of an initial window of 32 would be sent twice before the first of them arrives.
    #[test]
    fn after_the_first_losses_others_wait_unless_they_are_no_longer_young() {
        let at = |halves: u64| Instant::ZERO + RTT / 2 * halves;
        let first = (3, Duration::from_millis(90));
        let lost_at = |halves| {
            let mut reordering = Reordering::default();
            assert_eq!(thresholds_at(at(halves), &reordering), first, "the first ones are found soon");
            reordering.on_losses(at(halves), RTT);
            reordering
        };
        let doubtful = lost_at(2);
        assert_eq!(thresholds_at(at(2), &doubtful), (MOST_PACKETS, Duration::from_millis(130)));
        assert_eq!(thresholds_at(at(3), &doubtful), first, "nothing came late");
        assert_eq!(thresholds_at(at(5), &lost_at(5)), first, "it has had time to show what comes late");
        let mut again = doubtful;
        again.on_losses(at(3), RTT);
        assert_eq!(thresholds_at(at(3), &again), first, "only the first");
        let mut known = doubtful;
        known.on_late(40, Duration::from_millis(50), RTT);
        assert_eq!(thresholds_at(at(2), &known), (320, Duration::from_millis(90)), "one of them has arrived");
    }

    /// Deleted, the number could grow in steps again, and every round of slow start would send packets twice.
    #[test]
    fn thresholds_grow_to_what_suffices() {
        let mut reordering = Reordering::default();
        assert_eq!(thresholds(&reordering), (3, Duration::from_millis(90)));
        reordering.on_late(2, Duration::from_millis(104), RTT);
        assert_eq!(thresholds(&reordering), (3, Duration::from_millis(110)), "it was not the number");
        reordering.on_late(40, Duration::from_millis(50), RTT);
        assert_eq!(thresholds(&reordering), (320, Duration::from_millis(110)), "it was not time");
        reordering.on_late(150, Duration::from_millis(112), RTT);
        assert_eq!(thresholds(&reordering), (320, Duration::from_millis(120)), "that number was known");
        reordering.on_late(200, Duration::from_millis(50), RTT);
        assert_eq!(thresholds(&reordering).0, 400, "slow start goes on");
        reordering.on_late(u64::MAX, Duration::MAX, Duration::ZERO);
        assert_eq!(thresholds(&reordering), (MOST_PACKETS, RTT * 2));
    }

    #[test]
    fn a_path_that_has_become_orderly_gets_small_thresholds_again() {
        let mut reordering = Reordering::default();
        reordering.on_late(40, RTT * 2, RTT);
        let mut now = Instant::ZERO + RTT;
        for round in 0..QUIET_RECOVERIES {
            now = now + RTT * 2;
            for _ in 0..5 {
                reordering.on_losses(now, RTT);
            }
            assert_eq!(thresholds(&reordering), (320, RTT * 2), "recovery {round}");
        }
        reordering.on_late(3, RTT * 9 / 8, RTT);
        let orderly = {
            let mut orderly = reordering;
            orderly.on_losses(now + RTT * 2, RTT);
            thresholds(&orderly).0
        };
        assert_eq!(orderly, PACKET_THRESHOLD, "what the first thresholds bear is no sign");
        reordering.on_late(4, RTT, RTT);
        for _ in 0..QUIET_RECOVERIES {
            now = now + RTT * 4;
            reordering.on_losses(now, RTT);
            assert_eq!(thresholds(&reordering).0, 320, "one that came late begins the count anew");
        }
        reordering.on_losses(now + RTT * 4, RTT);
        assert_eq!(thresholds(&reordering), (3, Duration::from_millis(90)));
    }
}
