//! Against the examples of both RFCs: without these no other implementation could read our packets.

use super::*;
use crate::vectors::{DCID, both};

fn secret_of(suite: Suite, bytes: &[u8]) -> Secret {
    let mut padded = [0; MAX_SECRET_LEN];
    padded[..bytes.len()].copy_from_slice(bytes);
    Secret::new(suite, &padded)
}

/// RFC 9001 §A.1, RFC 9369 §A.1.
#[test]
fn initial_secrets_and_keys() {
    for vectors in both() {
        let (client, server) = Secret::initial(vectors.version, &DCID);
        for (side, secret) in [("client", client), ("server", server)] {
            let of = |name: &str| vectors.of(&format!("{side}_{name}"));
            assert_eq!(&secret.bytes[..32], of("secret"));
            let (key, iv) = secret.packet_key(vectors.version);
            assert_eq!(&key[..16], of("key"));
            assert_eq!(&iv[..], of("iv"));
            assert_eq!(&secret.header_key(vectors.version)[..16], of("hp"));
        }
    }
}

/// RFC 9001 §A.5, RFC 9369 §A.5: 32-byte keys, and the secret after a key update.
#[test]
fn chacha20_keys_and_key_update() {
    for vectors in both() {
        let mut secret = secret_of(Suite::ChaCha20Poly1305, vectors.of("chacha_secret"));
        let (key, iv) = secret.packet_key(vectors.version);
        assert_eq!(&key[..], vectors.of("chacha_key"));
        assert_eq!(&iv[..], vectors.of("chacha_iv"));
        assert_eq!(&secret.header_key(vectors.version)[..], vectors.of("chacha_hp"));
        secret.update(vectors.version);
        assert_eq!(&secret.bytes[..32], vectors.of("chacha_ku"));
    }
}

/// A secret of SHA-384 must use all of its 48 bytes: both halves matter to every key.
#[test]
fn aes256_secrets_have_48_bytes() {
    let base = secret_of(Suite::Aes256Gcm, &[7; 48]);
    for at in [0, 31, 32, 47] {
        let mut bytes = [7; 48];
        bytes[at] ^= 1;
        let other = secret_of(Suite::Aes256Gcm, &bytes);
        assert_ne!(base.packet_key(Version::V1).0, other.packet_key(Version::V1).0);
        assert_ne!(base.header_key(Version::V1), other.header_key(Version::V1));
    }
}

/// Debug output ends up in logs.
#[test]
fn debug_output_tells_no_secret() {
    assert_eq!(format!("{:?}", secret_of(Suite::Aes128Gcm, &[7; 32])), "Secret(AES-128-GCM)");
}
