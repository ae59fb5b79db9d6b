//! The tercel library: an HTTP server of one application over HTTP/1.1, 2 and 3; an HTTP client of the same versions; QUIC without
//! HTTP, by [`quic`].
//!
//! A [`Server`] takes any `tower_service::Service` of `http` types, so a `Router` of axum as it is, or an async function by
//! [`service_fn`]. Content streams in both directions by [`Body`], with backpressure that reaches the peer.
//!
//! ```no_run
//! use std::convert::Infallible;
//! use tercel::{Body, Server, service_fn};
//!
//! async fn echo(request: http::Request<Body>) -> Result<http::Response<Body>, Infallible> {
//!     Ok(http::Response::new(request.into_body()))
//! }
//!
//! let server = Server::builder().serve(service_fn(echo))?;
//! println!("https://{}/", server.local_addr());
//! server.wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Client`] keeps connections, races QUIC with TCP, and follows Alt-Svc and redirects.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = tercel::Client::new()?;
//! let mut response = client.get("https://example.org/").await?;
//! println!("{:?} {}", response.version(), response.status());
//! while let Some(chunk) = response.body_mut().chunk().await? {
//!     println!("{} bytes", chunk.len());
//! }
//! # Ok(())
//! # }
//! ```
//! Programs in `examples/`, which run as tests:
//!
//! | example | shows |
//! |---|---|
//! | `axum` | an application of axum over HTTP/1.1, 2 and 3 |
//! | `client` | a client of the three versions |
//! | `echo` | QUIC: streams |
//! | `datagrams` | QUIC: datagrams, of which the newest counts |
//! | `file_transfer`, `rpc` | QUIC: two programs as they are written on quinn |
//! | `own_loop` | QUIC: a server and a client in a loop of the program's own, without a runtime |
#![forbid(unsafe_code)]

pub mod guide;

pub use ::client::Client;
pub use body::{Body, BodyError, BodySender, BoxError, Closed};
#[doc(inline)]
pub use quic;
pub use server::service::{HttpService, ServiceFn, service_fn};
pub use server::{
    AltSvc, BindError, Bound, Builder, ConnectionInfo, Cores, Counters, DataPath, EarlyData, Handle,
    Informational, InformationalError, KeysError, Limits, Listen, ListenAddress, Report, Running, Scheduler,
    ServeError, Served, Server, ServerDriver, Steering, Summary, ThreadIndex, Tickets, Versions, Workers,
};

pub use server::access_log::Target as AccessLog;

/// Certificates of servers and the roots that clients trust.
pub mod tls {
    pub use crypto::{Authorities, ClientAuth, ConfigError, Ech, EchConfigs, Identity, Roots};
}

/// The HTTP client: its settings, its errors, and how a response came.
///
/// | dropped | happens |
/// |---|---|
/// | the future of a request, the content of a response | the exchange is cancelled: RST_STREAM, RESET_STREAM and STOP_SENDING, or the end of an HTTP/1.1 connection |
/// | the future of [`Client::request_into`] | the same; the sink is dropped by the thread that calls it |
/// | the last [`Client`] | exchanges that run are finished, then all connections are closed |
pub mod client {
    pub use ::client::{
        BodySink, BuildError, Builder, Client, Control, DataPath, EarlyData, Error, Family, HttpChoice, Kind,
        LocalPlace, PathReport, PathState, Phase, Pool, Received, Redirects, Scheduler, Stats, Timeout, Used,
        UsedPath, on_informational,
    };
}

/// Traces of QUIC connections (qlog), a file each, written by a thread of their own, for the public viewers and for jq.
///
/// ```no_run
/// let traces = tercel::qlog::Qlog::open(tercel::qlog::Settings::new("traces"))?;
/// let server = tercel::Server::builder().qlog(&traces);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod qlog {
    pub use traces::{FolderError, Keep, Qlog, Report, Settings, Share, Triggers};
}

/// What a server of files serves, for [`Bound::serve_files`].
pub mod files {
    pub use server::compress::{Coding, CompressOptions, Compression, MediaRange, MediaRangeError};
    pub use server::files::{CacheLimits, DotFiles, Root, RootError};
    pub use server::handler::{FileOptions, Generated, Listing};
}

/// The low-level handler: no allocation for each request, no future, no copy of content over HTTP/3, and a bridge for HTTP/1.1 and 2.
/// Served by [`Bound::serve_handler`].
pub mod low {
    pub use server::low::*;
}
