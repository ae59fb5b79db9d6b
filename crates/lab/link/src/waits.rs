//! How long datagrams waited in a queue: counts by duration, to within three per cent.
//!
//! A bucket for each thirty-second part of a doubling. Rejected: keeping every wait, which for a minute of a fast link is more
//! memory than the queue itself.

use base::time::Duration;

/// Buckets of each doubling.
const PARTS: u64 = 32;
/// Shorter waits than this, in nanoseconds, have one bucket each: none is that short but for none at all.
const LINEAR: u64 = PARTS;

/// The waits of many datagrams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    counts: Vec<u64>,
    total: u64,
    sum: Duration,
}

impl Waits {
    /// A datagram waited so long.
    pub fn note(&mut self, wait: Duration) {
        let index = index(wait.as_nanos());
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(index) {
            *count += 1;
        }
        self.total += 1;
        self.sum = self.sum + wait;
    }

    /// How many there were.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// All of them together by their number; zero if there were none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum.as_nanos() / self.total.max(1))
    }

    /// What this many hundredths of them did not exceed; zero if there were none.
    pub fn percentile(&self, percent: u64) -> Duration {
        let rank = self.total.saturating_mul(percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(lowest(index));
            }
        }
        Duration::ZERO
    }
}

/// The bucket of this many nanoseconds.
fn index(nanos: u64) -> usize {
    if nanos < LINEAR {
        return nanos as usize;
    }
    let doublings = u64::from(nanos.ilog2() - PARTS.ilog2());
    (doublings * PARTS + (nanos >> doublings)) as usize
}

/// The shortest wait of a bucket, in nanoseconds.
fn lowest(index: usize) -> u64 {
    let index = index as u64;
    if index < LINEAR {
        return index;
    }
    let doublings = index / PARTS - 1;
    (index - doublings * PARTS) << doublings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bucket that began above its waits, or far below them, would shift every figure of every table.
    #[test]
    fn a_wait_is_found_again_within_three_per_cent() {
        for nanos in [0, 1, 31, 32, 33, 63, 64, 65, 1_000, 123_456, 999_999_999, 60_000_000_000] {
            let found = lowest(index(nanos));
            assert!(found <= nanos && nanos - found <= nanos / 31, "{nanos} in a bucket from {found}");
        }
        for nanos in 1..100_000 {
            assert!(index(nanos) >= index(nanos - 1), "{nanos}");
        }
    }

    #[test]
    fn percentiles_are_of_the_count() {
        let mut waits = Waits::default();
        assert_eq!((waits.percentile(95), waits.mean()), (Duration::ZERO, Duration::ZERO));
        for micros in 1..=100 {
            waits.note(Duration::from_micros(micros));
        }
        for percent in [1, 50, 95, 100] {
            let (found, exact) = (waits.percentile(percent).as_nanos(), percent * 1_000);
            assert!(found <= exact && exact - found <= exact / 31, "{percent} %: {found}");
        }
        assert_eq!((waits.total(), waits.mean()), (100, Duration::from_nanos(50_500)), "the mean is exact");
    }
}
