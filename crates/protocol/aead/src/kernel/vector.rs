//! Vectors of one, two and four blocks: the instructions that the kernel is made of, under one set of names.
//!
//! A block is 16 bytes, a lane of the vector. Nothing here depends on secrets: no branch, no address.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one argument for all: the contract of the trait's functions is that of the instruction that each of them is"
)]

use core::arch::x86_64::*;

/// A vector register that holds blocks.
///
/// # Safety
/// All functions: the CPU has the instructions that the implementing type names, and pointers are valid for what is said to be
/// read or written.
pub(super) trait Vector: Copy {
    /// Blocks of a vector.
    const BLOCKS: usize;
    /// Bytes of a vector.
    const BYTES: usize = 16 * Self::BLOCKS;

    /// Reads a whole vector.
    unsafe fn load(from: *const u8) -> Self;
    /// Writes a whole vector.
    unsafe fn store(self, to: *mut u8);
    /// Reads the first `len` bytes, of 1 to [`Self::BYTES`]; those behind are zero or what follows. At most 16 bytes behind them are
    /// touched.
    unsafe fn load_head(from: *const u8, len: usize) -> Self;
    /// Writes the first `len` bytes, of 1 to [`Self::BYTES`]; at most 16 bytes behind them are written too, with what the vector
    /// holds.
    unsafe fn store_head(self, to: *mut u8, len: usize);
    /// Zeros.
    unsafe fn zero() -> Self;
    /// The block in each lane.
    unsafe fn splat(block: __m128i) -> Self;
    /// The block in the first lane, zeros in the others.
    unsafe fn first(block: __m128i) -> Self;
    /// 1, 2, 3, … as numbers of 32 bits at the start of the lanes.
    unsafe fn counting() -> Self;
    /// The exclusive or of all lanes.
    unsafe fn sum(self) -> __m128i;
    /// Exclusive or.
    unsafe fn xor(self, other: Self) -> Self;
    /// And.
    unsafe fn and(self, other: Self) -> Self;
    /// Adds numbers of 32 bits, without carry between them.
    unsafe fn add(self, other: Self) -> Self;
    /// The bytes of each block, last one first.
    unsafe fn reverse(self) -> Self;
    /// The halves of each block, swapped.
    unsafe fn swap(self) -> Self;
    /// One round of AES.
    unsafe fn round(self, key: Self) -> Self;
    /// The last round of AES.
    unsafe fn last_round(self, key: Self) -> Self;
    /// The carry-less product of one half of each block by one half of each of `other`: bit 0 of `HALVES` chooses the upper half
    /// of this one, bit 4 that of the other.
    unsafe fn multiply<const HALVES: i32>(self, other: Self) -> Self;
}

/// Last byte first.
const REVERSED: [u8; 16] = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];

#[inline(always)]
unsafe fn reversed() -> __m128i {
    // SAFETY: the array has 16 bytes; the CPU has SSE2.
    unsafe { _mm_loadu_si128(REVERSED.as_ptr().cast()) }
}

/// One block: AES, PCLMULQDQ, AVX.
impl Vector for __m128i {
    const BLOCKS: usize = 1;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { _mm_loadu_si128(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm_storeu_si128(to.cast(), self) }
    }
    #[inline(always)]
    unsafe fn load_head(from: *const u8, _: usize) -> Self {
        unsafe { Self::load(from) }
    }
    #[inline(always)]
    unsafe fn store_head(self, to: *mut u8, _: usize) {
        unsafe { self.store(to) }
    }
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm_setzero_si128() }
    }
    #[inline(always)]
    unsafe fn splat(block: __m128i) -> Self {
        block
    }
    #[inline(always)]
    unsafe fn first(block: __m128i) -> Self {
        block
    }
    #[inline(always)]
    unsafe fn counting() -> Self {
        unsafe { _mm_set_epi32(0, 0, 0, 1) }
    }
    #[inline(always)]
    unsafe fn sum(self) -> __m128i {
        self
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { _mm_xor_si128(self, other) }
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        unsafe { _mm_and_si128(self, other) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { _mm_add_epi32(self, other) }
    }
    #[inline(always)]
    unsafe fn reverse(self) -> Self {
        unsafe { _mm_shuffle_epi8(self, reversed()) }
    }
    #[inline(always)]
    unsafe fn swap(self) -> Self {
        unsafe { _mm_shuffle_epi32::<0x4e>(self) }
    }
    #[inline(always)]
    unsafe fn round(self, key: Self) -> Self {
        unsafe { _mm_aesenc_si128(self, key) }
    }
    #[inline(always)]
    unsafe fn last_round(self, key: Self) -> Self {
        unsafe { _mm_aesenclast_si128(self, key) }
    }
    #[inline(always)]
    unsafe fn multiply<const HALVES: i32>(self, other: Self) -> Self {
        unsafe { _mm_clmulepi64_si128::<HALVES>(self, other) }
    }
}

