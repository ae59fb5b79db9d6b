//! What a connection may begin with beside the handshake of a client.

use crate::challenges::Challenges;
use crate::network::Network;
use std::net::SocketAddr;
use std::sync::Arc;

/// What a connection may begin with.
#[derive(Clone, Debug, Default)]
pub struct Openings {
    /// What certificate authorities are answered.
    pub challenges: Challenges,
    /// Connections from there begin with a header of the PROXY protocol, and no others do.
    pub proxies: Arc<[Network]>,
}

impl Openings {
    /// Whether connections from `peer` begin with a header.
    pub(super) fn is_proxied(&self, peer: SocketAddr) -> bool {
        self.proxies.iter().any(|network| network.has(peer.ip()))
    }
}
