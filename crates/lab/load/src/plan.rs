//! What is to be asked: whom, what, how much of it at a time, and until when.

use base::time::Duration;
use core::fmt;
use http::request::Parts;
use std::net::SocketAddr;
use std::sync::Arc;
use transport::ClientConfig;

/// When a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// When this many requests were answered or have failed.
    Requests(u64),
    /// After so long.
    Span(Duration),
}

/// When a request begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As soon as an answer has made room.
    Closed,
    /// This many a second, evenly, whether answers come or not. Latency counts from the intended beginning.
    Open(f64),
}

/// Handshakes under way at a time where nothing else is said: their first datagrams fit into a socket's receive buffer of 212,992 bytes
/// together, and a server gets through with them long before the first one's timer.
pub const HANDSHAKES_AT_A_TIME: usize = 64;

/// How long a connection stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// For as long as the server likes.
    #[default]
    Always,
    /// For one request, whose latency includes the handshake.
    Never,
}

/// What handshakes are like where each request has a connection of its own, over HTTP/3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshakes {
    /// Full: with the server's certificate.
    #[default]
    Full,
    /// Resumed by tickets of the connections before.
    Resumed,
    /// Resumed, and the request goes with the first packets where a ticket permits it.
    Early,
}

/// What is spoken, and how its connections are made.
#[derive(Clone)]
pub enum Protocol {
    /// HTTP/1.1: one request at a time on a connection.
    Http1(Tcp),
    /// HTTP/2.
    Http2(Tcp),
    /// HTTP/3.
    Http3(Quic),
}

/// Connections over TCP.
#[derive(Clone)]
pub struct Tcp {
    /// TLS; `None` speaks in the clear. The code that connects sets the application protocol.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// How long a connection may take to be made.
    pub handshake_timeout: Duration,
}

/// Connections over QUIC.
#[derive(Clone)]
pub struct Quic {
    /// TLS and transport.
    pub config: ClientConfig,
    /// How long a worker polls before it sleeps.
    pub spin: Duration,
    /// What handshakes are like.
    pub handshakes: Handshakes,
}

impl Protocol {
    /// Its name and version.
    pub const fn name(&self) -> &'static str {
        match self {
            Protocol::Http1(_) => "HTTP/1.1",
            Protocol::Http2(_) => "HTTP/2",
            Protocol::Http3(_) => "HTTP/3",
        }
    }
}

/// When a thread may begin something and when it is over, whatever it asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunRules {
    pub(super) bound: Bound,
    pub(super) pace: Pace,
    pub(super) reuse: Reuse,
    pub(super) warm_up: Duration,
    /// How long a slice of the series is; none without series.
    pub(super) series: Option<Duration>,
}

/// A run.
#[derive(Clone)]
pub struct LoadPlan {
    /// Whom the certificate must be for.
    pub server_name: String,
    /// Whom to ask.
    pub address: SocketAddr,
    /// The heads of the requests, asked in turn by each connection. At least one.
    pub requests: Vec<Parts>,
    /// Bytes of content that each request carries; 0 is none.
    pub content: u64,
    /// Connections in all.
    pub connections: usize,
    /// At most this many of them are being made at a time, by all threads together and at least one by each. Not where each request
    /// has a connection of its own.
    pub handshakes: usize,
    /// Requests at a time on each connection, unless the server allows fewer.
    pub streams: usize,
    /// When it is over.
    pub bound: Bound,
    /// How long requests are made before any is counted.
    pub warm_up: Duration,
    /// When requests begin.
    pub pace: Pace,
    /// A request fails when it was not answered for so long.
    pub timeout: Duration,
    /// A time series with slices of this length is kept.
    pub series: Option<Duration>,
    /// What is spoken.
    pub protocol: Protocol,
    /// How long connections stay.
    pub reuse: Reuse,
}

/// Why a plan cannot be carried out: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(pub &'static str);

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for PlanError {}

