//! AES-GCM of one packet, for vectors of any width. NIST SP 800-38D.
//!
//! The payload goes by in chunks of eight vectors: eight are what hides the latency of an AES round. While a chunk goes through AES,
//! GHASH takes in another one: eight multiplications by eight powers of the hash key, added up, and one reduction. A packet that is
//! opened has the same chunk hashed, one that is sealed the chunk before it, which is still in registers. What is left
//! at the end, up to a chunk, is done by a function of its number of vectors. The block with the lengths and the one that masks the
//! tag go along with it.
//!
//! All addresses and branches depend on lengths alone, and on whether a tag is right.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one argument for all: each function's contract, which is that of the one at the end of the file that calls it"
)]

use super::ghash::{LOWER, Products, UPPER, multiply};
use super::material::{CHUNK, Material, POWERS};
use super::vector::Vector;
use core::arch::x86_64::*;

/// How far ahead of what is encrypted data is fetched into the cache, in bytes: two packets, so that a packet's data is there when the
/// packet begins. Data from a file is in no cache, and the CPU's own prefetch begins anew with each packet. docs/decisions/021 has the
/// figures. What follows the data may be no memory at all: a prefetch of that does nothing.
const AHEAD: usize = 3072;
/// Bytes that are fetched together.
const CACHE_LINE: usize = 64;

/// Vectors from here on keep their first bytes only, one fewer with each byte.
static HEADS: [u8; 128] = {
    let mut bytes = [0; 128];
    let mut at = 0;
    while at < 64 {
        bytes[at] = 0xff;
        at += 1;
    }
    bytes
};

/// The address, of which the compiler knows nothing.
#[cfg_attr(
    not(miri),
    expect(clippy::pointers_in_nomem_asm_block, reason = "nothing is read or written there")
)]
#[inline(always)]
fn opaque<T>(address: *const T) -> *const T {
    // Miri knows no assembly.
    #[cfg(miri)]
    return address;
    #[cfg(not(miri))]
    {
        let mut address = address;
        // SAFETY: there is no instruction.
        unsafe {
            core::arch::asm!("/* {0} */", inout(reg) address, options(nomem, nostack, preserves_flags));
        }
        address
    }
}

/// The number, of which the compiler knows nothing: a loop that counts by it stays a loop.
#[inline(always)]
fn unknown(number: usize) -> usize {
    opaque(core::ptr::without_provenance::<u8>(number)).addr()
}

/// Aligns the stack frame of the function that this is inlined into, and with it the vectors that the compiler keeps there. It keeps them where
/// the frame happens to be otherwise, and a vector that lies across two pages makes its chunk take half as long again.
#[inline(always)]
fn align_frame() {
    let vector = core::mem::MaybeUninit::<__m512i>::uninit();
    opaque(&raw const vector);
}

/// The same material, which for the compiler is another. What is read of it here it cannot read earlier: it would read all powers and
/// round keys in front of the loops that need them, more than there are registers, and keep them on the stack.
#[inline(always)]
fn renewed(material: &Material) -> &Material {
    // SAFETY: the address is that of the reference.
    unsafe { &*opaque(material) }
}

/// All ones in the first `len` bytes, of at most [`Vector::BYTES`].
#[inline(always)]
unsafe fn head<V: Vector>(len: usize) -> V {
    unsafe { V::load(HEADS.as_ptr().add(64 - len)) }
}

/// GHASH of the header. At most 15 bytes behind it are read.
#[inline(always)]
unsafe fn hash_header(material: &Material, header: *const u8, len: usize) -> __m128i {
    unsafe {
        let power = material.power(1);
        let mut hash = _mm_setzero_si128();
        let mut at = 0;
        while at < len {
            let block = __m128i::load(header.add(at)).and(head((len - at).min(16)));
            hash = multiply(hash.xor(block.reverse()), power);
            at += 16;
        }
        hash
    }
}

/// The counters to come.
#[derive(Clone, Copy)]
struct Counters<V> {
    /// A vector of them, in network order.
    next: V,
    /// The first number in it: 2 and what whole chunks have used.
    number: usize,
}

