//! The round-trip estimate of one path, and the spans derived from it. Source: RFC 9002 §5, §6.1.2, §6.2.1, §7.6.1.
//!
//! Four numbers, integer nanoseconds. Every operation saturates: an estimate may become useless, never wrong in kind.

#[cfg(test)]
mod tests;

use base::time::{Duration, Instant};

/// Assumed before the first sample. Source: RFC 9002 §6.2.2.
//= rfc9002/6.2.2#1
pub const INITIAL_RTT: Duration = Duration::from_millis(333);
/// Timers are not expected to be finer. Source: RFC 9002 §6.1.2.
pub const GRANULARITY: Duration = Duration::from_millis(1);
/// A packet is lost when one sent this many later is acknowledged. Source: RFC 9002 §6.1.1.
pub const PACKET_THRESHOLD: u64 = 3;
/// PTOs that a period of loss must last. Source: RFC 9002 §7.6.1.
const PERSISTENT_CONGESTION_PTOS: u64 = 3;
/// PTOs after which a late acknowledgement of a lost packet is not waited for any more.
const REMEMBERED_PTOS: u64 = 3;
/// No real path takes longer; keeps sums of a few spans far from saturation.
const LONGEST: Duration = Duration::from_secs(3600);

/// What [`crate::ledger::Ledger::detect_losses`] needs to know of the path.
#[derive(Clone, Copy, Debug)]
pub struct LossThresholds {
    /// Packets sent this long before now are lost, once a later one is acknowledged.
    pub delay: Duration,
    /// Packets this many numbers below the largest acknowledged are lost.
    pub packets: u64,
    /// Packets sent after this count towards persistent congestion; `None` before the first sample.
    pub persistent_from: Option<Instant>,
    /// When the latest packet of another space was sent that was acknowledged: a period of loss does not span it.
    pub acked_elsewhere: Option<Instant>,
    /// Lost packets are remembered this long, so that a late acknowledgement is recognised.
    pub forget_after: Duration,
}

/// Smoothed, minimal and latest round-trip time of a path.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    smoothed: Duration,
    variation: Duration,
    latest: Duration,
    min: Duration,
    first_sample_at: Option<Instant>,
    refresh: Refresh,
}

/// What the next sample replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refresh {
    No,
    /// The minimum.
    Minimum,
    /// The whole estimate, if that is more than twice the sample.
    Estimate,
}

impl Default for Rtt {
    fn default() -> Rtt {
        Rtt::new(INITIAL_RTT)
    }
}

impl Rtt {
    /// Before any sample; `initial` is the assumption, [`INITIAL_RTT`] unless a past connection knows better.
    pub fn new(initial: Duration) -> Rtt {
        let initial = initial.min(LONGEST);
        Rtt {
            smoothed: initial,
            variation: initial / 2,
            latest: Duration::ZERO,
            min: Duration::ZERO,
            first_sample_at: None,
            refresh: Refresh::No,
        }
    }

    /// A sample: the largest acknowledged packet was newly acknowledged `latest` after it was sent, and at least one
    /// newly acknowledged packet was ack-eliciting. `ack_delay` is what the peer reports: zero for Initial packets, and
    /// the caller limits it by the peer's max_ack_delay once the handshake is confirmed. Source: RFC 9002 §5.3.
    pub fn on_sample(&mut self, now: Instant, latest: Duration, ack_delay: Duration) {
        // A zero span happens only where the clock stood still; the estimate must stay a span.
        let latest = latest.min(LONGEST).max(Duration::from_nanos(1));
        self.latest = latest;
        let is_excessive = self.refresh == Refresh::Estimate && latest < self.smoothed / 2;
        if self.first_sample_at.is_none() || is_excessive {
            // The first sample of all replaces an assumption, so that the next one may still replace it.
            if self.first_sample_at.is_some() {
                self.refresh = Refresh::No;
            }
            self.first_sample_at.get_or_insert(now);
            self.min = latest;
            self.smoothed = latest;
            self.variation = latest / 2;
            return;
        }
        // RFC 9002 §5.2: the minimum may be re-established after persistent congestion.
        //= rfc9002/5.2#1
        self.min = if self.refresh == Refresh::Minimum { latest } else { self.min.min(latest) };
        self.refresh = Refresh::No;
        // RFC 9002 §5.3: the delay is not subtracted where the result would be below the minimum.
        //= rfc9002/5.3#1
        let adjusted = if latest >= self.min + ack_delay { latest.saturating_sub(ack_delay) } else { latest };
        self.variation = (self.variation * 3 + self.smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// The minimum is taken anew from the next sample. Source: RFC 9002 §5.2.
    pub fn on_persistent_congestion(&mut self) {
        //= rfc9002/5.2#2
        self.refresh = Refresh::Minimum;
    }

    /// The handshake is confirmed. Samples so far may hold the time in which acknowledgements were lost one after the other, which
    /// at heavy loss is seconds: a sample of less than half of the estimate takes its place.
    pub fn on_handshake_confirmed(&mut self) {
        self.refresh = Refresh::Estimate;
    }

    /// Whether a sample was ever taken.
    pub fn has_sample(&self) -> bool {
        self.first_sample_at.is_some()
    }

    /// smoothed_rtt.
    pub const fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// rttvar.
    pub const fn variation(&self) -> Duration {
        self.variation
    }

    /// latest_rtt; zero before the first sample.
    pub const fn latest(&self) -> Duration {
        self.latest
    }

    /// min_rtt; zero before the first sample.
    pub const fn min(&self) -> Duration {
        self.min
    }

    /// The probe timeout, before back-off. `max_ack_delay` is zero for Initial and Handshake. Source: RFC 9002 §6.2.1.
    pub fn pto(&self, max_ack_delay: Duration) -> Duration {
        //= rfc9002/6.2.1#1
        self.smoothed + (self.variation * 4).max(GRANULARITY) + max_ack_delay
    }

    /// How long a packet may stay unacknowledged after a later one was acknowledged: 9/8 of the round trip.
    /// Source: RFC 9002 §6.1.2.
    pub fn loss_delay(&self) -> Duration {
        let rtt = self.smoothed.max(self.latest);
        //= rfc9002/6.1.2#1
        (rtt + rtt / 8).max(GRANULARITY)
    }

    /// The thresholds of loss detection as this path has them now.
    pub fn loss_thresholds(&self) -> LossThresholds {
        LossThresholds {
            delay: self.loss_delay(),
            packets: PACKET_THRESHOLD,
            persistent_from: self.first_sample_at,
            acked_elsewhere: None,
            forget_after: self.pto(Duration::ZERO) * REMEMBERED_PTOS,
        }
    }

    /// Whether everything ack-eliciting that was sent over `span` being lost is persistent congestion.
    /// Source: RFC 9002 §7.6.1.
    pub fn is_persistent_congestion(&self, span: Duration, max_ack_delay: Duration) -> bool {
        //= rfc9002/7.6.1#1
        self.has_sample() && span > self.pto(max_ack_delay) * PERSISTENT_CONGESTION_PTOS
    }
}

/// The ACK Delay field as a span: `raw` times 2^`exponent` microseconds. Source: RFC 9000 §19.3.
pub fn decode_ack_delay(raw: u64, exponent: u8) -> Duration {
    Duration::from_micros(1).saturating_shl(u32::from(exponent)) * raw
}

/// A span as the ACK Delay field, rounded down. Source: RFC 9000 §19.3.
pub fn encode_ack_delay(delay: Duration, exponent: u8) -> u64 {
    delay.as_micros().checked_shr(u32::from(exponent)).unwrap_or(0)
}
