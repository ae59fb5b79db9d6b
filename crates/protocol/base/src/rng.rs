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

/// A generator for few numbers: 32 bytes where [`Rng`] has 304. Each use makes the next seed from this one, so that what is kept tells
/// nothing of what was drawn; it costs a block of the cipher.
#[derive(Clone, Debug)]
pub struct SparseRng([u8; 32]);

impl SparseRng {
    /// An independent generator, seeded from `rng`.
    pub fn of(rng: &mut Rng) -> SparseRng {
        SparseRng(rng.bytes())
    }

    /// A simulation's generator.
    pub fn from_u64(seed: u64) -> SparseRng {
        SparseRng::of(&mut Rng::from_u64(seed))
    }

    /// A generator that is for one use.
    fn draw(&mut self) -> Rng {
        let mut rng = Rng::from_seed(self.0);
        self.0 = rng.bytes();
        rng
    }

    /// `N` random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        self.draw().bytes()
    }

    /// A number below `bound`, without noticeable bias; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw().below(bound)
    }

    /// An independent generator, seeded from this one.
    pub fn fork(&mut self) -> SparseRng {
        SparseRng(self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_numbers_are_as_random_as_many() {
        let mut rng = SparseRng::from_u64(1);
        let mut fork = rng.fork();
        let numbers: Vec<u64> = (0..1_000).map(|_| rng.below(1 << 20)).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]));
        let mean = numbers.iter().sum::<u64>() / 1_000;
        assert!((490_000..560_000).contains(&mean), "{mean}");
        assert_ne!(rng.bytes::<16>(), fork.bytes());
        assert_ne!(SparseRng::from_u64(2).bytes::<16>(), SparseRng::from_u64(3).bytes());
    }
}
