//! Multiplication in the field of GHASH, for vectors of any width. SP 800-38D §6.3.
//!
//! GHASH's bits are in reverse: blocks are reversed by bytes, and the powers of the hash key hold one factor of x more than they
//! should, which makes up for the product being one bit too short. The sum of many products is reduced once.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one argument for all: these functions ask of their caller what the vector's operations ask, and touch no memory"
)]

use super::vector::Vector;
use core::arch::x86_64::*;

/// Products that are not reduced yet, by Karatsuba's method, which needs three multiplications instead of four: on Zen 3 they are what
/// limits GHASH.
#[derive(Clone, Copy)]
pub(super) struct Products<V> {
    /// Lower halves multiplied.
    pub(super) lower: V,
    /// Sums of both halves multiplied.
    pub(super) sums: V,
    /// Upper halves multiplied.
    pub(super) upper: V,
}

/// The lower halves of blocks, for [`Power::sum`].
pub(super) const LOWER: i32 = 0x00;
/// The upper halves.
pub(super) const UPPER: i32 = 0x10;

/// A power of the hash key in each lane.
#[derive(Clone, Copy)]
pub(super) struct Power<V, const HALF: i32 = LOWER> {
    pub(super) whole: V,
    /// The sum of its halves, in the half `HALF`.
    pub(super) sum: V,
}

impl<V: Vector> Power<V> {
    #[inline(always)]
    pub(super) unsafe fn of(whole: V) -> Self {
        unsafe { Power { whole, sum: whole.xor(whole.swap()) } }
    }
}

impl<V: Vector> Products<V> {
    #[inline(always)]
    pub(super) unsafe fn none() -> Self {
        unsafe { Products { lower: V::zero(), sums: V::zero(), upper: V::zero() } }
    }

    #[inline(always)]
    pub(super) unsafe fn of<const HALF: i32>(x: V, power: Power<V, HALF>) -> Self {
        unsafe {
            Products {
                lower: x.multiply::<0x00>(power.whole),
                sums: x.xor(x.swap()).multiply::<HALF>(power.sum),
                upper: x.multiply::<0x11>(power.whole),
            }
        }
    }

    #[inline(always)]
    pub(super) unsafe fn add(&mut self, other: Products<V>) {
        unsafe {
            self.lower = self.lower.xor(other.lower);
            self.sums = self.sums.xor(other.sums);
            self.upper = self.upper.xor(other.upper);
        }
    }

    /// The sum of all lanes modulo the polynomial.
    #[inline(always)]
    pub(super) unsafe fn reduce(self) -> __m128i {
        unsafe {
            let polynomial = V::splat(_mm_set_epi64x(0, 0xc200_0000_0000_0000_u64 as i64));
            let middle = self.sums.xor(self.lower).xor(self.upper);
            let middle = middle.xor(self.lower.swap()).xor(self.lower.multiply::<0x00>(polynomial));
            let upper = self.upper.xor(middle.swap()).xor(middle.multiply::<0x00>(polynomial));
            upper.sum()
        }
    }
}

impl Products<__m128i> {
    /// In the first lane of vectors.
    #[inline(always)]
    pub(super) unsafe fn widen<V: Vector>(self) -> Products<V> {
        unsafe {
            Products { lower: V::first(self.lower), sums: V::first(self.sums), upper: V::first(self.upper) }
        }
    }
}

/// `a` times `power`, which holds the additional factor.
#[inline(always)]
pub(super) unsafe fn multiply(a: __m128i, power: Power<__m128i>) -> __m128i {
    unsafe { Products::of(a, power).reduce() }
}
