//! Randomness as an input: a generator seeded from outside, so that the simulator replays a run bit for bit.
//!
//! ChaCha with 12 rounds, because connection IDs, challenges and tokens come from it and a peer must not predict them.

use rand_chacha::ChaCha12Rng;
use rand_core::{Rng as _, SeedableRng};

/// A cryptographically strong, seeded generator.
#[derive(Clone, Debug)]
pub struct Rng(ChaCha12Rng);

impl Rng {
    /// The generator of `seed`. A server takes the seed from the operating system, a simulation from its scenario.
    pub fn from_seed(seed: [u8; 32]) -> Rng {
        Rng(ChaCha12Rng::from_seed(seed))
    }

    /// A simulation's generator.
    pub fn from_u64(seed: u64) -> Rng {
        Rng(ChaCha12Rng::seed_from_u64(seed))
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    /// `N` random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, without noticeable bias; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// An independent generator, seeded from this one.
    pub fn fork(&mut self) -> Rng {
        Rng::from_seed(self.bytes())
    }
}
