//! A packet on its way in: what its header said, what its frames need, and what they find out.

use crate::path::PathId;
use crate::space::SpaceId;
use base::time::{Duration, Instant};
use recovery::ack::Eliciting;
use wire::cid::ConnectionId;
use wire::packet::LongType;
use wire::version::Version;

/// What the handlers of a packet's frames need to know, and what they find out.
pub(super) struct Arrival<'a, S> {
    pub(super) now: Instant,
    /// Earlier than now if the packet waited for its keys.
    pub(super) arrived: Instant,
    pub(super) space: SpaceId,
    /// The kind of packet, as the table of frames has it (frames.rs).
    pub(super) packet: u8,
    pub(super) path: PathId,
    /// The packet number.
    pub(super) pn: u64,
    /// The connection ID that the packet was sent to.
    pub(super) dcid: ConnectionId,
    /// The path's smoothed round-trip time, for window tuning.
    pub(super) rtt: Duration,
    pub(super) sink: &'a mut S,
    /// Set by the dispatcher: the packet asks for an acknowledgement.
    pub(super) eliciting: Eliciting,
    /// Set by the dispatcher: the packet does more than probe a path.
    pub(super) non_probing: bool,
}

/// The header of a packet with a long header.
#[derive(Clone, Copy)]
pub(super) struct LongPacket {
    pub(super) ty: LongType,
    pub(super) version: Version,
    pub(super) dcid: ConnectionId,
    pub(super) scid: ConnectionId,
    pub(super) pn_offset: usize,
}
