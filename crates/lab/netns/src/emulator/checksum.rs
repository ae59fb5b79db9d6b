//! The Internet checksum (RFC 1071): sums, and repairs after one 16-bit word changed (RFC 1624).

/// The sum of `bytes` as 16-bit words, added to `sum`; folded only at the end, by `fold`.
pub(crate) fn add(sum: u32, bytes: &[u8]) -> u32 {
    bytes.chunks(2).fold(sum, |sum, word| {
        sum + u32::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]))
    })
}

/// The sum in 16 bits, carries added in; not complemented.
pub(crate) fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The checksum that a packet with `checksum` needs when its word `old` becomes `new`.
pub(crate) fn repaired(checksum: u16, old: u16, new: u16) -> u16 {
    // RFC 1624 §3, equation 3: complement of (complement of the checksum + complement of the old word + the new word).
    !fold(u32::from(!checksum) + u32::from(!old) + u32::from(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Would break: every packet through the address translator would be dropped by its receiver.
    #[test]
    fn a_repaired_checksum_is_the_one_computed_afresh() {
        for (old, new) in [(0_u16, 0xffff_u16), (0x1234, 0x4321), (0xffff, 1), (40_000, 50_001)] {
            let mut packet = [0x45, 0, 0xab, 0xcd, 0, 0, 9];
            packet[4..6].copy_from_slice(&old.to_be_bytes());
            let before = !fold(add(0, &packet));
            packet[4..6].copy_from_slice(&new.to_be_bytes());
            assert_eq!(repaired(before, old, new), !fold(add(0, &packet)), "{old} to {new}");
        }
    }
}
