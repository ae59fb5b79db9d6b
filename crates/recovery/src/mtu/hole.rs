//! Noticing that a path has stopped carrying what it carried (a black hole). Source: RFC 8899 §4.3.
//!
//! It shows when, round after round, packets of full size are lost of which none that left later arrives, while smaller ones
//! do: congestion loses some and lets later ones of the same size through. The largest of those smaller ones is a size
//! that is confirmed, and better than the floor. Messages by ICMP play no part: anyone can forge them (CVE-2024-53259).
//! A path may merely have carried nothing for a while, so the rest before the next search is short at first: a search puts
//! nothing at risk but its probes.

use base::time::{Duration, Instant};

/// Rounds of loss that make a black hole.
const DARK_ROUNDS: u8 = 3;
/// How long a search rests after the first black hole; twice as long after each further one.
const FIRST_REST: Duration = Duration::from_millis(125);
/// Black holes from which on the rest is the longest.
const MAX_HOLES: u8 = 13;

/// What is known of full packets of late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// The highest number of a full packet that arrived.
    proven: u64,
    /// Rounds of loss since then in which none arrived.
    dark_rounds: u8,
    /// The largest that arrived since the first of these rounds, though it was not full.
    passing: u16,
    /// Black holes of late, and when the last one was found.
    holes: u8,
    hole_at: Instant,
}

impl Watch {
    pub(super) const fn new() -> Watch {
        Watch { proven: 0, dark_rounds: 0, passing: 0, holes: 0, hole_at: Instant::ZERO }
    }

    /// A full packet arrived.
    #[inline]
    pub(super) fn on_full_acked(&mut self, pn: u64) {
        self.proven = self.proven.max(pn);
        self.dark_rounds = 0;
        self.passing = 0;
    }

    /// One that was larger than the floor and not full arrived.
    #[inline]
    pub(super) fn on_partial_acked(&mut self, size: u16) {
        if self.dark_rounds > 0 {
            self.passing = self.passing.max(size);
        }
    }

    /// Full packets were lost, the latest of them this one. Returns whether that makes a black hole.
    pub(super) fn on_full_lost(&mut self, pn: u64) -> bool {
        if pn <= self.proven {
            return false;
        }
        self.dark_rounds = self.dark_rounds.saturating_add(1);
        self.dark_rounds >= DARK_ROUNDS
    }

    /// Whether the last loss of full packets was the first of a series.
    pub(super) const fn is_first_dark_round(&self) -> bool {
        self.dark_rounds == 1
    }

    /// The largest size that still passes, 0 if none is known.
    pub(super) const fn passing(&self) -> u16 {
        self.passing
    }

    /// There is a black hole. Returns how long the next search should wait, at most `longest`.
    pub(super) fn on_black_hole(&mut self, now: Instant, longest: Duration) -> Duration {
        self.dark_rounds = 0;
        self.passing = 0;
        // The longest rest alone is no good behaviour.
        if now.saturating_since(self.hole_at) > longest * 2 {
            self.holes = 0;
        }
        let rest = FIRST_REST.saturating_shl(u32::from(self.holes)).min(longest);
        self.holes = (self.holes + 1).min(MAX_HOLES);
        self.hole_at = now;
        rest
    }
}
