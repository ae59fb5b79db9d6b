//! Points in time and spans between them, both 64-bit nanosecond counts.
//!
//! Time is an input everywhere in tercel: a data path reads the clock once per turn and hands the value down. The
//! standard library's types are not used on a packet's way: theirs are a pair of integers whose arithmetic divides, and
//! theirs can be read from a clock anywhere. All arithmetic saturates, because a peer or a suspended machine can make
//! any value extreme, and a clock that steps backwards must never panic.

use core::ops::{Add, Div, Mul, Sub};

/// Nanoseconds since an origin that the data path chose. Only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of nanoseconds, at most about 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Instant = Instant(0);
    /// Later than any event: "never".
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to `self`; zero if `earlier` is in fact later.
    #[inline]
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// The longest span.
    pub const MAX: Duration = Duration(u64::MAX);

    /// A span of `n` nanoseconds.
    #[inline]
    pub const fn from_nanos(n: u64) -> Duration {
        Duration(n)
    }
    /// A span of `n` microseconds.
    #[inline]
    pub const fn from_micros(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000))
    }
    /// A span of `n` milliseconds.
    #[inline]
    pub const fn from_millis(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000_000))
    }
    /// A span of `n` seconds.
    #[inline]
    pub const fn from_secs(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000_000_000))
    }
    /// Whole nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole microseconds, rounded down.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Seconds with a fraction, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Whether the span is empty.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The span less `other`, at least zero.
    #[inline]
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
    /// The absolute difference of two spans.
    #[inline]
    pub const fn abs_diff(self, other: Duration) -> Duration {
        Duration(self.0.abs_diff(other.0))
    }
    /// The span times 2^`shift`, saturating: exponential back-off.
    #[inline]
    pub const fn saturating_shl(self, shift: u32) -> Duration {
        if self.0 == 0 {
            return self;
        }
        if shift > self.0.leading_zeros() { Duration::MAX } else { Duration(self.0 << shift) }
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    #[inline]
    fn add(self, span: Duration) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    #[inline]
    fn sub(self, span: Duration) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }
}

impl Add for Duration {
    type Output = Duration;
    #[inline]
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn mul(self, factor: u64) -> Duration {
        Duration(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    /// Division by zero gives the longest span, in keeping with saturation.
    #[inline]
    fn div(self, divisor: u64) -> Duration {
        Duration(self.0.checked_div(divisor).unwrap_or(u64::MAX))
    }
}

impl From<core::time::Duration> for Duration {
    fn from(span: core::time::Duration) -> Duration {
        Duration(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for core::time::Duration {
    fn from(span: Duration) -> core::time::Duration {
        core::time::Duration::from_nanos(span.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_steps_back_gives_zero_not_a_panic() {
        assert_eq!(Instant(5).saturating_since(Instant(9)), Duration::ZERO);
        assert_eq!(Instant(5) - Duration(9), Instant::ZERO);
    }

    #[test]
    fn extremes_saturate() {
        assert_eq!(Instant::FAR_FUTURE + Duration(1), Instant::FAR_FUTURE);
        assert_eq!(Duration::from_secs(u64::MAX), Duration::MAX);
        assert_eq!(Duration(1).saturating_shl(64), Duration::MAX);
        assert_eq!(Duration(1).saturating_shl(63), Duration(1 << 63));
        assert_eq!(Duration(3).saturating_shl(63), Duration::MAX);
        assert_eq!(Duration(0).saturating_shl(99), Duration::ZERO);
        assert_eq!(Duration(7) / 0, Duration::MAX);
    }
}