/// Whether each thread can have a connection.
pub(crate) fn check_threads(threads: usize, connections: usize) -> Result<(), PlanError> {
    if threads > connections {
        return Err(PlanError("there are more threads than connections: each thread needs one of its own"));
    }
    Ok(())
}

impl LoadPlan {
    pub(super) fn rules(&self) -> RunRules {
        let LoadPlan { bound, pace, reuse, warm_up, series, .. } = *self;
        RunRules { bound, pace, reuse, warm_up, series }
    }

    /// The place in `requests` at which a connection begins.
    pub(super) fn first_request(&self, connection: usize) -> usize {
        first_place(connection, self.connections, self.requests.len())
    }

    /// Whether it can be carried out by this many threads.
    ///
    /// # Errors
    /// The first thing that cannot.
    pub fn check(&self, threads: usize) -> Result<(), PlanError> {
        if self.requests.is_empty() {
            return Err(PlanError("there is nothing to ask: give a URL"));
        }
        if self.connections == 0 || self.streams == 0 || threads == 0 {
            return Err(PlanError(
                "at least one thread, one connection and one request at a time are needed",
            ));
        }
        check_threads(threads, self.connections)?;
        if self.streams > 1 && matches!(self.protocol, Protocol::Http1(_)) {
            return Err(PlanError(
                "HTTP/1.1 has one request at a time on a connection: use more connections (-c) in place of -m",
            ));
        }
        if self.streams > 1 && self.reuse == Reuse::Never {
            return Err(PlanError(
                "with a new connection for each request there is one on each: use more at a time (-c) in place of -m",
            ));
        }
        if let Protocol::Http3(Quic { handshakes: Handshakes::Early, .. }) = &self.protocol
            && (self.content > 0 || self.requests.iter().any(|head| !head.method.is_safe()))
        {
            return Err(PlanError(
                "early data may be carried out twice: only requests with safe methods and without content go early",
            ));
        }
        if matches!(self.pace, Pace::Open(rate) if !(rate.is_finite() && rate > 0.0)) {
            return Err(PlanError("the rate must be more than 0 requests a second"));
        }
        if self.timeout.is_zero() {
            return Err(PlanError("the timeout must be longer than 0"));
        }
        Ok(())
    }

    /// The part of thread `index` of `threads`: its connections, its requests, its share of the rate.
    pub(super) fn share(&self, index: usize, threads: usize) -> LoadPlan {
        let part = |all: u64| all / threads as u64 + u64::from((index as u64) < all % threads as u64);
        LoadPlan {
            connections: part(self.connections as u64) as usize,
            handshakes: part(self.handshakes as u64).max(1) as usize,
            bound: match self.bound {
                Bound::Requests(all) => Bound::Requests(part(all)),
                span @ Bound::Span(_) => span,
            },
            pace: match self.pace {
                Pace::Closed => Pace::Closed,
                Pace::Open(rate) => Pace::Open(rate / threads as f64),
            },
            ..self.clone()
        }
    }
}

/// Connections begin as far apart as they can, so that all places are taken from the start and no two read the same at a time.
fn first_place(connection: usize, connections: usize, places: usize) -> usize {
    let apart = places.checked_div(connections).unwrap_or(0).max(1);
    connection.wrapping_mul(apart).checked_rem(places).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::first_place;

    /// Deleted, ten connections that ask for a hundred files could all read the same one at a time.
    #[test]
    fn connections_begin_far_apart() {
        let places = |connections, places| -> Vec<usize> {
            (0..connections).map(|connection| first_place(connection, connections, places)).collect()
        };
        assert_eq!(places(4, 100), [0, 25, 50, 75]);
        assert_eq!(places(5, 3), [0, 1, 2, 0, 1], "all are taken");
        assert_eq!(places(2, 1), [0, 0]);
        assert_eq!(first_place(3, 0, 0), 0);
    }
}
