//! A packet key between its derivation and its use.
//!
//! What a cipher computes ahead of a key (round keys, powers of the hash key) takes 0.8 KiB and less than a microsecond; the key
//! and the IV that it is computed from take 44 bytes. Keys that are not in use are kept as the latter.

use crate::library::Library;
use crate::packet::PacketKey;
use crate::secret::{RawKey, Secret};
use crate::suite::Suite;
use wire::Version;
use zeroize::Zeroizing;

/// A packet key as the schedule gives it. It is wiped when it is dropped.
pub(crate) struct DerivedKey {
    key: RawKey,
    iv: Zeroizing<[u8; 12]>,
    suite: Suite,
}

impl DerivedKey {
    pub(crate) fn new(version: Version, secret: &Secret) -> DerivedKey {
        let (key, iv) = secret.packet_key(version);
        DerivedKey { key, iv, suite: secret.suite() }
    }

    /// The key, ready for packets of a path.
    pub(crate) fn expand(&self, path: u32) -> PacketKey {
        let (library, key) = (Library::fastest(self.suite), &self.key[..self.suite.key_len()]);
        let mut expanded = PacketKey::with_library(library, self.suite, key, &self.iv);
        expanded.change_path(0, path);
        expanded
    }
}
