//! Stream identifiers. Source: RFC 9000 §2.1.

pub use wire::Dir;
use wire::Side;

/// A stream's identifier: at most 2^62 - 1; the two low bits say who opened it and its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u64);

impl StreamId {
    /// The `index`-th stream of its kind, from 0.
    pub const fn new(initiator: Side, dir: Dir, index: u64) -> StreamId {
        let server = matches!(initiator, Side::Server) as u64;
        let uni = matches!(dir, Dir::Uni) as u64;
        StreamId(index << 2 | uni << 1 | server)
    }

    /// The identifier as it was on the wire.
    pub const fn from_u64(id: u64) -> StreamId {
        StreamId(id)
    }

    /// The identifier as it goes on the wire.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Who opened, or may open, the stream.
    pub const fn initiator(self) -> Side {
        if self.0 & 1 == 0 { Side::Client } else { Side::Server }
    }

    /// Its direction.
    pub const fn dir(self) -> Dir {
        if self.0 & 2 == 0 { Dir::Bidi } else { Dir::Uni }
    }

    /// Its number among the streams of its kind, from 0.
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }
}
