//! A cursor over received bytes.
//!
//! It holds what is left, as a slice, so that every read is one length check and no index arithmetic; the whole length is
//! kept beside it to tell positions. A failed read leaves the cursor where it was.

use crate::error::Malformed;

const ENDS_EARLY: Malformed = Malformed("the bytes end early");

/// Reads values off the front of a slice. Copying it is cheap and saves the position.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    whole: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, whole: bytes.len() }
    }

    /// Whether everything has been read.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes are left.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// How many bytes have been read.
    #[inline]
    pub const fn position(&self) -> usize {
        self.whole.saturating_sub(self.rest.len())
    }

    /// What is left, without reading it.
    #[inline]
    pub const fn peek(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads all that is left.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    /// Reads `N` bytes into an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(*array)
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    /// Reads 16 bits, big-endian.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads 32 bits, big-endian.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads 64 bits, big-endian.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a variable-length integer, at most [`crate::varint::MAX`]. RFC 9000 §16.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let (&first, rest) = self.rest.split_first().ok_or(ENDS_EARLY)?;
        // The size is the same from packet to packet for most fields, so these branches predict well.
        match first >> 6 {
            0 => {
                self.rest = rest;
                Ok(u64::from(first))
            }
            1 => self.u16().map(|value| u64::from(value & 0x3fff)),
            2 => self.u32().map(|value| u64::from(value & 0x3fff_ffff)),
            _ => self.u64().map(|value| value & crate::varint::MAX),
        }
    }

    /// Reads `count` bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads a length as a variable-length integer, then that many bytes.
    #[inline]
    pub fn varint_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let mut after = *self;
        let count = usize::try_from(after.varint()?).map_err(|_| ENDS_EARLY)?;
        let bytes = after.bytes(count)?;
        *self = after;
        Ok(bytes)
    }

    /// Passes over bytes of value 0 and returns how many there were.
    #[inline]
    pub fn skip_zeros(&mut self) -> usize {
        // Sixteen at a time: a padded Initial packet has about a thousand.
        let (chunks, _) = self.rest.as_chunks::<16>();
        let whole =
            chunks.iter().take_while(|chunk| u128::from_ne_bytes(**chunk) == 0).count().saturating_mul(16);
        let behind = self.rest.get(whole..).unwrap_or(&[]);
        let count = whole.saturating_add(behind.iter().take_while(|&&byte| byte == 0).count());
        self.rest = self.rest.get(count..).unwrap_or(&[]);
        count
    }
}

#[cfg(test)]
mod tests;
