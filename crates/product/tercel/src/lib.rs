//! The tercel library: an HTTP server of one application over HTTP/1.1, 2 and 3; QUIC without HTTP, by [`quic`].
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
#![forbid(unsafe_code)]

pub use body::{Body, BodyError, BodySender, BoxError, Closed};
pub use quic;
pub use server::service::{ServiceFn, service_fn};
pub use server::{BindError, Builder, Handle, Running, ServeError, Server};

/// Where requests are logged.
pub use server::access_log::Target as AccessLog;

/// Who a server is.
pub mod tls {
    pub use crypto::Identity;
}

/// The low-level handler: no allocation for each request, no future, no copy of content. HTTP/3 alone, by
/// [`http3::Server`](server::http3::Server) on a worker.
pub mod low {
    pub use server::low::*;
}
