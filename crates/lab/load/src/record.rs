//! What a thread has measured, and how several make one.

use super::failure::PerFailure;
use super::kinds::HandshakeKinds;
use super::series::Series;
use super::spans::Spans;
use super::traffic::Traffic;
use base::time::{Duration, Instant};
use cpu::times::Times;

/// Statuses have three digits and the first is not 0. RFC 9110 §15: one above 599 is taken for a 5xx.
const STATUSES: usize = 900;

/// How often each status came.
#[derive(Clone, Debug)]
pub struct Statuses(Box<[u64; STATUSES]>);

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
    /// Bytes of requests that were acknowledged; of the perf protocol only.
    pub uploaded_bytes: u64,
    /// From the intended beginning to the end of the answer; of a request that timed out, to its giving up.
    pub latency: Spans,
    /// From the first packet to the end of the handshake: of every connection that was made, or where each request has one of
    /// its own, of those whose requests count.
    pub handshake: Spans,
    /// The same by kind.
    pub kinds: HandshakeKinds,
    /// The key exchange of the last connection over QUIC.
    pub key_exchange: Option<&'static str>,
    /// From the intended beginning to the head of the answer, where each request has a connection of its own.
    pub first_byte: Spans,
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
    pub series: Series,
    /// When measuring began and ended; the latter is the last answer's time when requests were counted.
    pub began: Instant,
    /// See `began`.
    pub ended: Instant,
    /// What the thread used while measuring.
    pub times: Times,
    /// The largest share of a core that one thread had while measuring, and the largest that one waited for.
    pub busiest: [f64; 2],
    /// What went over the network while measuring.
    pub traffic: Traffic,
    /// QUIC packets of ours that were lost, handshakes and warm-up included.
    pub lost_packets: u64,
    /// The largest packet that any connection sent at the end, in bytes of UDP payload; of the perf protocol only.
    pub packet_size: u16,
    /// The smoothed round-trip time of one connection at the end; of the perf protocol only.
    pub rtt: Duration,
}

impl Record {
    /// Nothing yet.
    pub(super) fn new() -> Record {
        Record::with_series(None)
    }

    /// Nothing yet; slices of this length, if any.
    pub(super) fn with_series(slice: Option<Duration>) -> Record {
        Record {
            succeeded: 0,
            failures: PerFailure::default(),
            warm_up_failures: 0,
            statuses: Statuses(Box::new([0; STATUSES])),
            content_bytes: 0,
            uploaded_bytes: 0,
            latency: Spans::new(),
            handshake: Spans::new(),
            kinds: HandshakeKinds::default(),
            key_exchange: None,
            first_byte: Spans::new(),
            connection_failures: PerFailure::default(),
            first_fault: None,
            unfinished: 0,
            oldest_unfinished: Duration::ZERO,
            not_begun: 0,
            series: Series::new(slice),
            began: Instant::ZERO,
            ended: Instant::ZERO,
            times: Times::default(),
            busiest: [0.0; 2],
            traffic: Traffic::default(),
            lost_packets: 0,
            packet_size: 0,
            rtt: Duration::ZERO,
        }
    }

    /// A copy without the series, which may be long.
    pub(super) fn without_series(&mut self) -> Record {
        let series = core::mem::take(&mut self.series);
        let copy = self.clone();
        self.series = series;
        copy
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
        self.uploaded_bytes += other.uploaded_bytes;
        self.latency.merge(&other.latency);
        self.handshake.merge(&other.handshake);
        self.kinds.merge(&other.kinds);
        self.key_exchange = other.key_exchange.or(self.key_exchange);
        self.first_byte.merge(&other.first_byte);
        self.connection_failures.merge(&other.connection_failures);
        if self.first_fault.is_none() {
            self.first_fault.clone_from(&other.first_fault);
        }
        self.unfinished += other.unfinished;
        self.oldest_unfinished = self.oldest_unfinished.max(other.oldest_unfinished);
        self.not_begun += other.not_begun;
        self.series.merge(&other.series);
        // A thread that never began to measure has no say in when.
        if other.began != Instant::ZERO {
            self.began = if self.began == Instant::ZERO { other.began } else { self.began.min(other.began) };
            self.ended = self.ended.max(other.ended);
        }
        self.times = self.times.plus(&other.times);
        for (mine, theirs) in self.busiest.iter_mut().zip(other.busiest) {
            *mine = mine.max(theirs);
        }
        self.traffic = self.traffic.plus(&other.traffic);
        self.lost_packets += other.lost_packets;
        self.packet_size = self.packet_size.max(other.packet_size);
        self.rtt = self.rtt.max(other.rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

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
            record.began = Instant::from_nanos(5);
            record.ended = Instant::from_nanos(5 + ms);
            record.busiest = [ms as f64, 0.5];
            record.times = Times { cpu_s: 1.0, waited_s: 0.25 };
            record.traffic.sent_bytes = 3;
            (record.uploaded_bytes, record.packet_size, record.rtt) =
                (ms, ms as u16, Duration::from_nanos(ms));
            record
        };
        let mut all = Record::new();
        [3, 1].iter().for_each(|ms| all.merge(&thread(*ms)));
        all.merge(&Record::new());
        assert_eq!((all.succeeded, all.content_bytes, all.unfinished), (4, 40, 2));
        assert_eq!((all.latency.count(), all.handshake.count(), all.failures.of(Failure::Reset)), (2, 2, 4));
        assert_eq!(all.statuses.iter().collect::<Vec<_>>(), [(200, 2)]);
        assert_eq!((all.elapsed().as_nanos(), all.busiest, all.times.cpu_s), (3, [3.0, 0.5], 2.0));
        assert_eq!((all.uploaded_bytes, all.packet_size, all.rtt.as_nanos()), (4, 3, 3));
        assert_eq!((all.traffic.sent_bytes, all.traffic.datagrams), (6, None));
        let median = all.latency.quantile(0.5).as_micros();
        assert!((999..=1_001).contains(&median), "{median}");
        assert!(all.latency.longest().as_millis() == 3 && all.latency.shortest().as_micros() >= 999);
    }
}
