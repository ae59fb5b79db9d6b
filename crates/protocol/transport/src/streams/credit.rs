//! The peer's limit on all streams together, and what is kept of it for streams that steer the connection. RFC 9000 §4.1.
//!
//! A stream with [`Priority::CONTROL`] goes first, but that helps little once bulk data has used up the limit: a GOAWAY then
//! waits until the peer's application reads. So other streams leave the last few bytes of the limit to control streams, as
//! soon as there is one. Nothing is kept of a small limit: a peer that permits a few bytes at a time means each of them.
//!
//! [`Priority::CONTROL`]: super::Priority::CONTROL

use super::queue::CONTROL_RANK;
use crate::flow::Credit;

/// Some frames of HTTP/3's control stream, in bytes.
const RESERVE: u64 = 32;
/// The smallest limit of which something is kept, in bytes.
const MIN_LIMIT: u64 = 16 * 1024;

/// What the peer allows on all streams.
#[derive(Debug, Default)]
pub(super) struct ConnectionCredit {
    pub(super) whole: Credit,
    has_control_stream: bool,
}

impl ConnectionCredit {
    /// From now on there is a control stream.
    pub(super) fn keep_reserve(&mut self) {
        self.has_control_stream = true;
    }

    fn kept_from(&self, rank: u32) -> u64 {
        let is_kept = self.has_control_stream && rank != CONTROL_RANK && self.whole.limit() >= MIN_LIMIT;
        if is_kept { RESERVE } else { 0 }
    }

    /// How much more a stream of this rank may use.
    #[inline]
    pub(super) fn available(&self, rank: u32) -> u64 {
        self.whole.available().saturating_sub(self.kept_from(rank))
    }

    /// Whether a stream of this rank may use any of it.
    #[inline]
    pub(super) fn permits(&self, rank: u32) -> bool {
        // Asked several times for each packet: mostly there is more than is ever kept.
        let available = self.whole.available();
        available > RESERVE || available > self.kept_from(rank)
    }

    /// A stream of this rank has more to send: tells the peer if its limit is in the way. Returns whether a frame is pending.
    #[inline]
    pub(super) fn note_blocked(&mut self, rank: u32) -> bool {
        let kept = self.kept_from(rank);
        self.whole.note_blocked_above(kept)
    }
}
