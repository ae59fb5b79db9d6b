//! When a collection gives memory back after a peak.

/// Collections of up to this many entries keep their room.
const FEW: usize = 1_024;

/// What a collection of `len` entries and room for `capacity` shrinks to, if an eighth of its room is enough. The room that is
/// left is twice what is used, so that removals are cheap on average.
#[inline]
pub fn room_to_keep(len: usize, capacity: usize) -> Option<usize> {
    (capacity > FEW && len < capacity / 8).then(|| (2 * len).max(FEW / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_or_used_stays() {
        assert_eq!(room_to_keep(0, FEW), None);
        assert_eq!(room_to_keep(1_000, 8_000), None);
        assert_eq!(room_to_keep(999, 8_000), Some(1_998));
        assert_eq!(room_to_keep(0, 8_000), Some(FEW / 2));
    }
}
