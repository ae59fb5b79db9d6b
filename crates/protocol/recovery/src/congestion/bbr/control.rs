//! What comes out of the model: the pacing rate and the window. Source: the draft, §5.6.

use super::model::rate;
use super::state::State;
use super::{Bbr, INFINITE};
use crate::congestion::delivery::{MAX_BANDWIDTH, RateSample};
use crate::congestion::window::{MAX_WINDOW, minimum_window};
use base::time::{Duration, Instant};

/// Hundredths of the bandwidth that are used: a little less than all. Source: the draft, §2.5.
const MARGIN: u64 = 99;
/// Datagrams a second that may always be sent.
const LEAST_RATE: u64 = 1;

impl Bbr {
    /// Before any bandwidth is known: that window, at first the initial one, every round trip. Source: the draft, §5.6.2.
    pub(super) fn pace_first(&mut self, window: u64, rtt: Duration) {
        if self.pacing == 0 {
            let gain = State::Startup.pacing_gain();
            self.pacing = self.bounded_rate(rate(window, rtt, gain));
        }
    }

    /// `gain` hundredths of the bandwidth; while the pipe has not been full, never slower than before.
    pub(super) fn pace_with(&mut self, gain: u64) {
        let rate = self.model.bandwidth().saturating_mul(gain).saturating_mul(MARGIN) / 10_000;
        if self.full_pipe.is_ever_full() || rate > self.pacing {
            self.pacing = self.bounded_rate(rate);
        }
    }

    fn bounded_rate(&self, rate: u64) -> u64 {
        rate.clamp(self.datagram() * LEAST_RATE, MAX_BANDWIDTH)
    }

    /// Source: the draft, §5.6.4.6, §5.6.4.7.
    pub(super) fn set_window(&mut self, sample: &RateSample) {
        let wanted = self.bdp(self.model.bandwidth(), self.state.window_gain());
        let most = self.quantized(wanted.saturating_add(self.model.extra_acked()));
        let grown = self.window.saturating_add(sample.newly_acked);
        if self.full_pipe.is_ever_full() {
            self.window = grown.min(most);
        } else if self.window < most || self.delivery.delivered() < self.initial.bytes(self.mtu) {
            self.window = grown;
        }
        let most = self.bound_of_state().max(self.least_window());
        self.window = self.window.max(self.least_window()).min(most).min(MAX_WINDOW);
    }

    /// The volume cap of the state. Source: the draft, §5.6.1.
    fn bound_of_state(&self) -> u64 {
        let long = match self.state {
            State::Startup | State::Drain => INFINITE,
            State::Down | State::Refill | State::Up => self.bounds.inflight_long(),
            State::Cruise => self.inflight_with_headroom(),
            State::ProbeRtt => self.inflight_with_headroom().min(self.probe_rtt_window()),
        };
        long.min(self.bounds.inflight_short())
    }

    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(self.model.bandwidth(), State::ProbeRtt.window_gain()).max(self.least_window())
    }

    /// Remembers the window for when recovery or ProbeRTT is over. Source: the draft, §5.6.4.4.
    pub(super) fn save_window(&mut self) {
        let is_shrunk = self.recovery_start.is_some() || self.state == State::ProbeRtt;
        self.prior_window = if is_shrunk { self.prior_window.max(self.window) } else { self.window };
    }

    pub(super) fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    /// Everything over a long time is lost. Rounds in which nothing could be delivered say nothing of a full pipe. Source: RFC 9002 §7.6.2;
    /// the draft, §5.6.4.4.
    pub(in crate::congestion) fn on_persistent_congestion(&mut self) {
        self.full_pipe.reset(0);
        self.save_window();
        self.window = minimum_window(self.mtu);
    }

    /// A packet sent after the losses is acknowledged: recovery is over.
    pub(super) fn leave_recovery(&mut self, sent_at: Instant) {
        if self.recovery_start.is_some_and(|start| sent_at > start) {
            self.recovery_start = None;
            self.restore_window();
        }
    }
}
