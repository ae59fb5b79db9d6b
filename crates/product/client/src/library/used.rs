//! How a response came.

use http::Uri;
use std::net::SocketAddr;
use std::time::Duration;

/// How a response came: in the extensions of each response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Used {
    /// The address that has answered.
    pub peer: SocketAddr,
    /// Whether the connection has served requests before.
    pub is_reused: bool,
    /// How long it took to make the connection, from the resolution of the name to the end of the handshake.
    pub connect_time: Duration,
    /// The URI of the last request, after redirects.
    pub uri: Uri,
}
