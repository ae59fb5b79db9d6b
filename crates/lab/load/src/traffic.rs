//! What went over the network, and by how many system calls: figures of UDP and TCP side by side.

use datapath::Counters;

/// Counted since the start, or in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that were sent: UDP payload, or all that a TCP socket took.
    pub sent_bytes: u64,
    /// Bytes that were received.
    pub received_bytes: u64,
    /// Datagrams. How TCP divides its bytes is not known.
    pub datagrams: Option<Datagrams>,
    /// System calls that sent or received. Over TCP, reads that found nothing are not known.
    pub data_calls: u64,
    /// System calls that waited for something to happen.
    pub waits: u64,
}

/// Counts of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// Sent.
    pub sent: u64,
    /// Received.
    pub received: u64,
    /// Discarded by the kernel because we were too slow.
    pub overflowed: u64,
}

impl Traffic {
    /// What a data path has counted.
    pub fn of_port(counters: &Counters) -> Traffic {
        Traffic {
            sent_bytes: counters.tx.bytes,
            received_bytes: counters.rx.bytes,
            datagrams: Some(Datagrams {
                sent: counters.tx.datagrams,
                received: counters.rx.datagrams,
                overflowed: counters.rx.overflowed,
            }),
            data_calls: counters.tx.calls + counters.rx.calls,
            waits: counters.waits,
        }
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Traffic) -> Traffic {
        self.with(earlier, u64::saturating_sub)
    }

    /// Both together.
    pub fn plus(&self, other: &Traffic) -> Traffic {
        self.with(other, u64::saturating_add)
    }

    fn with(&self, other: &Traffic, combine: fn(u64, u64) -> u64) -> Traffic {
        let datagrams = match (self.datagrams, other.datagrams) {
            (Some(mine), theirs) => Some(mine.with(&theirs.unwrap_or_default(), combine)),
            (None, Some(theirs)) => Some(Datagrams::default().with(&theirs, combine)),
            (None, None) => None,
        };
        Traffic {
            sent_bytes: combine(self.sent_bytes, other.sent_bytes),
            received_bytes: combine(self.received_bytes, other.received_bytes),
            datagrams,
            data_calls: combine(self.data_calls, other.data_calls),
            waits: combine(self.waits, other.waits),
        }
    }
}

impl Datagrams {
    fn with(&self, other: &Datagrams, combine: fn(u64, u64) -> u64) -> Datagrams {
        Datagrams {
            sent: combine(self.sent, other.sent),
            received: combine(self.received, other.received),
            overflowed: combine(self.overflowed, other.overflowed),
        }
    }
}
