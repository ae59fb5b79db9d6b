//! What the threads of a server count for its operator.
//!
//! Each thread has plain numbers of its own, and nothing on the path of a packet or a request is shared. A thread copies its numbers to
//! the [`board`] at most once a second while it works, and at once when it is asked: an ask is a number that each thread compares
//! once per turn, and a wake-up. The answer is also the sign that the thread lives.
//!
//! | file | holds |
//! |---|---|
//! | board.rs | where threads publish, and how they are asked |
//! | requests.rs | responses by version, status and site |
//! | connections.rs | connections of QUIC: handshakes, losses, round trips |
//! | histogram.rs | spans of time by upper bounds |

pub(crate) mod board;
mod connections;
mod histogram;
mod requests;

pub use connections::ConnectionTally;
pub use histogram::{BOUNDS, Histogram};
pub use requests::{Classes, RequestTally, VersionTally};

use crate::counters::Counters;
use crate::served::Served;
use crate::thread_counters::ThreadCounters;
use datapath::Counters as PortCounters;
use transport::EndpointCounters;
use worker::HandOffCounters;

/// What one thread, or all threads of a server, did so far and hold now.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Responses, of all versions of HTTP.
    pub requests: RequestTally,
    /// Connections and bytes over TCP.
    pub tcp: ThreadCounters,
    /// Connections over TCP that are open.
    pub tcp_open: u64,
    /// What was done over HTTP/3.
    pub http3: Served,
    /// Connections of QUIC that are open.
    pub quic_open: u64,
    /// Connections of QUIC, as of the last time that the thread was asked.
    pub connections: ConnectionTally,
    /// What the endpoints took, refused and dropped.
    pub endpoint: EndpointCounters,
    /// Datagrams and system calls.
    pub port: PortCounters,
    /// Datagrams that came to the wrong worker.
    pub hand_offs: HandOffCounters,
}

impl Metrics {
    /// The part that [`crate::Handle::counters`] tells.
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::of_worker(self.http3, &self.endpoint);
        counters += self.tcp.sums();
        counters
    }

    /// Adds those of another thread.
    pub(crate) fn add(&mut self, other: &Metrics) {
        self.requests.add(&other.requests);
        self.tcp += other.tcp;
        self.tcp_open += other.tcp_open;
        self.http3 += other.http3;
        self.quic_open += other.quic_open;
        self.connections.add(&other.connections);
        self.endpoint += other.endpoint;
        self.port += other.port;
        self.hand_offs += other.hand_offs;
    }
}
