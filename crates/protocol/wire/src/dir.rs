//! The two kinds of stream. RFC 9000 §2.1.

/// In which directions a stream carries data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dir {
    /// Both ends send.
    Bidi,
    /// Only the end that opened it sends.
    Uni,
}

impl Dir {
    /// Both kinds, in the order of their index.
    pub const ALL: [Dir; 2] = [Dir::Bidi, Dir::Uni];

    /// 0 for bidirectional, 1 for unidirectional: for arrays with one entry per kind.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}
