//! What a thread has measured, and how several make one.

use base::time::{Duration, Instant};
use client::usage::Usage;
use cpu::times::Times;
use load::Spans;

/// The measurements of one thread, or of several merged.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Exchanges, or handshakes, that ended as they should.
    pub completed: u64,
    /// Those that did not.
    pub failed: u64,
    /// Those that were under way when time was over.
    pub unfinished: u64,
    /// Bytes of answers that arrived.
    pub received_bytes: u64,
    /// Bytes of requests that were acknowledged.
    pub sent_bytes: u64,
    /// From the beginning of an exchange to the end of its answer.
    pub latency: Spans,
    /// From the first datagram to the end of the handshake.
    pub handshake: Spans,
    /// Connections that could not be made.
    pub unconnected: u64,
    /// The first thing that went wrong, in words.
    pub first_fault: Option<String>,
    /// When measuring began and ended.
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
    /// The largest packet that any connection sent at the end, in bytes of UDP payload.
    pub packet_size: u16,
    /// The smoothed round-trip time of one connection at the end.
    pub rtt: Duration,
}

impl Record {
    /// How long measuring took.
    pub fn elapsed(&self) -> Duration {
        self.ended.saturating_since(self.began)
    }

    /// Takes in what another thread measured at the same time.
    pub(crate) fn merge(&mut self, other: &Record) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.unfinished += other.unfinished;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.latency.merge(&other.latency);
        self.handshake.merge(&other.handshake);
        self.unconnected += other.unconnected;
        if self.first_fault.is_none() {
            self.first_fault.clone_from(&other.first_fault);
        }
        // A thread that never began to measure has no say in when.
        if other.began != Instant::ZERO {
            self.began = if self.began == Instant::ZERO { other.began } else { self.began.min(other.began) };
            self.ended = self.ended.max(other.ended);
        }
        self.times = self.times.plus(&other.times);
        for (mine, theirs) in self.busiest.iter_mut().zip(other.busiest) {
            *mine = mine.max(theirs);
        }
        self.usage = self.usage.plus(&other.usage);
        self.lost_packets += other.lost_packets;
        self.packet_size = self.packet_size.max(other.packet_size);
        self.rtt = self.rtt.max(other.rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a figure that `merge` forgets would be that of the first thread only.
    #[test]
    fn two_threads_make_one_record() {
        let thread = |n: u64| {
            let mut record = Record {
                completed: n,
                failed: n,
                unfinished: n,
                received_bytes: n,
                sent_bytes: n,
                unconnected: n,
                began: Instant::from_nanos(5),
                ended: Instant::from_nanos(5 + n),
                times: Times { cpu_s: 1.0, waited_s: 0.5 },
                busiest: [n as f64, 0.5],
                lost_packets: n,
                packet_size: n as u16,
                rtt: Duration::from_nanos(n),
                ..Record::default()
            };
            record.latency.add(Duration::from_millis(n));
            record.handshake.add(Duration::from_millis(n));
            record.usage.sent_datagrams = n;
            record
        };
        let mut all = Record::default();
        [3, 1].iter().for_each(|n| all.merge(&thread(*n)));
        assert_eq!((all.completed, all.failed, all.unfinished, all.unconnected), (4, 4, 4, 4));
        assert_eq!((all.received_bytes, all.sent_bytes, all.lost_packets), (4, 4, 4));
        assert_eq!((all.latency.count(), all.handshake.count(), all.usage.sent_datagrams), (2, 2, 4));
        assert_eq!((all.elapsed().as_nanos(), all.busiest, all.times.cpu_s), (3, [3.0, 0.5], 2.0));
        assert_eq!((all.packet_size, all.rtt.as_nanos()), (3, 3));
        // One that could not connect, say, never measured.
        all.merge(&Record { unconnected: 1, ..Record::default() });
        assert_eq!((all.elapsed().as_nanos(), all.unconnected), (3, 5));
    }
}
