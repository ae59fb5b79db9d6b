//! What a client's data path has counted.

use datapath::Counters;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a client's HTTP/3 since it was made, as of the last turn of its worker. TCP is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Datagrams that arrived.
    pub received_datagrams: u64,
    /// Datagrams that were sent.
    pub sent_datagrams: u64,
    /// System calls that took datagrams in.
    pub receive_calls: u64,
    /// System calls that sent datagrams.
    pub send_calls: u64,
    /// Times that the worker went to sleep.
    pub waits: u64,
    /// Datagrams that the kernel discarded because the receive buffer was full, where it says so.
    pub overflowed_datagrams: u64,
}

/// The counts as the worker's thread publishes them: one writer, and readers that may see some of a turn and not the rest.
#[derive(Debug, Default)]
pub(crate) struct Published([AtomicU64; 6]);

impl Published {
    /// After each turn.
    pub(crate) fn publish(&self, counters: &Counters) {
        let (rx, tx) = (&counters.rx, &counters.tx);
        let all = [rx.datagrams, tx.datagrams, rx.calls, tx.calls, counters.waits, rx.overflowed];
        self.0.iter().zip(all).for_each(|(place, count)| place.store(count, Ordering::Relaxed));
    }

    pub(crate) fn read(&self) -> Stats {
        let [received, sent, receive_calls, send_calls, waits, overflowed] =
            self.0.each_ref().map(|place| place.load(Ordering::Relaxed));
        Stats {
            received_datagrams: received,
            sent_datagrams: sent,
            receive_calls,
            send_calls,
            waits,
            overflowed_datagrams: overflowed,
        }
    }
}
