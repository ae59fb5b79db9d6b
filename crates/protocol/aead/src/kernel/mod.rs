//! The kernel: AES-GCM by the vector instructions of x86-64. All of the crate's `unsafe` is here.
//!
//! `vector` gives vectors of three widths the same operations, `ghash` multiplies, `material` is what is computed once per key, `gcm` the
//! mode for any width. Here the code is compiled once for each width, with the instructions that it needs, behind functions that are safe to call
//! because a [`Kernel`] exists only where the CPU has them.

#![expect(unsafe_code, reason = "vector instructions take pointers, and need a CPU that has them")]

mod gcm;
mod ghash;
#[cfg(test)]
mod lanes;
mod material;
mod vector;

use crate::{Instructions, OpenError, TAG_LEN};
use core::arch::x86_64::*;
pub(crate) use gcm::Nonce;
use material::{CHUNK, Material, RoundKeys};

/// Bytes of the widest vector.
const WIDEST: usize = 64;

/// A key, and the proof that the CPU has the instructions that it is for.
pub(crate) struct Kernel(Material);

impl Instructions {
    /// Blocks of a vector.
    #[inline]
    fn blocks(self) -> usize {
        match self {
            Instructions::Aes128Bits => 1,
            Instructions::Vaes256Bits => 2,
            Instructions::Vaes512Bits => 4,
        }
    }
}

/// The code for vectors of one width.
macro_rules! width {
    ($name:ident, $vector:ty, $features:literal) => {
        mod $name {
            use super::*;

            /// # Safety
            /// The CPU has the features, `packet` is valid for header, payload and tag, `rest` as `gcm::crypt` has it.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn seal(
                key: &Material,
                nonce: Nonce,
                packet: *mut u8,
                header: usize,
                payload: usize,
                rest: *const u8,
            ) {
                // SAFETY: the caller's promise.
                unsafe {
                    let tag = gcm::crypt::<$vector, false>(key, nonce, packet, header, payload, rest);
                    _mm_storeu_si128(packet.add(header + payload).cast(), tag);
                }
            }

            /// Whether the tag was right. If not, the payload is zero.
            ///
            /// # Safety
            /// The CPU has the features, `packet` is valid for header, payload and tag.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn open(
                key: &Material,
                nonce: Nonce,
                packet: *mut u8,
                header: usize,
                payload: usize,
            ) -> bool {
                // SAFETY: the caller's promise.
                unsafe {
                    let tag = gcm::crypt::<$vector, true>(key, nonce, packet, header, payload, packet);
                    let found = _mm_loadu_si128(packet.add(header + payload).cast());
                    let difference = _mm_xor_si128(tag, found);
                    let is_right = _mm_testz_si128(difference, difference) == 1;
                    if !is_right {
                        packet.add(header).write_bytes(0, payload);
                    }
                    is_right
                }
            }
        }
    };
}

width!(one, __m128i, "aes,pclmulqdq,avx");
width!(two, __m256i, "aes,pclmulqdq,avx2,vaes,vpclmulqdq");
width!(four, __m512i, "aes,pclmulqdq,avx2,vaes,vpclmulqdq,avx512f,avx512bw,avx512vl");

impl Kernel {
    /// The kernel for a key of 16 or 32 bytes; `None` for other lengths, or if the CPU lacks the instructions.
    pub(crate) fn new(instructions: Instructions, key: &[u8]) -> Option<Kernel> {
        let is_possible = instructions.are_available() && matches!(key.len(), 16 | 32);
        // SAFETY: all of the instructions include AES-NI, PCLMULQDQ and AVX.
        is_possible.then(|| Kernel(unsafe { Material::new(instructions, key) }))
    }

    #[inline]
    pub(crate) fn instructions(&self) -> Instructions {
        self.0.instructions()
    }

    /// Encrypts the payload and writes the tag behind it.
    ///
    /// # Panics
    /// If the packet is shorter than header and tag, or 64 KiB or longer.
    #[inline]
    pub(crate) fn seal(&self, nonce: Nonce, packet: &mut [u8], header_len: usize) {
        let Some(payload) = payload_len(packet, header_len) else {
            unreachable!("a packet has a header, a tag, and fewer than 65,536 bytes")
        };
        let packet = packet.as_mut_ptr();
        let rest = packet.wrapping_add(header_len + self.vector_len());
        // SAFETY: header, payload and tag are the whole slice, and `rest` is where the payload's second vector is, if it has one.
        unsafe { self.seal_at(nonce, packet, header_len, payload, rest) }
    }

