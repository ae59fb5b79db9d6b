//! A run in slices of time.
//!
//! The slice that is under way has a histogram; one that is over keeps the few entries of it that are not empty, so an hour of
//! seconds takes some megabytes.

use super::spans::Spans;
use base::time::{Duration, Instant};

/// More slices than this are not kept: a clock that jumps does not take all memory.
const MOST_SLICES: usize = 100_000;

/// A slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Requests that were answered with a status below 400.
    pub succeeded: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Content that arrived, in bytes.
    pub content_bytes: u64,
    /// The latencies of its answers: nanoseconds, and how often.
    latencies: Vec<(u64, u64)>,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
}

impl Slice {
    /// Its latencies.
    pub fn latency(&self) -> Spans {
        let mut spans = Spans::coarse();
        spans.refill(&self.latencies);
        spans
    }

    /// Takes in what another has.
    pub(super) fn add(&mut self, other: &Slice) {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.content_bytes += other.content_bytes;
        self.latencies.extend_from_slice(&other.latencies);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// The slices of a run.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Zero when no series is kept.
    length: Duration,
    slices: Vec<Slice>,
    /// The latencies of the last slice.
    current: Option<Spans>,
}

impl Series {
    /// With slices of this length, if there is one.
    pub fn new(length: Option<Duration>) -> Series {
        let length = length.unwrap_or(Duration::ZERO);
        Series { length, slices: Vec::new(), current: (!length.is_zero()).then(Spans::coarse) }
    }

    /// The slice of the moment `passed` after the beginning, and its latencies. Moments never go back.
    #[inline]
    pub(super) fn at(&mut self, now: Instant, began: Instant) -> Option<(&mut Slice, &mut Spans)> {
        let current = self.current.as_mut()?;
        let place = now.saturating_since(began).as_nanos() / self.length.as_nanos().max(1);
        let place = usize::try_from(place).ok().filter(|place| *place < MOST_SLICES)?;
        if place >= self.slices.len() {
            if let Some(last) = self.slices.last_mut() {
                last.latencies.extend(current.drain());
            }
            self.slices.resize(place + 1, Slice::default());
        }
        Some((self.slices.last_mut()?, current))
    }

    /// Nothing follows.
    pub(super) fn finish(&mut self) {
        if let (Some(last), Some(current)) = (self.slices.last_mut(), &mut self.current) {
            last.latencies.extend(current.drain());
        }
    }

    /// Takes in what another thread measured at the same time.
    pub(super) fn merge(&mut self, other: &Series) {
        let most = self.slices.len().max(other.slices.len());
        self.slices.resize(most, Slice::default());
        for (mine, theirs) in self.slices.iter_mut().zip(&other.slices) {
            mine.add(theirs);
        }
    }

    /// The slices, in order; empty when none are kept.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, the percentiles of a slice could be those of another one, or of one thread.
    #[test]
    fn each_slice_has_its_own_latencies() {
        let began = Instant::from_nanos(7);
        let thread = |factor: u64| {
            let mut series = Series::new(Some(Duration::from_secs(1)));
            for (second, ms) in [(0, 10), (0, 10), (2, 30)] {
                let now = began + Duration::from_millis(second * 1_000 + 999);
                let (slice, spans) = series.at(now, began).unwrap();
                slice.succeeded += 1;
                spans.add(Duration::from_millis(ms * factor));
            }
            series.finish();
            series
        };
        let mut all = Series::default();
        [1, 3].iter().for_each(|factor| all.merge(&thread(*factor)));
        let slices: Vec<_> = all.slices().iter().map(|slice| (slice.succeeded, slice.latency())).collect();
        let about =
            |span: Duration, ms: u64| span.abs_diff(Duration::from_millis(ms)) < Duration::from_millis(1);
        assert_eq!(slices.iter().map(|(count, _)| *count).collect::<Vec<_>>(), [4, 0, 2]);
        assert!(about(slices[0].1.quantile(0.5), 10) && about(slices[0].1.quantile(1.0), 30));
        assert!(slices[1].1.count() == 0 && about(slices[2].1.quantile(0.5), 30));
        assert!(Series::new(None).at(began, began).is_none());
    }
}
