//! How willingly a receiver takes what it is lent.

use base::rng::Rng;

/// The moods of one end, and where their chance comes from.
#[derive(Clone, Debug)]
pub struct ReadBehaviour {
    rng: Rng,
    pause_ppm: u32,
}

impl ReadBehaviour {
    /// A receiver that refuses a part of what it is lent so often, in millionths.
    pub fn new(rng: Rng, pause_ppm: u32) -> ReadBehaviour {
        ReadBehaviour { rng, pause_ppm }
    }

    /// How many of `len` bytes it takes now.
    pub(crate) fn takes(&mut self, len: usize) -> usize {
        if self.pause_ppm > 0 && self.rng.below(1_000_000) < u64::from(self.pause_ppm) {
            return self.rng.below(len as u64) as usize;
        }
        len
    }

    /// A length for the next write of at most `most` bytes: long ones, short ones.
    pub(crate) fn write_len(&mut self, most: usize) -> usize {
        let most = most as u64;
        let len = match self.rng.below(4) {
            0 => self.rng.below(most.min(100)) + 1,
            1 => self.rng.below(most.min(5_000)) + 1,
            _ => most,
        };
        len.min(most) as usize
    }

    /// An independent mood of the same kind.
    pub(crate) fn fork(&mut self) -> ReadBehaviour {
        ReadBehaviour { rng: self.rng.fork(), pause_ppm: self.pause_ppm }
    }
}
