//! Startup, which doubles the rate each round until the pipe is full, and Drain, which empties the queue that this made.
//! Source: the draft, §5.3.1, §5.3.2.

use super::Bbr;
use super::state::State;
use crate::congestion::delivery::RateSample;

/// Rounds with little growth after which the pipe is full.
const FULL_ROUNDS: u32 = 3;
/// Growth that is not little, in hundredths.
const GROWTH: u64 = 125;
/// Separate losses in a round that end Startup. Source: the draft, §5.3.1.3 (BBRStartupFullLossCnt).
const LOSS_RANGES: u64 = 6;
/// Rounds that Drain may take.
pub(super) const DRAIN_ROUNDS: u64 = 3;

impl Bbr {
    /// Source: the draft, §5.3.1.2.
    pub(super) fn check_full_pipe(&mut self, sample: &RateSample) {
        let pipe = &mut self.full_pipe;
        if pipe.is_full || !self.model.is_round_start || sample.is_app_limited() || sample.rate == 0 {
            return;
        }
        if sample.rate >= pipe.baseline.saturating_mul(GROWTH) / 100 {
            pipe.reset(sample.rate);
            return;
        }
        pipe.rounds += 1;
        pipe.is_full = pipe.rounds >= FULL_ROUNDS;
        pipe.is_ever_full |= pipe.is_full;
    }

    pub(super) fn check_startup_done(&mut self, sample: &RateSample) {
        self.check_startup_losses(sample);
        if self.state == State::Startup && self.full_pipe.is_ever_full {
            self.state = State::Drain;
            self.full_pipe.drain_start = self.model.round;
        }
    }

    /// A round of many losses fills the pipe as well. Source: the draft, §5.3.1.3.
    fn check_startup_losses(&mut self, sample: &RateSample) {
        if !self.bounds.is_round_start() {
            return;
        }
        let ranges = self.bounds.take_ranges();
        let bandwidth = self.model.max_bandwidth();
        let before = core::mem::replace(&mut self.full_pipe.at_losses, bandwidth);
        let has_grown = bandwidth >= before.saturating_mul(GROWTH) / 100;
        if self.full_pipe.is_ever_full
            || ranges < LOSS_RANGES
            || !self.random_loss.is_too_high(sample.lost, sample.tx_in_flight, self.datagram())
            || self.random_loss.is_harmless_in_startup(has_grown)
        {
            return;
        }
        self.undo.on_left(State::Startup);
        self.full_pipe.is_full = true;
        self.full_pipe.is_ever_full = true;
        let bdp = self.bdp(self.model.bandwidth(), 100);
        self.bounds.set_inflight_long(bdp.max(self.bounds.inflight_latest()));
    }

    /// Source: the draft, §5.3.2.
    pub(super) fn check_drain_done(&mut self, now: base::time::Instant, in_flight: u64) {
        if self.state != State::Drain {
            return;
        }
        let is_drained = in_flight <= self.inflight(self.model.bandwidth(), 100);
        if is_drained || self.model.round > self.full_pipe.drain_start.saturating_add(DRAIN_ROUNDS) {
            self.start_down(now);
        }
    }
}
