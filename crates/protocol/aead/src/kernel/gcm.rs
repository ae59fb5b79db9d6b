//! AES-GCM of one packet, for vectors of any width. NIST SP 800-38D.
//!
//! The payload goes by in chunks of eight vectors: eight are what hides the latency of an AES round. While a chunk is encrypted,
//! GHASH takes in another one: eight multiplications by eight powers of the hash key, added up, and one reduction. What is left
//! at the end, up to a chunk, is done by a function of its number of vectors. The block with the lengths and the one that masks the
//! tag go along with it.
//!
//! All addresses and branches depend on lengths alone, and on whether a tag is right.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one argument for all: each function's contract, which is that of the one at the end of the file that calls it"
)]

use super::ghash::{Products, multiply};
use super::material::{Material, POWERS};
use super::vector::Vector;
use core::arch::x86_64::*;

/// Vectors of a chunk.
pub(super) const CHUNK: usize = 8;

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

/// The number, of which the compiler knows nothing: a loop that counts by it stays a loop. Unrolled, it would keep all products until
/// the end, and all powers and round keys before it, on the stack.
#[inline(always)]
fn opaque(number: usize) -> usize {
    // Miri knows no assembly.
    #[cfg(miri)]
    return number;
    #[cfg(not(miri))]
    {
        let mut number = number;
        // SAFETY: there is no instruction.
        unsafe {
            core::arch::asm!("/* {0} */", inout(reg) number, options(nomem, nostack, preserves_flags));
        }
        number
    }
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
        let power: __m128i = material.power(1);
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

/// Products of `count` whole vectors at `data`, the first of them times the power `highest` and those below. `hash` is added to the
/// first block.
#[inline(always)]
unsafe fn hash_vectors<V: Vector>(
    material: &Material,
    data: *const u8,
    count: usize,
    highest: usize,
    hash: __m128i,
    products: &mut Products<V>,
) {
    unsafe {
        let mut hash = V::first(hash);
        let mut at = opaque(0);
        while at < count {
            let x = V::load(data.add(at * V::BYTES)).reverse().xor(hash);
            products.add(Products::of(x, material.power(highest - at * V::BLOCKS)));
            hash = V::zero();
            at = opaque(at + 1);
        }
    }
}

/// Vectors of counters, each on its way through AES.
#[inline(always)]
unsafe fn begin<V: Vector, const N: usize>(material: &Material, counters: &mut V) -> [V; N] {
    unsafe {
        let whitening = V::splat(material.round_key(0));
        let step = V::splat(_mm_set_epi32(0, 0, 0, V::BLOCKS as i32));
        let mut states = [*counters; N];
        for state in &mut states {
            *state = counters.reverse().xor(whitening);
            *counters = counters.add(step);
        }
        states
    }
}

/// The last round, and the data, from `source`.
#[inline(always)]
unsafe fn end<V: Vector, const N: usize>(
    material: &Material,
    states: [V; N],
    source: *const u8,
    data: *mut u8,
) {
    unsafe {
        let key = V::splat(material.round_key(material.rounds()));
        for (at, state) in states.into_iter().enumerate() {
            let at = at * V::BYTES;
            if at % CACHE_LINE == 0 {
                _mm_prefetch::<_MM_HINT_T0>(source.wrapping_add(at + AHEAD).cast());
            }
            state.last_round(key.xor(V::load(source.add(at)))).store(data.add(at));
        }
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

/// Encrypts or decrypts a chunk, from `source` to `data`. Meanwhile GHASH takes in the chunk at `hashed`.
#[inline(always)]
unsafe fn crypt_chunk<V: Vector>(
    material: &Material,
    source: *const u8,
    data: *mut u8,
    counters: &mut V,
    hashed: *const u8,
    hash: __m128i,
) -> __m128i {
    unsafe {
        let mut states: [V; CHUNK] = begin(material, counters);
        let mut products = Products::<V>::none();
        let mut at = opaque(1);
        while at < CHUNK {
            round(&mut states, material.round_key(at));
            let x = V::load(hashed.add(at * V::BYTES)).reverse();
            products.add(Products::of(x, material.power((CHUNK - at) * V::BLOCKS)));
            at = opaque(at + 1);
        }
        // The first block comes last: `hash` is the result of the chunk before, and takes its time.
        round(&mut states, material.round_key(CHUNK));
        let x = V::load(hashed).reverse().xor(V::first(hash));
        products.add(Products::of(x, material.power(CHUNK * V::BLOCKS)));
        let mut at = opaque(CHUNK + 1);
        while at < material.rounds() {
            round(&mut states, material.round_key(at));
            at = opaque(at + 1);
        }
        let hash = products.reduce();
        end(material, states, source, data);
        hash
    }
}

/// Encrypts the first chunk: its first vector where it is, the others from `rest`.
#[inline(always)]
unsafe fn crypt_first_chunk<V: Vector>(
    material: &Material,
    rest: *const u8,
    data: *mut u8,
    counters: &mut V,
) {
    unsafe {
        let mut states: [V; CHUNK] = begin(material, counters);
        let mut at = opaque(1);
        while at < material.rounds() {
            round(&mut states, material.round_key(at));
            at = opaque(at + 1);
        }
        let [first, others @ ..] = states;
        end(material, [first], data, data);
        end(material, others, rest, data.add(V::BYTES));
    }
}

/// What a packet's last blocks need.
struct Tail<V> {
    /// Where whole vectors are read, but for the last one.
    source: *const u8,
    data: *mut u8,
    /// Bytes of the payload that are left, less than a chunk.
    len: usize,
    counters: V,
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
            let Tail { source, data, len, mut counters, hash, mask, lengths } = self;
            let mut states: [V; N] = begin(material, &mut counters);
            let mut mask = [mask.xor(material.round_key(0))];
            let mut at = opaque(1);
            while at < material.rounds() {
                round(&mut states, material.round_key(at));
                round(&mut mask, material.round_key(at));
                at = opaque(at + 1);
            }
            let key = material.round_key(material.rounds());
            let mask = mask[0].last_round(key);
            if N == 0 {
                return multiply(lengths.xor(hash), material.power(1)).reverse().xor(mask);
            }
            // The lengths are the last block of all.
            let lengths = Products::<__m128i>::of(lengths, material.power(1));
            let mut products = Products {
                lower: V::first(lengths.lower),
                sums: V::first(lengths.sums),
                upper: V::first(lengths.upper),
            };
            let blocks = len.div_ceil(16);
            let whole = N - 1;
            if OPENS {
                hash_vectors(material, data, whole, blocks + 1, hash, &mut products);
            }
            let mut last = V::zero();
            for (at, state) in states.into_iter().enumerate() {
                if at < whole {
                    let at = at * V::BYTES;
                    end(material, [state], source.add(at), data.add(at));
                } else {
                    last = state;
                }
            }
            if !OPENS {
                hash_vectors(material, data, whole, blocks + 1, hash, &mut products);
            }
            let (data, len) = (data.add(whole * V::BYTES), len - whole * V::BYTES);
            let kept = head::<V>(len);
            let before = V::load_head(data, len);
            let after = last.last_round(V::splat(key)).and(kept).xor(before);
            after.store_head(data, len);
            let mut x = if OPENS { before } else { after }.and(kept).reverse();
            if N == 1 {
                x = x.xor(V::first(hash));
            }
            products.add(Products::of(x, material.power(blocks + 1 - whole * V::BLOCKS)));
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
    unsafe {
        let upper = u64::from(nonce.head) << 32 | nonce.tail >> 32;
        let lower = nonce.tail << 32;
        let first = _mm_set_epi64x(upper as i64, lower as i64 | 1);
        let mut counters = V::splat(first).add(V::counting());
        let mut hash = hash_header(material, packet, header_len);
        let mut data = packet.add(header_len);
        let mut source = data.cast_const();
        let mut len = payload_len;
        let chunk = CHUNK * V::BYTES;
        if len >= chunk {
            if OPENS {
                while len >= chunk {
                    hash = crypt_chunk(material, data, data, &mut counters, data, hash);
                    data = data.add(chunk);
                    len -= chunk;
                }
                source = data;
            } else {
                crypt_first_chunk(material, rest, data, &mut counters);
                source = rest.add(chunk - V::BYTES);
                len -= chunk;
                while len >= chunk {
                    hash = crypt_chunk(material, source, data.add(chunk), &mut counters, data, hash);
                    source = source.add(chunk);
                    data = data.add(chunk);
                    len -= chunk;
                }
                let mut products = Products::<V>::none();
                hash_vectors(material, data, CHUNK, CHUNK * V::BLOCKS, hash, &mut products);
                hash = products.reduce();
                data = data.add(chunk);
            }
        }
        let lengths = _mm_set_epi64x(header_len as i64 * 8, payload_len as i64 * 8);
        let tail = Tail { source, data, len, counters, hash, mask: first.reverse(), lengths };
        tail.finish_any::<OPENS>(material)
    }
}
