//! Packet protection: AEAD keys that seal and open whole packets in place. RFC 9001 §5.3.
//!
//! A key is a closed enum over library and suite, not a trait object: the call is a jump that predicts well, and the
//! compiler sees through it. Which library does which suite is decided in choice.rs. The nonce is the IV with the packet number added by exclusive or; the IV is kept as two integers so
//! that this is one operation.
//!
//! Invariants: the associated data is everything before the payload, which must be final (packet number included) but not
//! yet header-protected. A failed `open` leaves the ciphertext destroyed, except for the last 16 bytes, which a caller may
//! still compare with stateless reset tokens. The IV is wiped when a key is dropped, and so is what the kernel and aws-lc hold.

use crate::library::Library;
use crate::suite::Suite;
use core::fmt;
use zeroize::Zeroize;

pub use aead::{OpenError, TAG_LEN};

/// A key that seals or opens the packets of one direction.
pub struct PacketKey {
    cipher: Cipher,
    /// The last eight bytes of the IV, as a number.
    iv_tail: u64,
    iv_head: [u8; 4],
    suite: Suite,
}

/// A library's key with all that it computes ahead.
#[expect(
    clippy::large_enum_variant,
    reason = "few per connection, used by every packet: no pointer to follow"
)]
enum Cipher {
    Kernel(aead::Key),
    /// Behind a pointer, so that the variants need no tag beside the key.
    CopyingKernel(Box<aead::Key>),
    AwsLc(aws_lc_rs::aead::LessSafeKey),
}

impl PacketKey {
    /// The key of `key` and `iv` in the given library.
    ///
    /// # Panics
    /// If `key` does not have the suite's length.
    pub fn with_library(library: Library, suite: Suite, key: &[u8], iv: &[u8; 12]) -> PacketKey {
        let &[a, b, c, d, ref tail @ ..] = iv;
        assert_eq!(key.len(), suite.key_len(), "a key of {suite}");
        PacketKey {
            cipher: Cipher::new(library, suite, key),
            iv_head: [a, b, c, d],
            iv_tail: u64::from_be_bytes(*tail),
            suite,
        }
    }

    /// The suite.
    #[inline]
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// Packets that may be sealed with this key. RFC 9001 §6.6.
    #[inline]
    pub fn confidentiality_limit(&self) -> u64 {
        self.suite.confidentiality_limit()
    }

    /// Packets that may fail to open, over all keys of the connection. RFC 9001 §6.6.
    #[inline]
    pub fn integrity_limit(&self) -> u64 {
        self.suite.integrity_limit()
    }

    /// Seals and opens packets of path `to` from now on, and no more those of path `from`: the path ID is part of the nonce.
    /// Fresh keys are those of path 0. draft-ietf-quic-multipath §2.4.
    pub fn change_path(&mut self, from: u32, to: u32) {
        //= multipath/2.4#1
        self.iv_head = (u32::from_be_bytes(self.iv_head) ^ from ^ to).to_be_bytes();
    }

    /// Encrypts a packet in place. `packet` is header, payload and 16 bytes of room for the tag; the header, of
    /// `header_len` bytes with the packet number, is authenticated.
    ///
    /// # Panics
    /// If `packet` is shorter than header and tag, or longer than a datagram can be.
    #[inline]
    pub fn seal(&self, pn: u64, packet: &mut [u8], header_len: usize) {
        let nonce = self.nonce(pn);
        if let Some(key) = self.cipher.kernel() {
            return key.seal(nonce, packet, header_len);
        }
        let (header, rest) = packet.split_at_mut(header_len);
        let Some((payload, tag)) = rest.split_last_chunk_mut::<TAG_LEN>() else {
            unreachable!("the assembler leaves room for the tag");
        };
        self.cipher.seal(nonce, header, payload, tag);
    }

    /// The same for a payload that ends elsewhere: its last bytes are those of `rest`. What is in the packet in their place does not
    /// matter. Tercel's own kernel reads a long `rest` where it is; for libraries it is copied first.
    ///
    /// # Panics
    /// If `packet` is shorter than header, `rest` and tag, or longer than a datagram can be.
    #[inline(always)] // as in the kernel
    pub fn seal_with(&self, pn: u64, packet: &mut [u8], header_len: usize, rest: &[u8]) {
        if let Cipher::Kernel(key) = &self.cipher {
            return key.seal_with(self.nonce(pn), packet, header_len, rest);
        }
        let place = packet.len().checked_sub(TAG_LEN + rest.len()).filter(|start| *start >= header_len);
        let Some(place) = place.and_then(|start| packet.get_mut(start..)?.get_mut(..rest.len())) else {
            unreachable!("the assembler leaves room for the rest and the tag");
        };
        place.copy_from_slice(rest);
        self.seal(pn, packet, header_len);
    }

