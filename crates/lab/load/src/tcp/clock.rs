//! The clock of these generators, the same as that of the data paths.

use base::time::Instant;
use rustix::time::{ClockId, clock_gettime};

/// Now.
#[inline]
pub(super) fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    Instant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}
