//! The bounds that congestion sets, what they are made from, and what is restored when nothing was lost after all.
//! Source: the draft, §5.5.10, §5.5.11.

use super::INFINITE;
use super::state::State;

/// Hundredths of what was in flight that may be lost in a round. Source: the draft, §2.8 (LossThresh).
const LOSS_THRESHOLD: u64 = 2;

/// Whether so much was lost of what was in flight that it was too much. `borne` hundredths are not.
pub(super) fn is_too_high(lost: u64, in_flight: u64, borne: u64) -> bool {
    u128::from(lost) * 100 > u128::from(in_flight) * u128::from(LOSS_THRESHOLD + borne)
}

/// The standard deviation of what is lost, in bytes, where chance takes as much as is borne, datagram by datagram.
pub(super) fn deviation(in_flight: u64, borne: u64, datagram: u64) -> u64 {
    (in_flight.saturating_mul(datagram).saturating_mul(LOSS_THRESHOLD + borne) / 100).isqrt()
}

/// Up to which volume in flight the losses were bearable: `size` bytes were lost last, of `lost` in all.
pub(super) fn inflight_at_loss(in_flight: u64, (lost, size): (u64, u64), borne: u64) -> u64 {
    let threshold = (LOSS_THRESHOLD + borne).min(99);
    let size = size.min(in_flight);
    let before = in_flight - size;
    let lost_before = u128::from(lost.saturating_sub(size));
    let bearable = u128::from(before) * u128::from(threshold);
    let prefix = bearable.saturating_sub(lost_before * 100) / u128::from(100 - threshold);
    before + u64::try_from(prefix).unwrap_or(u64::MAX).min(size)
}

/// The bounds that congestion sets, and what they are made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) bandwidth_short: u64,
    pub(super) inflight_short: u64,
    pub(super) inflight_long: u64,
    /// The largest of this round.
    pub(super) bandwidth_latest: u64,
    pub(super) inflight_latest: u64,
    pub(super) round_delivered: u64,
    pub(super) is_round_start: bool,
    pub(super) is_loss_in_round: bool,
    pub(super) ranges: u64,
}

impl Bounds {
    pub(super) const fn new() -> Bounds {
        Bounds {
            bandwidth_short: INFINITE,
            inflight_short: INFINITE,
            inflight_long: INFINITE,
            bandwidth_latest: 0,
            inflight_latest: 0,
            round_delivered: 0,
            is_round_start: false,
            is_loss_in_round: false,
            ranges: 0,
        }
    }

    pub(super) const fn bandwidth_short(&self) -> u64 {
        self.bandwidth_short
    }

    pub(super) const fn inflight_short(&self) -> u64 {
        self.inflight_short
    }

    pub(super) const fn inflight_long(&self) -> u64 {
        self.inflight_long
    }

    pub(super) fn set_inflight_long(&mut self, bytes: u64) {
        self.inflight_long = bytes;
    }

    pub(super) const fn inflight_latest(&self) -> u64 {
        self.inflight_latest
    }

    /// A round since the first loss has passed.
    pub(super) const fn is_round_start(&self) -> bool {
        self.is_round_start
    }

    /// Losses or marks in so many ranges, after `delivered` bytes since the beginning.
    pub(super) fn on_congestion(&mut self, delivered: u64, ranges: u64) {
        if !core::mem::replace(&mut self.is_loss_in_round, true) {
            self.round_delivered = delivered;
        }
        self.ranges = self.ranges.saturating_add(ranges);
    }

    pub(super) fn take_ranges(&mut self) -> u64 {
        core::mem::take(&mut self.ranges)
    }

    pub(super) fn reset_short_term(&mut self) {
        (self.bandwidth_short, self.inflight_short) = (INFINITE, INFINITE);
    }

    /// Source: the draft, §5.5.10.3 (ResetCongestionSignals).
    pub(super) fn reset_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.bandwidth_latest, self.inflight_latest) = (0, 0);
    }
}

/// What is restored if an episode of losses proves spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub(super) left: Option<State>,
    pub(super) bandwidth_short: u64,
    pub(super) inflight_short: u64,
    pub(super) inflight_long: u64,
    /// Packets declared lost in this episode, and acknowledged all the same.
    pub(super) lost: u64,
    pub(super) spurious: u64,
}

impl Undo {
    pub(super) const fn new() -> Undo {
        Undo { left: None, bandwidth_short: 0, inflight_short: 0, inflight_long: 0, lost: 0, spurious: 0 }
    }

    /// Losses were the reason to leave this state.
    pub(super) fn on_left(&mut self, state: State) {
        self.left = Some(state);
    }
}