impl<V: Vector> Counters<V> {
    /// `N` vectors of them: a chunk, or the packet's last ones.
    ///
    /// Adding to the last byte of numbers in network order is one instruction for each vector. Where that byte has a carry the numbers are
    /// reversed for it, which is two. `next` has none in its lanes: it begins 2 after a multiple of 8.
    #[inline(always)]
    unsafe fn take<const N: usize>(&mut self) -> [V; N] {
        unsafe {
            let mut taken = [self.next; N];
            let last_byte = self.number & 0xff;
            self.number += N * V::BLOCKS;
            if last_byte + N * V::BLOCKS <= 0x100 {
                let step = V::splat(_mm_set_epi32((V::BLOCKS << 24) as i32, 0, 0, 0));
                for vector in &mut taken {
                    *vector = self.next;
                    self.next = self.next.add(step);
                }
            } else {
                let step = V::splat(_mm_set_epi32(0, 0, 0, V::BLOCKS as i32));
                let mut next = self.next.reverse();
                for vector in &mut taken {
                    *vector = next.reverse();
                    next = next.add(step);
                }
                self.next = next.reverse();
            }
            taken
        }
    }
}

/// Vectors of counters, each on its way through AES.
#[inline(always)]
unsafe fn begin<V: Vector, const N: usize>(material: &Material, counters: &mut Counters<V>) -> [V; N] {
    unsafe {
        let whitening = V::splat(material.round_key(0));
        let mut states = counters.take();
        for state in &mut states {
            *state = whitening.xor(*state);
        }
        states
    }
}

/// The last round, and the data, from `source`. Returns what is then at `data`.
#[inline(always)]
unsafe fn end<V: Vector, const N: usize>(
    material: &Material,
    mut states: [V; N],
    source: *const u8,
    data: *mut u8,
) -> [V; N] {
    unsafe {
        let key = V::splat(material.round_key(material.rounds()));
        for (at, state) in states.iter_mut().enumerate() {
            let at = at * V::BYTES;
            if at % CACHE_LINE == 0 {
                _mm_prefetch::<_MM_HINT_T0>(source.wrapping_add(at + AHEAD).cast());
            }
            *state = state.last_round(key.xor(V::load(source.add(at))));
            state.store(data.add(at));
        }
        states
    }
}

#[inline(always)]
unsafe fn round<V: Vector, const N: usize>(states: &mut [V; N], key: __m128i) {
    unsafe {
        let key = V::splat(key);
        for state in states {
            *state = state.round(key);
        }
    }
}

/// The rounds from `first` to the one before the last.
#[inline(always)]
unsafe fn rounds<V: Vector, const N: usize, const M: usize>(
    material: &Material,
    first: usize,
    states: &mut [V; N],
    blocks: &mut [__m128i; M],
) {
    unsafe {
        let mut at = unknown(first);
        while at < material.rounds() {
            round(states, material.round_key(at));
            round(blocks, material.round_key(at));
            at = unknown(at + 1);
        }
    }
}

/// A round, and beside it the product of a vector of a chunk, which is the one at `at`; so is the round.
#[inline(always)]
unsafe fn round_and_product<V: Vector, const N: usize, const M: usize, const HALF: i32>(
    material: &Material,
    (states, blocks): (&mut [V; N], &mut [__m128i; M]),
    (at, vector): (usize, &V),
    products: &mut Products<V>,
) {
    unsafe {
        let material = renewed(material);
        round(states, material.round_key(at));
        round(blocks, material.round_key(at));
        products.add(Products::of(vector.reverse(), material.power_in_chunk::<V, HALF>(at)));
    }
}

/// All rounds but the last, and beside the first of them the hash of a chunk. Without a loop, because the chunk is in registers, and because two
/// products are added by one instruction then.
#[inline(always)]
unsafe fn rounds_and_hash<V: Vector, const N: usize, const M: usize>(
    material: &Material,
    states: &mut [V; N],
    blocks: &mut [__m128i; M],
    chunk: &[V; CHUNK],
    hash: __m128i,
) -> __m128i {
    unsafe {
        let mut products = Products::none();
        let [first, second, others @ ..] = chunk;
        round_and_product::<V, N, M, UPPER>(material, (states, blocks), (1, second), &mut products);
        for (at, [even, odd]) in (2..).step_by(2).zip(others.as_chunks().0) {
            round_and_product::<V, N, M, LOWER>(material, (states, blocks), (at, even), &mut products);
            round_and_product::<V, N, M, UPPER>(material, (states, blocks), (at + 1, odd), &mut products);
        }
        // The first block comes last: `hash` is the result of the chunk before, and takes its time.
        let power = material.power_in_chunk::<V, LOWER>(0);
        products.add(Products::of(first.reverse().xor(V::first(hash)), power));
        rounds(material, CHUNK, states, blocks);
        products.reduce()
    }
}

