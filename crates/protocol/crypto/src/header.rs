//! Header protection: masks, made for a whole batch of packets in one pass. RFC 9001 §5.4.
//!
//! One mask is one block of AES, which takes the CPU as long as eight blocks that do not depend on each other. So the
//! interface takes all samples of a batch. Applying a mask is the caller's: it knows where the packet number is. Tercel's own kernel
//! makes the masks where it seals the packets, and the crate `aes` elsewhere.
//!
//! Rejected: the mask functions of ring and aws-lc-rs for AES, which do a single block per call.

use crate::library::Library;
use crate::suite::Suite;
use aes::cipher::{Array, BlockCipherEncrypt, BlockSizeUser, KeyInit, consts::U16};
use core::fmt;

/// Bytes of ciphertext that a mask depends on.
pub const SAMPLE_LEN: usize = 16;

/// Blocks encrypted at once.
const LANES: usize = 8;

/// A key that makes header protection masks.
pub struct HeaderKey(Cipher);

#[expect(
    clippy::large_enum_variant,
    reason = "two per connection, used by every packet: no pointer to follow"
)]
enum Cipher {
    /// Tercel's own, where it seals the packets too.
    Kernel(aead::BlockKey),
    /// The library's has room for what it does without AES instructions: 0.7 to 1 KiB.
    Aes128(Box<aes::Aes128Enc>),
    Aes256(Box<aes::Aes256Enc>),
    ChaCha20(Box<aws_lc_rs::aead::quic::HeaderProtectionKey>),
}

impl HeaderKey {
    /// The key of `key` in the given library.
    ///
    /// # Panics
    /// If `key` does not have the suite's length.
    pub fn with_library(library: Library, suite: Suite, key: &[u8]) -> HeaderKey {
        use aws_lc_rs::aead::quic::{CHACHA20, HeaderProtectionKey};
        assert_eq!(key.len(), suite.key_len(), "a header key of {suite}");
        let own = match (library, suite) {
            (Library::AwsLc, _) | (_, Suite::ChaCha20Poly1305) => None,
            (Library::Kernel | Library::CopyingKernel, _) => aead::BlockKey::new(key),
        };
        let cipher = own.map(Cipher::Kernel).or_else(|| match suite {
            Suite::Aes128Gcm => aes::Aes128Enc::new_from_slice(key).ok().map(Box::new).map(Cipher::Aes128),
            Suite::Aes256Gcm => aes::Aes256Enc::new_from_slice(key).ok().map(Box::new).map(Cipher::Aes256),
            Suite::ChaCha20Poly1305 => {
                HeaderProtectionKey::new(&CHACHA20, key).ok().map(Box::new).map(Cipher::ChaCha20)
            }
        });
        let Some(cipher) = cipher else { unreachable!("a header key has the length of its suite") };
        HeaderKey(cipher)
    }

    /// The mask of one sample.
    #[inline]
    pub fn mask(&self, sample: &[u8; SAMPLE_LEN]) -> [u8; 5] {
        match &self.0 {
            Cipher::Kernel(key) => {
                let mut blocks = [*sample];
                key.encrypt(&mut blocks);
                first_five(&blocks[0])
            }
            Cipher::Aes128(key) => aes_mask(&**key, sample),
            Cipher::Aes256(key) => aes_mask(&**key, sample),
            Cipher::ChaCha20(key) => chacha_mask(key, sample),
        }
    }

    /// The masks of all samples, in one pass.
    ///
    /// # Panics
    /// If the slices differ in length.
    #[inline]
    pub fn masks(&self, samples: &[[u8; SAMPLE_LEN]], masks: &mut [[u8; 5]]) {
        assert_eq!(samples.len(), masks.len(), "one mask per sample");
        if let ([sample], [mask]) = (samples, &mut *masks) {
            *mask = self.mask(sample);
            return;
        }
        match &self.0 {
            Cipher::Kernel(key) => eight_by_eight(samples, masks, |blocks| key.encrypt(blocks)),
            Cipher::Aes128(key) => aes_masks(&**key, samples, masks),
            Cipher::Aes256(key) => aes_masks(&**key, samples, masks),
            Cipher::ChaCha20(key) => {
                for (sample, mask) in samples.iter().zip(masks) {
                    *mask = chacha_mask(key, sample);
                }
            }
        }
    }
}

impl fmt::Debug for HeaderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeaderKey")
    }
}

#[inline]
fn first_five(block: &[u8; SAMPLE_LEN]) -> [u8; 5] {
    let &[a, b, c, d, e, ..] = block;
    [a, b, c, d, e]
}

#[inline]
fn aes_mask(key: &impl BlockCipherEncrypt<BlockSize = U16>, sample: &[u8; SAMPLE_LEN]) -> [u8; 5] {
    let mut block = Array(*sample);
    key.encrypt_block(&mut block);
    first_five(&block.0)
}

#[inline]
fn aes_masks<C>(key: &C, samples: &[[u8; SAMPLE_LEN]], masks: &mut [[u8; 5]])
where
    C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>,
{
    eight_by_eight(samples, masks, |blocks| key.encrypt_blocks(Array::cast_slice_from_core_mut(blocks)));
}

/// Masks by what encrypts eight blocks at once.
#[inline]
fn eight_by_eight(
    samples: &[[u8; SAMPLE_LEN]],
    masks: &mut [[u8; 5]],
    encrypt: impl Fn(&mut [[u8; SAMPLE_LEN]; LANES]),
) {
    for (samples, masks) in samples.chunks(LANES).zip(masks.chunks_mut(LANES)) {
        // A last, partial chunk is filled up with zeros: eight blocks at once cost less than two one after the other.
        let mut blocks = [[0; SAMPLE_LEN]; LANES];
        for (block, sample) in blocks.iter_mut().zip(samples) {
            *block = *sample;
        }
        encrypt(&mut blocks);
        for (mask, block) in masks.iter_mut().zip(&blocks) {
            *mask = first_five(block);
        }
    }
}

/// RFC 9001 §5.4.4.
#[inline]
fn chacha_mask(key: &aws_lc_rs::aead::quic::HeaderProtectionKey, sample: &[u8; SAMPLE_LEN]) -> [u8; 5] {
    let Ok(mask) = key.new_mask(sample) else { unreachable!("a sample has 16 bytes") };
    mask
}

#[cfg(test)]
mod tests;
