//! A beginning in the middle of a flow that another controller has led until now.

use super::Bbr;
use super::state::State;
use base::time::{Duration, Instant};

/// What the other one has left.
#[derive(Clone, Copy, Debug)]
pub(in crate::congestion) struct TakeOver {
    /// The congestion window in bytes.
    pub(in crate::congestion) window: u64,
    /// What it sent, in bytes a second.
    pub(in crate::congestion) rate: u64,
    /// The smallest round trip.
    pub(in crate::congestion) min_rtt: Duration,
    /// The path delivers no more: a queue stands. Otherwise it loses by chance, and Startup looks for more.
    pub(in crate::congestion) is_full: bool,
    /// The path loses by chance whatever waits.
    pub(in crate::congestion) is_chance: bool,
}

impl Bbr {
    /// Startup from that rate, or Drain.
    pub(in crate::congestion) fn take_over(now: Instant, mtu: u16, left: TakeOver) -> Bbr {
        let mut bbr = Bbr::new(mtu);
        bbr.window = left.window.max(bbr.least_window());
        bbr.min_rtt.on_sample(now, left.min_rtt);
        bbr.model.begin_with(left.rate);
        bbr.random_loss.is_known = left.is_chance;
        if !left.is_full {
            bbr.random_loss.budget.open();
        }
        if left.is_full {
            bbr.full_pipe.is_full = true;
            bbr.full_pipe.is_ever_full = true;
            bbr.state = State::Drain;
        }
        bbr.pace_with(bbr.state.pacing_gain());
        bbr
    }

    #[cfg(test)]
    pub(in crate::congestion) const fn knows_chance(&self) -> bool {
        self.random_loss.is_known
    }

    /// Bytes that the path holds without a queue.
    pub(in crate::congestion) fn pipe(&self) -> u64 {
        self.bdp(self.model.max_bandwidth(), 100)
    }

    /// max_datagram_size in bytes.
    pub(in crate::congestion) const fn mtu(&self) -> u16 {
        self.mtu
    }
}