/// Decrypts a chunk, and hashes it.
#[inline(always)]
unsafe fn open_chunk<V: Vector>(
    material: &Material,
    data: *mut u8,
    counters: &mut Counters<V>,
    hash: __m128i,
) -> __m128i {
    unsafe {
        let mut states: [V; CHUNK] = begin(material, counters);
        let chunk = core::array::from_fn(|at| V::load(data.add(at * V::BYTES)));
        let hash = rounds_and_hash(material, &mut states, &mut [], &chunk, hash);
        end(material, states, data, data);
        hash
    }
}

/// Encrypts a chunk, from `source` to `data`, and hashes the one before it, in whose place it then is.
#[inline(always)]
unsafe fn seal_chunk<V: Vector>(
    material: &Material,
    source: *const u8,
    data: *mut u8,
    counters: &mut Counters<V>,
    (chunk, hash): (&mut [V; CHUNK], __m128i),
) -> __m128i {
    unsafe {
        let mut states: [V; CHUNK] = begin(material, counters);
        let hash = rounds_and_hash(material, &mut states, &mut [], chunk, hash);
        *chunk = end(material, states, source, data);
        hash
    }
}

/// Encrypts the first chunk: its first vector where it is, the others from `rest`.
#[inline(always)]
unsafe fn seal_first_chunk<V: Vector>(
    material: &Material,
    rest: *const u8,
    data: *mut u8,
    counters: &mut Counters<V>,
) -> [V; CHUNK] {
    unsafe {
        let mut states: [V; CHUNK] = begin(material, counters);
        rounds(material, 1, &mut states, &mut []);
        let [first, others @ ..] = states;
        let [first] = end(material, [first], data, data);
        let [a, b, c, d, e, f, g] = end(material, others, rest, data.add(V::BYTES));
        [first, a, b, c, d, e, f, g]
    }
}

/// What a packet's last blocks need.
struct Tail<V> {
    /// Where whole vectors are read, but for the last one.
    source: *const u8,
    data: *mut u8,
    /// Bytes of the payload that are left, less than a chunk.
    len: usize,
    counters: Counters<V>,
    /// A chunk that is encrypted and not yet hashed.
    chunk: Option<[V; CHUNK]>,
    hash: __m128i,
    /// The block that masks the tag, not yet encrypted.
    mask: __m128i,
    /// The block with the lengths, reversed.
    lengths: __m128i,
}

impl<V: Vector> Tail<V> {
    /// Encrypts or decrypts what is left, of `N` vectors, and returns the tag.
    #[inline(always)]
    unsafe fn finish<const N: usize, const OPENS: bool>(self, material: &Material) -> __m128i {
        unsafe {
            let Tail { source, data, len, mut counters, chunk, mut hash, mask, lengths } = self;
            let mut states: [V; N] = begin(material, &mut counters);
            let mut mask = [mask.xor(material.round_key(0))];
            match chunk {
                Some(chunk) => hash = rounds_and_hash(material, &mut states, &mut mask, &chunk, hash),
                None => rounds(material, 1, &mut states, &mut mask),
            }
            let key = material.round_key(material.rounds());
            let mask = mask[0].last_round(key);
            if N == 0 {
                return multiply(lengths.xor(hash), material.power(1)).reverse().xor(mask);
            }
            // The lengths are the last block of all.
            let mut products = Products::of(lengths, material.power(1)).widen();
            let blocks = len.div_ceil(16);
            // No closure: it would be a function without the instructions, which is called.
            let highest = blocks + 1;
            let mut hash = V::first(hash);
            for (at, &state) in states[..N - 1].iter().enumerate() {
                let place = at * V::BYTES;
                let before = V::load(data.add(place));
                let [after] = end(material, [state], source.add(place), data.add(place));
                let x = if OPENS { before } else { after };
                let power = renewed(material).power(highest - at * V::BLOCKS);
                products.add(Products::of(x.reverse().xor(hash), power));
                hash = V::zero();
            }
            let place = (N - 1) * V::BYTES;
            let (data, len) = (data.add(place), len - place);
            let kept = head::<V>(len);
            let before = V::load_head(data, len);
            let after = states[N - 1].last_round(V::splat(key)).and(kept).xor(before);
            after.store_head(data, len);
            let x = if OPENS { before } else { after };
            let power = renewed(material).power(highest - (N - 1) * V::BLOCKS);
            products.add(Products::of(x.and(kept).reverse().xor(hash), power));
            products.reduce().reverse().xor(mask)
        }
    }

