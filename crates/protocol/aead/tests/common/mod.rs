//! Packets, and what they should look like when they are sealed.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::expect_used, reason = "a test may stop")]

use aead::{Instructions, Key, TAG_LEN};

/// Random numbers that are the same in each run: xorshift64*.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let number = self.next().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }
}

/// The key for all instructions that this CPU has.
pub(crate) fn kernels(key: &[u8]) -> Vec<Key> {
    let keys = Instructions::ALL.map(|instructions| Key::with_instructions(instructions, key));
    keys.into_iter().flatten().collect()
}

/// Another implementation.
pub(crate) trait Reference {
    fn seal(&self, nonce: [u8; 12], packet: &mut [u8], header_len: usize);
}

/// aws-lc and ring, which call assembly: not for Miri.
#[cfg(not(miri))]
pub(crate) mod libraries {
    use super::{Reference, parts};

    impl Reference for aws_lc_rs::aead::LessSafeKey {
        fn seal(&self, nonce: [u8; 12], packet: &mut [u8], header_len: usize) {
            let (header, payload, tag) = parts(packet, header_len);
            let nonce = aws_lc_rs::aead::Nonce::assume_unique_for_key(nonce);
            let aad = aws_lc_rs::aead::Aad::from(header);
            self.seal_in_place_scatter(nonce, aad, payload, &[], tag).expect("a short payload");
        }
    }

    impl Reference for ring::aead::LessSafeKey {
        fn seal(&self, nonce: [u8; 12], packet: &mut [u8], header_len: usize) {
            let (header, payload, tag) = parts(packet, header_len);
            let nonce = ring::aead::Nonce::assume_unique_for_key(nonce);
            let sealed = self.seal_in_place_separate_tag(nonce, ring::aead::Aad::from(header), payload);
            tag.copy_from_slice(sealed.expect("a short payload").as_ref());
        }
    }

    pub(crate) fn of(key: &[u8]) -> [Box<dyn Reference>; 2] {
        use aws_lc_rs::aead as aws_lc;
        use ring::aead as ring;
        let (of_aws_lc, of_ring) = if key.len() == 16 {
            (&aws_lc::AES_128_GCM, &ring::AES_128_GCM)
        } else {
            (&aws_lc::AES_256_GCM, &ring::AES_256_GCM)
        };
        let aws_lc_key = aws_lc::UnboundKey::new(of_aws_lc, key).expect("key length");
        let ring_key = ring::UnboundKey::new(of_ring, key).expect("key length");
        [Box::new(aws_lc::LessSafeKey::new(aws_lc_key)), Box::new(ring::LessSafeKey::new(ring_key))]
    }
}

/// RustCrypto's, which has no assembly.
pub(crate) mod portable {
    use super::{Reference, parts};
    use aes_gcm::aead::{AeadInOut, KeyInit};

    pub(crate) enum Portable {
        Aes128(Box<aes_gcm::Aes128Gcm>),
        Aes256(Box<aes_gcm::Aes256Gcm>),
    }

    impl Portable {
        pub(crate) fn new(key: &[u8]) -> Portable {
            if key.len() == 16 {
                Portable::Aes128(Box::new(aes_gcm::Aes128Gcm::new_from_slice(key).expect("key length")))
            } else {
                Portable::Aes256(Box::new(aes_gcm::Aes256Gcm::new_from_slice(key).expect("key length")))
            }
        }
    }

    impl Reference for Portable {
        fn seal(&self, nonce: [u8; 12], packet: &mut [u8], header_len: usize) {
            let (header, payload, tag) = parts(packet, header_len);
            let sealed = match self {
                Portable::Aes128(key) => key.encrypt_inout_detached(&nonce.into(), header, payload.into()),
                Portable::Aes256(key) => key.encrypt_inout_detached(&nonce.into(), header, payload.into()),
            };
            tag.copy_from_slice(&sealed.expect("a short payload"));
        }
    }
}

fn parts(packet: &mut [u8], header_len: usize) -> (&[u8], &mut [u8], &mut [u8; TAG_LEN]) {
    let (header, rest) = packet.split_at_mut(header_len);
    let (payload, tag) = rest.split_last_chunk_mut().expect("room for the tag");
    (header, payload, tag)
}

/// Seals `plain` by the kernel at `start` of `memory`, where it is and then with a part of the payload elsewhere, compares it with
/// `sealed`, and opens it again. Nothing around it changes.
pub(crate) fn check(
    key: &Key,
    nonce: [u8; 12],
    (plain, sealed): (&[u8], &[u8]),
    header_len: usize,
    memory: (&mut [u8], usize),
) {
    let (memory, start) = memory;
    let end = start + plain.len();
    let what = || format!("{key:?}: {header_len} bytes of header, {} in all, at {start}", plain.len());
    memory.fill(0xa5);
    memory[start..end].copy_from_slice(plain);
    key.seal(nonce, &mut memory[start..end], header_len);
    assert!(memory[start..end] == *sealed, "sealed: {}", what());
    let opened = key.open(nonce, &mut memory[start..end], header_len);
    assert_eq!(opened, Ok(plain.len() - header_len - TAG_LEN), "{}", what());
    let payload_end = end - TAG_LEN;
    assert!(memory[start..payload_end] == plain[..plain.len() - TAG_LEN], "opened: {}", what());
    assert!(memory[payload_end..end] == sealed[sealed.len() - TAG_LEN..], "the tag stays: {}", what());
    let is_untouched = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0xa5);
    assert!(is_untouched(&memory[..start]) && is_untouched(&memory[end..]), "around it: {}", what());
    let before = split(nonce, plain.len() - header_len - TAG_LEN);
    // By itself, so that Miri sees what is read beyond it.
    let rest = plain[header_len + before..plain.len() - TAG_LEN].to_vec();
    memory.fill(0xa5);
    memory[start..start + header_len + before].copy_from_slice(&plain[..header_len + before]);
    key.seal_with(nonce, &mut memory[start..end], header_len, &rest);
    assert!(memory[start..end] == *sealed, "sealed with {} bytes from elsewhere: {}", rest.len(), what());
    assert!(is_untouched(&memory[..start]) && is_untouched(&memory[end..]), "around it: {}", what());
}

/// How many bytes of a payload are in the packet when its rest is elsewhere: mostly few, as in front of a stream's data, or any number.
pub(crate) fn split(nonce: [u8; 12], payload: usize) -> usize {
    let [choice, number, more, ..] = nonce;
    let most = match choice % 8 {
        0 => payload,
        1 => 80,
        2 => 33,
        _ => 17,
    };
    (usize::from(number) << 8 | usize::from(more)) % (most.min(payload) + 1)
}
