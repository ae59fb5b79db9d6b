//! What is computed of a key once: the round keys of AES and the powers of the hash key; and AES alone, by the former. FIPS 197 §5.2,
//! SP 800-38D §6.3.

use super::ghash::{LOWER, Power, UPPER, multiply};
use super::vector::Vector;
use crate::Instructions;
use core::arch::x86_64::*;
use zeroize::Zeroize;

/// Vectors of a chunk.
pub(super) const CHUNK: usize = 8;

/// Powers of the hash key that are kept: as many as a chunk of the widest vectors has blocks, and one more for the block with the
/// lengths, which follows a chunk that is not quite full.
pub(super) const POWERS: usize = 33;

/// Places for them: a chunk's begin at the start of a cache line.
const PLACES: usize = POWERS.next_multiple_of(4);

/// Zeros behind the powers, for the lanes of a vector that is not full.
const PADDING: usize = 4;

/// Blocks for the sums of a chunk's powers, two in each, with the widest vectors.
const SUMS: usize = CHUNK / 2 * 4;

/// A key as AES alone uses it. What a key of 16 bytes needs is three cache lines: a key that has not been used for a while comes from
/// far memory.
#[repr(C, align(64))]
pub(crate) struct RoundKeys {
    rounds: u32,
    /// Here, where there is room anyway.
    instructions: Instructions,
    keys: Blocks<15>,
}

/// Blocks that vectors of one block are read from.
#[repr(C, align(16))]
struct Blocks<const N: usize>([[u8; 16]; N]);

/// A key as the kernel uses it.
#[repr(C, align(64))]
pub(crate) struct Material {
    /// The sums of both halves of the powers that a chunk is multiplied by: for each two of its vectors a vector, which has those of the
    /// first in the lower halves and those of the second in the upper ones. For vectors that are not the widest zeros follow.
    sums: [[u8; 16]; SUMS],
    /// Zeros, then the highest power first, the first one last; bytes reversed, with one factor of x more. Then zeros.
    powers: [[u8; 16]; PLACES + PADDING],
    round_keys: RoundKeys,
}

impl RoundKeys {
    /// The round keys of a key of 16 or 32 bytes.
    ///
    /// Code without these features calls it in `unsafe`: the CPU has AES-NI, PCLMULQDQ and AVX.
    #[target_feature(enable = "aes,pclmulqdq,avx")]
    pub(super) fn new(instructions: Instructions, key: &[u8]) -> RoundKeys {
        let mut round_keys =
            RoundKeys { rounds: key.len() as u32 / 4 + 6, instructions, keys: Blocks([[0; 16]; 15]) };
        round_keys.expand(key);
        round_keys
    }

    /// FIPS 197 §5.2. The S-box is that of the last round of AES, whose shift of rows does nothing to four equal columns.
    #[target_feature(enable = "aes,pclmulqdq,avx")]
    fn expand(&mut self, key: &[u8]) {
        let substitute = |word: u32| {
            _mm_cvtsi128_si32(_mm_aesenclast_si128(_mm_set1_epi32(word as i32), _mm_setzero_si128())) as u32
        };
        let key_words = key.len() / 4;
        let mut words = [0; 60];
        for (word, bytes) in words.iter_mut().zip(key.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        let mut constant = 1;
        for at in key_words..4 * (self.rounds() + 1) {
            let mut word: u32 = words[at - 1];
            if at % key_words == 0 {
                word = substitute(word).rotate_right(8) ^ constant;
                constant = constant << 1 ^ if constant & 0x80 == 0 { 0 } else { 0x11b };
            } else if key_words == 8 && at % 8 == 4 {
                word = substitute(word);
            }
            words[at] = words[at - key_words] ^ word;
        }
        for (bytes, word) in self.keys.0.as_flattened_mut().chunks_exact_mut(4).zip(&words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        words.zeroize();
    }

    /// Encrypts blocks that do not depend on each other, at once. Code without these features calls it in `unsafe`.
    #[target_feature(enable = "aes,pclmulqdq,avx")]
    pub(super) fn encrypt<const N: usize>(&self, blocks: &mut [[u8; 16]; N]) {
        // SAFETY: round 0 exists.
        let whitening = unsafe { self.get(0) };
        // SAFETY: each array has 16 bytes.
        let mut states = blocks
            .each_ref()
            .map(|block| _mm_xor_si128(unsafe { _mm_loadu_si128(block.as_ptr().cast()) }, whitening));
        for at in 1..self.rounds() {
            // SAFETY: the round is below the last one.
            let key = unsafe { self.get(at) };
            for state in &mut states {
                *state = _mm_aesenc_si128(*state, key);
            }
        }
        // SAFETY: the last round exists.
        let key = unsafe { self.get(self.rounds()) };
        for (block, state) in blocks.iter_mut().zip(states) {
            // SAFETY: the array has 16 bytes.
            unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), _mm_aesenclast_si128(state, key)) };
        }
    }

    /// How often AES goes round: 10 or 14 times.
    #[inline(always)]
    fn rounds(&self) -> usize {
        self.rounds as usize
    }

    /// The key of a round, which is at most [`RoundKeys::rounds`].
    #[inline(always)]
    unsafe fn get(&self, round: usize) -> __m128i {
        debug_assert!(round <= 14);
        // SAFETY: rounds are at most 14, keys one more.
        unsafe { _mm_load_si128(self.keys.0.as_ptr().add(round).cast()) }
    }
}

