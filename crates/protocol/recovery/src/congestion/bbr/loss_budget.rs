//! Losses in runs on a path whose jitter hides any queue. A radio link that loses one packet in a hundred, eight in a row, takes a fifth of a window of forty in
//! one round and nothing in the next twenty. The draft's 2 % are those of one round, so each run ends a probe and lowers the rate.
//!
//! So what is delivered fills a budget, and losses empty it. Those that it covers are no sign of a rate that is too high.
//!
//! Only a flow that has taken BBR because of losses by chance has a budget: its judge looks for a queue in other ways, too (`auto.rs`). With one for
//! all, BBR beside CUBIC starves it in jitter and a queue of 0.3 products (docs/decisions/023-congestion-auto.md).

/// Such a part of what is delivered may be lost: twice what the draft bears in a round.
const PART: u64 = 25;
/// Datagrams that the budget covers at most: four runs of eight.
const MOST_DATAGRAMS: u64 = 32;

/// What one path may lose, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossBudget {
    is_open: bool,
    left: u64,
    /// What was delivered since the beginning, when the budget was last filled.
    delivered: u64,
    /// What it has covered in this round and in the one before.
    covered: [u64; 2],
}

impl LossBudget {
    /// A budget that covers nothing.
    pub(super) const fn closed() -> LossBudget {
        LossBudget { is_open: false, left: 0, delivered: 0, covered: [0; 2] }
    }

    /// From now on it fills.
    pub(super) fn open(&mut self) {
        self.is_open = true;
    }

    /// `lost` bytes were lost after `delivered` since the beginning. Returns those that are not covered.
    pub(super) fn cover(&mut self, lost: u64, delivered: u64, datagram: u64) -> u64 {
        if !self.is_open {
            return lost;
        }
        let more = delivered.saturating_sub(self.delivered) / PART;
        self.delivered = delivered;
        self.left = self.left.saturating_add(more).min(datagram * MOST_DATAGRAMS);
        let covered = lost.min(self.left);
        self.left -= covered;
        self.covered[0] = self.covered[0].saturating_add(covered);
        lost - covered
    }

    pub(super) fn on_round(&mut self) {
        self.covered = [0, self.covered[0]];
    }

    /// What was covered of the losses of a round trip.
    pub(super) const fn covered(&self) -> u64 {
        self.covered[0].saturating_add(self.covered[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: u64 = 1_000;

    #[test]
    fn what_is_delivered_covers_a_run_now_and_then() {
        let mut budget = LossBudget::closed();
        assert_eq!(budget.cover(1_000, 1_000_000, DATAGRAM), 1_000, "nothing is covered at first");
        budget.open();
        assert_eq!(budget.cover(8_000, 200_000, DATAGRAM), 0, "a twenty-fifth of what was delivered");
        assert_eq!(budget.covered(), 8_000);
        budget.on_round();
        assert_eq!(budget.covered(), 8_000, "a round trip may have begun in the round before");
        assert_eq!(budget.cover(8_000, 300_000, DATAGRAM), 4_000, "more than the path loses by itself");
        budget.on_round();
        budget.on_round();
        assert_eq!(budget.covered(), 0);
    }

    /// Deleted, a long download could lose a whole window without an answer.
    #[test]
    fn the_budget_holds_four_runs_at_most() {
        let mut budget = LossBudget::closed();
        budget.open();
        assert_eq!(budget.cover(40_000, 100_000_000, DATAGRAM), 8_000);
    }
}
