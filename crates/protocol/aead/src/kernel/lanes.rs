//! Vectors of several blocks made of vectors of one: what `gcm` does at each width is tested by CPUs that lack the instructions.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one argument for all: the contract of the trait's functions, and tests that give them whole packets"
)]

use super::gcm::{Nonce, crypt};
use super::material::Material;
use super::vector::Vector;
use crate::Instructions;
use core::arch::x86_64::*;
use core::array::from_fn;

/// `N` blocks, each in a register of its own.
#[derive(Clone, Copy)]
struct Lanes<const N: usize>([__m128i; N]);

impl<const N: usize> Lanes<N> {
    fn zip(self, other: Self, operation: impl Fn(__m128i, __m128i) -> __m128i) -> Self {
        Lanes(from_fn(|lane| operation(self.0[lane], other.0[lane])))
    }
}

impl<const N: usize> Vector for Lanes<N> {
    const BLOCKS: usize = N;

    unsafe fn load(from: *const u8) -> Self {
        unsafe { Lanes(from_fn(|lane| __m128i::load(from.add(lane * 16)))) }
    }
    unsafe fn store(self, to: *mut u8) {
        unsafe { self.store_head(to, Self::BYTES) }
    }
    unsafe fn load_head(from: *const u8, len: usize) -> Self {
        unsafe {
            let block = |at| if at < len { __m128i::load(from.add(at)) } else { __m128i::zero() };
            Lanes(from_fn(|lane| block(lane * 16)))
        }
    }
    unsafe fn store_head(self, to: *mut u8, len: usize) {
        let lanes = self.0.into_iter().enumerate().take(len.div_ceil(16));
        lanes.for_each(|(lane, block)| unsafe { block.store(to.add(lane * 16)) });
    }
    unsafe fn zero() -> Self {
        unsafe { Self::splat(__m128i::zero()) }
    }
    unsafe fn splat(block: __m128i) -> Self {
        Lanes([block; N])
    }
    unsafe fn first(block: __m128i) -> Self {
        unsafe { Lanes(from_fn(|lane| if lane == 0 { block } else { __m128i::zero() })) }
    }
    unsafe fn counting() -> Self {
        unsafe { Lanes(from_fn(|lane| _mm_set_epi32(0, 0, 0, lane as i32 + 1))) }
    }
    unsafe fn sum(self) -> __m128i {
        unsafe { self.0.into_iter().fold(__m128i::zero(), |sum, block| sum.xor(block)) }
    }
    unsafe fn xor(self, other: Self) -> Self {
        self.zip(other, |one, other| unsafe { one.xor(other) })
    }
    unsafe fn and(self, other: Self) -> Self {
        self.zip(other, |one, other| unsafe { one.and(other) })
    }
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, |one, other| unsafe { one.add(other) })
    }
    unsafe fn reverse(self) -> Self {
        Lanes(self.0.map(|block| unsafe { block.reverse() }))
    }
    unsafe fn swap(self) -> Self {
        Lanes(self.0.map(|block| unsafe { block.swap() }))
    }
    unsafe fn round(self, key: Self) -> Self {
        self.zip(key, |block, key| unsafe { block.round(key) })
    }
    unsafe fn last_round(self, key: Self) -> Self {
        self.zip(key, |block, key| unsafe { block.last_round(key) })
    }
    unsafe fn multiply<const HALVES: i32>(self, other: Self) -> Self {
        self.zip(other, |one, other| unsafe { one.multiply::<HALVES>(other) })
    }
}

type Done = unsafe fn(&Material, &[u8], usize) -> Vec<u8>;

/// The packet and its tag, behind a header of `header` bytes, sealed or opened with vectors `V`.
#[target_feature(enable = "aes,pclmulqdq,avx")]
fn done<V: Vector, const OPENS: bool>(key: &Material, packet: &[u8], header: usize) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let payload = packet.len() - header - crate::TAG_LEN;
    let at = packet.as_mut_ptr();
    let nonce = Nonce { head: 0x0102_0304, tail: 0x0506_0708_090a_0b0c };
    let mut tag = [0; crate::TAG_LEN];
    unsafe {
        let rest = at.wrapping_add(header + V::BYTES);
        let found = crypt::<V, OPENS>(key, nonce, at, header, payload, rest);
        found.store(tag.as_mut_ptr());
    }
    packet.truncate(header + payload);
    packet.extend(tag);
    packet
}

/// Each length up to more than three chunks of the widest vectors: in what is left at the end each number of blocks, and each number
/// of bytes of the last one, comes behind no chunk, one, and several.
#[test]
fn every_width_agrees_with_blocks_one_by_one() {
    if !Instructions::Aes128Bits.are_available() {
        return assert!(Instructions::fastest().is_none(), "a CPU without AES-NI has none of the kernels");
    }
    // Miri interprets each instruction: it gets the lengths around the ends of chunks.
    let lengths = (0..=1_600).filter(|len| !cfg!(miri) || matches!(len % 128, 0 | 1 | 111..));
    let lengths: Vec<usize> = lengths.filter(|len| !cfg!(miri) || *len < 640).collect();
    for key_len in [16, 32] {
        let key: Vec<u8> = (0..key_len).map(|byte| byte * 7 + 1).collect();
        // Keys for each width are made by the same instructions.
        let key = |width| unsafe { Material::new(width, &key) };
        let one = &key(Instructions::Aes128Bits);
        let two = &key(Instructions::Vaes256Bits);
        let four = &key(Instructions::Vaes512Bits);
        for &len in &lengths {
            let header = len % 33;
            let tag = header + len;
            let packet: Vec<u8> = (0..tag + crate::TAG_LEN).map(|at| (at * 131 / 8) as u8).collect();
            let sealed = unsafe { done::<__m128i, false>(one, &packet, header) };
            let opened = [&packet[..tag], &sealed[tag..]].concat();
            let seal: [(Done, _); 2] = [(done::<Lanes<2>, false>, two), (done::<Lanes<4>, false>, four)];
            let open: [(Done, _); 3] =
                [(done::<__m128i, true>, one), (done::<Lanes<2>, true>, two), (done::<Lanes<4>, true>, four)];
            for (done, key) in seal {
                assert!(unsafe { done(key, &packet, header) } == sealed, "{len} bytes sealed");
            }
            for (done, key) in open {
                assert!(unsafe { done(key, &sealed, header) } == opened, "{len} bytes opened");
            }
        }
    }
}