    /// The same. The payload's last bytes are read from `rest`, not from the packet.
    ///
    /// # Panics
    /// If the packet is shorter than header, `rest` and tag, or 64 KiB or longer.
    #[inline(always)] // packets are sealed in two places, and a call would cost each of them 20 instructions
    pub(crate) fn seal_with(&self, nonce: Nonce, packet: &mut [u8], header_len: usize, rest: &[u8]) {
        let payload = payload_len(packet, header_len);
        let before = payload.and_then(|payload| payload.checked_sub(rest.len()));
        let place = before.and_then(|before| packet.get_mut(header_len + before..));
        let (Some(payload), Some(before), Some(place)) = (payload, before, place) else {
            unreachable!("a packet has a header, the rest of the payload, a tag, and fewer than 65,536 bytes")
        };
        let vector = self.vector_len();
        let ends = rest.first_chunk::<WIDEST>().zip(rest.last_chunk::<WIDEST>());
        let Some((first, last)) = ends.filter(|_| before <= vector && payload >= CHUNK * vector) else {
            place[..rest.len()].copy_from_slice(rest);
            return self.seal(nonce, packet, header_len);
        };
        // The first vector and the last one are read in the packet.
        place[..WIDEST].copy_from_slice(first);
        place[rest.len() - WIDEST..rest.len()].copy_from_slice(last);
        let packet = packet.as_mut_ptr();
        // SAFETY: header, payload and tag are the whole slice. The payload's second vector begins in `rest`, which goes on until the
        // payload's end, and which the borrows say is not in the packet.
        unsafe { self.seal_at(nonce, packet, header_len, payload, rest.as_ptr().add(vector - before)) }
    }

    /// # Safety
    /// `packet` is valid for header, payload and tag, and `rest` as `gcm::crypt` has it.
    #[inline]
    unsafe fn seal_at(&self, nonce: Nonce, packet: *mut u8, header: usize, payload: usize, rest: *const u8) {
        let key = &self.0;
        // SAFETY: a kernel exists only if the CPU has the instructions; the rest is the caller's promise.
        unsafe {
            match self.instructions() {
                Instructions::Aes128Bits => one::seal(key, nonce, packet, header, payload, rest),
                Instructions::Vaes256Bits => two::seal(key, nonce, packet, header, payload, rest),
                Instructions::Vaes512Bits => four::seal(key, nonce, packet, header, payload, rest),
            }
        }
    }

    /// Bytes of a vector.
    #[inline]
    fn vector_len(&self) -> usize {
        self.instructions().blocks() * 16
    }

    /// Decrypts the payload if the tag is right.
    #[inline]
    pub(crate) fn open(
        &self,
        nonce: Nonce,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<usize, OpenError> {
        let payload = payload_len(packet, header_len).ok_or(OpenError)?;
        let (key, packet) = (&self.0, packet.as_mut_ptr());
        // SAFETY: a kernel exists only if the CPU has the instructions; header, payload and tag are the whole slice.
        let is_right = unsafe {
            match self.instructions() {
                Instructions::Aes128Bits => one::open(key, nonce, packet, header_len, payload),
                Instructions::Vaes256Bits => two::open(key, nonce, packet, header_len, payload),
                Instructions::Vaes512Bits => four::open(key, nonce, packet, header_len, payload),
            }
        };
        if is_right { Ok(payload) } else { Err(OpenError) }
    }
}

/// A key of AES alone, and the proof that the CPU has the instructions that it is for.
pub(crate) struct Aes(RoundKeys);

impl Aes {
    /// The key of 16 or 32 bytes; `None` for other lengths, or if the CPU lacks the instructions.
    pub(crate) fn new(key: &[u8]) -> Option<Aes> {
        let instructions = Instructions::fastest().filter(|_| matches!(key.len(), 16 | 32))?;
        // SAFETY: all of the instructions include AES-NI, PCLMULQDQ and AVX.
        Some(Aes(unsafe { RoundKeys::new(instructions, key) }))
    }

    /// Encrypts each block by itself.
    #[inline]
    pub(crate) fn encrypt<const N: usize>(&self, blocks: &mut [[u8; 16]; N]) {
        // SAFETY: a key exists only if the CPU has the instructions.
        unsafe { self.0.encrypt(blocks) }
    }
}

/// Bytes between header and tag.
#[inline]
fn payload_len(packet: &[u8], header_len: usize) -> Option<usize> {
    if packet.len() > crate::MAX_PACKET_LEN {
        return None;
    }
    packet.len().checked_sub(TAG_LEN)?.checked_sub(header_len)
}
