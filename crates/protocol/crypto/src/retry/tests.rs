//! RFC 9001 §A.4, RFC 9369 §A.4.

use super::*;
use crate::vectors::{DCID, both};

#[test]
fn retry_packets_of_the_appendices() {
    for vectors in both() {
        let packet = vectors.of("retry_packet");
        assert!(RetryIntegrity::verify(vectors.version, &DCID, packet));
        let (without, tag) = packet.split_last_chunk::<16>().unwrap();
        assert_eq!(RetryIntegrity::tag(vectors.version, &DCID, without), Some(*tag));
    }
}

/// A Retry for another connection, of another version or damaged must not restart a connection.
#[test]
fn other_retries_are_refused() {
    for vectors in both() {
        let packet = vectors.of("retry_packet").to_vec();
        assert!(!RetryIntegrity::verify(vectors.version, &DCID[..7], &packet));
        assert!(!RetryIntegrity::verify(vectors.version, &[], &packet));
        let other = if vectors.version == Version::V1 { Version::V2 } else { Version::V1 };
        assert!(!RetryIntegrity::verify(other, &DCID, &packet));
        assert!(!RetryIntegrity::verify(Version(0xff00_001d), &DCID, &packet));
        for at in 0..packet.len() {
            let mut damaged = packet.clone();
            damaged[at] ^= 1;
            assert!(!RetryIntegrity::verify(vectors.version, &DCID, &damaged));
            assert!(!RetryIntegrity::verify(vectors.version, &DCID, &packet[..at]));
        }
    }
}

/// Sizes at which the pseudo-packet would not fit.
#[test]
fn oversize_is_refused() {
    assert!(RetryIntegrity::tag(Version::V1, &[0; 20], &[0; MAX_RETRY_LEN]).is_some());
    assert!(RetryIntegrity::tag(Version::V1, &[0; 21], &[0; 10]).is_none());
    assert!(RetryIntegrity::tag(Version::V1, &[0; 20], &[0; MAX_RETRY_LEN + 1]).is_none());
    assert!(!RetryIntegrity::verify(Version::V1, &[], &[0; 70_000]));
}
