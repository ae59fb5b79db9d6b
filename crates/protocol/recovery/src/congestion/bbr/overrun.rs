//! Whether losses follow what is in flight: then the flow overruns a queue, be it too short to make anything wait.
//!
//! Chance takes the same share of all packets. A queue takes none of those that leave while less is in flight than the path holds. So packets
//! are counted by what was in flight when they left, up to a bandwidth-delay product and above, and so are the runs of those that were lost. In
//! simulated flows the share above is 0.8 to 1.3 of that below where chance takes both, two to three times that in crowds at CoDel and PIE, which drop
//! what the others send as well, and eight times and more where one flow overruns a queue of a quarter of a product.
//!
//! Both may be true of a path. A flow that answers all losses is held back by those that chance takes: it has a window of √(3/2p) packets where the
//! share p is lost. Where that is less than the path holds, an overrun is the smaller evil, and nothing is concluded.
//!
//! Runs are counted rather than packets: a burst on a radio link is one event. Source of the law: Mathis et al., 1997, "The macroscopic behavior of the
//! TCP congestion avoidance algorithm".

/// Losses follow what is in flight if so small a part of the share above the product is lost below it.
const PART: u64 = 4;
/// So many losses below it would be expected of chance, before anything is concluded: that a quarter of them or less come is one in 500.
const LEAST_EXPECTED: u64 = 12;
/// So many more are counted below it for the law: few packets without a loss say little.
const MARGIN: u64 = 2;
/// Counts are halved when there are so many losses: what is old fades.
const MOST_LOSSES: u64 = 1_024;

/// Packets and runs of lost ones.
#[derive(Clone, Copy, Debug)]
struct Counts {
    packets: u64,
    losses: u64,
}

impl Counts {
    const NONE: Counts = Counts { packets: 0, losses: 0 };

    fn fade(&mut self) {
        self.packets /= 2;
        self.losses /= 2;
    }
}

/// What was lost up to a product in flight, and above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overrun {
    /// The product in this round, in bytes; 0 while nothing is counted.
    product: u64,
    below: Counts,
    above: Counts,
    is_shown: bool,
}

impl Overrun {
    pub(super) const fn new() -> Overrun {
        Overrun { product: 0, below: Counts::NONE, above: Counts::NONE, is_shown: false }
    }

    /// Whether losses follow what is in flight, as of the beginning of this round.
    pub(super) const fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// So many packets were acknowledged, of which the latest left with `in_flight` bytes under way; 0 if that is not known any more.
    pub(super) fn on_acked(&mut self, packets: u64, in_flight: u64) {
        if self.product > 0 && in_flight > 0 {
            let counts = self.side(in_flight);
            counts.packets = counts.packets.saturating_add(packets);
        }
    }

    /// The same of packets that were lost, in so many runs.
    pub(super) fn on_lost(&mut self, runs: u64, in_flight: u64) {
        if self.product > 0 {
            let counts = self.side(in_flight);
            counts.losses = counts.losses.saturating_add(runs);
        }
    }

    fn side(&mut self, in_flight: u64) -> &mut Counts {
        if in_flight <= self.product { &mut self.below } else { &mut self.above }
    }

    /// A round begins in which the path holds `product` bytes, in packets of `datagram`; 0 if nothing is to be counted, because the flow overruns any
    /// queue on purpose.
    pub(super) fn on_round(&mut self, product: u64, datagram: u64) {
        self.product = product;
        self.is_shown = product > 0 && self.judge(product / datagram.max(1));
        if self.below.losses.saturating_add(self.above.losses) >= MOST_LOSSES {
            self.below.fade();
            self.above.fade();
        }
    }

    /// Whether losses follow what is in flight on a path that holds so many packets, and those below are no more than a flow bears that answers them.
    fn judge(&self, packets: u64) -> bool {
        let Overrun { below, above, .. } = *self;
        let times = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let squared = packets.saturating_mul(packets).saturating_mul(2);
        if times(below.losses.saturating_add(MARGIN), squared) > times(below.packets, 3) {
            return false;
        }
        // What would be lost below if the share were that above, times the packets above.
        let expected = times(above.losses, below.packets);
        let least = LEAST_EXPECTED.max(below.losses.saturating_mul(PART));
        expected >= times(least, above.packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that holds ten packets and has lost so many of a thousand below that, and of a thousand above.
    fn after(below: u64, above: u64) -> bool {
        let mut overrun = Overrun::new();
        overrun.on_round(10_000, 1_000);
        for (in_flight, losses) in [(10_000, below), (10_001, above)] {
            overrun.on_acked(1_000, in_flight);
            overrun.on_lost(losses, in_flight);
        }
        assert!(!overrun.is_shown(), "before the round is over");
        overrun.on_round(10_000, 1_000);
        overrun.is_shown()
    }

    /// Deleted, a flow that has taken the overflow of a queue of half a millisecond for chance would lose a tenth of what it sends for as long as it lasts.
    #[test]
    fn losses_with_more_in_flight_than_the_path_holds_are_an_overrun() {
        assert!(after(0, 12));
        assert!(after(12, 100));
    }

    #[test]
    fn a_few_losses_say_nothing() {
        assert!(!after(0, 11));
    }

    /// Deleted, two flows over a radio link that fill its queue together would be CUBIC's.
    #[test]
    fn losses_of_which_a_third_would_come_anyway_are_none() {
        assert!(!after(10, 30));
    }

    /// Deleted, a short queue on a radio link would cost as much as CUBIC makes of its losses.
    #[test]
    fn chance_that_a_flow_could_not_answer_outweighs_an_overrun() {
        assert!(!after(14, 100), "a window of nine packets");
    }

    #[test]
    fn what_overruns_a_queue_on_purpose_is_not_counted() {
        let mut overrun = Overrun::new();
        for product in [0, 10_000] {
            overrun.on_round(product, 1_000);
            overrun.on_acked(1_000, 10_000);
            overrun.on_acked(if product > 0 { 1_000 } else { 0 }, 20_000);
            overrun.on_lost(if product > 0 { 0 } else { 100 }, 20_000);
        }
        overrun.on_round(10_000, 1_000);
        assert!(!overrun.is_shown());
    }

    /// Deleted, a queue that has become long, or a link that has become a radio link, would be judged by what it was.
    #[test]
    fn what_is_old_fades() {
        let mut overrun = Overrun::new();
        let mut round = |below: u64| {
            overrun.on_round(10_000, 1_000);
            for (in_flight, losses) in [(10_000, below), (20_000, 100)] {
                overrun.on_acked(1_000, in_flight);
                overrun.on_lost(losses, in_flight);
            }
            overrun.is_shown()
        };
        assert!((0..100).any(|_| round(0)));
        let rounds = (0..200).position(|_| !round(20));
        assert!(rounds.is_some_and(|rounds| rounds < 30), "{rounds:?}");
    }
}
