//! Losses at rest while CUBIC is in use.
//!
//! A packet is at rest if hardly anything waits when it is acknowledged. Chance loses the same share of packets whatever waits; a queue
//! loses hardly any while nothing waits. Where a flow of BBR's keeps the queue of a link that loses by chance, few packets are at rest, so
//! most of what chance takes looks like the queue's. A loss beside which packets wait therefore says the less about chance the fewer
//! packets are at rest: it takes half of their share from what a loss at rest speaks for.
//!
//! The first losses of each recovery are weighed. What is declared lost later meets a queue that the reduction has emptied.

/// Shares and evidence are in parts of this.
const ONE: u32 = 1 << 16;
/// Rounds over which the share is averaged.
const ROUNDS: u32 = 64;
/// The least share with which losses at rest are evidence: PIE and round trips of 100 ms have half of that.
const LEAST_SHARE: u32 = ONE / 12;
/// Losses at rest that make BBR of CUBIC, beyond what others take away.
const NEEDED: u32 = 2 * ONE;

/// What is known of packets and losses at rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtRest {
    /// Packets that this round has acknowledged, and those of them at rest.
    acked: u32,
    at_rest: u32,
    /// The part of packets at rest.
    share: u32,
    /// What losses speak for.
    evidence: u32,
}

impl AtRest {
    pub(super) const fn new() -> AtRest {
        AtRest { acked: 0, at_rest: 0, share: 0, evidence: 0 }
    }

    pub(super) fn on_acked(&mut self, packets: u64, is_at_rest: bool) {
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        self.acked = self.acked.saturating_add(packets);
        if is_at_rest {
            self.at_rest = self.at_rest.saturating_add(packets);
        }
    }

    pub(super) fn on_round(&mut self) {
        let (acked, at_rest) = (core::mem::take(&mut self.acked), core::mem::take(&mut self.at_rest));
        if acked > 0 {
            let of_round = (u64::from(at_rest) * u64::from(ONE) / u64::from(acked)) as u32;
            self.share = (self.share * (ROUNDS - 1) + of_round) / ROUNDS;
        }
    }

    /// A frame has brought the first losses of a recovery to light.
    pub(super) fn on_lost(&mut self, is_at_rest: bool) {
        if is_at_rest {
            self.evidence = self.evidence.saturating_add(ONE);
        } else {
            self.evidence = self.evidence.saturating_sub(self.share.max(LEAST_SHARE) / 2);
        }
    }

    /// Whether losses at rest make BBR of CUBIC.
    pub(super) const fn are_losses_chance(&self) -> bool {
        self.evidence >= NEEDED && self.share >= LEAST_SHARE
    }

    /// Some losses were none. Which of them spoke at rest is not known, so all are forgotten.
    pub(super) fn forget_losses(&mut self) {
        self.evidence = 0;
    }
}
