//! The PROXY protocol: a connection from a proxy begins with the addresses of its client. Source: haproxy.org,
//! doc/proxy-protocol.txt §2.
//!
//! Outside semver.

mod read;
mod write;

pub(crate) use read::HeaderReader;
use std::net::SocketAddr;
pub use write::header;

/// What version 2 begins with. §2.2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, and the command.
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
/// Address family and transport.
const UNSPECIFIED: u8 = 0x00;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;

/// Whose connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The proxy's own, or a client's of which nothing is said.
    Local,
    /// A client's.
    Client {
        /// The client's address.
        from: SocketAddr,
        /// The address that it has reached.
        to: SocketAddr,
    },
}
