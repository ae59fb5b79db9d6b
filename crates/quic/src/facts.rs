//! What a connection is known to be: published by the worker, read by handles.

use crate::stats::ConnectionStats;
use std::net::{IpAddr, SocketAddr};
use transport::Connection;

/// What the handshake has settled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandshakeData {
    /// The application protocol. Source: RFC 7301.
    pub protocol: Option<Vec<u8>>,
    /// On a server, the name that the client asked for. Source: RFC 6066 §3.
    pub server_name: Option<String>,
    /// The cipher suite, by its name in the registry of TLS.
    pub cipher_suite: Option<String>,
    /// The QUIC version on the wire: 1, or 0x6b3343cf for version 2. Source: RFC 9369 §3.1.
    pub version: u32,
}

/// What is published of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) remote: SocketAddr,
    pub(crate) local_ip: IpAddr,
    pub(crate) handshake: Option<HandshakeData>,
    pub(crate) stats: ConnectionStats,
}

impl Facts {
    /// Of a connection that begins.
    pub(crate) fn new(remote: SocketAddr, local: SocketAddr) -> Facts {
        Facts { remote, local_ip: local.ip(), handshake: None, stats: ConnectionStats::default() }
    }

    /// As they are now.
    pub(crate) fn publish(&mut self, connection: &Connection) {
        let addresses = connection.addresses();
        self.remote = addresses.peer;
        self.local_ip = addresses.local.ip();
        self.stats = ConnectionStats::of(connection);
        if self.handshake.is_none() && connection.is_connected() {
            self.handshake = Some(HandshakeData {
                protocol: connection.alpn().map(<[u8]>::to_vec),
                server_name: connection.server_name().map(str::to_owned),
                cipher_suite: connection.suite().map(|suite| suite.to_string()),
                version: connection.version().0,
            });
        }
    }
}
