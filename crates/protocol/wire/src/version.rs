//! QUIC versions. RFC 9000 §15, RFC 9369 §3.1.

use core::fmt;

/// The version field of a long header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub u32);

impl Version {
    /// Not a version: marks a Version Negotiation packet. RFC 8999 §6.
    pub const NEGOTIATION: Version = Version(0);
    /// RFC 9000.
    pub const V1: Version = Version(1);
    /// RFC 9369.
    //= rfc9369/3.1#1
    pub const V2: Version = Version(0x6b33_43cf);
    /// The versions built here, the preferred one first.
    pub const SUPPORTED: [Version; 2] = [Version::V1, Version::V2];

    /// Whether this crate reads and writes the version's packets.
    #[inline]
    pub const fn is_supported(self) -> bool {
        matches!(self, Version::V1 | Version::V2)
    }

    /// Whether the version is of the form 0x?a?a?a?a, reserved to exercise version negotiation. RFC 9000 §15.
    #[inline]
    pub const fn is_reserved(self) -> bool {
        self.0 & 0x0f0f_0f0f == 0x0a0a_0a0a
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Version::V1 => f.write_str("QUIC v1"),
            Version::V2 => f.write_str("QUIC v2"),
            Version(other) => write!(f, "version {other:#010x}"),
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_versions_are_told_from_real_ones() {
        assert!(Version(0x1a2a_3a4a).is_reserved());
        assert!(
            !Version::V1.is_reserved() && !Version::V2.is_reserved() && !Version::NEGOTIATION.is_reserved()
        );
        assert!(!Version(0x1a2a_3a4b).is_supported());
    }
}
