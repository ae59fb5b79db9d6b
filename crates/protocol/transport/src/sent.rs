//! What a sent packet carried, as the ledger remembers it: references, never data.
//!
//! On loss the owner of the information decides what, if anything, to send again; information is retransmitted, not
//! packets or frames. Source: RFC 9000 §13.3.

use crate::lane_id::LaneId;
use crate::stream_id::{Dir, StreamId};

/// One frame of a sent packet. The ledger does not record frames that are never sent again or need no acknowledgement (PADDING, PING,
/// PATH_RESPONSE, CONNECTION_CLOSE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentFrame {
    /// Stream data `offset..offset + len`, and the end of the stream if `fin`.
    Stream { id: StreamId, offset: u64, len: u16, fin: bool },
    /// An ACK frame that reported `largest`: once acknowledged, packets up to it need no more reporting.
    Ack { largest: u64 },
    /// Handshake bytes of the packet's own space.
    Crypto { offset: u64, len: u16 },
    /// The stream's RESET_STREAM.
    ResetStream { id: StreamId },
    /// The stream's RESET_STREAM_AT with this reliable size.
    ResetStreamAt { id: StreamId, reliable_size: u64 },
    /// The stream's STOP_SENDING.
    StopSending { id: StreamId },
    /// A connection flow-control limit.
    MaxData { limit: u64 },
    /// A stream flow-control limit.
    MaxStreamData { id: StreamId, limit: u64 },
    /// A limit on streams.
    MaxStreams { dir: Dir, limit: u64 },
    /// We are blocked by the peer's connection limit.
    DataBlocked { limit: u64 },
    /// We are blocked by the peer's stream limit.
    StreamDataBlocked { id: StreamId, limit: u64 },
    /// We are blocked by the peer's limit on streams.
    StreamsBlocked { dir: Dir, limit: u64 },
    /// One of our connection IDs of a lane.
    NewConnectionId { lane: LaneId, sequence: u64 },
    /// The retirement of one of the peer's connection IDs of a lane.
    RetireConnectionId { lane: LaneId, sequence: u64 },
    /// A lane is over.
    PathAbandon { lane: LaneId },
    /// How we would like a lane to be used.
    PathStatus { lane: LaneId, sequence: u64 },
    /// The largest path ID that the peer may use.
    MaxPathId { maximum: u32 },
    /// A path challenge; its loss is the path validation timer's business.
    PathChallenge,
    /// The handshake is confirmed.
    HandshakeDone,
    /// What we ask of the peer's acknowledgements.
    AckFrequency { sequence: u64 },
    /// The address token for later connections.
    NewToken,
    /// A DATAGRAM frame: never resent, reported to the application.
    Datagram,
}

impl SentFrame {
    /// Whether what it says goes again when the packet is lost. Source: RFC 9000 §13.3.
    pub(crate) const fn is_repeated(&self) -> bool {
        !matches!(self, SentFrame::Ack { .. } | SentFrame::PathChallenge | SentFrame::Datagram)
    }
}

const _: () = assert!(core::mem::size_of::<SentFrame>() <= 24, "the ledger's frame slots are 24 bytes");
