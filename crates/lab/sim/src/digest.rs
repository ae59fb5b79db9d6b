//! One number for a whole run: what was sent, by whom, when, how long, how marked. Not the content: TLS brings its own
//! randomness, so two runs of a seed differ in their bytes, and must differ in nothing else.

use base::net::Ecn;
use base::time::Instant;

/// A running hash. FNV-1a over 64-bit words: short, without state beyond the sum. No attacker chooses its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

impl Default for Digest {
    fn default() -> Self {
        Digest(OFFSET_BASIS)
    }
}

impl Digest {
    /// A datagram of `len` bytes leaves host `from` for host `to`.
    pub fn on_sent(&mut self, now: Instant, (from, to): (usize, usize), len: usize, ecn: Ecn) {
        for word in [now.as_nanos(), from as u64, to as u64, len as u64, ecn as u64] {
            // Words instead of bytes: rotate, so that high bits reach low ones.
            self.0 = ((self.0 ^ word).wrapping_mul(PRIME)).rotate_left(29);
        }
    }

    /// The sum so far.
    pub fn value(self) -> u64 {
        self.0
    }
}
