//! The Huffman code of RFC 7541 appendix B, which RFC 9204 §4.1.2 uses unchanged.
//!
//! Decoding keeps the next bits left-aligned in a 64-bit word and looks at the top 12. One look-up yields two symbols when
//! both fit in 12 bits, which is what text mostly consists of (its codes have 5 to 7 bits); codes longer than 12 bits are
//! found by comparing with the first code of each length, which works because the code is canonical. The tables are
//! computed at compile time from the 257 code lengths. Rejected: the usual automaton on 4 bits (64 KB and one dependent
//! load for each half byte).

mod table;

use table::{EOS, LENGTHS, LONG, LONGEST, PAIR_BITS, PAIRS, SYMBOLS_BY_CODE};

/// Bits that no encoder produces: a wrong padding, an unfinished code, or EOS inside the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidHuffman;

/// Why a string was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Invalid,
    TooLarge,
}

/// How many bytes `text` takes when encoded.
pub(crate) fn encoded_size(text: &[u8]) -> usize {
    let bits: usize =
        text.iter().map(|&byte| LENGTHS.get(usize::from(byte)).map_or(0, |&bits| usize::from(bits))).sum();
    bits.div_ceil(8)
}

/// Appends the Huffman code of `text`, padded with ones to a whole byte.
#[inline]
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let mut word = 0_u64;
    let mut filled = 0_u32;
    for &byte in text {
        let (code, bits) = table::code(byte);
        // At most 31 bits wait and a code has at most 30: they fit.
        word = word << bits | u64::from(code);
        filled += bits;
        if filled >= 32 {
            filled -= 32;
            out.extend_from_slice(&((word >> filled) as u32).to_be_bytes());
        }
    }
    let spare = (8 - filled % 8) % 8;
    let last = ((word << spare | ((1 << spare) - 1)) << (32 - filled - spare)) as u32;
    let size = (filled + spare) as usize / 8;
    out.extend_from_slice(last.to_be_bytes().get(..size).unwrap_or(&[]));
}

/// Appends the text that `bytes` encodes.
///
/// # Errors
/// The bytes are no Huffman code; `out` then ends with what was decoded before.
pub fn decode(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), InvalidHuffman> {
    decode_within(bytes, out, usize::MAX).map_err(|_| InvalidHuffman)
}

/// Appends the text that `bytes` encodes, at most `limit` bytes of it.
pub(crate) fn decode_within(bytes: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<(), Refused> {
    // The shortest code has 5 bits, the longest 30: the text's size is known within a factor before any is decoded.
    if bytes.len().saturating_mul(8) / LONGEST > limit {
        return Err(Refused::TooLarge);
    }
    let most = (bytes.len().saturating_mul(8) / 5).min(limit);
    let start = out.len();
    // Two bytes more than can be used, because symbols are stored in pairs.
    out.resize(start + most + 2, 0);
    let outcome = out.get_mut(start..).map_or(Err(Refused::TooLarge), |room| decode_into(bytes, room, most));
    out.truncate(start + outcome.unwrap_or(0));
    outcome.map(|_| ())
}

/// Decodes into `room`, which holds `most + 2` bytes. Returns how many were written, at most `most`.
#[inline]
fn decode_into(bytes: &[u8], room: &mut [u8], most: usize) -> Result<usize, Refused> {
    let mut bits = Bits { word: 0, valid: 0, rest: bytes };
    let mut written = 0_usize;
    loop {
        bits.refill();
        // A refilled word has at least 56 valid bits as long as input is left: four look-ups of 12.
        for _ in 0..4 {
            let entry = PAIRS.get((bits.word >> (64 - PAIR_BITS)) as usize).copied().unwrap_or(LONG);
            let used = entry.bits();
            if entry == LONG || used > bits.valid {
                match bits.take_one()? {
                    Some(symbol) => {
                        if written >= most {
                            return Err(Refused::TooLarge);
                        }
                        if let Some(place) = room.get_mut(written) {
                            *place = symbol;
                        }
                        written += 1;
                    }
                    None => return Ok(written),
                }
                break;
            }
            bits.skip(used);
            if let Some(place) = room.get_mut(written..).and_then(|room| room.first_chunk_mut::<2>()) {
                *place = entry.symbols();
            }
            written += entry.count();
            if written > most {
                return Err(Refused::TooLarge);
            }
        }
    }
}

/// The bits not yet decoded: `valid` of them at the top of `word`, zeros below, then `rest`.
struct Bits<'a> {
    word: u64,
    valid: u32,
    rest: &'a [u8],
}

impl Bits<'_> {
    #[inline]
    fn refill(&mut self) {
        if let Some(next) = self.rest.first_chunk::<8>() {
            // Whole bytes only: 56 to 63 bits are valid afterwards. Bits beyond them are cleared, as others rely on it.
            let taken = (63 - self.valid) / 8;
            let filled = self.valid + taken * 8;
            self.word |= u64::from_be_bytes(*next) >> self.valid;
            self.word &= !(u64::MAX >> filled);
            self.valid = filled;
            self.rest = self.rest.get(taken as usize..).unwrap_or(&[]);
        } else {
            self.refill_slowly();
        }
    }

    fn refill_slowly(&mut self) {
        while self.valid <= 56 {
            let Some((&byte, rest)) = self.rest.split_first() else { return };
            self.word |= u64::from(byte) << (56 - self.valid);
            self.valid += 8;
            self.rest = rest;
        }
    }

    #[inline]
    fn skip(&mut self, count: u32) {
        self.word <<= count;
        self.valid -= count;
    }

    /// One symbol the careful way: a long code, or near the end. `None` at a correct end.
    #[cold]
    fn take_one(&mut self) -> Result<Option<u8>, Refused> {
        self.refill_slowly();
        if self.valid < 8 && self.is_padding() {
            return Ok(None);
        }
        let top = (self.word >> 32) as u32;
        let Some(row) = table::LENGTH_ROWS.iter().find(|row| u64::from(top) < row.end) else {
            return Err(Refused::Invalid);
        };
        if row.bits > self.valid {
            return Err(Refused::Invalid);
        }
        let index = row.first_index + ((top - row.first_code) >> (32 - row.bits)) as usize;
        match SYMBOLS_BY_CODE.get(index) {
            Some(&symbol) if symbol != EOS => {
                self.skip(row.bits);
                Ok(Some(symbol as u8))
            }
            _ => Err(Refused::Invalid),
        }
    }

    /// Whether all valid bits, fewer than 8, are ones. RFC 7541 §5.2: padding is the beginning of EOS.
    fn is_padding(&self) -> bool {
        self.word.leading_ones() >= self.valid
    }
}

#[cfg(test)]
mod tests;
