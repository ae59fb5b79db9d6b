//! BBR version 3: a model of the path (how much it delivers a second, how long it takes) instead of a window that waits for
//! loss.
//!
//! One structure, and one file for each part of the draft:
//!
//! | file | holds |
//! |---|---|
//! | `model.rs` | packet-timed rounds, the bandwidth, the aggregation of acknowledgements, the bandwidth-delay product |
//! | `filters.rs` | windowed maxima and the minimal round trip |
//! | `state.rs` | the states and their gains |
//! | `full_pipe.rs` | whether more rate still brings more delivery |
//! | `startup.rs` | Startup and Drain |
//! | `cycle.rs` | ProbeBW: down, cruise, refill, up, and the long-term bound |
//! | `probe_rtt.rs` | ProbeRTT |
//! | `bounds.rs` | the short-term bounds, the long-term one, and what undoing them restores |
//! | `losses.rs` | the answer to loss and marks: setting the bounds, and undoing it |
//! | `random_loss.rs` | losses that do not come from the rate, and are borne |
//! | `loss_budget.rs` | losses in runs that are borne in jitter, by a flow that has chosen BBR |
//! | `overrun.rs` | losses that follow what is in flight, and are not |
//! | `control.rs` | what comes out: pacing rate and window |
//! | `take_over.rs` | a beginning in the middle of a flow |
//!
//! Everything is an integer: bytes, bytes a second, nanoseconds, gains in hundredths. Infinity is the largest integer.
//! Products are made in 128 bits. So nothing can become NaN, and every bound is a `min`.
//!
//! Differences from the draft:
//! - losses arrive as one sum for each event, not by the packet; the event is taken for one aggregate that ends at the latest
//!   packet lost.
//! - the draft leaves the answer to ECN open. A mark is taken for a loss of that packet: below 2 % it lowers the short-term
//!   bounds, above it ends a probe. RFC 9000 §13.4 asks for no more.
//! - in a flow that has chosen BBR by losses at rest a standard deviation beyond 2 % is borne (`random_loss.rs`).
//! - in a flow that has chosen BBR by losses a budget covers runs of them where there is jitter (`loss_budget.rs`).
//! - losses that a lower rate does not end are borne above 2 % as well, unless they follow what is in flight (`overrun.rs`), and few losses without a
//!   queue do not end Startup (`random_loss.rs`). Where jitter makes packets wait, their waits are no queue.
//! - the send quantum is the pacer's; a millisecond of the rate stands for it here.
//! - a clock that steps back takes all time stamps with it.
//! - persistent congestion begins the count of rounds anew that fill the pipe.
//! - the pacing rate never falls below a datagram a second.
//! - random waits come from a generator that time and bytes delivered seed, so that a simulation replays.
//!
//! draft-ietf-ccwg-bbr (2026-08-03).

mod bounds;
mod control;
mod cycle;
mod filters;
mod full_pipe;
mod loss_budget;
mod losses;
mod model;
mod overrun;
mod probe_rtt;
mod random_loss;
mod startup;
mod state;
mod take_over;
#[cfg(test)]
mod tests;

use super::delivery::Delivery;
use super::events::AckedBytes;
use super::window::{InitialWindow, MAX_WINDOW, minimum_window};
use base::time::Instant;
use bounds::{Bounds, Undo};
use cycle::Cycle;
use filters::MinRtt;
use full_pipe::FullPipe;
use model::Model;
use probe_rtt::ProbeRtt;
use random_loss::RandomLoss;
pub(super) use state::State;
pub(super) use take_over::TakeOver;

/// No bound.
const INFINITE: u64 = u64::MAX;

/// The controller of one path.
#[derive(Clone, Debug)]
pub(super) struct Bbr {
    state: State,
    /// max_datagram_size in bytes.
    mtu: u16,
    initial: InitialWindow,
    delivery: Delivery,
    model: Model,
    min_rtt: MinRtt,
    full_pipe: FullPipe,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    bounds: Bounds,
    random_loss: RandomLoss,
    undo: Undo,
    usage: Usage,
    /// The window, and the last one that neither loss recovery nor ProbeRTT had shrunk.
    window: u64,
    prior_window: u64,
    /// Bytes a second; 0 before the first acknowledgement.
    pacing: u64,
    /// The flow has been idle, and nothing has been acknowledged since.
    is_restarting: bool,
    /// Losses of packets sent until then belong to the present recovery.
    recovery_start: Option<Instant>,
}

/// Whether the window was full in this round and in the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    this_round: bool,
    last_round: bool,
}

