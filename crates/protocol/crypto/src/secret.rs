//! Traffic secrets and what is derived from them. RFC 9001 §5.1, §5.2, §6.1; RFC 9369 §3.3; RFC 8446 §7.1.
//!
//! A [`Secret`] is 32 or 48 bytes, kept inline and wiped when dropped. The derivation is ours, not rustls', because only so
//! the QUIC version may be settled after the TLS session was made (RFC 9369 §4.1), and keys arrive in our own types.

use crate::suite::Suite;
use aws_lc_rs::hkdf::{HKDF_SHA256, HKDF_SHA384, KeyType, Prk, Salt};
use core::fmt;
use wire::Version;
use zeroize::{Zeroize, Zeroizing};

/// The longest secret: SHA-384's.
pub(crate) const MAX_SECRET_LEN: usize = 48;

/// A key as it comes out of the schedule: the first `Suite::key_len` bytes count.
pub(crate) type RawKey = Zeroizing<[u8; 32]>;

/// The words that differ between QUIC versions.
struct Labels {
    key: &'static [u8],
    iv: &'static [u8],
    hp: &'static [u8],
    ku: &'static [u8],
    salt: &'static [u8; 20],
}

// RFC 9001 §5.1, §5.2.
const V1: Labels = Labels {
    key: b"quic key",
    iv: b"quic iv",
    hp: b"quic hp",
    ku: b"quic ku",
    salt: b"\x38\x76\x2c\xf7\xf5\x59\x34\xb3\x4d\x17\x9a\xe6\xa4\xc8\x0c\xad\xcc\xbb\x7f\x0a",
};

// RFC 9369 §3.3.1, §3.3.2.
//= rfc9369/3.3.1#1
const V2: Labels = Labels {
    //= rfc9369/3.3.2#1
    key: b"quicv2 key",
    iv: b"quicv2 iv",
    hp: b"quicv2 hp",
    ku: b"quicv2 ku",
    salt: b"\x0d\xed\xe3\xde\xf7\x00\xa6\xdb\x81\x93\x81\xbe\x6e\x26\x9d\xcb\xf9\xbd\x2e\xd9",
};

const fn labels(version: Version) -> &'static Labels {
    match version {
        Version::V2 => &V2,
        _ => &V1,
    }
}

/// A traffic secret of one direction.
#[derive(Clone)]
pub(crate) struct Secret {
    bytes: [u8; MAX_SECRET_LEN],
    suite: Suite,
}

impl Secret {
    /// The secret of these bytes, of which the suite's hash length counts.
    pub(crate) fn new(suite: Suite, bytes: &[u8; MAX_SECRET_LEN]) -> Secret {
        Secret { bytes: *bytes, suite }
    }

    /// The secrets of the client's and the server's Initial packets. RFC 9001 §5.2.
    pub(crate) fn initial(version: Version, client_dcid: &[u8]) -> (Secret, Secret) {
        //= rfc9001/5.2#1
        let prk = Salt::new(HKDF_SHA256, labels(version).salt).extract(client_dcid);
        let expand = |label: &[u8]| {
            let mut secret = Secret { bytes: [0; MAX_SECRET_LEN], suite: Suite::Aes128Gcm };
            expand_label(&prk, label, &mut secret.bytes[..32]);
            secret
        };
        (expand(b"client in"), expand(b"server in"))
    }

    pub(crate) fn suite(&self) -> Suite {
        self.suite
    }

    /// The packet protection key and IV.
    pub(crate) fn packet_key(&self, version: Version) -> (RawKey, Zeroizing<[u8; 12]>) {
        let (prk, labels) = (self.prk(), labels(version));
        let (mut key, mut iv) = (RawKey::default(), Zeroizing::new([0; 12]));
        expand_label(&prk, labels.key, &mut key[..self.suite.key_len()]);
        expand_label(&prk, labels.iv, &mut iv[..]);
        (key, iv)
    }

    /// The header protection key.
    pub(crate) fn header_key(&self, version: Version) -> RawKey {
        let mut key = RawKey::default();
        expand_label(&self.prk(), labels(version).hp, &mut key[..self.suite.key_len()]);
        key
    }

    /// The secret of the next key phase takes this one's place. RFC 9001 §6.1.
    pub(crate) fn update(&mut self, version: Version) {
        let len = hash_len(self.suite);
        let mut next = Zeroizing::new([0; MAX_SECRET_LEN]);
        expand_label(&self.prk(), labels(version).ku, &mut next[..len]);
        self.bytes = *next;
    }

    fn prk(&self) -> Prk {
        let hash = if hash_len(self.suite) == 48 { HKDF_SHA384 } else { HKDF_SHA256 };
        Prk::new_less_safe(hash, &self.bytes[..hash_len(self.suite)])
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.suite)
    }
}

/// Bytes in the output of the suite's hash function.
pub(crate) const fn hash_len(suite: Suite) -> usize {
    match suite {
        Suite::Aes256Gcm => 48,
        Suite::Aes128Gcm | Suite::ChaCha20Poly1305 => 32,
    }
}

/// A length, as the HKDF interface wants it told.
struct Len(usize);

impl KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label with an empty context. RFC 8446 §7.1.
fn expand_label(prk: &Prk, label: &[u8], out: &mut [u8]) {
    let len = (out.len() as u16).to_be_bytes();
    let label_len = [6 + label.len() as u8];
    let info: [&[u8]; 5] = [&len, &label_len, b"tls13 ", label, &[0]];
    let filled = prk.expand(&info, Len(out.len())).and_then(|okm| okm.fill(out));
    assert!(filled.is_ok(), "HKDF expands to at most 255 hashes, and no label asks for more than two");
}

#[cfg(test)]
mod tests;
