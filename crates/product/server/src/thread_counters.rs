//! What a thread that serves TCP has done, in numbers.

use crate::counters::Counters;
use crate::served::Served;
use rustls::HandshakeKind;
use std::ops::AddAssign;

/// The sums of a thread, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounters {
    /// HTTP/1.1 and 1.0.
    pub http1: Served,
    /// HTTP/2.
    pub http2: Served,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that were closed at once, because their address or network had too many.
    pub refused: u64,
    /// Handshakes with a certificate.
    pub handshakes_full: u64,
    /// Handshakes with a ticket of an earlier connection.
    pub handshakes_resumed: u64,
    /// Connections that ended before they were secure.
    pub handshakes_failed: u64,
    /// Connections that were ended because they were idle or too slow.
    pub expired: u64,
    /// Times that no connection could be accepted for want of descriptors or memory.
    pub accept_failures: u64,
    /// Bytes that the sockets took, TLS and all.
    pub sent_bytes: u64,
    /// System calls that took some; those that found no room are not counted.
    pub send_calls: u64,
    /// Bytes that the sockets gave.
    pub received_bytes: u64,
    /// System calls that gave some, or the end; those that found nothing are not counted.
    pub receive_calls: u64,
}

impl ThreadCounters {
    /// A connection is secure.
    pub(crate) fn on_handshake(&mut self, kind: HandshakeKind) {
        match kind {
            HandshakeKind::Resumed => self.handshakes_resumed += 1,
            HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest => self.handshakes_full += 1,
        }
    }

    /// What it did, for the counters of the server.
    pub(crate) fn sums(&self) -> Counters {
        Counters { http1: self.http1, http2: self.http2, refused: self.refused, ..Counters::default() }
    }
}

impl AddAssign for ThreadCounters {
    fn add_assign(&mut self, other: ThreadCounters) {
        self.http1 += other.http1;
        self.http2 += other.http2;
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.handshakes_full += other.handshakes_full;
        self.handshakes_resumed += other.handshakes_resumed;
        self.handshakes_failed += other.handshakes_failed;
        self.expired += other.expired;
        self.accept_failures += other.accept_failures;
        self.sent_bytes += other.sent_bytes;
        self.send_calls += other.send_calls;
        self.received_bytes += other.received_bytes;
        self.receive_calls += other.receive_calls;
    }
}
