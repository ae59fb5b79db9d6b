//! Packet numbers: cut to 1 to 4 bytes on the wire, made whole again by the receiver. RFC 9000 §17.1, appendices A.2, A.3.

use crate::varint;
use crate::writer::Writer;

/// How many bytes (1 to 4) packet number `pn` takes when the peer has acknowledged `largest_acked` at most (`None`: nothing
/// yet). Bytes for less than 2^31 outstanding packets are enough; more cannot be told apart by the receiver, so a sender
/// must stop long before.
#[inline]
pub const fn encoded_size(pn: u64, largest_acked: Option<u64>) -> usize {
    let outstanding = match largest_acked {
        Some(acked) => pn.saturating_sub(acked),
        None => pn.saturating_add(1),
    };
    // RFC 9000 §17.1: more than twice the range of outstanding packets must be representable.
    if outstanding < 1 << 7 {
        1
    } else if outstanding < 1 << 15 {
        2
    } else if outstanding < 1 << 23 {
        3
    } else {
        4
    }
}

/// Writes the lowest `size` (1 to 4) bytes of `pn`.
#[inline]
pub fn write(writer: &mut Writer<'_>, pn: u64, size: usize) {
    let [.., a, b, c, d] = pn.to_be_bytes();
    match size {
        1 => writer.u8(d),
        2 => writer.u16(u16::from_be_bytes([c, d])),
        3 => writer.bytes(&[b, c, d]),
        _ => writer.u32(u32::from_be_bytes([a, b, c, d])),
    }
}

/// Reads the truncated packet number of `size` (1 to 4) bytes at the front of `bytes`. `None` if there are fewer bytes.
#[inline]
pub fn read(bytes: &[u8], size: usize) -> Option<u32> {
    Some(match size {
        1 => u32::from(*bytes.first()?),
        2 => u32::from(u16::from_be_bytes(*bytes.first_chunk()?)),
        3 => {
            let [a, b, c] = *bytes.first_chunk()?;
            u32::from_be_bytes([0, a, b, c])
        }
        _ => u32::from_be_bytes(*bytes.first_chunk()?),
    })
}

/// The packet number whose lowest `size` (1 to 4) bytes are `truncated` and that is closest to `expected`, the largest one
/// received plus one (0 when there is none). Never above 2^62-1.
#[inline]
pub const fn expand(truncated: u32, size: usize, expected: u64) -> u64 {
    let window: u64 = match size {
        1 => 1 << 8,
        2 => 1 << 16,
        3 => 1 << 24,
        _ => 1 << 32,
    };
    let half = window >> 1;
    let mask = window.wrapping_sub(1);
    let candidate = (expected & !mask) | (truncated as u64 & mask);
    let too_low = candidate.saturating_add(half) <= expected;
    let too_high = candidate > expected.saturating_add(half) || candidate > varint::MAX;
    if too_low && candidate <= varint::MAX.saturating_sub(window) {
        candidate.saturating_add(window)
    } else if too_high && candidate >= window {
        candidate.saturating_sub(window)
    } else {
        candidate
    }
}
