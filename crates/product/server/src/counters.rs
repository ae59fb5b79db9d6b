//! The counters of a server while it runs: a part of what its threads publish (metrics/board.rs).

use crate::served::Served;
use transport::EndpointCounters;

/// What a server did: a moment ago by [`crate::Handle::counters`], in all by [`crate::Summary::counters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Over HTTP/1.1.
    pub http1: Served,
    /// Over HTTP/2.
    pub http2: Served,
    /// Over HTTP/3.
    pub http3: Served,
    /// Connections that were refused because of [`crate::Limits`], over TCP and QUIC.
    pub refused: u64,
}

impl Counters {
    pub(crate) fn of_worker(http3: Served, endpoint: &EndpointCounters) -> Counters {
        Counters { http3, refused: endpoint.refused_connections, ..Counters::default() }
    }
}

impl core::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.http1 += other.http1;
        self.http2 += other.http2;
        self.http3 += other.http3;
        self.refused += other.refused;
    }
}
