//! How late packets of a path arrive, learned from losses that proved to be none.
//!
//! The thresholds of loss detection begin at three packets and 9/8 of a round trip. A packet that was declared lost and is
//! acknowledged all the same says which of them was too small:
//!
//! - the number of packets grows to eight times what would have sufficed. How many overtake a late packet depends on the rate, which
//!   doubles each round trip in slow start: for three of them it suffices.
//! - the time grows to what would have sufficed, up to two round trips.
//!
//! A true loss is then found later, by at most a round trip. So the thresholds return to where they began after
//! [`QUIET_RECOVERIES`] recoveries in which nothing came late.
//!
//! Rejected: a number that grows to what would have sufficed, which in slow start declares packets lost in every round (where 30 %
//! come 20 ms late, 8 % of a page's packets); growing by steps, which does the same; time alone, as in RFC 8985, by which true losses
//! at a full queue are found a queue's length later.
//!
//! RFC 9002 §6.1.1, §6.1.2 permit both to grow; RFC 8985 §6.2, §7.1 is the same for TCP.

use crate::rtt::{LossThresholds, PACKET_THRESHOLD};
use base::time::{Duration, Instant};

/// The packet threshold grows no further.
pub const MOST_PACKETS: u64 = 10_000;
/// It grows to so many times what would have sufficed: 2 for each round trip of slow start to come.
const ROUNDS_AHEAD: u64 = 8;
/// The time threshold, in eighths of a round trip. Source: RFC 9002 §6.1.2.
const EIGHTHS: u64 = 9;
/// It grows no further. Source: RFC 8985 §7.1 (the window is at most a round trip).
const MOST_EIGHTHS: u64 = 16;
/// Recoveries in a row in which nothing came late, after which the path counts as orderly. Source: RFC 8985 §7.1.
const QUIET_RECOVERIES: u32 = 16;

/// The thresholds of one path.
#[derive(Clone, Copy, Debug)]
pub struct Reordering {
    packets: u64,
    eighths: u64,
    /// Recoveries since a packet came late.
    quiet: u32,
    /// When the last of them began.
    recovered_at: Instant,
}

impl Default for Reordering {
    fn default() -> Reordering {
        Reordering { packets: PACKET_THRESHOLD, eighths: EIGHTHS, quiet: 0, recovered_at: Instant::ZERO }
    }
}

impl Reordering {
    /// Packets arrived that had been declared lost: the farthest was `distance` numbers below the largest acknowledged before,
    /// the oldest left `age` ago. `rtt` is the smoothed round trip.
    #[cold]
    pub fn on_spurious(&mut self, distance: u64, age: Duration, rtt: Duration) {
        if distance > self.packets {
            self.packets = distance.saturating_mul(ROUNDS_AHEAD).min(MOST_PACKETS);
        }
        let eighth = rtt.as_nanos().max(8) / 8;
        let needed = (age.as_nanos() / eighth).saturating_add(1);
        self.eighths = self.eighths.max(needed.min(MOST_EIGHTHS));
        self.quiet = 0;
    }

    /// A packet arrived `distance` numbers below the largest acknowledged before, and had not been declared lost.
    #[cold]
    pub fn on_late(&mut self, distance: u64) {
        if distance > PACKET_THRESHOLD {
            self.quiet = 0;
        }
    }

    /// Packets are declared lost.
    pub fn on_losses(&mut self, now: Instant, rtt: Duration) {
        if self.packets == PACKET_THRESHOLD && self.eighths == EIGHTHS {
            return;
        }
        if now.saturating_since(self.recovered_at) > rtt {
            self.recovered_at = now;
            self.quiet += 1;
        }
        if self.quiet > QUIET_RECOVERIES {
            *self = Reordering { recovered_at: now, ..Reordering::default() };
        }
    }

    /// `thresholds`, as large as this path needs them.
    #[inline]
    pub fn widen(&self, thresholds: LossThresholds) -> LossThresholds {
        let delay = thresholds.delay;
        let delay = if self.eighths == EIGHTHS { delay } else { delay * self.eighths / EIGHTHS };
        LossThresholds { packets: self.packets, delay, ..thresholds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtt::Rtt;

    const RTT: Duration = Duration::from_millis(80);

    fn thresholds(reordering: &Reordering) -> (u64, Duration) {
        let mut rtt = Rtt::default();
        rtt.on_sample(Instant::ZERO, RTT, Duration::ZERO);
        let LossThresholds { packets, delay, .. } = reordering.widen(rtt.loss_thresholds());
        (packets, delay)
    }

    /// Deleted, the number could grow in steps again, and every round of slow start would send packets twice.
    #[test]
    fn thresholds_grow_to_what_suffices() {
        let mut reordering = Reordering::default();
        assert_eq!(thresholds(&reordering), (3, Duration::from_millis(90)));
        reordering.on_spurious(2, Duration::from_millis(95), RTT);
        assert_eq!(thresholds(&reordering), (3, Duration::from_millis(100)), "it was not the number");
        reordering.on_spurious(40, Duration::from_millis(50), RTT);
        assert_eq!(thresholds(&reordering), (320, Duration::from_millis(100)), "it was not time");
        reordering.on_spurious(200, Duration::from_millis(50), RTT);
        assert_eq!(thresholds(&reordering).0, 320, "that much was known");
        reordering.on_spurious(u64::MAX, Duration::MAX, Duration::ZERO);
        assert_eq!(thresholds(&reordering), (MOST_PACKETS, RTT * 2));
    }

    #[test]
    fn a_path_that_has_become_orderly_gets_small_thresholds_again() {
        let mut reordering = Reordering::default();
        reordering.on_spurious(40, RTT * 2, RTT);
        let mut now = Instant::ZERO + RTT;
        for round in 0..QUIET_RECOVERIES {
            now = now + RTT * 2;
            for _ in 0..5 {
                reordering.on_losses(now, RTT);
            }
            assert_eq!(thresholds(&reordering).0, 320, "recovery {round}");
        }
        reordering.on_late(3);
        let orderly = {
            let mut orderly = reordering;
            orderly.on_losses(now + RTT * 2, RTT);
            thresholds(&orderly).0
        };
        assert_eq!(orderly, PACKET_THRESHOLD, "what the first thresholds bear is no sign");
        reordering.on_late(4);
        for _ in 0..QUIET_RECOVERIES {
            now = now + RTT * 4;
            reordering.on_losses(now, RTT);
            assert_eq!(thresholds(&reordering).0, 320, "one that came late begins the count anew");
        }
        reordering.on_losses(now + RTT * 4, RTT);
        assert_eq!(thresholds(&reordering), (3, Duration::from_millis(90)));
    }
}
