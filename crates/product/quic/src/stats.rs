//! What is known of a connection and of an endpoint, in numbers.

use std::net::SocketAddr;
use std::time::Duration;
use transport::{Connection, PathInfo};

/// Counts and estimates of a connection, as of its last turn. All counts begin with the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// The smoothed round-trip time. Source: RFC 9002 §5.3.
    pub rtt: Duration,
    /// The least round-trip time of late; zero before the first sample.
    pub min_rtt: Duration,
    /// How long packets take to the peer, by the last acknowledgement. The two ways are told apart by the peer's clock, and are assumed to
    /// have taken equally long when the round trip was shortest. `None` where either end does without
    /// ([`TransportConfig::timestamps`](crate::TransportConfig::timestamps)). Source: draft-huitema-quic-ts.
    pub delay_to_peer: Option<Duration>,
    /// How long packets take from the peer, likewise.
    pub delay_from_peer: Option<Duration>,
    /// The largest UDP payload that is sent at present, in bytes.
    pub current_mtu: u16,
    /// Datagrams that arrived.
    pub received_datagrams: u64,
    /// Packets that were authentic and new.
    pub received_packets: u64,
    /// Those of them with early data. Source: RFC 9001 §4.6.
    pub received_early_packets: u64,
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Those of them with early data. What a server does not take is sent again without it.
    pub sent_early_packets: u64,
    /// Bytes of UDP payload that were sent.
    pub sent_bytes: u64,
    /// Packets declared lost. Source: RFC 9002 §6.1.
    pub lost_packets: u64,
    /// Probe timeouts. Source: RFC 9002 §6.2.
    pub probe_timeouts: u64,
    /// Key updates of either side. Source: RFC 9001 §6.
    pub key_updates: u64,
    /// Changes of the path in use. Source: RFC 9000 §9.
    pub migrations: u64,
    /// Bytes that were written on streams and not acknowledged.
    pub unacknowledged_bytes: u64,
    /// DATAGRAM frames that gave way to later ones before they were sent.
    pub dropped_datagrams: u64,
}

/// One of the paths that a connection uses at once, as of its last turn. Counts begin with the path, and are zeros where several paths
/// at once are not possible. Source: draft-ietf-quic-multipath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStats {
    /// The path ID: 0 for the first one.
    pub id: u32,
    /// The local address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Whether both ends have proved to be there: it carries data.
    pub is_validated: bool,
    /// Whether either end wants it to be used only when no other can be.
    pub is_backup: bool,
    /// The smoothed round-trip time. Source: RFC 9002 §5.3.
    pub rtt: Duration,
    /// Bytes that may be under way: the congestion window.
    pub congestion_window: u64,
    /// Bytes of UDP payload that arrived.
    pub received_bytes: u64,
    /// Bytes of UDP payload that were sent.
    pub sent_bytes: u64,
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Packets declared lost. Source: RFC 9002 §6.1.
    pub lost_packets: u64,
}

impl PathStats {
    pub(crate) fn of(info: &PathInfo) -> PathStats {
        PathStats {
            id: info.id.0,
            local: info.addresses.local,
            remote: info.addresses.peer,
            is_validated: info.is_validated,
            is_backup: info.is_backup,
            rtt: info.rtt.into(),
            congestion_window: info.congestion_window,
            received_bytes: info.counters.received_bytes,
            sent_bytes: info.counters.sent_bytes,
            sent_packets: info.counters.sent_packets,
            lost_packets: info.counters.lost_packets,
        }
    }
}

/// Counts of an endpoint since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Clients that [`crate::Endpoint::accept`] has returned.
    pub accepted_handshakes: u64,
    /// Connections that [`crate::Endpoint::connect`] has begun.
    pub outgoing_handshakes: u64,
    /// Clients that were told CONNECTION_REFUSED by [`crate::Incoming`]'s drop or refusal, or that of a server's
    /// [`crate::Connecting`].
    pub refused_handshakes: u64,
}

impl ConnectionStats {
    pub(crate) fn of(connection: &Connection) -> ConnectionStats {
        let counters = connection.counters();
        let delays = connection.one_way_delays();
        ConnectionStats {
            rtt: connection.rtt().into(),
            min_rtt: connection.min_rtt().into(),
            delay_to_peer: delays.map(|delays| delays.to_peer.into()),
            delay_from_peer: delays.map(|delays| delays.from_peer.into()),
            current_mtu: connection.packet_size(),
            received_datagrams: counters.received_datagrams,
            received_packets: counters.received_packets,
            received_early_packets: counters.received_early,
            sent_packets: counters.sent_packets,
            sent_early_packets: counters.sent_early,
            sent_bytes: counters.sent_bytes,
            lost_packets: counters.lost_packets,
            probe_timeouts: counters.probe_timeouts,
            key_updates: counters.key_updates,
            migrations: counters.migrations,
            unacknowledged_bytes: connection.unacknowledged_bytes(),
            dropped_datagrams: connection.dropped_datagrams(),
        }
    }
}
