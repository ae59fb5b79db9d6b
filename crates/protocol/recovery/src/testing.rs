//! Random times for the property tests: mostly plausible, sometimes extreme, sometimes backwards.
//!
//! Sequences come from a seeded generator rather than from proptest, because a hundred thousand of them must fit into
//! the ordinary test run; a failing seed is printed by the assertion that carries it.

use base::rng::Rng;
use base::time::{Duration, Instant};

/// A number whose size in bits is evenly spread.
pub(crate) fn any_magnitude(rng: &mut Rng) -> u64 {
    let bits = rng.below(65);
    if bits == 0 { 0 } else { rng.next_u64() >> (64 - bits) }
}

/// A span: microseconds to seconds, one time in sixteen anything.
pub(crate) fn any_span(rng: &mut Rng) -> Duration {
    if rng.below(16) == 0 {
        Duration::from_nanos(any_magnitude(rng))
    } else {
        Duration::from_nanos(1 << (10 + rng.below(22)))
    }
}

/// The clock some time later; one time in thirty-two it steps back or leaps to an end.
pub(crate) fn any_later(rng: &mut Rng, now: Instant) -> Instant {
    match rng.below(96) {
        0 => now - any_span(rng),
        1 => Instant::ZERO,
        2 => Instant::FAR_FUTURE,
        _ => now + any_span(rng),
    }
}

/// A number from `from` up to, not including, `to`.
pub(crate) fn pick(rng: &mut Rng, from: u64, to: u64) -> u64 {
    from + rng.below(to.saturating_sub(from))
}
