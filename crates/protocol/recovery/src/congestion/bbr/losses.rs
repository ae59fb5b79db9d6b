//! The answer to loss and to marks: bounds for now, a bound for longer where a probe went too far, and taking both back
//! where nothing was lost after all. Source: the draft, §5.5.10, §5.5.11.

use super::bounds::{Undo, inflight_at_loss};
use super::state::State;
use super::{Bbr, INFINITE};
use crate::congestion::delivery::{Limit, RateSample};
use crate::congestion::events::{CongestionCause, CongestionEvent};
use base::time::Instant;

/// Hundredths that a round with loss leaves at least. Source: the draft, §2.8 (Beta).
const BETA: u64 = 70;

/// `percent` hundredths; infinity stays.
fn part(value: u64, percent: u64) -> u64 {
    if value == INFINITE { INFINITE } else { (u128::from(value) * u128::from(percent) / 100) as u64 }
}

impl Bbr {
    #[cfg(test)]
    pub(super) fn undo_left(&self) -> Option<State> {
        self.undo.left
    }

    /// Source: the draft, §5.5.10.2.
    pub(in crate::congestion) fn on_congestion(&mut self, now: Instant, sign: &CongestionEvent) {
        self.delivery.on_lost(sign.bytes);
        let then = self.delivery.snapshot(sign.sent_at);
        let mut is_borne = false;
        if sign.cause == CongestionCause::Loss {
            let (delivered, datagram) = (self.delivery.delivered(), self.datagram());
            is_borne = !self.random_loss.on_lost(sign.bytes, sign.ranges, delivered, datagram);
            if let Some(then) = then {
                self.random_loss.overrun.on_lost(sign.ranges, then.in_flight);
            }
        }
        if !self.bounds.is_loss_in_round {
            self.save_state();
        }
        if sign.cause == CongestionCause::Loss {
            self.enter_recovery(now, sign);
        }
        if is_borne {
            return;
        }
        self.bounds.on_congestion(self.delivery.delivered(), sign.ranges);
        if !self.cycle.is_probe_sample() {
            return;
        }
        let Some(then) = then else { return };
        let lost = self.delivery.lost().saturating_sub(then.lost);
        if self.random_loss.is_too_high(lost, then.in_flight, self.datagram()) {
            let borne = self.random_loss.borne();
            let bearable = inflight_at_loss(then.in_flight, (lost, sign.bytes), borne);
            self.on_inflight_too_high(now, bearable, then.limit);
        }
    }

    fn enter_recovery(&mut self, now: Instant, sign: &CongestionEvent) {
        if self.recovery_start.is_none() {
            self.save_window();
            self.recovery_start = Some(now);
            (self.undo.lost, self.undo.spurious) = (0, 0);
        }
        self.undo.lost = self.undo.lost.saturating_add(sign.packets);
    }

    /// A probe went too far: what was in flight then is the bound from now on.
    fn on_inflight_too_high(&mut self, now: Instant, bearable: u64, limit: Limit) {
        self.cycle.on_too_high();
        if limit == Limit::Path {
            self.bounds.inflight_long = bearable.max(part(self.target_inflight(), BETA));
        }
        if self.state == State::Up {
            self.undo.on_left(State::Up);
            self.start_down(now);
        }
    }

    /// Near the start of an acknowledgement. Source: the draft, §5.5.10.3 (UpdateLatestDeliverySignals).
    pub(super) fn note_delivery(&mut self, sample: &RateSample) {
        let bounds = &mut self.bounds;
        bounds.bandwidth_latest = bounds.bandwidth_latest.max(sample.rate);
        bounds.inflight_latest = bounds.inflight_latest.max(sample.delivered);
        bounds.is_round_start = sample.prior_delivered >= bounds.round_delivered;
        if bounds.is_round_start {
            bounds.round_delivered = self.delivery.delivered();
        }
    }

    /// Near its end.
    pub(super) fn advance_delivery(&mut self, sample: &RateSample) {
        if self.bounds.is_round_start {
            self.bounds.bandwidth_latest = sample.rate;
            self.bounds.inflight_latest = sample.delivered;
        }
    }

    /// Once a round that had losses, unless more is being tried on purpose. Source: the draft, §5.5.10.3.
    pub(super) fn adapt_short_term(&mut self) {
        if !self.bounds.is_round_start {
            return;
        }
        let datagram = self.datagram();
        self.random_loss.on_round(self.delivery.delivered(), self.min_rtt.value(), datagram);
        let (max_bandwidth, window) = (self.model.max_bandwidth(), self.window);
        let bounds = &mut self.bounds;
        let is_lossy = core::mem::take(&mut bounds.is_loss_in_round);
        if self.state.is_probing_up() {
            return;
        }
        if !self.random_loss.is_answered(self.model.bandwidth(), bounds.bandwidth_latest) {
            bounds.reset_short_term();
        } else if is_lossy {
            let bandwidth = bounds.bandwidth_short.min(max_bandwidth);
            let inflight = if bounds.inflight_short == INFINITE { window } else { bounds.inflight_short };
            bounds.bandwidth_short = bounds.bandwidth_latest.max(part(bandwidth, BETA));
            bounds.inflight_short = bounds.inflight_latest.max(part(inflight, BETA));
        }
    }

    fn save_state(&mut self) {
        self.save_window();
        self.undo = Undo {
            left: None,
            bandwidth_short: self.bounds.bandwidth_short,
            inflight_short: self.bounds.inflight_short,
            inflight_long: self.bounds.inflight_long,
            ..self.undo
        };
    }

    /// So many packets that had been declared lost have arrived. Source: the draft, §5.5.11.2.
    pub(super) fn on_spurious(&mut self, packets: u64) {
        self.undo.spurious = self.undo.spurious.saturating_add(packets);
        if self.undo.lost == 0 || self.undo.spurious < self.undo.lost {
            return;
        }
        let undo = self.undo;
        (self.undo.lost, self.undo.spurious, self.undo.left) = (0, 0, None);
        self.recovery_start = None;
        self.restore_window();
        self.bounds.is_loss_in_round = false;
        self.full_pipe.reset(0);
        self.bounds.bandwidth_short = self.bounds.bandwidth_short.max(undo.bandwidth_short);
        self.bounds.inflight_short = self.bounds.inflight_short.max(undo.inflight_short);
        self.bounds.inflight_long = self.bounds.inflight_long.max(undo.inflight_long);
        match undo.left {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.forget();
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && self.state != State::ProbeRtt => {
                self.start_refill();
            }
            _ => {}
        }
    }
}
