//! The AEADs of QUIC and how often a key may be used. RFC 9001 §5.3, §6.6.

use core::fmt;

/// A TLS 1.3 cipher suite, by its AEAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suite {
    /// TLS_AES_128_GCM_SHA256. Initial packets always use it.
    Aes128Gcm,
    /// TLS_AES_256_GCM_SHA384.
    Aes256Gcm,
    /// TLS_CHACHA20_POLY1305_SHA256.
    ChaCha20Poly1305,
}

impl Suite {
    /// All suites.
    pub const ALL: [Suite; 3] = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305];

    /// Bytes in a key, for packets and headers alike.
    #[inline]
    pub const fn key_len(self) -> usize {
        match self {
            Suite::Aes128Gcm => 16,
            Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => 32,
        }
    }

    /// Packets that may be sealed with one key; at this number the key must be updated or the connection closed.
    #[inline]
    pub const fn confidentiality_limit(self) -> u64 {
        match self {
            Suite::Aes128Gcm | Suite::Aes256Gcm => 1 << 23,
            // More than there are packet numbers.
            Suite::ChaCha20Poly1305 => u64::MAX,
        }
    }

    /// Packets that may fail authentication, over all keys of a connection, before it must close.
    #[inline]
    pub const fn integrity_limit(self) -> u64 {
        match self {
            Suite::Aes128Gcm | Suite::Aes256Gcm => 1 << 52,
            Suite::ChaCha20Poly1305 => 1 << 36,
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Suite::Aes128Gcm => "AES-128-GCM",
            Suite::Aes256Gcm => "AES-256-GCM",
            Suite::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        })
    }
}

/// The suites an endpoint offers or accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SuiteChoice {
    /// All, the one that is fastest on this CPU first.
    #[default]
    All,
    /// A single one.
    Only(Suite),
}

impl SuiteChoice {
    /// The suites in order of preference.
    pub fn suites(self) -> Vec<Suite> {
        match self {
            SuiteChoice::Only(suite) => vec![suite],
            // Without AES instructions ChaCha20 is several times faster, and AES in constant time is slow.
            SuiteChoice::All if !aes::hardware_accelerated() => {
                vec![Suite::ChaCha20Poly1305, Suite::Aes128Gcm, Suite::Aes256Gcm]
            }
            SuiteChoice::All => Suite::ALL.to_vec(),
        }
    }
}
