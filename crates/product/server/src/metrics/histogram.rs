//! Spans of time by upper bounds, as Prometheus has them.

use base::time::Duration;

/// The upper bounds, each included. Longer spans have a count of their own.
pub const BOUNDS: [Duration; 16] = [
    Duration::from_micros(100),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(60),
];

/// How many spans there were up to each of [`BOUNDS`] and beyond the one before, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; BOUNDS.len()],
    longer: u64,
    sum_ns: u64,
}

impl Histogram {
    /// Counts a span.
    #[inline]
    pub fn observe(&mut self, span: Duration) {
        let place = BOUNDS.partition_point(|bound| *bound < span);
        *self.counts.get_mut(place).unwrap_or(&mut self.longer) += 1;
        self.sum_ns = self.sum_ns.saturating_add(span.as_nanos());
    }

    pub(crate) fn add(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.longer += other.longer;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Each bound, and how many spans were not longer.
    pub fn cumulated(&self) -> impl Iterator<Item = (Duration, u64)> {
        let sums = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        BOUNDS.into_iter().zip(sums)
    }

    /// How many spans there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.longer
    }

    /// All of them together.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a span that is as long as a bound could be counted above it, where Prometheus says `le`.
    #[test]
    fn a_span_is_counted_at_the_first_bound_that_it_does_not_exceed() {
        let mut histogram = Histogram::default();
        let spans =
            [0, 100_000, 100_001, 1_000_000, 60_000_000_000, 60_000_000_001].map(Duration::from_nanos);
        spans.into_iter().for_each(|span| histogram.observe(span));
        let upto = |nanos: u64| {
            let found = histogram.cumulated().find(|(bound, _)| *bound == Duration::from_nanos(nanos));
            found.map(|(_, count)| count)
        };
        assert_eq!((upto(100_000), upto(500_000), upto(1_000_000)), (Some(2), Some(3), Some(4)));
        assert_eq!((upto(10_000_000_000), upto(60_000_000_000)), (Some(4), Some(5)));
        assert_eq!((histogram.count(), histogram.sum().as_nanos()), (6, 120_001_200_002));
        let mut twice = histogram;
        twice.add(&histogram);
        assert_eq!((twice.count(), twice.cumulated().last().map(|(_, count)| count)), (12, Some(10)));
        assert!(BOUNDS.is_sorted());
    }
}