/// Two blocks: VAES, VPCLMULQDQ, AVX2.
impl Vector for __m256i {
    const BLOCKS: usize = 2;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { _mm256_loadu_si256(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }
    #[inline(always)]
    unsafe fn load_head(from: *const u8, len: usize) -> Self {
        unsafe { if len > 16 { Self::load(from) } else { Self::first(__m128i::load(from)) } }
    }
    #[inline(always)]
    unsafe fn store_head(self, to: *mut u8, len: usize) {
        unsafe { if len > 16 { self.store(to) } else { _mm256_castsi256_si128(self).store(to) } }
    }
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    unsafe fn splat(block: __m128i) -> Self {
        unsafe { _mm256_broadcastsi128_si256(block) }
    }
    #[inline(always)]
    unsafe fn first(block: __m128i) -> Self {
        unsafe { _mm256_zextsi128_si256(block) }
    }
    #[inline(always)]
    unsafe fn counting() -> Self {
        unsafe { _mm256_set_epi32(0, 0, 0, 2, 0, 0, 0, 1) }
    }
    #[inline(always)]
    unsafe fn sum(self) -> __m128i {
        unsafe { _mm_xor_si128(_mm256_castsi256_si128(self), _mm256_extracti128_si256::<1>(self)) }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { _mm256_xor_si256(self, other) }
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        unsafe { _mm256_and_si256(self, other) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { _mm256_add_epi32(self, other) }
    }
    #[inline(always)]
    unsafe fn reverse(self) -> Self {
        unsafe { _mm256_shuffle_epi8(self, Self::splat(reversed())) }
    }
    #[inline(always)]
    unsafe fn swap(self) -> Self {
        unsafe { _mm256_shuffle_epi32::<0x4e>(self) }
    }
    #[inline(always)]
    unsafe fn round(self, key: Self) -> Self {
        unsafe { _mm256_aesenc_epi128(self, key) }
    }
    #[inline(always)]
    unsafe fn last_round(self, key: Self) -> Self {
        unsafe { _mm256_aesenclast_epi128(self, key) }
    }
    #[inline(always)]
    unsafe fn multiply<const HALVES: i32>(self, other: Self) -> Self {
        unsafe { _mm256_clmulepi64_epi128::<HALVES>(self, other) }
    }
}

/// Four blocks: VAES, VPCLMULQDQ, AVX-512 F, BW, VL.
impl Vector for __m512i {
    const BLOCKS: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }
    #[inline(always)]
    unsafe fn load_head(from: *const u8, len: usize) -> Self {
        unsafe { _mm512_maskz_loadu_epi8(u64::MAX >> (64 - len), from.cast()) }
    }
    #[inline(always)]
    unsafe fn store_head(self, to: *mut u8, len: usize) {
        unsafe { _mm512_mask_storeu_epi8(to.cast(), u64::MAX >> (64 - len), self) }
    }
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn splat(block: __m128i) -> Self {
        unsafe { _mm512_broadcast_i32x4(block) }
    }
    #[inline(always)]
    unsafe fn first(block: __m128i) -> Self {
        unsafe { _mm512_zextsi128_si512(block) }
    }
    #[inline(always)]
    unsafe fn counting() -> Self {
        unsafe { _mm512_set_epi32(0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1) }
    }
    #[inline(always)]
    unsafe fn sum(self) -> __m128i {
        unsafe {
            let upper = _mm512_extracti64x4_epi64::<1>(self);
            _mm512_castsi512_si256(self).xor(upper).sum()
        }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { _mm512_xor_si512(self, other) }
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        unsafe { _mm512_and_si512(self, other) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { _mm512_add_epi32(self, other) }
    }
    #[inline(always)]
    unsafe fn reverse(self) -> Self {
        unsafe { _mm512_shuffle_epi8(self, Self::splat(reversed())) }
    }
    #[inline(always)]
    unsafe fn swap(self) -> Self {
        unsafe { _mm512_shuffle_epi32::<0x4e>(self) }
    }
    #[inline(always)]
    unsafe fn round(self, key: Self) -> Self {
        unsafe { _mm512_aesenc_epi128(self, key) }
    }
    #[inline(always)]
    unsafe fn last_round(self, key: Self) -> Self {
        unsafe { _mm512_aesenclast_epi128(self, key) }
    }
    #[inline(always)]
    unsafe fn multiply<const HALVES: i32>(self, other: Self) -> Self {
        unsafe { _mm512_clmulepi64_epi128::<HALVES>(self, other) }
    }
}
