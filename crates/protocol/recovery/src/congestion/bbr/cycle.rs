//! ProbeBW, where a flow spends its life: slower than the path for a while (down), as fast as the path (cruise), a round that
//! fills the pipe (refill), faster than the path (up), and again. Source: the draft, §5.3.3.

use super::state::State;
use super::{Bbr, INFINITE};
use crate::congestion::delivery::RateSample;
use base::rng::Rng;
use base::time::{Duration, Instant};

/// Hundredths of the long-term bound that are left to others. Source: the draft, §2.8 (Headroom).
const HEADROOM: u64 = 15;
/// A probe is due after so long at the latest, plus up to a second. Source: the draft, §5.3.3.8.3.
const LEAST_WAIT: Duration = Duration::from_secs(2);
/// Rounds after which a flow of NewReno's would have grown to a pipe of this many datagrams: then a probe is due too.
const MOST_ROUNDS: u64 = 63;
/// The growth of the long-term bound doubles at most so often.
const MOST_DOUBLINGS: u32 = 30;

/// What acknowledgements tell about the last probe. Source: the draft, §2.14.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feedback {
    /// Nothing.
    None,
    /// The pipe is being filled.
    Refilling,
    /// The probe has begun, its feedback has not.
    Starting,
    /// It is coming in.
    Coming,
    /// The probe has ended, its feedback has not.
    Stopping,
}

/// Where the cycle stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    feedback: Feedback,
    started_at: Instant,
    wait: Duration,
    rounds_since_probe: u64,
    /// Losses that are declared now belong to a probe that has not been answered.
    is_probe_sample: bool,
    was_too_high: bool,
    was_cautious: bool,
    /// Bytes to be acknowledged for each datagram by which the long-term bound grows.
    acked_per_step: u64,
    acked: u64,
    doublings: u32,
}

impl Cycle {
    pub(super) const fn new() -> Cycle {
        Cycle {
            feedback: Feedback::None,
            started_at: Instant::ZERO,
            wait: Duration::ZERO,
            rounds_since_probe: 0,
            is_probe_sample: false,
            was_too_high: false,
            was_cautious: false,
            acked_per_step: INFINITE,
            acked: 0,
            doublings: 0,
        }
    }

    pub(super) fn on_round(&mut self) {
        self.rounds_since_probe = self.rounds_since_probe.saturating_add(1);
    }

    pub(super) const fn is_probe_sample(&self) -> bool {
        self.is_probe_sample
    }

    /// A probe is answered once.
    pub(super) fn on_too_high(&mut self) {
        self.was_too_high = true;
        self.is_probe_sample = false;
    }

    pub(super) fn stop_probing(&mut self) {
        self.feedback = Feedback::Stopping;
    }

    pub(super) fn step_back_to(&mut self, now: Instant) {
        self.started_at = self.started_at.min(now);
    }

    /// Source: the draft, §5.3.3.8.3 (PickProbeWait).
    fn pick_wait(&mut self, now: Instant, delivered: u64) {
        let mut rng = Rng::from_u64(now.as_nanos() ^ delivered.rotate_left(32));
        self.rounds_since_probe = rng.below(2);
        self.wait = LEAST_WAIT + Duration::from_micros(rng.below(1_000_000));
    }

    fn is_wait_over(&self, now: Instant) -> bool {
        now > self.started_at + self.wait
    }
}

