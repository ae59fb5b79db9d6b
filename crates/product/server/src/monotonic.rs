//! The monotonic clock, which all threads share.

use base::time::Instant;
use rustix::time::{ClockId, clock_gettime};

/// The time since the system started. Workers take theirs from the port instead, once a turn.
pub(crate) fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
    Instant::from_nanos(seconds.saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0)))
}
