//! Libraries must agree with each other byte for byte, and no damage may pass.

use super::*;
use proptest::prelude::*;

fn key(library: Library, suite: Suite) -> PacketKey {
    let bytes: Vec<u8> = (0..suite.key_len() as u8).collect();
    PacketKey::with_library(library, suite, &bytes, &[0xa5; 12])
}

/// The packet of `key` as ring seals it: a library that no key is of.
fn sealed_by_ring(suite: Suite, pn: u64, plain: &[u8], header_len: usize) -> Vec<u8> {
    use ring::aead;
    let algorithm = match suite {
        Suite::Aes128Gcm => &aead::AES_128_GCM,
        Suite::Aes256Gcm => &aead::AES_256_GCM,
        Suite::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
    };
    let bytes: Vec<u8> = (0..suite.key_len() as u8).collect();
    let ring = aead::LessSafeKey::new(aead::UnboundKey::new(algorithm, &bytes).unwrap());
    let nonce = aead::Nonce::assume_unique_for_key(key(Library::AwsLc, suite).nonce(pn));
    let (header, payload) = plain.split_at(header_len);
    let mut payload = payload[..payload.len() - TAG_LEN].to_vec();
    ring.seal_in_place_append_tag(nonce, aead::Aad::from(header), &mut payload).unwrap();
    [header, &payload].concat()
}

proptest! {
    /// If libraries differed, a connection would break with the CPU it runs on.
    #[test]
    fn libraries_agree(
        pn: u64, header_len in 0usize..60, len in 0usize..3_000, fill: u8, before in 0usize..60,
    ) {
        for suite in Suite::ALL {
            let plain: Vec<u8> = (0..header_len + len + TAG_LEN).map(|at| fill ^ at as u8).collect();
            let sealed = sealed_by_ring(suite, pn, &plain, header_len);
            for library in Library::ALL {
                let mut packet = plain.clone();
                key(library, suite).seal(pn, &mut packet, header_len);
                prop_assert_eq!(&sealed, &packet);
                let (start, end) = (header_len + before.min(len), header_len + len);
                let mut packet = plain.clone();
                packet[start..].fill(0x77);
                key(library, suite).seal_with(pn, &mut packet, header_len, &plain[start..end]);
                prop_assert_eq!(&sealed, &packet, "with the rest from elsewhere");
            }
            for library in Library::ALL {
                let mut packet = sealed.clone();
                prop_assert_eq!(key(library, suite).open(pn, &mut packet, header_len), Ok(len));
                prop_assert_eq!(&packet[..header_len + len], &plain[..header_len + len]);
            }
        }
    }

    /// A packet with one bit flipped anywhere, or with another number, is refused, and its last 16 bytes stay as they came:
    /// the caller compares them with stateless reset tokens.
    #[test]
    fn damage_is_noticed(pn: u64, len in 0usize..200, at: usize, bit in 0u8..8) {
        for suite in Suite::ALL {
            for library in Library::ALL {
                let key = key(library, suite);
                let mut packet = vec![1; 20 + len + TAG_LEN];
                key.seal(pn, &mut packet, 20);
                let mut damaged = packet.clone();
                let at = at % damaged.len();
                damaged[at] ^= 1 << bit;
                let tail = damaged[20 + len..].to_vec();
                prop_assert_eq!(key.open(pn, &mut damaged, 20), Err(OpenError));
                prop_assert_eq!(&damaged[20 + len..], &tail[..]);
                prop_assert_eq!(key.open(pn ^ 1, &mut packet, 20), Err(OpenError));
            }
        }
    }
}

/// What is too short to be a packet is refused, not a panic: these lengths come from the peer.
#[test]
fn short_packets_are_refused() {
    for suite in Suite::ALL {
        for library in Library::ALL {
            for len in 0..20 + TAG_LEN {
                assert_eq!(key(library, suite).open(0, &mut vec![0; len], 20), Err(OpenError));
            }
        }
    }
}

/// RFC 9001 §6.6.
#[test]
fn limits() {
    let limits = |suite| {
        let key = key(Library::Kernel, suite);
        (key.confidentiality_limit(), key.integrity_limit())
    };
    assert_eq!(limits(Suite::Aes128Gcm), (1 << 23, 1 << 52));
    assert_eq!(limits(Suite::Aes256Gcm), (1 << 23, 1 << 52));
    assert_eq!(limits(Suite::ChaCha20Poly1305), (u64::MAX, 1 << 36));
}

/// draft-ietf-quic-multipath §2.4 has this example. Two paths must never share a nonce.
#[test]
fn the_path_is_part_of_the_nonce() {
    let iv = *b"\x6b\x26\x11\x4b\x9c\xba\x2b\x63\xa9\xe8\xdd\x4f";
    let mut key = PacketKey::with_library(Library::Kernel, Suite::Aes128Gcm, &[7; 16], &iv);
    let of_path_0 = key.nonce(54_321);
    key.change_path(0, 3);
    assert_eq!(key.nonce(54_321), *b"\x6b\x26\x11\x48\x9c\xba\x2b\x63\xa9\xe8\x09\x7e");
    key.change_path(3, 1);
    key.change_path(1, 0);
    assert_eq!(key.nonce(54_321), of_path_0);
}

/// A connection has four packet keys, and a fifth for a while after a key update.
#[test]
fn a_key_is_small() {
    assert!(size_of::<PacketKey>() <= 1_600, "{} bytes", size_of::<PacketKey>());
}
