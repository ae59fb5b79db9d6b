//! Generated bodies, with tercel's documented content: byte `n` is byte `n mod 65521` of the little-endian output of
//! SplitMix64 started at zero. Written from that sentence, so that it tests it.

use bytes::Bytes;

const PERIOD: usize = 65_521;
/// Periods in the block that is lent: about 1 MB, so that a transfer is not made of small pieces.
const REPEATS: usize = 16;

/// An endless body, read in large pieces without copying.
pub(crate) struct Pattern {
    block: Bytes,
    offset: u64,
}

impl Pattern {
    pub(crate) fn at(offset: u64) -> Pattern {
        let mut state = 0_u64;
        let mut period = Vec::with_capacity(PERIOD + 8);
        while period.len() < PERIOD {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = state;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            period.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
        }
        period.truncate(PERIOD);
        Pattern { block: Bytes::from(period.repeat(REPEATS)), offset }
    }

    /// The next piece, at most `limit` bytes.
    pub(crate) fn next(&mut self, limit: u64) -> Bytes {
        let phase = (self.offset % PERIOD as u64) as usize;
        let length = limit.min((self.block.len() - phase) as u64);
        self.offset += length;
        self.block.slice(phase..phase + length as usize)
    }
}

/// The size that a path such as `/bytes/10MB` or `/bytes/512KiB` asks for.
pub(crate) fn size_of(path: &str) -> Option<u64> {
    let text = path.strip_prefix("/bytes/")?;
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