impl Material {
    /// The material of a key of 16 or 32 bytes.
    ///
    /// Code without these features calls it in `unsafe`: the CPU has AES-NI, PCLMULQDQ and AVX.
    #[target_feature(enable = "aes,pclmulqdq,avx")]
    pub(super) fn new(instructions: Instructions, key: &[u8]) -> Material {
        let round_keys = RoundKeys::new(instructions, key);
        let mut material =
            Material { sums: [[0; 16]; SUMS], powers: [[0; 16]; PLACES + PADDING], round_keys };
        material.raise();
        material.add_halves(instructions.blocks());
        material
    }

    /// The powers of the hash key, which is zero, encrypted.
    #[target_feature(enable = "aes,pclmulqdq,avx")]
    fn raise(&mut self) {
        let mut blocks = [[0; 16]];
        self.round_keys.encrypt(&mut blocks);
        let [mut hash_key] = blocks;
        // Times x. The constant is the polynomial, in reverse; taken away when the highest coefficient leaves.
        let mut number = u128::from_be_bytes(hash_key);
        number = number << 1 ^ (number >> 127).wrapping_neg() & (0xc2 << 120 | 1);
        hash_key = number.to_le_bytes();
        // SAFETY: the array has 16 bytes.
        let first = unsafe { _mm_loadu_si128(hash_key.as_ptr().cast()) };
        // SAFETY: the features are this function's.
        let first = unsafe { Power::of(first) };
        let mut power = first;
        for place in self.powers[..PLACES].iter_mut().rev().take(POWERS) {
            // SAFETY: each place has 16 bytes.
            unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), power.whole) };
            // SAFETY: the features are this function's.
            power = unsafe { Power::of(multiply(power.whole, first)) };
        }
        blocks.zeroize();
        hash_key.zeroize();
        number.zeroize();
    }

    /// The sums of a chunk's powers, for vectors of so many blocks.
    fn add_halves(&mut self, blocks: usize) {
        for (at, sums) in self.sums.iter_mut().enumerate().take(CHUNK / 2 * blocks) {
            let first = PLACES - (CHUNK - at / blocks * 2) * blocks + at % blocks;
            for (half, place) in sums.chunks_exact_mut(8).zip([first, first + blocks]) {
                let (lower, upper) = self.powers[place].split_at(8);
                half.iter_mut().zip(lower).zip(upper).for_each(|((sum, lower), upper)| *sum = lower ^ upper);
            }
        }
    }

    /// What the key is for.
    #[inline(always)]
    pub(super) fn instructions(&self) -> Instructions {
        self.round_keys.instructions
    }

    /// How often AES goes round: 10 or 14 times.
    #[inline(always)]
    pub(super) fn rounds(&self) -> usize {
        self.round_keys.rounds()
    }

    /// The key of a round, which is at most [`Material::rounds`].
    #[inline(always)]
    pub(super) unsafe fn round_key(&self, round: usize) -> __m128i {
        // SAFETY: the caller's promise.
        unsafe { self.round_keys.get(round) }
    }

    /// The powers from the given one downwards, as many as the vector has lanes. After the first power come zeros.
    #[inline(always)]
    pub(super) unsafe fn power<V: Vector>(&self, power: usize) -> Power<V> {
        // SAFETY: as below, and the features are those of the vector.
        unsafe { Power::of(self.load(power)) }
    }

    /// The powers for the vector `at` of a chunk, with their sums in the lower halves if `at` is even and in the upper ones if it is odd. The
    /// key is for instructions with such vectors.
    #[inline(always)]
    pub(super) unsafe fn power_in_chunk<V: Vector, const HALF: i32>(&self, at: usize) -> Power<V, HALF> {
        debug_assert!(at < CHUNK && HALF == if at.is_multiple_of(2) { LOWER } else { UPPER });
        debug_assert_eq!(V::BLOCKS, self.instructions().blocks());
        // SAFETY: a chunk has as many powers, and each two of its vectors have sums.
        unsafe {
            let sum = V::load(self.sums.as_ptr().add(at / 2 * V::BLOCKS).cast());
            Power { whole: self.load((CHUNK - at) * V::BLOCKS), sum }
        }
    }

    #[inline(always)]
    unsafe fn load<V: Vector>(&self, power: usize) -> V {
        debug_assert!((1..=POWERS).contains(&power));
        // SAFETY: there are as many powers, and behind the first one zeros for the other lanes of the widest vector.
        unsafe { V::load(self.powers.as_ptr().add(PLACES - power).cast()) }
    }
}

impl Drop for RoundKeys {
    fn drop(&mut self) {
        self.keys.0.zeroize();
    }
}

impl Drop for Material {
    fn drop(&mut self) {
        self.powers.zeroize();
        self.sums.zeroize();
    }
}