    #[inline(always)]
    unsafe fn finish_any<const OPENS: bool>(self, material: &Material) -> __m128i {
        unsafe {
            match self.len.div_ceil(V::BYTES) {
                0 => self.finish::<0, OPENS>(material),
                1 => self.finish::<1, OPENS>(material),
                2 => self.finish::<2, OPENS>(material),
                3 => self.finish::<3, OPENS>(material),
                4 => self.finish::<4, OPENS>(material),
                5 => self.finish::<5, OPENS>(material),
                6 => self.finish::<6, OPENS>(material),
                7 => self.finish::<7, OPENS>(material),
                _ => self.finish::<8, OPENS>(material),
            }
        }
    }
}

/// A nonce, as two numbers: the first four bytes and the other eight, both in network order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nonce {
    pub(crate) head: u32,
    pub(crate) tail: u64,
}

/// Encrypts or decrypts the payload and returns the tag that it should have. The packet is `header_len` bytes of header, `len` of
/// payload and room for a tag, which is not written.
///
/// When it encrypts a payload of a chunk or more, all but its first vector and its last one, which may be short, is read from `rest`:
/// that is where the payload's second vector begins.
///
/// # Safety
/// The CPU has the instructions of `V`, and `packet` is valid, for reading and writing, for `header_len`, `len` and 16 bytes. `rest` is
/// valid for reading what is read there, and nothing else writes it; it may be in the packet where that has its second vector.
#[inline(always)]
pub(super) unsafe fn crypt<V: Vector, const OPENS: bool>(
    material: &Material,
    nonce: Nonce,
    packet: *mut u8,
    header_len: usize,
    payload_len: usize,
    rest: *const u8,
) -> __m128i {
    // What is left at the end is less than a chunk in bytes, but it can have as many blocks. The block with the lengths follows.
    const { assert!(CHUNK * V::BLOCKS < POWERS) };
    align_frame();
    unsafe {
        let upper = u64::from(nonce.head) << 32 | nonce.tail >> 32;
        let lower = nonce.tail << 32;
        let first = _mm_set_epi64x(upper as i64, lower as i64 | 1);
        let next = V::splat(first).add(V::counting()).reverse();
        let mut counters = Counters { next, number: 2 };
        let mut hash = hash_header(material, packet, header_len);
        let mut data = packet.add(header_len);
        let mut source = data.cast_const();
        let mut len = payload_len;
        let (mask, lengths) =
            (first.reverse(), _mm_set_epi64x(header_len as i64 * 8, payload_len as i64 * 8));
        let chunk = CHUNK * V::BYTES;
        if OPENS {
            while len >= chunk {
                hash = open_chunk(material, data, &mut counters, hash);
                data = data.add(chunk);
                len -= chunk;
            }
            source = data;
        } else if len >= chunk {
            let mut last = seal_first_chunk(material, rest, data, &mut counters);
            data = data.add(chunk);
            source = rest.add(chunk - V::BYTES);
            len -= chunk;
            while len >= chunk {
                hash = seal_chunk(material, source, data, &mut counters, (&mut last, hash));
                data = data.add(chunk);
                source = source.add(chunk);
                len -= chunk;
            }
            let tail = Tail { source, data, len, counters, chunk: Some(last), hash, mask, lengths };
            return tail.finish_any::<OPENS>(material);
        }
        let tail = Tail { source, data, len, counters, chunk: None, hash, mask, lengths };
        tail.finish_any::<OPENS>(material)
    }
}
