//! The integrity tag of Retry packets. RFC 9001 §5.8, RFC 9369 §3.3.3.
//!
//! The keys are printed in the RFCs: the tag guards against accidents and against attackers that have not seen the client's
//! first packet, no more. The packet is joined with the connection ID on the stack, so that a server under attack answers
//! without allocating.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use std::sync::LazyLock;
use wire::Version;
use wire::cid::MAX_LEN as MAX_CID_LEN;
use wire::packet::RETRY_TAG_LEN;

/// The longest Retry packet that is verified: more than any path carries in one piece and any server needs.
const MAX_RETRY_LEN: usize = 1_500;

/// A version's fixed key and nonce.
struct Seal {
    key: LessSafeKey,
    nonce: [u8; 12],
}

static V1: LazyLock<Seal> = LazyLock::new(|| {
    Seal::new(
        b"\xbe\x0c\x69\x0b\x9f\x66\x57\x5a\x1d\x76\x6b\x54\xe3\x68\xc8\x4e",
        b"\x46\x15\x99\xd3\x5d\x63\x2b\xf2\x23\x98\x25\xbb",
    )
});

//= rfc9369/3.3.3#1
static V2: LazyLock<Seal> = LazyLock::new(|| {
    Seal::new(
        b"\x8f\xb4\xb0\x1b\x56\xac\x48\xe2\x60\xfb\xcb\xce\xad\x7c\xcc\x92",
        b"\xd8\x69\x69\xbc\x2d\x7c\x6d\x99\x90\xef\xb0\x4a",
    )
});

impl Seal {
    fn new(key: &[u8; 16], nonce: &[u8; 12]) -> Seal {
        let Ok(key) = UnboundKey::new(&AES_128_GCM, key) else { unreachable!("AES-128 keys have 16 bytes") };
        Seal { key: LessSafeKey::new(key), nonce: *nonce }
    }
}

/// Makes and checks the integrity tags of Retry packets.
#[derive(Clone, Copy, Debug)]
pub struct RetryIntegrity;

impl RetryIntegrity {
    /// The tag of a Retry packet, given without it, that answers an Initial sent to `original_dcid`. `None` if the packet
    /// has more than 1,500 bytes, the connection ID more than 20, or the version is not supported.
    pub fn tag(version: Version, original_dcid: &[u8], packet: &[u8]) -> Option<[u8; RETRY_TAG_LEN]> {
        let seal = match version {
            Version::V1 => &*V1,
            Version::V2 => &*V2,
            _ => return None,
        };
        // RFC 9001 §5.8: the pseudo-packet is the connection ID, with its length before it, and then the packet.
        //= rfc9001/5.8#1
        let mut pseudo = [0; 1 + MAX_CID_LEN + MAX_RETRY_LEN];
        let len = 1 + original_dcid.len() + packet.len();
        if original_dcid.len() > MAX_CID_LEN || packet.len() > MAX_RETRY_LEN {
            return None;
        }
        let (first, rest) = pseudo.split_first_mut()?;
        *first = original_dcid.len() as u8;
        rest.get_mut(..original_dcid.len())?.copy_from_slice(original_dcid);
        rest.get_mut(original_dcid.len()..len - 1)?.copy_from_slice(packet);
        let nonce = Nonce::assume_unique_for_key(seal.nonce);
        let mut tag = [0; RETRY_TAG_LEN];
        let aad = Aad::from(pseudo.get(..len)?);
        seal.key.seal_in_place_scatter(nonce, aad, &mut [], &[], &mut tag).ok()?;
        Some(tag)
    }

    /// Whether the tag at the end of a whole Retry packet is right, in time that does not depend on where it differs.
    pub fn verify(version: Version, original_dcid: &[u8], packet: &[u8]) -> bool {
        let Some((packet, found)) = packet.split_last_chunk::<RETRY_TAG_LEN>() else { return false };
        let expected = RetryIntegrity::tag(version, original_dcid, packet);
        expected.is_some_and(|expected| verify_slices_are_equal(&expected, found).is_ok())
    }
}

#[cfg(test)]
mod tests;
