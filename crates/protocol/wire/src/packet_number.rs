//! Packet numbers: cut to 1 to 4 bytes on the wire, made whole again by the receiver. RFC 9000 §17.1, appendices A.2, A.3.

use crate::varint;
use crate::writer::Writer;

/// How many bytes (2 to 4) packet number `pn` takes when the peer has acknowledged `largest_acked` at most (`None`: nothing
/// yet). Bytes for less than 2^31 outstanding packets are enough; more cannot be told apart by the receiver, so a sender
/// must stop long before.
///
/// There is room for sixteen times the outstanding packets, not only for twice as many: a packet that is late is overtaken by those
/// of the next round trips, whose number doubles in slow start, and must be read behind them. A receiver that cannot tell its number
/// drops it as not authentic, which looks like a loss. A single byte is never enough: what follows a few packets may be a burst of hundreds.
#[inline]
pub const fn encoded_size(pn: u64, largest_acked: Option<u64>) -> usize {
    let outstanding = outstanding(pn, largest_acked);
    // RFC 9000 §17.1: more than twice the range of outstanding packets must be representable, and enough for packets that arrive
    // after later ones should be.
    //= rfc9000/17.1#1
    if outstanding < 1 << 12 {
        2
    } else if outstanding < 1 << 20 {
        3
    } else {
        4
    }
}

/// Packet numbers up to `pn` of which nothing is known to have arrived.
#[inline]
const fn outstanding(pn: u64, largest_acked: Option<u64>) -> u64 {
    match largest_acked {
        Some(acked) => pn.saturating_sub(acked),
        None => pn.saturating_add(1),
    }
}

/// How many packet numbers from `pn` on take as many bytes as it does, by [`encoded_size`].
#[inline]
pub const fn equally_long(pn: u64, largest_acked: Option<u64>) -> u64 {
    let end: u64 = match encoded_size(pn, largest_acked) {
        2 => 1 << 12,
        3 => 1 << 20,
        _ => return u64::MAX,
    };
    end.saturating_sub(outstanding(pn, largest_acked))
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
    //= rfc9000/17.1#2
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9000 appendix A.2: the two numbers sent when 0xabe8b3 is acknowledged take 2 and 3 bytes at least.
    #[test]
    fn appendix_a2() {
        assert_eq!(encoded_size(0xac5c02, Some(0xabe8b3)), 3);
        assert_eq!(encoded_size(0xace8fe, Some(0xabe8b3)), 3);
        assert_eq!(encoded_size(0xabe8b3 + 4_095, Some(0xabe8b3)), 2);
    }

    #[test]
    fn numbers_are_equally_long_up_to_the_next_size() {
        for (pn, acked, count) in [
            (0, None, 4_095),
            (4_094, None, 1),
            (4_095, None, 1_044_480),
            (20, Some(19), 4_095),
            (4_115, Some(19), 1_044_480),
        ] {
            assert_eq!(equally_long(pn, acked), count, "{pn} behind {acked:?}");
            let last = pn + count - 1;
            assert_eq!(encoded_size(last, acked), encoded_size(pn, acked));
            assert_eq!(encoded_size(last + 1, acked), encoded_size(pn, acked) + 1);
        }
        assert_eq!(equally_long(1 << 20, Some(0)), u64::MAX, "there is no larger size");
    }

    /// Deleted, a packet that 30 ms of a fast sender overtake would be dropped by its receiver.
    #[test]
    fn a_late_packet_is_read_behind_30_000_and_seven_times_as_many_as_were_outstanding() {
        for outstanding in [1, 15, 16, 100, 4_095, 4_096, 1 << 20] {
            let (acked, pn) = (1 << 40, (1 << 40) + outstanding);
            let size = encoded_size(pn, Some(acked));
            let truncated = (pn & 0xffff_ffff >> (32 - 8 * size)) as u32;
            let overtaken = 30_000.max(7 * outstanding);
            assert_eq!(expand(truncated, size, pn + overtaken), pn, "{outstanding} in {size} bytes");
        }
    }

    /// RFC 9000 appendix A.3: 0x9b32 behind 0xa82f30ea is 0xa82f9b32.
    #[test]
    fn appendix_a3() {
        assert_eq!(expand(0x9b32, 2, 0xa82f30eb), 0xa82f9b32);
    }

    /// RFC 9001 appendix A.2, A.3 and A.5: what the published packets carry.
    #[test]
    fn published_packets() {
        for (pn, size, bytes) in
            [(2u64, 4, &[0, 0, 0, 2][..]), (1, 2, &[0, 1]), (654_360_564, 3, &[0x00, 0xbf, 0xf4])]
        {
            let mut buffer = [0; 4];
            let mut writer = Writer::new(&mut buffer);
            write(&mut writer, pn, size);
            assert_eq!(writer.written(), bytes);
            assert_eq!(expand(read(bytes, size).unwrap(), size, pn), pn);
        }
    }

    #[test]
    fn stays_in_range_at_both_ends() {
        assert_eq!(expand(0, 1, 0), 0);
        assert_eq!(expand(0xff, 1, 0), 0xff, "below 0 there is nothing, so it must be ahead");
        assert_eq!(expand(0, 1, varint::MAX), varint::MAX - 0xff);
        assert_eq!(expand(0xff, 1, varint::MAX + 1), varint::MAX);
        assert_eq!(expand(0, 1, varint::MAX + 1), varint::MAX - 0xff);
        assert_eq!(encoded_size(0, None), 2);
        assert_eq!(encoded_size(u64::MAX, None), 4);
    }

    proptest! {
        /// Whatever was lost, and however packets were reordered within the range that the size was chosen for, the
        /// receiver finds the number that was sent. If this breaks, packets fail to decrypt.
        #[test]
        fn receiver_recovers_what_was_sent(acked in 0..varint::MAX - (1 << 32), ahead in 1u64..1 << 31, seen in any::<u64>()) {
            let pn = acked + ahead;
            let size = encoded_size(pn, Some(acked));
            // The receiver has seen at least what it acknowledged and at most what has been sent since.
            let expected = acked + 1 + seen % ahead;
            let mut buffer = [0; 4];
            let mut writer = Writer::new(&mut buffer);
            write(&mut writer, pn, size);
            prop_assert_eq!(writer.position(), size);
            let truncated = read(writer.written(), size).unwrap();
            prop_assert_eq!(expand(truncated, size, expected), pn);
        }

        /// Any input gives a possible packet number with the given lowest bytes.
        #[test]
        fn expand_is_total(truncated: u32, size in 0usize..6, expected: u64) {
            let expected = expected.min(varint::MAX + 1);
            let pn = expand(truncated, size, expected);
            let mask = if (1..=3).contains(&size) { (1 << (8 * size)) - 1 } else { u64::from(u32::MAX) };
            prop_assert!(pn <= varint::MAX);
            prop_assert_eq!(pn & mask, u64::from(truncated) & mask);
        }
    }
}
