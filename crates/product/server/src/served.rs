//! What was done for one version of HTTP, in numbers.

use core::ops::AddAssign;

/// What was done for one HTTP version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Connections whose handshake succeeded.
    pub connections: u64,
    /// Requests that were answered.
    pub requests: u64,
    /// Bytes of content that were handed over.
    pub content_bytes: u64,
    /// Connections that were ended because the client took too little of what it had asked for.
    pub stalled: u64,
    /// Connections that were ended because memory was short and they made no progress.
    pub evicted: u64,
}

impl AddAssign for Served {
    fn add_assign(&mut self, other: Served) {
        self.connections += other.connections;
        self.requests += other.requests;
        self.content_bytes += other.content_bytes;
        self.stalled += other.stalled;
        self.evicted += other.evicted;
    }
}
