//! Many spans of time, kept as a histogram.

use base::time::Duration;
use hdrhistogram::Histogram;

/// Finer differences are not told apart, in nanoseconds.
const FINEST_NS: u64 = 64;
/// Longer spans count as this long, in nanoseconds: ten minutes.
const LONGEST_NS: u64 = 600_000_000_000;
/// Significant digits of every span.
const DIGITS: u8 = 3;

/// Spans of time in nanoseconds, by how often they occurred, to three digits.
#[derive(Clone, Debug)]
pub struct Spans(Histogram<u64>);

impl Default for Spans {
    fn default() -> Spans {
        Spans::new()
    }
}

impl Spans {
    /// None yet. All that is ever needed is allocated here.
    pub fn new() -> Spans {
        Spans::with_digits(DIGITS)
    }

    fn with_digits(digits: u8) -> Spans {
        // These bounds are within what the crate allows; the second choice grows as it must.
        let bounded = Histogram::new_with_bounds(FINEST_NS, LONGEST_NS, digits);
        #[expect(clippy::expect_used, reason = "up to 5 digits are always allowed")]
        Spans(bounded.unwrap_or_else(|_| Histogram::new(digits).expect("few digits")))
    }

    /// None yet, and to two digits only: small enough for one in each slice of a series.
    pub fn coarse() -> Spans {
        Spans::with_digits(2)
    }

    /// One more.
    #[inline]
    pub fn add(&mut self, span: Duration) {
        self.0.saturating_record(span.as_nanos());
    }

    /// Takes in all of the other's.
    pub fn merge(&mut self, other: &Spans) {
        // All have the same bounds.
        let _ = self.0.add(&other.0);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The span that so large a share (0 to 1) is not longer than.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(share).min(self.longest().as_nanos()))
    }

    /// The mean.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.0.mean() as u64)
    }

    /// The shortest.
    pub fn shortest(&self) -> Duration {
        Duration::from_nanos(self.0.min())
    }

    /// The longest.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }

    /// Takes everything out, as pairs of nanoseconds and how often.
    pub fn drain(&mut self) -> Vec<(u64, u64)> {
        let pairs = self.0.iter_recorded();
        let pairs = pairs.map(|step| (step.value_iterated_to(), step.count_since_last_iteration())).collect();
        self.0.reset();
        pairs
    }

    /// Puts in what [`Spans::drain`] gave.
    pub fn refill(&mut self, pairs: &[(u64, u64)]) {
        pairs.iter().for_each(|(nanos, count)| self.0.saturating_record_n(*nanos, *count));
    }
}
