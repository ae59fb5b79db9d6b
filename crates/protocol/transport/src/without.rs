//! Techniques that a connection can do without, for experiments that ask what each is worth.
//!
//! A set in one byte, looked at where the technique is, once per train, frame or write. Only a build with the feature
//! `experiments` looks: elsewhere [`Without::has`] is a constant, and the compiler removes the branches (docs/decisions/010).
//! What has a setting of its own (pacing, ACK frequency, ECN, the congestion controller) is not here.

/// A technique whose absence changes nothing but the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Technique {
    /// The header-protection masks of a train, eight in one pass. Without: packet by packet, both ways.
    TrainMasks,
    /// Adjacent acknowledged ranges of a stream merge before the stream hears of them. Without: frame by frame.
    MergedAcks,
    /// In-order data is lent to the application where it was decrypted. Without: it is copied, as data out of order is.
    LentData,
    /// The application hands over its buffers. Without: they are copied.
    SharedBuffers,
    /// Packets of a train that are alike are written, and received, in one step. Without: one by one, as those that differ are.
    Runs,
}

/// A set of techniques to do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without(u8);

impl Without {
    /// Whether this build can do without techniques: it has the feature `experiments`. Elsewhere a set has no effect.
    pub const IS_BUILT: bool = cfg!(any(test, feature = "experiments"));

    /// This one as well.
    #[must_use]
    pub const fn with(self, technique: Technique) -> Without {
        Without(self.0 | 1 << technique as u8)
    }

    /// Whether this one is done without.
    #[inline]
    pub const fn has(self, technique: Technique) -> bool {
        Self::IS_BUILT && self.0 & 1 << technique as u8 != 0
    }
}
