//! The Huffman code of RFC 7541 appendix B, which RFC 9204 §4.1.2 uses unchanged.
//!
//! Decoding keeps the next bits left-aligned in a 64-bit word and looks at the top 12. One look-up yields two symbols when
//! both fit in 12 bits, which is what text mostly consists of (its codes have 5 to 7 bits); codes longer than 12 bits are
//! found by comparing with the first code of each length, which works because the code is canonical. The tables are
//! computed at compile time from the 257 code lengths. Rejected: the usual automaton on 4 bits (64 KB and one dependent
//! load for each half byte).

mod table;

use table::{EOS, LENGTHS, LONG, PAIR_BITS, PAIRS, SYMBOLS_BY_CODE};

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

/// Symbols that one refill yields at most, two for each look-up.
const GROUP: usize = 8;

/// Appends the text that `bytes` encodes, at most `limit` bytes of it.
#[inline]
pub(crate) fn decode_within(bytes: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<(), Refused> {
    // The shortest code has 5 bits, so no byte holds more than two symbols on average.
    let most = bytes.len().saturating_mul(2).min(limit);
    let start = out.len();
    // A group more than can be used, because symbols are stored in groups.
    out.resize(start + most + GROUP, 0);
    let outcome = out.get_mut(start..).map_or(Err(Refused::TooLarge), |room| decode_into(bytes, room, most));
    out.truncate(start + outcome.unwrap_or(0));
    outcome.map(|_| ())
}

/// Decodes into `room`, which holds `most` bytes and a group. Returns how many were written, at most `most`.
#[inline]
fn decode_into(bytes: &[u8], room: &mut [u8], most: usize) -> Result<usize, Refused> {
    let mut bits = Bits { word: 0, valid: 0, rest: bytes };
    let mut written = 0_usize;
    loop {
        bits.refill();
        let group = bits.take_group()?;
        if let Some(place) = room.get_mut(written..).and_then(|room| room.first_chunk_mut()) {
            *place = group.symbols.to_le_bytes();
        }
        written += group.bits as usize / 8;
        if written > most {
            return Err(Refused::TooLarge);
        }
        if group.stops {
            let Some(symbol) = bits.take_long()? else { return Ok(written) };
            if written == most {
                return Err(Refused::TooLarge);
            }
            if let Some(place) = room.get_mut(written) {
                *place = symbol;
            }
            written += 1;
        }
    }
}

/// Symbols that were decoded together, the first in the lowest of the `bits` bits.
struct Group {
    symbols: u64,
    bits: u32,
    /// No code of at most 12 bits follows.
    stops: bool,
}

/// The bits not yet decoded: `valid` of them at the top of `word`, then `rest`. The word holds the beginning of `rest` below its
/// valid bits. Behind the text's last bit stand ones, as in its padding (RFC 7541 §5.2): they begin no code of at most 12 bits.
struct Bits<'a> {
    word: u64,
    valid: u32,
    rest: &'a [u8],
}

impl Bits<'_> {
    /// Makes 56 bits or more of the word valid, or all that are left.
    #[inline]
    fn refill(&mut self) {
        let whole = self.rest.first_chunk::<8>();
        let next = whole.map_or_else(|| padded(self.rest), |next| u64::from_be_bytes(*next));
        self.word |= next >> self.valid;
        let taken = ((63 - self.valid) / 8).min(self.rest.len() as u32);
        self.valid += taken * 8;
        self.rest = self.rest.get(taken as usize..).unwrap_or(&[]);
    }

    /// Takes up to eight symbols. To be called after [`Bits::refill`].
    #[inline]
    fn take_group(&mut self) -> Result<Group, Refused> {
        let mut group = Group { symbols: 0, bits: 0, stops: false };
        let mut used = 0;
        // 56 bits at the top of the word are the text's or padding: four look-ups of 12. No shift here reaches 64.
        for _ in 0..GROUP / 2 {
            let entry = PAIRS.get((self.word >> (64 - PAIR_BITS)) as usize).copied().unwrap_or(LONG);
            if entry == LONG {
                group.stops = true;
                break;
            }
            self.word = self.word.wrapping_shl(entry.bits());
            used += entry.bits();
            group.symbols |= u64::from(entry.symbols()).wrapping_shl(group.bits);
            group.bits += entry.symbol_bits();
        }
        self.valid = self.valid.checked_sub(used).ok_or(Refused::Invalid)?;
        Ok(group)
    }

    /// The symbol of a code of more than 12 bits; `None` at a correct end, which looks like one.
    #[inline]
    fn take_long(&mut self) -> Result<Option<u8>, Refused> {
        if self.valid < 8 && self.word.leading_ones() >= self.valid && self.rest.is_empty() {
            return Ok(None);
        }
        self.refill();
        let top = (self.word >> 32) as u32;
        let Some(row) = table::LENGTH_ROWS.iter().find(|row| u64::from(top) < row.end) else {
            return Err(Refused::Invalid);
        };
        let index = row.first_index + ((top - row.first_code) >> (32 - row.bits)) as usize;
        self.word <<= row.bits;
        // Otherwise the code is not whole.
        self.valid = self.valid.checked_sub(row.bits).ok_or(Refused::Invalid)?;
        match SYMBOLS_BY_CODE.get(index) {
            Some(&symbol) if symbol != EOS => Ok(Some(symbol as u8)),
            _ => Err(Refused::Invalid),
        }
    }
}

/// Fewer than 8 bytes at the top of a word, ones below.
#[inline]
fn padded(bytes: &[u8]) -> u64 {
    let ones = u64::MAX.wrapping_shr(8 * bytes.len() as u32);
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        // Four bytes from either end, which may overlap.
        let (first, last) = (u64::from(u32::from_be_bytes(*first)), u64::from(u32::from_be_bytes(*last)));
        first << 32 | last.wrapping_shl(64 - 8 * bytes.len() as u32) | ones
    } else {
        bytes.iter().fold((0, 56), |(word, at), &byte| (word | u64::from(byte) << at, at - 8)).0 | ones
    }
}

#[cfg(test)]
mod tests;
