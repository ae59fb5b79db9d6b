//! What a client was built with.

use super::alt_svc_file::AltSvcFile;
use super::quic::Setup;
use crate::migration::LocalPlace;
use crate::resolve::{ConnectOverride, Family};
use ports::DataPath;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// Which versions of HTTP a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpChoice {
    /// All: QUIC and TCP race, and Alt-Svc is followed. `http` URIs are asked by HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/2 alone, over TLS.
    Http2,
    /// HTTP/3 alone.
    Http3,
}

/// Which requests may go with the first packets to a server that is known, before the handshake is complete (0-RTT).
///
/// An attacker may have such a request carried out twice. Source: RFC 8470 §2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EarlyData {
    /// None.
    #[default]
    Off,
    /// GET, HEAD, OPTIONS and TRACE without content, over HTTP/3. One that the server answers by 425 (Too Early) goes again by itself
    /// when the handshake is complete. Where a server has several addresses, such a request goes to the first of them.
    SafeMethods,
}

/// Whether redirects are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Redirects {
    /// This many; one more is an error.
    Limit(u32),
    /// None: the response that redirects is the response.
    None,
}

/// How long one request may take in all, in place of [`Builder::timeout`](crate::Builder::timeout): in the extensions of the
/// request.
///
/// ```
/// use client::{Body, Timeout};
/// use std::time::Duration;
/// let limit = Timeout(Duration::from_secs(5));
/// let request = http::Request::get("https://example.org/").extension(limit).body(Body::empty())?;
/// # drop(request);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(pub Duration);

/// What is kept for each origin: connections, and requests at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pool {
    /// A connection without requests is closed after so long. Default: 90 s.
    pub idle: Duration,
    /// Connections of HTTP/1.1 to one origin that are kept without requests. Default: 32.
    pub idle_per_origin: usize,
    /// Requests to one origin at a time; more wait for the end of a response. An origin has one connection of HTTP/2 or 3, and at
    /// most this many of HTTP/1.1 with requests, as each serves one at a time. Default: `None`, without a limit.
    pub requests_per_origin: Option<NonZeroUsize>,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { idle: Duration::from_secs(90), idle_per_origin: 32, requests_per_origin: None }
    }
}

impl Pool {
    /// A connection without requests is closed after so long.
    #[must_use]
    pub fn idle(mut self, after: Duration) -> Pool {
        self.idle = after;
        self
    }

    /// Connections of HTTP/1.1 to one origin that are kept without requests.
    #[must_use]
    pub fn idle_per_origin(mut self, count: usize) -> Pool {
        self.idle_per_origin = count;
        self
    }

    /// Requests to one origin at a time; more wait until the content of a response has been read or dropped.
    #[must_use]
    pub fn requests_per_origin(mut self, count: Option<NonZeroUsize>) -> Pool {
        self.requests_per_origin = count;
        self
    }
}

/// All settings.
pub(crate) struct Settings {
    pub(crate) http: HttpChoice,
    pub(crate) family: Family,
    pub(crate) detours: Vec<ConnectOverride>,
    pub(crate) redirects: Redirects,
    pub(crate) connect_timeout: Duration,
    pub(crate) silence: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) pool: Pool,
    /// TLS over TCP; `None` if only HTTP/3 is spoken.
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    /// TLS and settings of QUIC.
    pub(crate) quic: transport::ClientConfig,
    pub(crate) data_path: DataPath,
    /// Where announcements of HTTP/3 are kept.
    pub(crate) alt_svc_file: Option<AltSvcFile>,
    /// Where connections of HTTP/3 have a path from; where the routes say if there are none.
    pub(crate) paths: Vec<LocalPlace>,
}

impl Settings {
    /// What a worker of HTTP/3 is made with.
    pub(crate) fn quic_setup(&self) -> Setup {
        Setup {
            writes_tickets: self.quic.tls.writes_tickets(),
            idle: self.pool.idle.into(),
            spin: self.data_path.spin_span(),
            paths: self.paths.clone(),
        }
    }
}
