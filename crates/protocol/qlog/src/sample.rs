//! Which connections are traced, when not all are.

use core::str::FromStr;

/// A share of all connections, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u32);

impl Share {
    /// Every connection.
    pub const ALL: Share = Share(1_000_000);

    /// `millionths` of all connections, at most all of them.
    pub fn from_millionths(millionths: u32) -> Share {
        Share(millionths.min(Share::ALL.0))
    }
}

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Share, &'static str> {
        let value: f64 = text.parse().map_err(|_| SHARE_WORDS)?;
        if !(0.0..=1.0).contains(&value) {
            return Err(SHARE_WORDS);
        }
        // Between 0 and a million.
        Ok(Share((value * f64::from(Share::ALL.0)).round() as u32))
    }
}

const SHARE_WORDS: &str = "a share is a number from 0 to 1, such as 0.01";

/// Whether a connection with this original destination connection ID belongs to the share. The answer follows from the ID alone, so
/// that both ends and all workers agree; the ID is random, and its hash is spread evenly.
pub fn is_sampled(original_dcid: &[u8], share: Share) -> bool {
    // FNV-1a, and the last step of splitmix64, as FNV leaves the upper bits of short inputs uneven.
    let mut hash = original_dcid.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    // The upper half of the product: from 0 to a million less one.
    let place = (u128::from(hash) * u128::from(Share::ALL.0)) >> 64;
    place < u128::from(share.0)
}
