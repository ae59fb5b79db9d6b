//! What a client may hold of one thread that serves TCP, and for how long.

use base::time::Duration;

/// Bounds of connections over TCP. Docs: docs/threats.md.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time; more wait in the kernel's queue. Default 10,000.
    pub connections: usize,
    /// Connections at a time from one address (an IPv4 address, or an IPv6 /64); more are closed. Default 5,000.
    pub connections_per_address: usize,
    /// The same from one network (an IPv4 /24, or an IPv6 /48). Default 7,500.
    pub connections_per_prefix: usize,
    /// A TLS handshake must end in so long. Default 10 s.
    pub handshake: Duration,
    /// A connection without a request under way ends after so long, whatever it sends; content that still leaves, at least
    /// `progress_bytes`, begins the time anew. Default 30 s.
    pub idle: Duration,
    /// While a request is under way, at least `progress_bytes` of content must move in so long. Default 60 s.
    pub progress: Duration,
    /// In bytes. Default 1,024.
    pub progress_bytes: u64,
    /// How long the peer of a connection that is over may take to hear so, from what it sent last, and 30 s at most. Default 2 s.
    pub linger: Duration,
    /// Requests at a time on an HTTP/2 connection. Default 128.
    pub streams: u32,
    /// How long connections have to finish after the order to stop; `None`: as long as the other rules let them. Default `None`.
    pub drain: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 10_000,
            connections_per_address: 5_000,
            connections_per_prefix: 7_500,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            progress: Duration::from_secs(60),
            progress_bytes: 1_024,
            linger: Duration::from_secs(2),
            streams: 128,
            drain: None,
        }
    }
}
