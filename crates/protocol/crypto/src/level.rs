//! Encryption levels. RFC 9001 §4, RFC 8446 §2.

/// How a packet, and the part of the handshake in it, is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// With keys that every reader of the first packet can derive.
    Initial,
    /// With keys from an earlier connection.
    ZeroRtt,
    /// With keys that the hellos agreed on.
    Handshake,
    /// With the keys of the finished handshake.
    OneRtt,
}

impl Level {
    /// How many levels there are.
    pub const COUNT: usize = 4;

    /// The level's place in an array of [`Level::COUNT`].
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}
