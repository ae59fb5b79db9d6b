//! What the path is taken to be: rounds, bandwidth, aggregation of acknowledgements. Source: the draft, §5.5.

use super::filters::{MaxBandwidth, MaxByRound, Rounds};
use super::state::State;
use super::{Bbr, INFINITE};
use crate::congestion::delivery::{RateSample, bandwidth};
use crate::congestion::window::{MAX_WINDOW, minimum_window};
use crate::pacer::LARGEST_TRAIN;
use base::time::{Duration, Instant};

/// What the pacer releases at once is about this much of the rate.
const QUANTUM: Duration = Duration::from_millis(1);
/// Datagrams that may always be in flight. Source: the draft, §2.8 (MinPipeCwnd).
const LEAST_DATAGRAMS: u64 = 4;

/// The model but for the round trip, which [`super::filters::MinRtt`] holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    /// Rounds since the start, and whether this acknowledgement began one.
    pub(super) round: u64,
    pub(super) is_round_start: bool,
    next_round_delivered: u64,
    max_bandwidth: MaxBandwidth,
    /// What may be used of the bandwidth, in bytes a second.
    bandwidth: u64,
    extra_acked: u64,
    extra_by_round: MaxByRound,
    burst_start: Instant,
    burst_acked: u64,
}

impl Model {
    pub(super) const fn new() -> Model {
        Model {
            round: 0,
            is_round_start: false,
            next_round_delivered: 0,
            max_bandwidth: MaxBandwidth::new(),
            bandwidth: 0,
            extra_acked: 0,
            extra_by_round: MaxByRound::new(),
            burst_start: Instant::ZERO,
            burst_acked: 0,
        }
    }

    /// Another controller has found that the path delivers so much, in bytes a second.
    pub(super) fn begin_with(&mut self, rate: u64) {
        self.max_bandwidth.update(rate);
        self.bandwidth = rate;
    }

    pub(super) const fn bandwidth(&self) -> u64 {
        self.bandwidth
    }

    pub(super) fn max_bandwidth(&self) -> u64 {
        self.max_bandwidth.value()
    }

    pub(super) const fn extra_acked(&self) -> u64 {
        self.extra_acked
    }

    /// One cycle of the filter is over. Source: the draft, §5.5.6.
    pub(super) fn advance_cycle(&mut self) {
        self.max_bandwidth.advance();
    }

    /// Source: the draft, §5.5.10.3 (BoundBWForModel).
    pub(super) fn bound(&mut self, short_term: u64) {
        self.bandwidth = self.max_bandwidth.value().min(short_term);
    }

    pub(super) fn restart_aggregation(&mut self, now: Instant) {
        self.burst_start = now;
    }

    /// How much more is acknowledged at once than the bandwidth explains. Source: the draft, §5.5.9.
    pub(super) fn on_aggregation(&mut self, now: Instant, sample: &RateSample, window: u64, is_full: bool) {
        self.burst_start = self.burst_start.min(now);
        let mut expected = volume(self.bandwidth, now.saturating_since(self.burst_start), 100);
        if self.burst_acked <= expected {
            (self.burst_acked, self.burst_start, expected) = (0, now, 0);
        }
        self.burst_acked = self.burst_acked.saturating_add(sample.newly_acked);
        let extra = self.burst_acked.saturating_sub(expected).min(window);
        let rounds = if is_full { Rounds::Ten } else { Rounds::One };
        self.extra_by_round.update(self.round, extra);
        self.extra_acked = self.extra_by_round.value(self.round, rounds);
    }
}

impl Bbr {
    /// A new round begins with what is sent from now on.
    pub(super) fn start_round(&mut self) {
        self.model.next_round_delivered = self.delivery.delivered();
    }

    /// Rounds and the largest bandwidth. Source: the draft, §5.5.1, §5.5.5.
    pub(super) fn update_round(&mut self, sample: &RateSample) {
        self.model.is_round_start = sample.prior_delivered >= self.model.next_round_delivered;
        if self.model.is_round_start {
            self.start_round();
            self.model.round = self.model.round.saturating_add(1);
        }
        if sample.rate > 0 && (sample.rate >= self.model.max_bandwidth() || !sample.is_app_limited()) {
            self.model.max_bandwidth.update(sample.rate);
        }
    }

    /// max_datagram_size, as a volume.
    pub(super) fn datagram(&self) -> u64 {
        minimum_window(self.mtu) / 2
    }

    pub(super) fn least_window(&self) -> u64 {
        self.datagram() * LEAST_DATAGRAMS
    }

    /// `gain` hundredths of the bandwidth-delay product, in bytes. Source: the draft, §5.6.4.2.
    pub(super) fn bdp(&self, bandwidth: u64, gain: u64) -> u64 {
        match self.min_rtt.value() {
            None => self.initial.bytes(self.mtu),
            Some(rtt) => volume(bandwidth, rtt, gain),
        }
    }

    /// Room for what both ends handle at once. Source: the draft, §5.6.4.2, §5.5.8.
    pub(super) fn quantized(&self, volume_wanted: u64) -> u64 {
        let quantum = volume(self.pacing, QUANTUM, 100)
            .clamp(2 * self.datagram(), LARGEST_TRAIN.max(2 * self.datagram()));
        let room = volume_wanted.max(quantum).max(self.least_window());
        if self.state == State::Up { room.saturating_add(2 * self.datagram()) } else { room }
    }

    /// What should be in flight at that bandwidth. Source: the draft, §5.6.4.2 (Inflight).
    pub(super) fn inflight(&self, bandwidth: u64, gain: u64) -> u64 {
        self.quantized(self.bdp(bandwidth, gain))
    }

    /// The bandwidth-delay product, unless congestion has cut the window below it. Source: the draft, §5.3.3.8.3.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(self.model.bandwidth(), 100).min(self.window)
    }
}

/// Bytes in `span`, times `gain` hundredths.
pub(super) fn volume(per_second: u64, span: Duration, gain: u64) -> u64 {
    if per_second == INFINITE {
        return MAX_WINDOW;
    }
    let bytes = u128::from(per_second) * u128::from(span.as_nanos()) / 1_000_000_000;
    let bytes = bytes.saturating_mul(u128::from(gain)) / 100;
    u64::try_from(bytes).unwrap_or(u64::MAX).min(MAX_WINDOW)
}

/// `window` bytes every `rtt`, times `gain` hundredths, in bytes a second.
pub(super) fn rate(window: u64, rtt: Duration, gain: u64) -> u64 {
    bandwidth(window.saturating_mul(gain) / 100, rtt)
}
