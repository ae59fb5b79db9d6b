//! Names of the paths that a connection uses at once.

/// One of the paths that a connection uses at once, the first one being 0. draft-ietf-quic-multipath calls it the path ID. A number is
/// never used for another path of the same connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u32);

impl LaneId {
    /// The path of the handshake.
    pub const FIRST: LaneId = LaneId(0);
}

impl core::fmt::Display for LaneId {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(out)
    }
}