    /// Decrypts a packet in place and returns how many bytes of plaintext begin at `header_len`.
    ///
    /// # Errors
    /// If the packet is not authentic, or shorter than header and tag. What stood between header and the last 16 bytes is
    /// then lost.
    #[inline]
    pub fn open(&self, pn: u64, packet: &mut [u8], header_len: usize) -> Result<usize, OpenError> {
        let nonce = self.nonce(pn);
        if let Some(key) = self.cipher.kernel() {
            return key.open(nonce, packet, header_len);
        }
        let (header, rest) = packet.split_at_mut_checked(header_len).ok_or(OpenError)?;
        let (payload, tag) = rest.split_last_chunk_mut::<TAG_LEN>().ok_or(OpenError)?;
        self.cipher.open(nonce, header, payload, tag)?;
        Ok(payload.len())
    }

    /// RFC 9001 §5.3: the IV, exclusive-ored with the packet number at its end.
    #[inline]
    fn nonce(&self, pn: u64) -> [u8; 12] {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&self.iv_head);
        //= rfc9001/5.3#1
        nonce[4..].copy_from_slice(&(self.iv_tail ^ pn).to_be_bytes());
        nonce
    }
}

impl Drop for PacketKey {
    fn drop(&mut self) {
        self.iv_head.zeroize();
        self.iv_tail.zeroize();
    }
}

impl fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketKey({})", self.suite)
    }
}

impl Cipher {
    fn new(library: Library, suite: Suite, key: &[u8]) -> Cipher {
        let cipher = match library {
            Library::Kernel | Library::CopyingKernel => match (suite, library) {
                (Suite::ChaCha20Poly1305, _) => None,
                (_, Library::CopyingKernel) => aead::Key::new(key).map(Box::new).map(Cipher::CopyingKernel),
                _ => aead::Key::new(key).map(Cipher::Kernel),
            }
            .or_else(|| Some(Cipher::new(Library::AwsLc, suite, key))),
            Library::AwsLc => {
                use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
                let algorithm = match suite {
                    Suite::Aes128Gcm => &AES_128_GCM,
                    Suite::Aes256Gcm => &AES_256_GCM,
                    Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
                };
                UnboundKey::new(algorithm, key).ok().map(|key| Cipher::AwsLc(LessSafeKey::new(key)))
            }
        };
        let Some(cipher) = cipher else {
            unreachable!("a library refuses keys only for their length, which is checked");
        };
        cipher
    }

    #[inline(always)] // as in the kernel
    fn kernel(&self) -> Option<&aead::Key> {
        match self {
            Cipher::Kernel(key) => Some(key),
            Cipher::CopyingKernel(key) => Some(key),
            Cipher::AwsLc(_) => None,
        }
    }

    #[inline]
    fn seal(&self, nonce: [u8; 12], aad: &[u8], payload: &mut [u8], tag: &mut [u8; TAG_LEN]) {
        let sealed = match self {
            Cipher::Kernel(_) | Cipher::CopyingKernel(_) => unreachable!("the kernel takes whole packets"),
            Cipher::AwsLc(key) => {
                use aws_lc_rs::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.seal_in_place_scatter(nonce, Aad::from(aad), payload, &[], tag).is_ok()
            }
        };
        assert!(sealed, "an AEAD refuses only payloads of gigabytes");
    }

    #[inline]
    fn open(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        payload: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), OpenError> {
        let opened = match self {
            Cipher::Kernel(_) | Cipher::CopyingKernel(_) => unreachable!("the kernel takes whole packets"),
            Cipher::AwsLc(key) => {
                use aws_lc_rs::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.open_in_place_separate_tag(nonce, Aad::from(aad), tag, payload).is_ok()
            }
        };
        if opened { Ok(()) } else { Err(OpenError) }
    }
}

#[cfg(test)]
mod tests;
