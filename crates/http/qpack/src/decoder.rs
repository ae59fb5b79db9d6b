//! Decoding an encoded field section with a dynamic table of capacity 0. RFC 9204 §4.5.
//!
//! What could refer to the dynamic table is an error. Every length is checked against what is left of the limit before
//! the bytes it announces are looked at, and the limit counts decoded bytes, so that a small section cannot become a
//! large one.

use crate::error::DecodeError;
use crate::huffman::{self, Refused};
use crate::integer::{self, Invalid};
use crate::section::{FieldSection, Flags, LINE_OVERHEAD};
use crate::static_table::Index;

mod successive;

pub use successive::{News, SectionDecoder};

/// How much a field section may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The decoded size in bytes: name, value and 32 for each line. RFC 9114 §4.2.2. Values above 1 GiB count as 1 GiB.
    pub max_field_section_size: u64,
    /// The number of lines.
    pub max_lines: usize,
}

/// More than this is never decoded, so that 32 bits count text.
const MOST: u64 = 1 << 30;

impl FieldSection {
    /// Replaces the section's lines by those of an encoded field section.
    ///
    /// # Errors
    /// Afterwards the lines up to the error are there; they mean nothing.
    pub fn decode(&mut self, encoded: &[u8], limits: &Limits) -> Result<(), DecodeError> {
        self.clear();
        let budget = limits.max_field_section_size.min(MOST) as usize;
        let mut input = Input { rest: encoded, budget };
        let outcome = self.decode_lines(&mut input, limits.max_lines);
        self.set_size(budget - input.budget);
        outcome.map_err(DecodeError::from)
    }

    #[inline]
    fn decode_lines(&mut self, input: &mut Input<'_>, max_lines: usize) -> Result<(), Fault> {
        input.prefix()?;
        while let Some((&first, rest)) = input.rest.split_first() {
            input.rest = rest;
            if self.len() >= max_lines {
                return Err(Fault::TooLarge);
            }
            self.decode_line(first, input)?;
        }
        Ok(())
    }

    #[inline]
    fn decode_line(&mut self, first: u8, input: &mut Input<'_>) -> Result<(), Fault> {
        match first >> 4 {
            // 1 T index(6+): indexed field line
            0b1100..=0b1111 => {
                let index = input.static_index(first, 6)?;
                let (name, value) = index.spans();
                input.spend(LINE_OVERHEAD + usize::from(name.len) + usize::from(value.len))?;
                self.push_static(index);
                Ok(())
            }
            // 01 N T index(4+): literal field line with name reference
            0b0101 | 0b0111 => {
                let index = input.static_index(first, 4)?;
                let (name, _) = index.spans();
                input.spend(LINE_OVERHEAD + usize::from(name.len))?;
                let start = self.text_mut().len();
                input.value(self.text_mut())?;
                self.push_value(
                    start,
                    Flags { static_name: Some(index), never_indexed: first & 0b0010_0000 != 0 },
                );
                Ok(())
            }
            // 001 N H length(3+): literal field line with literal name
            0b0010 | 0b0011 => {
                input.spend(LINE_OVERHEAD)?;
                let start = self.text_mut().len();
                input.literal(first, 3, self.text_mut())?;
                let middle = self.text_mut().len();
                input.value(self.text_mut())?;
                let flags = Flags { static_name: None, never_indexed: first & 0b0001_0000 != 0 };
                self.push_literal(start, middle, flags);
                Ok(())
            }
            //= rfc9204/2.2.3#1
            _ => Err(Fault::Reference),
        }
    }
}

/// What is left of the section, and of the limit.
struct Input<'a> {
    rest: &'a [u8],
    budget: usize,
}

impl Input<'_> {
    /// RFC 9204 §4.5.1. With capacity 0 the only possible Required Insert Count is 0, and no Base lies below it.
    fn prefix(&mut self) -> Result<(), Fault> {
        let first = self.byte()?;
        if self.integer(first, 8)? != 0 {
            //= rfc9204/2.1.2#1
            return Err(Fault::InsertCount);
        }
        let first = self.byte()?;
        if first & 0x80 != 0 {
            //= rfc9204/4.5.1.2#1
            return Err(Fault::Base);
        }
        self.integer(first, 7)?;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        let (&first, rest) = self.rest.split_first().ok_or(Fault::EndsEarly)?;
        self.rest = rest;
        Ok(first)
    }

    #[inline]
    fn integer(&mut self, first: u8, bits: u32) -> Result<u64, Fault> {
        integer::read(first, bits, &mut self.rest).map_err(|invalid| match invalid {
            Invalid::EndsEarly => Fault::EndsEarly,
            Invalid::TooLong => Fault::Integer,
        })
    }

    #[inline]
    fn static_index(&mut self, first: u8, bits: u32) -> Result<Index, Fault> {
        let index = self.integer(first, bits)?;
        //= rfc9204/3.1#1
        Index::new(index).ok_or(Fault::Index)
    }

    #[inline]
    fn spend(&mut self, bytes: usize) -> Result<(), Fault> {
        self.budget = self.budget.checked_sub(bytes).ok_or(Fault::TooLarge)?;
        Ok(())
    }

    #[inline]
    fn value(&mut self, text: &mut Vec<u8>) -> Result<(), Fault> {
        let first = self.byte()?;
        self.literal(first, 7, text)
    }

    /// A string literal whose length has a prefix of `bits` bits in `first`, with the Huffman flag above. RFC 9204 §4.1.2.
    #[inline]
    fn literal(&mut self, first: u8, bits: u32, text: &mut Vec<u8>) -> Result<(), Fault> {
        let length = usize::try_from(self.integer(first, bits)?).unwrap_or(usize::MAX);
        let coded = first & 1 << bits != 0;
        //= rfc9204/4.1.2#1
        if !coded && length > self.budget {
            return Err(Fault::TooLarge);
        }
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Fault::EndsEarly)?;
        self.rest = rest;
        if !coded {
            text.extend_from_slice(bytes);
            return self.spend(length);
        }
        let start = text.len();
        huffman::decode_within(bytes, text, self.budget).map_err(|refused| match refused {
            Refused::Invalid => Fault::Huffman,
            Refused::TooLarge => Fault::TooLarge,
        })?;
        self.spend(text.len() - start)
    }
}

/// What is wrong with a section: one byte, because each of its integers and texts may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Reference,
    InsertCount,
    Base,
    EndsEarly,
    Integer,
    Index,
    Huffman,
    TooLarge,
}

impl From<Fault> for DecodeError {
    #[cold]
    fn from(fault: Fault) -> DecodeError {
        DecodeError::failed(match fault {
            Fault::Reference => "reference to a dynamic table of capacity 0",
            Fault::InsertCount => "Required Insert Count above 0 without a dynamic table",
            Fault::Base => "negative Base",
            Fault::EndsEarly => "field section ends early",
            Fault::Integer => "integer above 62 bits or 10 bytes",
            Fault::Index => "index beyond the static table",
            Fault::Huffman => "invalid Huffman code",
            Fault::TooLarge => return DecodeError::TooLarge,
        })
    }
}

#[cfg(test)]
mod tests;