/// The transitions.
impl Bbr {
    pub(super) fn start_down(&mut self, now: Instant) {
        self.bounds.reset_signals();
        self.cycle.acked_per_step = INFINITE;
        self.cycle.pick_wait(now, self.delivery.delivered());
        self.cycle.started_at = now;
        self.cycle.feedback = Feedback::Stopping;
        self.start_round();
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self) {
        self.bounds.reset_short_term();
        self.cycle.doublings = 0;
        self.cycle.acked = 0;
        self.cycle.was_cautious = false;
        self.cycle.feedback = Feedback::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    fn start_up(&mut self, sample: &RateSample) {
        self.cycle.is_probe_sample = true;
        self.cycle.feedback = Feedback::Starting;
        self.start_round();
        self.full_pipe.reset(sample.rate);
        self.state = State::Up;
        self.steepen();
    }

    /// Source: the draft, §5.3.3.9 (UpdateProbeBWCyclePhase).
    pub(super) fn update_cycle(&mut self, now: Instant, sample: &RateSample, in_flight: u64) {
        if !self.full_pipe.is_ever_full() || self.adapt_long_term(sample) {
            return;
        }
        let state = self.state;
        match state {
            State::Down if self.is_time_to_probe(now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(in_flight) => self.state = State::Cruise,
            State::Cruise if self.is_time_to_probe(now) => self.start_refill(),
            State::Refill if self.model.is_round_start => self.start_up(sample),
            State::Up if self.is_time_to_go_down(sample, in_flight) => {
                self.cycle.was_too_high = false;
                self.start_down(now);
            }
            _ => {}
        }
    }
}

/// The conditions.
impl Bbr {
    fn is_time_to_probe(&self, now: Instant) -> bool {
        // As rarely as a flow of NewReno's would lose a packet, where the pipe is small.
        let rounds = (self.target_inflight() / self.datagram()).min(MOST_ROUNDS);
        self.cycle.is_wait_over(now) || self.cycle.rounds_since_probe >= rounds
    }

    fn is_time_to_cruise(&self, in_flight: u64) -> bool {
        in_flight <= self.inflight_with_headroom()
            && in_flight <= self.inflight(self.model.max_bandwidth(), 100)
    }

    fn is_window_limited(&self) -> bool {
        self.usage.this_round || self.usage.last_round
    }

    fn is_time_to_go_down(&mut self, sample: &RateSample, in_flight: u64) -> bool {
        if self.cycle.was_too_high && in_flight >= self.bounds.inflight_long() {
            self.cycle.was_cautious = true;
            return true;
        }
        if self.is_window_limited() && self.window >= self.bounds.inflight_long() {
            self.full_pipe.reset(sample.rate); // the bound is what limits the rate
            return false;
        }
        self.full_pipe.is_full()
    }

    pub(super) fn inflight_with_headroom(&self) -> u64 {
        let bound = self.bounds.inflight_long();
        if bound == INFINITE {
            return INFINITE;
        }
        let headroom = (bound / 100 * HEADROOM).max(self.datagram());
        bound.saturating_sub(headroom).max(self.least_window())
    }
}

/// The long-term bound.
impl Bbr {
    /// Whether it has also decided on the next state. Source: the draft, §5.3.3.9 (AdaptLongTermModel).
    fn adapt_long_term(&mut self, sample: &RateSample) -> bool {
        if self.model.is_round_start {
            match self.cycle.feedback {
                Feedback::Starting => self.cycle.feedback = Feedback::Coming,
                Feedback::Stopping => {
                    self.cycle.is_probe_sample = false;
                    self.cycle.feedback = Feedback::None;
                    if self.state.is_probe_bw() && !sample.is_app_limited() {
                        self.model.advance_cycle();
                    }
                    // The cautious probe went well: the next one need not be cautious.
                    if self.state.is_probe_bw() && self.cycle.was_cautious && !self.cycle.was_too_high {
                        self.start_refill();
                        return true;
                    }
                }
                Feedback::None | Feedback::Refilling | Feedback::Coming => {}
            }
        }
        let bound = self.bounds.inflight_long();
        if bound != INFINITE
            && !self.random_loss.is_too_high(sample.lost, sample.tx_in_flight, self.datagram())
        {
            self.bounds.set_inflight_long(bound.max(sample.tx_in_flight));
            if self.state == State::Up {
                self.raise_long_term(sample);
            }
        }
        false
    }

    /// Source: the draft, §5.3.3.9 (ProbeInflightLongtermUpward).
    fn raise_long_term(&mut self, sample: &RateSample) {
        if !self.is_window_limited() || self.window < self.bounds.inflight_long() {
            return;
        }
        self.cycle.acked = self.cycle.acked.saturating_add(sample.newly_acked);
        let steps = self.cycle.acked / self.cycle.acked_per_step.max(1);
        self.cycle.acked -= steps * self.cycle.acked_per_step;
        let growth = steps.saturating_mul(self.datagram());
        self.bounds.set_inflight_long(self.bounds.inflight_long().saturating_add(growth).min(INFINITE - 1));
        if self.model.is_round_start {
            self.steepen();
        }
    }

    /// The bound grows twice as fast with each round. Source: the draft, §5.3.3.9 (RaiseInflightLongtermSlope).
    fn steepen(&mut self) {
        self.cycle.acked_per_step = (self.window >> self.cycle.doublings).max(self.datagram());
        self.cycle.doublings = (self.cycle.doublings + 1).min(MOST_DOUBLINGS);
    }
}
