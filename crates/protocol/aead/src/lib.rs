//! AES-GCM for packets, by the vector instructions of x86-64. NIST SP 800-38D, RFC 9001 §5.3.
//!
//! Libraries prepare a context at each call, which for a packet takes as long as its bytes do. A [`Key`] holds all that depends on the
//! key alone: round keys, and powers of the hash key. docs/aead.md tells what the code assumes, for those who review it;
//! docs/decisions/021 what it is worth.
//!
//! On CPUs without the instructions, and on other architectures, no [`Key`] can be made: callers use a library there.

#[cfg_attr(not(target_arch = "x86_64"), path = "kernel/absent.rs")]
mod kernel;

use core::fmt;

/// Bytes that sealing adds to a payload.
pub const TAG_LEN: usize = 16;

/// The longest packet, in bytes, with header and tag.
pub const MAX_PACKET_LEN: usize = 65_535;

/// A packet is not authentic, or too short or too long to be a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenError;

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the packet failed authentication")
    }
}

impl core::error::Error for OpenError {}

/// Instructions that a key's code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// AES-NI and PCLMULQDQ with AVX: a block at a time.
    Aes128Bits,
    /// VAES and VPCLMULQDQ with AVX2: two blocks at a time.
    Vaes256Bits,
    /// VAES and VPCLMULQDQ with AVX-512: four blocks at a time.
    Vaes512Bits,
}

impl Instructions {
    /// All, the fastest first.
    pub const ALL: [Instructions; 3] =
        [Instructions::Vaes512Bits, Instructions::Vaes256Bits, Instructions::Aes128Bits];

    /// The fastest that this CPU has.
    pub fn fastest() -> Option<Instructions> {
        Instructions::ALL.into_iter().find(|instructions| instructions.are_available())
    }

    /// Whether this CPU, and the system, have them.
    #[cfg(target_arch = "x86_64")]
    pub fn are_available(self) -> bool {
        use std::is_x86_feature_detected as has;
        let base = has!("aes") && has!("pclmulqdq") && has!("avx");
        let wide = || has!("avx2") && has!("vaes") && has!("vpclmulqdq");
        match self {
            Instructions::Aes128Bits => base,
            Instructions::Vaes256Bits => base && wide(),
            Instructions::Vaes512Bits => {
                base && wide() && has!("avx512f") && has!("avx512bw") && has!("avx512vl")
            }
        }
    }

    /// Whether this CPU, and the system, have them.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn are_available(self) -> bool {
        false
    }
}

/// A key that seals and opens packets. It is wiped when it is dropped.
pub struct Key(kernel::Kernel);

impl Key {
    /// The key of 16 or 32 bytes, for the fastest instructions of this CPU. `None` if there are none, or for other lengths.
    pub fn new(key: &[u8]) -> Option<Key> {
        Key::with_instructions(Instructions::fastest()?, key)
    }

    /// The key of 16 or 32 bytes, for these instructions. `None` if the CPU lacks them, or for other lengths.
    pub fn with_instructions(instructions: Instructions, key: &[u8]) -> Option<Key> {
        kernel::Kernel::new(instructions, key).map(Key)
    }

    /// What the code is compiled for.
    pub fn instructions(&self) -> Instructions {
        self.0.instructions()
    }

    /// Encrypts a packet in place: a header of `header_len` bytes, which is authenticated, payload, and 16 bytes of room for the tag.
    /// No two packets are sealed with one key and nonce.
    ///
    /// # Panics
    /// If the packet is shorter than header and tag, or longer than [`MAX_PACKET_LEN`].
    #[inline]
    pub fn seal(&self, nonce: [u8; 12], packet: &mut [u8], header_len: usize) {
        self.0.seal(split(nonce), packet, header_len);
    }

    /// The same for a payload that ends elsewhere: its last bytes are those of `rest`. What is in the packet in their place does not
    /// matter, and is overwritten. A long payload of which at most 16 bytes are in front of `rest` is not copied, but for the ends of
    /// `rest`: sealing reads it there.
    ///
    /// # Panics
    /// If the packet is shorter than header, `rest` and tag, or longer than [`MAX_PACKET_LEN`].
    #[inline]
    pub fn seal_with(&self, nonce: [u8; 12], packet: &mut [u8], header_len: usize, rest: &[u8]) {
        self.0.seal_with(split(nonce), packet, header_len, rest);
    }

    /// Decrypts a packet in place and returns how many bytes of plaintext begin at `header_len`.
    ///
    /// # Errors
    /// If the packet is not authentic, shorter than header and tag, or longer than [`MAX_PACKET_LEN`]. In the first case the payload
    /// is then zero; header and tag are as they were, always.
    #[inline]
    pub fn open(&self, nonce: [u8; 12], packet: &mut [u8], header_len: usize) -> Result<usize, OpenError> {
        self.0.open(split(nonce), packet, header_len)
    }
}

/// A key of AES alone: for masks of packet headers, which are blocks encrypted. It is wiped when it is dropped. RFC 9001 §5.4.3.
pub struct BlockKey(kernel::Aes);

impl BlockKey {
    /// The key of 16 or 32 bytes. `None` if this CPU has none of the [`Instructions`], or for other lengths.
    pub fn new(key: &[u8]) -> Option<BlockKey> {
        kernel::Aes::new(key).map(BlockKey)
    }

    /// Encrypts each block by itself. Eight take the CPU little longer than one.
    #[inline]
    pub fn encrypt<const N: usize>(&self, blocks: &mut [[u8; 16]; N]) {
        self.0.encrypt(blocks);
    }
}

#[inline]
fn split(nonce: [u8; 12]) -> kernel::Nonce {
    let [a, b, c, d, tail @ ..] = nonce;
    kernel::Nonce { head: u32::from_be_bytes([a, b, c, d]), tail: u64::from_be_bytes(tail) }
}

impl fmt::Debug for BlockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BlockKey")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.instructions())
    }
}
