//! Variable-length integers: 1, 2, 4 or 8 bytes, the size in the two highest bits of the first. RFC 9000 §16.
//!
//! The arithmetic only. [`crate::Reader::varint`] and [`crate::Writer::varint`] move through buffers.

use crate::error::Malformed;

/// The largest value a variable-length integer can hold: 2^62 - 1.
pub const MAX: u64 = (1 << 62) - 1;

/// The most bytes a variable-length integer takes.
pub const MAX_SIZE: usize = 8;

/// How many bytes the shortest encoding of `value` takes: 1, 2, 4 or 8.
#[inline]
pub const fn size(value: u64) -> usize {
    if value < 1 << 6 {
        1
    } else if value < 1 << 14 {
        2
    } else if value < 1 << 30 {
        4
    } else {
        8
    }
}

/// How many bytes an encoding that begins with `first` takes: 1, 2, 4 or 8.
#[inline]
pub const fn size_from_first_byte(first: u8) -> usize {
    match first >> 6 {
        0 => 1,
        1 => 2,
        2 => 4,
        _ => 8,
    }
}

/// Appends the shortest encoding of `value`. A value above [`MAX`] is a broken invariant: asserted, then held at [`MAX`].
pub fn append(out: &mut Vec<u8>, value: u64) {
    debug_assert!(value <= MAX, "{value} does not fit in a variable-length integer");
    let value = value.min(MAX);
    match size(value) {
        1 => out.push(value as u8),
        2 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        4 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// `start + len`, unless it is above [`MAX`]: the check that every offset on the wire needs.
#[inline]
pub fn end_of(start: u64, len: usize) -> Result<u64, Malformed> {
    match start.checked_add(len as u64) {
        Some(end) if end <= MAX => Ok(end),
        _ => Err(Malformed("offset beyond 2^62-1")),
    }
}
