//! How the shortest waits of the rounds go: up and down in long waves, as those of a queue that others share do, or not.

use super::{LEAST_QUEUE, MOST_FREE, ROUNDS};
use base::time::Duration;

/// Waits are calm if they turn by less than such a part. With BBR in use it is a fiftieth to a hundredth at the median loss of CoDel and PIE, more than
/// a twelfth at 19 of 20 losses in jitter of half a round trip.
const CALM_PART: u64 = 12;

/// Waits of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// The shortest round trips of the last two rounds.
    last: [Duration; 2],
    mean: Duration,
    /// How far they turn: the smaller of two changes in a row that have opposite directions, less what bursts make.
    turn: Duration,
}

impl Waits {
    pub(super) const fn new() -> Waits {
        Waits { last: [Duration::MAX; 2], mean: Duration::ZERO, turn: Duration::ZERO }
    }

    /// A round is over whose shortest round trip was that, and whose packets waited that at least.
    pub(super) fn on_round(&mut self, shortest: Duration, wait: Duration) {
        let [first, second] = self.last;
        self.last = [second, shortest];
        if first == Duration::MAX {
            return;
        }
        let turns = (first < second) != (second < shortest);
        let turn = first.abs_diff(second).min(second.abs_diff(shortest)).saturating_sub(LEAST_QUEUE);
        let average = |mean: Duration, of_round: Duration| (mean * (ROUNDS - 1) + of_round) / ROUNDS;
        self.mean = average(self.mean, wait);
        self.turn = average(self.turn, if turns { turn } else { Duration::ZERO });
    }

    /// The flow had nothing to send: what it fills itself empties then, which is no jitter.
    pub(super) fn on_pause(&mut self) {
        self.last = [Duration::MAX; 2];
    }

    /// Packets wait in some rounds.
    pub(super) fn exist(&self) -> bool {
        self.mean >= LEAST_QUEUE
    }

    /// Packets wait in most rounds, and not by jitter.
    pub(super) fn are_calm(&self) -> bool {
        self.mean > MOST_FREE && self.turn * CALM_PART < self.mean
    }
}
