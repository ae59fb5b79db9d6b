//! A sending rate. Kept with its inverse, so that neither "how much by now" nor "when" divides.

use base::time::Duration;

/// Nanoseconds a second.
const NANOS: f64 = 1e9;
/// Slowest finite rate, bytes a second. Slower than this, a single packet takes minutes and loss timers rule anyway.
const SLOWEST: f64 = 10.0;
/// Fastest finite rate, bytes a second (800 Gbit/s). Faster is no limit at all.
const FASTEST: f64 = 1e11;

/// Round trips shorter than this are not paced: no timer is fine enough to spread anything over them.
const UNPACED_BELOW: Duration = Duration::from_millis(1);

/// Bytes over time, or no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    bytes_per_nano: f64,
    nanos_per_byte: f64,
}

impl Rate {
    /// No limit.
    pub const UNLIMITED: Rate = Rate { bytes_per_nano: f64::INFINITY, nanos_per_byte: 0.0 };

    /// `bytes` every `span`, times `gain`. An empty span, or a rate beyond any link's, is no limit.
    pub fn new(bytes: u64, span: Duration, gain: f64) -> Rate {
        if span.is_zero() {
            return Rate::UNLIMITED;
        }
        let per_second = bytes as f64 * gain * NANOS / span.as_nanos() as f64;
        if per_second.is_nan() || per_second > FASTEST {
            return Rate::UNLIMITED;
        }
        let per_second = per_second.max(SLOWEST);
        Rate { bytes_per_nano: per_second / NANOS, nanos_per_byte: NANOS / per_second }
    }

    /// A window every round trip, times `gain`; no limit where the round trip is too short to be paced.
    pub fn of_window(window: u64, rtt: Duration, gain: f64) -> Rate {
        if rtt < UNPACED_BELOW { Rate::UNLIMITED } else { Rate::new(window, rtt, gain) }
    }

    /// So many bytes a second; no limit where the round trip is too short to be paced.
    pub fn of_model(per_second: u64, rtt: Duration) -> Rate {
        if rtt < UNPACED_BELOW { Rate::UNLIMITED } else { Rate::new(per_second, Duration::from_secs(1), 1.0) }
    }

    /// Whether there is no limit.
    pub fn is_unlimited(self) -> bool {
        self.nanos_per_byte == 0.0
    }

    /// Bytes a second, for reports; infinite without limit.
    pub fn bytes_per_second(self) -> f64 {
        self.bytes_per_nano * NANOS
    }

    /// Bytes that a finite rate allows in `span`.
    #[inline]
    pub(crate) fn bytes_in(self, span: Duration) -> f64 {
        debug_assert!(!self.is_unlimited());
        self.bytes_per_nano * span.as_nanos() as f64
    }

    /// How long `bytes` take, rounded up.
    #[inline]
    pub(crate) fn time_for(self, bytes: f64) -> Duration {
        // A float converts to an integer with saturation, and the product is never NaN: both factors are finite.
        Duration::from_nanos((bytes.max(0.0) * self.nanos_per_byte).ceil() as u64)
    }
}
