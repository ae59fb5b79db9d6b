//! Noticing that a path has stopped carrying what it carried (a black hole). Source: RFC 8899 §4.3.
//!
//! It shows when, round after round, packets of full size are lost of which none that left later arrives, while smaller ones
//! do: congestion loses some and lets later ones of the same size through. A round is counted when a packet is lost that left
//! after the round before it was counted: losses of one flight, which several acknowledgements show, are one. The largest of those smaller ones is a size
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

/// What the loss of full packets adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlackHoleSign {
    /// Nothing new, or one more round.
    Known,
    /// The first round in which none arrived.
    Begins,
    /// As many rounds as make a black hole.
    Total,
}

/// What is known of full packets of late.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlackHoleDetector {
    /// The highest number of a full packet that arrived.
    proven: u64,
    /// Rounds of loss since then in which none arrived.
    rounds_without_full_ack: u8,
    /// What had left when the last of these rounds was counted: packets up to this number belong to it.
    counted_until: u64,
    /// The largest that arrived since the first of these rounds, though it was not full.
    passing: u16,
    /// Black holes of late, and when the last one was found.
    holes: u8,
    hole_at: Instant,
}

impl BlackHoleDetector {
    pub(super) const fn new() -> BlackHoleDetector {
        BlackHoleDetector {
            proven: 0,
            rounds_without_full_ack: 0,
            counted_until: 0,
            passing: 0,
            holes: 0,
            hole_at: Instant::ZERO,
        }
    }

    /// A full packet arrived.
    #[inline]
    pub(super) fn on_full_acked(&mut self, pn: u64) {
        self.proven = self.proven.max(pn);
        self.counted_until = 0;
        self.clear();
    }

    /// What was seen so far means nothing any more.
    pub(super) fn clear(&mut self) {
        self.rounds_without_full_ack = 0;
        self.passing = 0;
    }

    /// One that was larger than the floor and not full arrived.
    #[inline]
    pub(super) fn on_partial_acked(&mut self, size: u16) {
        if self.rounds_without_full_ack > 0 {
            self.passing = self.passing.max(size);
        }
    }

    /// Full packets were lost, the latest of them `pn`, when everything up to `sent` had left.
    pub(super) fn on_full_lost(&mut self, pn: u64, sent: u64) -> BlackHoleSign {
        if pn <= self.proven.max(self.counted_until) {
            return BlackHoleSign::Known;
        }
        self.counted_until = sent;
        self.rounds_without_full_ack = self.rounds_without_full_ack.saturating_add(1);
        match self.rounds_without_full_ack {
            1 => BlackHoleSign::Begins,
            DARK_ROUNDS.. => BlackHoleSign::Total,
            _ => BlackHoleSign::Known,
        }
    }

    /// The largest size that still passes, 0 if none is known.
    pub(super) const fn passing(&self) -> u16 {
        self.passing
    }

    /// There is a black hole. Returns how long the next search should wait, at most `longest`.
    pub(super) fn on_black_hole(&mut self, now: Instant, longest: Duration) -> Duration {
        self.clear();
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
