//! ProbeRTT: half the bandwidth-delay product for 200 ms and a round, so that the queue empties and the round trip can be
//! measured. Source: the draft, §5.3.4.

use super::Bbr;
use super::state::State;
use crate::congestion::delivery::RateSample;
use base::time::{Duration, Instant};

/// How long the pipe is kept half empty. Source: the draft, §2.16.2.
const DURATION: Duration = Duration::from_millis(200);

/// How far the present probe has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeRtt {
    /// When it may end; `None` while the queue still drains.
    done_at: Option<Instant>,
    is_round_done: bool,
}

impl ProbeRtt {
    pub(super) const fn new() -> ProbeRtt {
        ProbeRtt { done_at: None, is_round_done: false }
    }

    pub(super) fn step_back_to(&mut self, now: Instant) {
        self.done_at = self.done_at.map(|at| at.min(now + DURATION));
    }
}

impl Bbr {
    /// Source: the draft, §5.3.4.3.
    pub(super) fn check_probe_rtt(&mut self, now: Instant, sample: &RateSample, in_flight: u64) {
        if self.state != State::ProbeRtt && self.min_rtt.is_expired() && !self.is_restarting {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt = ProbeRtt::new();
            self.cycle.stop_probing();
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.work_on_probe_rtt(now, in_flight);
        }
        if sample.delivered > 0 {
            self.is_restarting = false;
        }
    }

    fn work_on_probe_rtt(&mut self, now: Instant, in_flight: u64) {
        // The low rate of this phase is our own doing.
        self.delivery.mark_app_limited(in_flight);
        if self.probe_rtt.done_at.is_none() {
            if in_flight <= self.probe_rtt_window() {
                self.probe_rtt = ProbeRtt { done_at: Some(now + DURATION), is_round_done: false };
                self.start_round();
            }
            return;
        }
        if self.model.is_round_start {
            self.probe_rtt.is_round_done = true;
        }
        if self.probe_rtt.is_round_done {
            self.finish_probe_rtt_if_due(now);
        }
    }

    pub(super) fn finish_probe_rtt_if_due(&mut self, now: Instant) {
        if self.probe_rtt.done_at.is_none_or(|at| now <= at) {
            return;
        }
        self.min_rtt.on_probed(now);
        self.restore_window();
        self.bounds.reset_short_term();
        if self.full_pipe.is_ever_full() {
            self.start_down(now);
            self.state = State::Cruise; // the queue is empty already
        } else {
            self.state = State::Startup;
        }
    }
}
