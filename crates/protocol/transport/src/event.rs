//! What a connection tells its application.

use crate::error::TransportError;
use crate::lane_id::LaneId;
use crate::stream_id::{Dir, StreamId};
use base::net::Addresses;
use wire::error::Code;

/// Something happened that the application may want to act on. Stream data is not an event: it is lent through
/// [`StreamSink`] while the packet is being received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete; streams may carry data both ways.
    Connected,
    /// The peer reset the sending part of a stream: no more data will come.
    StreamReset {
        /// Which stream.
        id: StreamId,
        /// The application's code.
        code: u64,
    },
    /// The peer asks us to stop sending; the stream has been reset with the same code.
    StopSending {
        /// Which stream.
        id: StreamId,
        /// The application's code.
        code: u64,
    },
    /// A stream whose send buffer was full has room again.
    Writable {
        /// Which stream.
        id: StreamId,
    },
    /// All data of the stream and its end were acknowledged.
    Finished {
        /// Which stream.
        id: StreamId,
    },
    /// The peer allows more streams after `open` was refused.
    StreamsAvailable {
        /// Of which kind.
        dir: Dir,
    },
    /// An address token for the next connection to this server.
    NewToken {
        /// Opaque bytes.
        token: Vec<u8>,
    },
    /// A client has moved: these are the ends of the path in use. Source: RFC 9000 §9.2.
    Migrated {
        /// Both ends.
        addresses: Addresses,
    },
    /// The server has not answered where a client wanted to move; the path in use goes on.
    MigrationFailed {
        /// Both ends of the path that was probed.
        addresses: Addresses,
    },
    /// One path more carries data, of a connection that can use several at once. Source: draft-ietf-quic-multipath §3.1.
    PathOpened {
        /// Which it is.
        id: LaneId,
        /// Both ends.
        addresses: Addresses,
    },
    /// A path carries no more data, or never did; others do. Source: draft-ietf-quic-multipath §3.4.
    PathClosed {
        /// Which it was.
        id: LaneId,
        /// Both ends.
        addresses: Addresses,
        /// Why, in the words of the end that has begun it.
        code: Code,
    },
    /// The connection is over; nothing follows.
    Closed(CloseReason),
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The local application closed it.
    Local {
        /// The application's code.
        code: u64,
    },
    /// The peer's application closed it.
    PeerApplication {
        /// The application's code.
        code: u64,
        /// What the peer said, made printable.
        reason: String,
    },
    /// The peer's transport closed it.
    PeerTransport {
        /// The transport's code.
        code: Code,
        /// What the peer said, made printable.
        reason: String,
    },
    /// The peer broke the protocol and we closed.
    Violation(TransportError),
    /// TLS failed here; `reason` says what to do where that is known.
    Tls {
        /// The TLS alert.
        alert: u8,
        /// One line.
        reason: String,
    },
    /// Nothing was heard for the idle timeout.
    IdleTimeout,
    /// The peer did not answer at its new address, and no other address of it is known (RFC 9000 §9.3.2).
    PathLost,
    /// The handshake did not finish in time.
    HandshakeTimeout,
    /// The peer lost its state and said so by a stateless reset.
    StatelessReset,
    /// The server speaks neither version 1 nor version 2.
    VersionNegotiation,
}

/// Where in-order stream data goes the moment it arrives, lent from the packet's own memory.
pub trait StreamSink {
    /// Lends the next bytes of a stream; returns how many were taken. When fewer than all are taken the transport keeps
    /// the rest, pauses the stream and its flow-control credit, and lends it again in `Connection::deliver`.
    /// The end of the stream counts as seen when all bytes were taken.
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize;

    /// Lends the payload of a DATAGRAM frame (RFC 9221).
    fn on_datagram(&mut self, _bytes: &[u8]) {}
}

/// Whether the bytes lent are the last of their stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fin {
    /// More may come.
    Open,
    /// The stream ends after these bytes.
    End,
}
