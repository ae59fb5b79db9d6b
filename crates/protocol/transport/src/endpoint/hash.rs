//! Keyed hashes for the routing tables, made from the endpoint's seed so that runs can be repeated.

use base::rng::Rng;
use core::hash::{BuildHasher, Hash, Hasher};
use std::collections::hash_map::DefaultHasher;

/// For keys that unknown peers choose: SipHash with a secret key of two words. Several stacks hashed the connection IDs
/// of clients without a key, and could be slowed down by IDs that collide.
#[derive(Clone, Debug)]
pub(super) struct KeyedHash([u64; 2]);

impl KeyedHash {
    pub(super) fn new(rng: &mut Rng) -> KeyedHash {
        KeyedHash([rng.next_u64(), rng.next_u64()])
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher
    }
}

/// For our own connection IDs, as 64-bit numbers. We choose what is in the table and most of it is random: one multiplication
/// with a secret mixes enough.
#[derive(Clone, Debug)]
pub(super) struct LocalHash(u64);

impl LocalHash {
    pub(super) fn new(rng: &mut Rng) -> LocalHash {
        LocalHash(rng.next_u64())
    }
}

impl BuildHasher for LocalHash {
    type Hasher = LocalHasher;

    #[inline]
    fn build_hasher(&self) -> LocalHasher {
        LocalHasher(self.0)
    }
}

/// See [`LocalHash`].
pub(super) struct LocalHasher(u64);

/// An odd number whose bits look random: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for LocalHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * u128::from(MULTIPLIER);
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
