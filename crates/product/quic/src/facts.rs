//! What a connection is known to be: published by the worker, read by handles.

use crate::stats::{ConnectionStats, PathStats};
use crate::varint::VarInt;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use transport::{Connection, EarlyStatus, OpenPathError};

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
    /// The handshake has used a ticket of an earlier connection, and no certificate. Source: RFC 8446 §2.2.
    pub is_resumed: bool,
    /// What became of early data. Source: RFC 9001 §4.6.
    pub early_data: EarlyStatus,
    /// The peer understands RESET_STREAM_AT: [`crate::SendStream::reset_at`] is possible. Source:
    /// draft-ietf-quic-reliable-stream-reset §3.
    pub can_reset_at: bool,
}

/// A change of the path in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathEvent {
    /// The peer has moved, and proved that it is at its new address. Source: RFC 9000 §9.
    Migrated {
        /// Where it was when the last event was taken.
        from: SocketAddr,
        /// Where it is.
        to: SocketAddr,
    },
    /// Datagrams of this many bytes of UDP payload are sent from now on. Source: RFC 8899.
    PacketSize(u16),
    /// The local address is another one: this client has moved ([`crate::Connection::migrate`]), or the peer has reached this end
    /// elsewhere. Source: RFC 9000 §9.
    LocalAddress {
        /// Where it was when the last event was taken.
        from: IpAddr,
        /// Where it is.
        to: IpAddr,
    },
    /// One path more carries data, of several at once ([`crate::Connection::open_path`]). Source: draft-ietf-quic-multipath §3.1.
    Opened {
        /// The path ID.
        id: u32,
        /// The local address.
        local: SocketAddr,
        /// The peer's address.
        remote: SocketAddr,
    },
    /// A path carries no more data, or never did; others do. Source: draft-ietf-quic-multipath §3.4.
    Closed {
        /// The path ID.
        id: u32,
        /// The local address.
        local: SocketAddr,
        /// The peer's address.
        remote: SocketAddr,
        /// Why: the error code of the end that has begun it.
        code: VarInt,
    },
    /// No path could be opened from there.
    OpenFailed {
        /// The address that was asked for.
        from: IpAddr,
        /// Why.
        error: OpenPathError,
    },
    /// This client has not moved there: the server has not answered, or does not support that.
    MigrationFailed {
        /// The address that was asked for.
        to: IpAddr,
    },
}

/// What is published of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The largest DATAGRAM payload in bytes; `None` if the peer takes none.
    pub(crate) max_datagram_size: Option<usize>,
    /// The peer's certificates in DER, its own first.
    pub(crate) peer_certificates: Vec<Vec<u8>>,
    /// The peer's address and the packet size of which handles were told.
    told: (SocketAddr, u16),
    /// The local address of which handles were told.
    told_local: IpAddr,
    /// Where a move has failed to.
    pub(crate) failed: Option<IpAddr>,
    /// The endpoint is bound to this address; unspecified is to all.
    pub(crate) bound: IpAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) local_ip: IpAddr,
    pub(crate) handshake: Option<HandshakeData>,
    pub(crate) stats: ConnectionStats,
    pub(crate) paths: Paths,
}

/// The paths of a connection that can use several at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    /// As of the last turn. Empty where several at once are not possible.
    pub(crate) in_use: Vec<PathStats>,
    /// What handles were not told.
    events: VecDeque<PathEvent>,
}

impl Paths {
    /// Events that wait, at most: a peer could open and close paths for ever that no handle asks about. The oldest gives way.
    const MAX_EVENTS: usize = 16;

    pub(crate) fn on_event(&mut self, event: PathEvent) {
        if self.events.len() >= Paths::MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

impl Facts {
    /// Of a connection that begins.
    pub(crate) fn new(remote: SocketAddr, local: SocketAddr) -> Facts {
        Facts {
            max_datagram_size: None,
            peer_certificates: Vec::new(),
            told: (remote, 0),
            told_local: local.ip(),
            failed: None,
            bound: local.ip(),
            remote,
            local_ip: local.ip(),
            handshake: None,
            stats: ConnectionStats::default(),
            paths: Paths::default(),
        }
    }

    /// Whether there is a change of the path to tell. Several of one kind become one, so none is lost and none piles up.
    pub(crate) fn has_path_event(&self) -> bool {
        let has_changed =
            self.told != (self.remote, self.stats.current_mtu) || self.told_local != self.local_ip;
        self.handshake.is_some() && (has_changed || self.failed.is_some() || !self.paths.events.is_empty())
    }

    /// The next change of the path to tell.
    pub(crate) fn next_path_event(&mut self) -> Option<PathEvent> {
        if !self.has_path_event() {
            return None;
        }
        if let Some(event) = self.paths.events.pop_front() {
            return Some(event);
        }
        if let Some(to) = self.failed.take() {
            return Some(PathEvent::MigrationFailed { to });
        }
        let from = core::mem::replace(&mut self.told_local, self.local_ip);
        if from != self.local_ip {
            return Some(PathEvent::LocalAddress { from, to: self.local_ip });
        }
        let (from, _) = self.told;
        if from != self.remote {
            self.told.0 = self.remote;
            return Some(PathEvent::Migrated { from, to: self.remote });
        }
        self.told.1 = self.stats.current_mtu;
        Some(PathEvent::PacketSize(self.told.1))
    }

    /// As they are now.
    pub(crate) fn publish(&mut self, connection: &Connection) {
        let addresses = connection.addresses();
        self.remote = addresses.peer;
        self.local_ip = addresses.local.ip();
        self.stats = ConnectionStats::of(connection);
        if connection.has_multipath() {
            self.paths.in_use = connection.paths().iter().map(PathStats::of).collect();
        }
        self.max_datagram_size = connection.max_datagram_size();
        if self.handshake.is_none() && connection.is_connected() {
            self.peer_certificates = connection.peer_certificates();
            self.told = (self.remote, self.stats.current_mtu);
            self.told_local = self.local_ip;
            self.handshake = Some(HandshakeData {
                protocol: connection.alpn().map(<[u8]>::to_vec),
                server_name: connection.server_name().map(str::to_owned),
                cipher_suite: connection.suite().map(|suite| suite.to_string()),
                version: connection.version().0,
                is_resumed: connection.is_resumed(),
                early_data: connection.early_status(),
                can_reset_at: connection.can_reset_at(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a peer that opens and closes paths for ever could make us hold an event for each.
    #[test]
    fn events_of_paths_that_no_handle_asks_about_are_bounded() {
        let nowhere: SocketAddr = ([0, 0, 0, 0], 0).into();
        let mut facts = Facts::new(nowhere, nowhere);
        for id in 0..1_000 {
            facts.paths.on_event(PathEvent::Opened { id, local: nowhere, remote: nowhere });
        }
        assert_eq!(facts.paths.events.len(), Paths::MAX_EVENTS);
        let last = facts.paths.events.back();
        assert_eq!(last, Some(&PathEvent::Opened { id: 999, local: nowhere, remote: nowhere }));
    }
}
