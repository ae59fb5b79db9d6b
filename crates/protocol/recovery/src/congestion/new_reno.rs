//! NewReno as QUIC has it: half the window on congestion, one datagram more per window acknowledged. RFC 9002 §7.3, B.5.

use super::events::{AckedBytes, CongestionEvent};
use super::window::{Growth, LossWindow};
use base::time::Instant;

/// Divides the window on congestion. Source: RFC 9002 §7.3.2 (kLossReductionFactor of one half).
const REDUCTION: u64 = 2;

/// A window, and the acknowledged bytes that have not yet made a datagram of growth.
#[derive(Clone, Debug)]
pub(super) struct NewReno {
    window: LossWindow,
    acked: u64,
}

impl NewReno {
    pub(super) fn new(mtu: u16) -> NewReno {
        NewReno { window: LossWindow::new(mtu), acked: 0 }
    }

    pub(super) const fn window(&self) -> &LossWindow {
        &self.window
    }

    pub(super) const fn window_mut(&mut self) -> &mut LossWindow {
        &mut self.window
    }

    #[inline]
    pub(super) fn on_sent(&mut self, _now: Instant, _bytes: u64, in_flight: u64) {
        self.window.on_sent(in_flight);
    }

    pub(super) fn on_ack(&mut self, now: Instant, acked: &AckedBytes) {
        let Growth::Avoidance(bytes) = self.window.on_ack(now, acked) else { return };
        self.acked = self.acked.saturating_add(bytes);
        let size = self.window.size();
        if self.acked >= size {
            let windows = self.acked / size;
            self.acked %= size;
            //= rfc9002/7.3.3#1
            self.window.set(size.saturating_add(windows.saturating_mul(u64::from(self.window.step()))));
        }
    }

    pub(super) fn on_congestion(&mut self, now: Instant, sign: &CongestionEvent) {
        if self.window.start_recovery(now, sign) {
            self.acked = 0;
            self.window.shrink(self.window.size() / REDUCTION);
        }
    }

    /// Losses proved to be none.
    pub(super) fn on_spurious(&mut self, acked: &AckedBytes) {
        self.window.take_back(acked);
    }

    pub(super) fn on_persistent_congestion(&mut self) {
        self.acked = 0;
        self.window.collapse();
    }
}