impl Bbr {
    pub(super) fn new(mtu: u16) -> Bbr {
        Bbr {
            state: State::Startup,
            mtu,
            initial: InitialWindow::default(),
            delivery: Delivery::new(),
            model: Model::new(),
            min_rtt: MinRtt::new(),
            full_pipe: FullPipe::new(),
            cycle: Cycle::new(),
            probe_rtt: ProbeRtt::new(),
            bounds: Bounds::new(),
            random_loss: RandomLoss::new(),
            undo: Undo::new(),
            usage: Usage::default(),
            window: InitialWindow::default().bytes(mtu),
            prior_window: 0,
            pacing: 0,
            is_restarting: false,
            recovery_start: None,
        }
    }

    /// To be called before anything was sent.
    pub(super) fn set_initial_window(&mut self, initial: InitialWindow) {
        (self.initial, self.window) = (initial, initial.bytes(self.mtu));
    }

    #[inline]
    pub(super) const fn window(&self) -> u64 {
        self.window
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    /// Whether its losses follow what is in flight, so that they are not chance's.
    pub(super) fn overruns(&self) -> bool {
        self.random_loss.overrun.is_shown()
    }

    /// Bytes a second; `None` before the first acknowledgement.
    pub(super) fn pacing_rate(&self) -> Option<u64> {
        (self.pacing > 0).then_some(self.pacing)
    }

    /// `bytes` left; `in_flight` includes them. Source: the draft, §5.2.2, §5.4.1.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64, in_flight: u64) {
        if in_flight == 0 {
            return; // acknowledgements only
        }
        if in_flight <= bytes && self.delivery.is_app_limited() {
            self.is_restarting = true;
            self.model.restart_aggregation(now);
            if self.state.is_probe_bw() {
                self.pace_with(100);
            } else if self.state == State::ProbeRtt {
                self.finish_probe_rtt_if_due(now);
            }
        }
        self.delivery.on_sent(now, bytes, in_flight);
        if in_flight.saturating_add(u64::from(self.mtu)) > self.window {
            self.usage.this_round = true;
        }
    }

    /// Source: the draft, §5.2.3.
    pub(super) fn on_ack(&mut self, now: Instant, acked: &AckedBytes) {
        self.step_back_to(now);
        if acked.spurious > 0 {
            self.on_spurious(acked.spurious);
        }
        if acked.bytes == 0 {
            return;
        }
        let before = acked.in_flight.saturating_add(acked.bytes);
        if acked.app_limited && before < self.window {
            self.delivery.mark_app_limited(before);
        }
        let sample = self.delivery.on_acked(now, acked);
        let more = self.initial.follow(acked.latest_rtt, self.mtu);
        if self.recovery_start.is_none() {
            self.window = self.window.saturating_add(more);
        }
        self.pace_first(self.initial.bytes(self.mtu), acked.rtt);
        self.leave_recovery(acked.largest_sent_at);
        self.random_loss.overrun.on_acked(acked.packets, sample.tx_in_flight);
        self.note_delivery(&sample);
        self.random_loss.on_sample(sample.rtt);
        self.random_loss.jitter.on_sample(acked, self.min_rtt.value().unwrap_or(sample.rtt));
        self.update_round(&sample);
        if self.model.is_round_start {
            self.cycle.on_round();
            self.usage.last_round = core::mem::take(&mut self.usage.this_round);
            self.look_for_overrun();
        }
        self.adapt_short_term();
        let reached = self.full_pipe.is_ever_full();
        self.model.on_aggregation(now, &sample, self.window, reached);
        self.check_full_pipe(&sample);
        self.check_startup_done(&sample);
        self.check_drain_done(now, acked.in_flight);
        self.update_cycle(now, &sample, acked.in_flight);
        self.min_rtt.on_sample(now, sample.rtt);
        self.check_probe_rtt(now, &sample, acked.in_flight);
        self.advance_delivery(&sample);
        self.model.bound(self.bounds.bandwidth_short());
        self.pace_with(self.state.pacing_gain());
        self.set_window(&sample);
    }

    /// Startup and Drain overrun any queue.
    fn look_for_overrun(&mut self) {
        let product = match self.state {
            State::Startup | State::Drain => 0,
            _ => self.inflight(self.model.max_bandwidth(), 100),
        };
        self.random_loss.overrun.on_round(product, self.datagram());
    }

    /// As long as Startup has seen no loss the window is the initial one, which is recalculated, and what has arrived. Source: RFC 9002 §7.2.
    pub(super) fn on_mtu_change(&mut self, mtu: u16) {
        let before = self.initial.bytes(self.mtu);
        self.mtu = mtu;
        if self.state == State::Startup && self.recovery_start.is_none() && !self.full_pipe.is_ever_full() {
            let window = self.window.saturating_add(self.initial.bytes(mtu)).saturating_sub(before);
            self.window = window.min(MAX_WINDOW);
        }
        self.window = self.window.max(minimum_window(mtu));
    }

    /// No time stamp may lie in the future, or the clock would have to catch up before anything happens again.
    fn step_back_to(&mut self, now: Instant) {
        self.min_rtt.step_back_to(now);
        self.cycle.step_back_to(now);
        self.probe_rtt.step_back_to(now);
    }
}
