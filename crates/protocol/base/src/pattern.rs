//! The content of generated bodies: bytes that both ends know, so that a client can verify what it received.
//!
//! Byte `n` of every generated body is byte `n mod 65521` of one block. The block is the little-endian output of
//! SplitMix64 started at zero, cut to 65,521 bytes. It does not compress, needs no disk and no copy to send, and because
//! its period is a prime, data that arrives swapped or repeated at any power-of-two distance is noticed.

use std::sync::LazyLock;

/// Length of the block in bytes: the largest prime below 64 KiB.
pub const PERIOD: usize = 65_521;

/// Two periods in a row, so that one whole period can be lent from any place in it.
static TWICE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let words = (1..=PERIOD.div_ceil(8) as u64).flat_map(|index| split_mix(index).to_le_bytes());
    let period: Vec<u8> = words.take(PERIOD).collect();
    [period.as_slice(), period.as_slice()].concat()
});

fn split_mix(index: u64) -> u64 {
    let state = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The [`PERIOD`] bytes of a generated body that begin at `offset`.
pub fn at(offset: u64) -> &'static [u8] {
    let phase = (offset % PERIOD as u64) as usize;
    TWICE.get(phase..phase + PERIOD).unwrap_or(&[])
}

/// Where `bytes`, received at `offset` of a generated body, first differ from the pattern; `None` when they are right.
pub fn first_difference(offset: u64, bytes: &[u8]) -> Option<u64> {
    let mut place = offset;
    for chunk in bytes.chunks(PERIOD) {
        let right = at(place).get(..chunk.len()).unwrap_or(&[]);
        if right != chunk {
            let same = right.iter().zip(chunk).take_while(|(right, got)| right == got).count();
            return Some(place.saturating_add(same as u64));
        }
        place = place.saturating_add(chunk.len() as u64);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bytes are SplitMix64's published ones: another implementation can verify our bodies.
    #[test]
    fn begins_as_documented() {
        assert_eq!(at(0)[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
        assert_eq!(at(8)[..8], 0x6e78_9e6a_a1b9_65f4_u64.to_le_bytes());
        assert_eq!(at(PERIOD as u64 * 7 + 3), at(3));
    }

    #[test]
    fn finds_the_first_wrong_byte() {
        let mut bytes: Vec<u8> = (0..3).flat_map(|_| at(5)).copied().collect();
        assert_eq!(first_difference(5, &bytes), None);
        assert_eq!(first_difference(6, &bytes[..100]), Some(6));
        bytes[PERIOD + 10] ^= 1;
        assert_eq!(first_difference(5, &bytes), Some(5 + PERIOD as u64 + 10));
    }

    #[test]
    fn notices_blocks_that_changed_places() {
        let whole: Vec<u8> = at(0).iter().chain(at(0)).copied().collect();
        let swapped = [&whole[32_768..65_536], &whole[..32_768]].concat();
        assert_eq!(first_difference(0, &swapped), Some(0));
    }
}
