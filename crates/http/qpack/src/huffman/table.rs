//! The code's tables, computed at compile time from the lengths of its codes.
//!
//! The code is canonical (RFC 7541 appendix B): codes of one length are consecutive numbers in the order of their symbols,
//! and the first of a length follows from the last of the length before. The lengths therefore say everything.

/// The symbol that ends a text. It never appears in one.
pub(super) const EOS: u16 = 256;

/// Bits of the longest code.
const LONGEST: usize = 30;

/// Bits that one look-up sees.
pub(super) const PAIR_BITS: u32 = 12;

const SYMBOLS: usize = 257;

/// Bits of each symbol's code. The last is EOS.
pub(super) const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26, 30,
];

/// Codes of one length.
#[derive(Clone, Copy)]
pub(super) struct LengthRow {
    pub(super) bits: u32,
    /// The first code of this length, at the top of 32 bits.
    pub(super) first_code: u32,
    /// The first 32-bit number above all codes of this length. Larger than 32 bits for the last row.
    pub(super) end: u64,
    /// The place of the first code's symbol in [`SYMBOLS_BY_CODE`].
    pub(super) first_index: usize,
}

/// All lengths that occur, shortest first: `end` rises from row to row.
pub(super) static LENGTH_ROWS: [LengthRow; 21] = TABLES.rows;

/// Symbols in the order of their codes.
pub(super) static SYMBOLS_BY_CODE: [u16; SYMBOLS] = TABLES.symbols;

/// Code and length of each byte: the length in the low 8 bits.
static CODES: [u64; 256] = TABLES.codes;

/// A byte's code, right-aligned, and its length in bits.
#[inline]
pub(super) fn code(byte: u8) -> (u32, u32) {
    let packed = CODES.get(usize::from(byte)).copied().unwrap_or(0);
    ((packed >> 8) as u32, (packed & 0xff) as u32)
}

struct Tables {
    rows: [LengthRow; 21],
    symbols: [u16; SYMBOLS],
    codes: [u64; 256],
}

const TABLES: Tables = tables();

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where a wrong index does not compile"
)]
const fn tables() -> Tables {
    let mut tables = Tables {
        rows: [LengthRow { bits: 0, first_code: 0, end: 0, first_index: 0 }; 21],
        symbols: [0; SYMBOLS],
        codes: [0; 256],
    };
    let mut next_code = 0_u64;
    let mut next_index = 0;
    let mut next_row = 0;
    let mut bits = 1;
    while bits <= LONGEST as u32 {
        next_code <<= 1;
        let row = LengthRow {
            bits,
            first_code: (next_code << (32 - bits)) as u32,
            end: 0,
            first_index: next_index,
        };
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as u32 == bits {
                tables.symbols[next_index] = symbol as u16;
                if symbol < 256 {
                    tables.codes[symbol] = next_code << 8 | bits as u64;
                }
                next_index += 1;
                next_code += 1;
            }
            symbol += 1;
        }
        if next_index > row.first_index {
            tables.rows[next_row] = LengthRow { end: next_code << (32 - bits), ..row };
            next_row += 1;
        }
        bits += 1;
    }
    // A complete code uses up all numbers of the longest length.
    assert!(next_code == 1 << LONGEST && next_index == SYMBOLS && next_row == 21);
    tables
}

/// What 12 bits begin with: one or two symbols and the bits they take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct DecoderStep(u32);

/// The 12 bits begin a code that is longer.
pub(super) const LONG: DecoderStep = DecoderStep(0);

impl DecoderStep {
    const fn new(symbols: u32, count: u32, bits: u32) -> DecoderStep {
        DecoderStep(symbols | count << 19 | bits << 24)
    }

    /// The symbols, the first in the low byte, zeros above the last.
    #[inline]
    pub(super) const fn symbols(self) -> u16 {
        self.0 as u16
    }

    /// The bits of the symbols: 8 or 16.
    #[inline]
    pub(super) const fn symbol_bits(self) -> u32 {
        self.0 >> 16 & 0xff
    }

    /// The bits of their codes.
    #[inline]
    pub(super) const fn bits(self) -> u32 {
        self.0 >> 24
    }
}

/// The look-up table, by the next 12 bits.
pub(super) static PAIRS: [DecoderStep; 1 << PAIR_BITS] = pairs();

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where a wrong index does not compile"
)]
const fn pairs() -> [DecoderStep; 1 << PAIR_BITS] {
    // First the single symbols: each fills all numbers that begin with its code.
    let mut table = [LONG; 1 << PAIR_BITS];
    let mut symbol = 0;
    while symbol < 256 {
        let bits = LENGTHS[symbol] as u32;
        if bits <= PAIR_BITS {
            let first = ((TABLES.codes[symbol] >> 8) as usize) << (PAIR_BITS - bits);
            let mut index = first;
            while index < first + (1 << (PAIR_BITS - bits)) {
                table[index] = DecoderStep::new(symbol as u32, 1, bits);
                index += 1;
            }
        }
        symbol += 1;
    }
    // Then a second one where what is left of the 12 bits holds a whole code.
    let singles = table;
    let mut index = 0;
    while index < 1 << PAIR_BITS {
        let first = singles[index];
        if first.symbol_bits() == 8 {
            let second = singles[index << first.bits() & ((1 << PAIR_BITS) - 1)];
            if second.symbol_bits() == 8 && first.bits() + second.bits() <= PAIR_BITS {
                let symbols = first.symbols() as u32 | (second.symbols() as u32) << 8;
                table[index] = DecoderStep::new(symbols, 2, first.bits() + second.bits());
            }
        }
        index += 1;
    }
    table
}
