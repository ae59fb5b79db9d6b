//! What a thread has measured, and how several make one.

use super::failure::PerFailure;
use super::times::Times;
use crate::usage::Usage;
use base::time::{Duration, Instant};
use hdrhistogram::Histogram;
use serde::Serialize;

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
        // These bounds are within what the crate allows; the second choice grows as it must.
        let bounded = Histogram::new_with_bounds(FINEST_NS, LONGEST_NS, DIGITS);
        #[expect(clippy::expect_used, reason = "3 digits are always allowed")]
        Spans(bounded.unwrap_or_else(|_| Histogram::new(DIGITS).expect("3 digits")))
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
}

/// A slice of the time series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Slice {
    /// Requests that were answered with a status below 400.
    pub succeeded: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Content that arrived, in bytes.
    pub content_bytes: u64,
    /// The longest latency, in nanoseconds.
    pub longest_ns: u64,
}

/// How often each status came.
#[derive(Clone, Debug)]
pub struct Statuses(Box<[u64; 500]>);

impl Statuses {
    #[inline]
    pub(super) fn add(&mut self, status: u16) {
        if let Some(count) = self.0.get_mut(usize::from(status).wrapping_sub(100)) {
            *count += 1;
        }
    }

    /// Those that occurred.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        (100..).zip(self.0.iter().copied()).filter(|(_, count)| *count > 0)
    }
}

/// The measurements of one thread, or of several merged.
#[derive(Clone, Debug)]
pub struct Record {
    /// Requests that were answered with a status below 400.
    pub succeeded: u64,
    /// Requests that failed.
    pub failures: PerFailure,
    /// Requests that failed while nothing was counted.
    pub warm_up_failures: u64,
    /// Of every complete answer.
    pub statuses: Statuses,
    /// Content that arrived.
    pub content_bytes: u64,
    /// From the intended beginning to the end of the answer; of a request that timed out, to its giving up.
    pub latency: Spans,
    /// From the first datagram to the end of the handshake, of every connection that was made.
    pub handshake: Spans,
    /// Connections that could not be made.
    pub connection_failures: PerFailure,
    /// The first thing that went wrong with a connection, in words.
    pub first_fault: Option<String>,
    /// Requests that were outstanding, or overdue in an open loop, when time was over.
    pub unfinished: u64,
    /// How long the oldest of them had waited.
    pub oldest_unfinished: Duration,
    /// Requests of the plan that never began.
    pub not_begun: u64,
    /// Slices, if they were asked for.
    pub series: Vec<Slice>,
    /// When measuring began and ended; the latter is the last answer's time when requests were counted.
    pub began: Instant,
    /// See `began`.
    pub ended: Instant,
    /// What the thread used while measuring.
    pub times: Times,
    /// The largest share of a core that one thread had while measuring, and the largest that one waited for.
    pub busiest: [f64; 2],
    /// What the data path counted while measuring. The CPU fields are those of the process and not used.
    pub usage: Usage,
    /// Packets of ours that were lost, handshakes and warm-up included.
    pub lost_packets: u64,
}

impl Record {
    pub(super) fn new() -> Record {
        Record {
            succeeded: 0,
            failures: PerFailure::default(),
            warm_up_failures: 0,
            statuses: Statuses(Box::new([0; 500])),
            content_bytes: 0,
            latency: Spans::new(),
            handshake: Spans::new(),
            connection_failures: PerFailure::default(),
            first_fault: None,
            unfinished: 0,
            oldest_unfinished: Duration::ZERO,
            not_begun: 0,
            series: Vec::new(),
            began: Instant::ZERO,
            ended: Instant::ZERO,
            times: Times::default(),
            busiest: [0.0; 2],
            usage: Usage::default(),
            lost_packets: 0,
        }
    }

    /// How long measuring took.
    pub fn elapsed(&self) -> Duration {
        self.ended.saturating_since(self.began)
    }

    /// Takes in what another thread measured at the same time.
    pub fn merge(&mut self, other: &Record) {
        self.succeeded += other.succeeded;
        self.failures.merge(&other.failures);
        self.warm_up_failures += other.warm_up_failures;
        self.statuses.0.iter_mut().zip(other.statuses.0.iter()).for_each(|(mine, theirs)| *mine += theirs);
        self.content_bytes += other.content_bytes;
        self.latency.merge(&other.latency);
        self.handshake.merge(&other.handshake);
        self.connection_failures.merge(&other.connection_failures);
        if self.first_fault.is_none() {
            self.first_fault.clone_from(&other.first_fault);
        }
        self.unfinished += other.unfinished;
        self.oldest_unfinished = self.oldest_unfinished.max(other.oldest_unfinished);
        self.not_begun += other.not_begun;
        merge_series(&mut self.series, &other.series);
        self.began = if self.began == Instant::ZERO { other.began } else { self.began.min(other.began) };
        self.ended = self.ended.max(other.ended);
        self.times = self.times.plus(&other.times);
        for (mine, theirs) in self.busiest.iter_mut().zip(other.busiest) {
            *mine = mine.max(theirs);
        }
        self.usage = self.usage.plus(&other.usage);
        self.lost_packets += other.lost_packets;
    }
}

fn merge_series(mine: &mut Vec<Slice>, theirs: &[Slice]) {
    mine.resize(mine.len().max(theirs.len()), Slice::default());
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        mine.succeeded += theirs.succeeded;
        mine.failed += theirs.failed;
        mine.content_bytes += theirs.content_bytes;
        mine.longest_ns = mine.longest_ns.max(theirs.longest_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Failure;

    /// Deleted, a figure that `merge` forgets would be that of the first thread only.
    #[test]
    fn two_threads_make_one_record() {
        let thread = |ms: u64| {
            let mut record = Record::new();
            (record.succeeded, record.content_bytes, record.unfinished) = (ms, ms * 10, 1);
            record.latency.add(Duration::from_millis(ms));
            record.handshake.add(Duration::from_millis(ms * 2));
            record.statuses.add(200);
            record.statuses.add(9);
            record.failures.add(Failure::Reset, ms);
            record.series = vec![Slice { succeeded: ms, longest_ns: ms, ..Slice::default() }; ms as usize];
            record.began = Instant::from_nanos(5);
            record.ended = Instant::from_nanos(5 + ms);
            record.busiest = [ms as f64, 0.5];
            record.times = Times { cpu_s: 1.0, waited_s: 0.25 };
            record.usage.sent_datagrams = 3;
            record
        };
        let mut all = Record::new();
        [3, 1].iter().for_each(|ms| all.merge(&thread(*ms)));
        assert_eq!((all.succeeded, all.content_bytes, all.unfinished), (4, 40, 2));
        assert_eq!((all.latency.count(), all.handshake.count(), all.failures.of(Failure::Reset)), (2, 2, 4));
        assert_eq!(all.statuses.iter().collect::<Vec<_>>(), [(200, 2)]);
        assert_eq!((all.series.len(), all.series[0].succeeded, all.series[0].longest_ns), (3, 4, 3));
        assert_eq!((all.elapsed().as_nanos(), all.busiest, all.times.cpu_s), (3, [3.0, 0.5], 2.0));
        assert_eq!(all.usage.sent_datagrams, 6);
        let median = all.latency.quantile(0.5).as_micros();
        assert!((999..=1_001).contains(&median), "{median}");
        assert!(all.latency.longest().as_millis() == 3 && all.latency.shortest().as_micros() >= 999);
    }
}
