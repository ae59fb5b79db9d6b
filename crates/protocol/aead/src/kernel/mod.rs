//! The kernel: AES-GCM by the vector instructions of x86-64. All of the crate's `unsafe` is here.
//!
//! `vector` gives vectors of three widths the same operations, `ghash` multiplies, `material` is what is computed once per key, `gcm` the
//! mode for any width. Here the code is compiled once for each width, with the instructions that it needs, behind functions that are safe to call
//! because a [`Kernel`] exists only where the CPU has them.

#![expect(unsafe_code, reason = "vector instructions take pointers, and need a CPU that has them")]

mod gcm;
mod ghash;
mod material;
mod vector;

use crate::{Instructions, OpenError, TAG_LEN};
use core::arch::x86_64::*;
pub(crate) use gcm::Nonce;
use material::Material;

/// A key, and the proof that the CPU has the instructions that it is for.
pub(crate) struct Kernel(Material);

/// The code for vectors of one width.
macro_rules! width {
    ($name:ident, $vector:ty, $features:literal) => {
        mod $name {
            use super::*;

            /// # Safety
            /// The CPU has the features, `packet` is valid for header, payload and tag.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn seal(
                key: &Material,
                nonce: Nonce,
                packet: *mut u8,
                header: usize,
                payload: usize,
            ) {
                // SAFETY: the caller's promise.
                unsafe {
                    let tag = gcm::crypt::<$vector, false>(key, nonce, packet, header, payload);
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
                    let tag = gcm::crypt::<$vector, true>(key, nonce, packet, header, payload);
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
        if !instructions.are_available() || !matches!(key.len(), 16 | 32) {
            return None;
        }
        // SAFETY: all of the instructions include AES-NI, PCLMULQDQ and AVX.
        Some(Kernel(unsafe { Material::new(instructions, key) }))
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
        let (key, packet) = (&self.0, packet.as_mut_ptr());
        // SAFETY: a kernel exists only if the CPU has the instructions; header, payload and tag are the whole slice.
        unsafe {
            match self.instructions() {
                Instructions::Aes128Bits => one::seal(key, nonce, packet, header_len, payload),
                Instructions::Vaes256Bits => two::seal(key, nonce, packet, header_len, payload),
                Instructions::Vaes512Bits => four::seal(key, nonce, packet, header_len, payload),
            }
        }
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
        // SAFETY: as in `seal`.
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

/// Bytes between header and tag.
#[inline]
fn payload_len(packet: &[u8], header_len: usize) -> Option<usize> {
    if packet.len() > crate::MAX_PACKET_LEN {
        return None;
    }
    packet.len().checked_sub(TAG_LEN)?.checked_sub(header_len)
}
