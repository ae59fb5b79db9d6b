//! Which coded files do not lie beside a file: remembered for a moment, so that a hot file costs no system call.
//!
//! A table of hashes with a slot for each. Two paths of one slot push each other out, which costs look-ups; two of one hash, of 64
//! bits by a random key, could cost one of them its compression for that moment.

use super::coding::Coding;
use base::time::{Duration, Instant};
use std::hash::{BuildHasher as _, RandomState};

/// How many paths are remembered. A power of two.
const SLOTS: usize = 1_024;
/// For how long.
const FRESH: Duration = Duration::from_secs(1);

/// What is not there.
#[derive(Debug, Default)]
pub(crate) struct Siblings {
    key: RandomState,
    /// Made with the first one.
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    hash: u64,
    /// A bit for each coding.
    absent: u8,
    until: Instant,
}

impl Siblings {
    /// Whether there was no sibling of `path` in this coding just now.
    pub(crate) fn is_absent(&self, path: &[u8], coding: Coding, now: Instant) -> bool {
        let hash = self.key.hash_one(path);
        let slot = self.slots.get(hash as usize % SLOTS);
        slot.is_some_and(|slot| slot.hash == hash && now < slot.until && slot.absent & bit(coding) != 0)
    }

    /// There is none at `now`.
    pub(crate) fn note_absent(&mut self, path: &[u8], coding: Coding, now: Instant) {
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, Slot::default());
        }
        let hash = self.key.hash_one(path);
        let Some(slot) = self.slots.get_mut(hash as usize % SLOTS) else { return };
        if slot.hash != hash || now >= slot.until {
            *slot = Slot { hash, absent: 0, until: now + FRESH };
        }
        slot.absent |= bit(coding);
    }
}

fn bit(coding: Coding) -> u8 {
    1 << coding as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_so_for_a_moment_and_the_table_has_a_bound() {
        let mut siblings = Siblings::default();
        let start = Instant::from_nanos(7);
        assert!(!siblings.is_absent(b"a", Coding::Gzip, start));
        siblings.note_absent(b"a", Coding::Gzip, start);
        siblings.note_absent(b"a", Coding::Zstd, start + FRESH / 2);
        let before = start + FRESH - Duration::from_nanos(1);
        assert!(
            siblings.is_absent(b"a", Coding::Gzip, before) && siblings.is_absent(b"a", Coding::Zstd, before)
        );
        assert!(
            !siblings.is_absent(b"a", Coding::Brotli, start)
                && !siblings.is_absent(b"b", Coding::Gzip, start)
        );
        assert!(!siblings.is_absent(b"a", Coding::Zstd, start + FRESH));
        for number in 0..SLOTS * 4 {
            siblings.note_absent(number.to_string().as_bytes(), Coding::Gzip, start);
        }
        assert_eq!(siblings.slots.len(), SLOTS);
    }
}
