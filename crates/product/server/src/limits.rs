//! What clients may hold of a server, and for how long.

use crate::progress::Progress;
use crate::tcp;
use http3::Config;
use std::time::Duration;

/// Limits on clients. Connections count for HTTP/3, and again for HTTP/1.1 and 2. Source of each bound: docs/threats.md.
///
/// ```
/// use std::time::Duration;
/// let limits = server::Limits::default().memory(512 << 20).connections(1_000).progress(Duration::from_secs(20), 4_096);
/// # drop(limits);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Limits {
    memory: Option<u64>,
    connections: usize,
    per_address: Option<usize>,
    per_prefix: Option<usize>,
    handshake: Option<Duration>,
    progress: Progress,
    upload: Upload,
}

/// The least rate of a request's content over HTTP/3.
#[derive(Clone, Copy, Debug)]
enum Upload {
    /// That of responses.
    AsResponses,
    Within(Option<Duration>),
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            memory: None,
            connections: 30_000,
            per_address: None,
            per_prefix: None,
            handshake: None,
            progress: Progress::default(),
            upload: Upload::AsResponses,
        }
    }
}

impl Limits {
    /// Bytes that connections may hold together. Above three quarters receive windows stop growing; above seven eighths requests
    /// get 503, new connections wait, and connections without progress end, the largest first. Clients of one address may hold
    /// half of it, those of one network three quarters. Default: half of what the machine, its control group and
    /// RLIMIT_AS leave.
    pub fn memory(mut self, bytes: u64) -> Limits {
        self.memory = Some(bytes);
        self
    }

    /// Connections at a time, at least 1. Over HTTP/3 more are told CONNECTION_REFUSED; over TCP they wait in the kernel's queue.
    /// Default: 30,000.
    pub fn connections(mut self, count: usize) -> Limits {
        self.connections = count.max(1);
        self
    }

    /// Connections at a time from one address: an IPv4 address, or an IPv6 /64. Default: half of [`Limits::connections`].
    pub fn connections_per_address(mut self, count: usize) -> Limits {
        self.per_address = Some(count);
        self
    }

    /// Connections at a time from one network: an IPv4 /24, or an IPv6 /48. Default: three quarters of [`Limits::connections`].
    pub fn connections_per_prefix(mut self, count: usize) -> Limits {
        self.per_prefix = Some(count);
        self
    }

    /// How long a handshake may take, of QUIC and of TLS over TCP. Default: 10 s.
    pub fn handshake(mut self, at_most: Duration) -> Limits {
        self.handshake = Some(at_most);
        self
    }

    /// While a request is under way, at least `bytes` of content move within `span`, or the connection ends. Time in which the
    /// application is what holds them up does not count. Default: 1,024 bytes within 60 s.
    pub fn progress(mut self, span: Duration, bytes: u64) -> Limits {
        self.progress = Progress { within: span.into(), bytes };
        self
    }

    /// The same for the content of a request over HTTP/3, which is reset when less arrives in `span`; `None` is no limit, for
    /// applications whose clients keep an upload open without sending. Default: as [`Limits::progress`].
    pub fn upload_progress(mut self, span: Option<Duration>) -> Limits {
        self.upload = Upload::Within(span);
        self
    }

    pub(crate) fn memory_limit(&self) -> Option<u64> {
        self.memory
    }

    pub(crate) fn handshake_timeout(&self) -> Option<Duration> {
        self.handshake
    }

    pub(crate) fn response_progress(&self) -> Progress {
        self.progress
    }

    /// The limits of messages over HTTP/3.
    pub(crate) fn http3(&self) -> Config {
        let body_timeout = match self.upload {
            Upload::AsResponses => Some(self.progress.within),
            Upload::Within(span) => span.map(Into::into),
        };
        Config { body_timeout, min_body_bytes: self.progress.bytes, ..Config::server() }
    }

    /// Those of one of `threads` threads over TCP.
    pub(crate) fn tcp(&self, threads: usize) -> tcp::Limits {
        let part = self.of_thread(threads);
        let defaults = tcp::Limits::default();
        tcp::Limits {
            connections: part.connections,
            connections_per_address: part.per_address,
            connections_per_prefix: part.per_prefix,
            handshake: self.handshake.map_or(defaults.handshake, Into::into),
            progress: self.progress.within,
            progress_bytes: self.progress.bytes,
            ..defaults
        }
    }

    /// The part of one of `threads` threads, rounded up: clients are spread over them by their ports.
    pub(crate) fn of_thread(&self, threads: usize) -> ThreadLimits {
        let part = |whole: usize| whole.div_ceil(threads.max(1));
        ThreadLimits {
            connections: part(self.connections),
            per_address: part(self.per_address.unwrap_or(self.connections.div_ceil(2))),
            per_prefix: part(self.per_prefix.unwrap_or(self.connections.saturating_mul(3).div_ceil(4))),
        }
    }
}

/// Connections of one thread at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadLimits {
    pub(crate) connections: usize,
    pub(crate) per_address: usize,
    pub(crate) per_prefix: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_follows_the_first_and_is_shared_out() {
        let limits = Limits::default().connections(10);
        let part = |limits: &Limits, threads| {
            let part = limits.of_thread(threads);
            (part.connections, part.per_address, part.per_prefix)
        };
        assert_eq!(part(&limits, 1), (10, 5, 8));
        assert_eq!(part(&limits, 3), (4, 2, 3));
        let limits = limits.connections_per_address(1);
        assert_eq!(part(&limits, 4).1, 1, "at least one for each thread");
    }

    #[test]
    fn the_rate_of_an_upload_follows_that_of_responses_or_has_no_limit() {
        let limits = Limits::default().progress(Duration::from_secs(20), 7);
        let (span, bytes) = (limits.http3().body_timeout, limits.http3().min_body_bytes);
        assert_eq!((span, bytes), (Some(base::time::Duration::from_secs(20)), 7));
        assert_eq!(limits.tcp(1).progress_bytes, 7);
        assert_eq!(limits.upload_progress(None).http3().body_timeout, None);
    }
}
