//! Bytes and system calls of a thread that serves TCP.

use super::ThreadCounters;
use std::cell::Cell;

/// Beyond so much content that waits for sockets, a thread is crowded: caches hold no more, and each byte is fetched from memory again.
const CROWDED: u64 = 16 << 20;

/// Bytes and system calls of all sockets of a thread, TLS and all.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    sent_bytes: Cell<u64>,
    send_calls: Cell<u64>,
    received_bytes: Cell<u64>,
    receive_calls: Cell<u64>,
    /// Content that TLS was given and no socket has taken.
    waiting_bytes: Cell<u64>,
}

impl Traffic {
    pub(super) fn on_read(&self, bytes: usize) {
        self.received_bytes.set(self.received_bytes.get().wrapping_add(bytes as u64));
        self.receive_calls.set(self.receive_calls.get().wrapping_add(1));
    }

    pub(super) fn on_write(&self, bytes: usize) {
        self.sent_bytes.set(self.sent_bytes.get().wrapping_add(bytes as u64));
        self.send_calls.set(self.send_calls.get().wrapping_add(1));
    }

    /// Of the content that TLS was given for a connection, `now` bytes instead of `before` wait for its socket.
    pub(super) fn on_waiting(&self, before: u64, now: u64) {
        self.waiting_bytes.set(self.waiting_bytes.get().saturating_sub(before).saturating_add(now));
    }

    /// Whether much content waits for sockets.
    pub(super) fn is_crowded(&self) -> bool {
        self.waiting_bytes.get() > CROWDED
    }

    /// The sums so far.
    pub(super) fn add_to(&self, counters: &mut ThreadCounters) {
        counters.sent_bytes += self.sent_bytes.get();
        counters.send_calls += self.send_calls.get();
        counters.received_bytes += self.received_bytes.get();
        counters.receive_calls += self.receive_calls.get();
    }
}
