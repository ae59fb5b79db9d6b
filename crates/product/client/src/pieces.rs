//! What is still missing of a file, cut into pieces that parallel streams fetch.
//!
//! Pieces are handed out from the front, a few for each stream rather than one, so that a slow stream holds up little at
//! the end. A download begins with one request for the first piece: its answer says how long the file is and whether the
//! server knows ranges at all.

use core::ops::Range;
use std::collections::VecDeque;

/// Pieces are not smaller than this, in bytes: each costs a request.
const SMALLEST: u64 = 1 << 20;
/// Pieces are not larger than this, in bytes.
const LARGEST: u64 = 64 << 20;
/// How many pieces a stream gets in the course of a download, roughly.
const PER_STREAM: u64 = 4;

/// The range to ask for first when the length is not known yet.
pub const FIRST: Range<u64> = 0..SMALLEST;

/// Ranges without a request.
#[derive(Clone, Debug)]
pub struct Pieces {
    waiting: VecDeque<Range<u64>>,
    size: u64,
}

/// Nothing to hand out yet, and what is given back is handed out whole.
impl Default for Pieces {
    fn default() -> Pieces {
        Pieces { waiting: VecDeque::new(), size: u64::MAX }
    }
}

impl Pieces {
    /// Pieces of `missing` (ranges in order) for `streams` streams at once.
    pub fn new(missing: impl IntoIterator<Item = Range<u64>>, streams: usize) -> Pieces {
        let waiting: VecDeque<_> = missing.into_iter().filter(|range| !range.is_empty()).collect();
        let total = waiting.iter().map(|range| range.end - range.start).fold(0, u64::saturating_add);
        let streams = u64::try_from(streams).unwrap_or(u64::MAX).max(1);
        let size = match streams {
            1 => u64::MAX,
            _ => (total / streams.saturating_mul(PER_STREAM)).clamp(SMALLEST, LARGEST),
        };
        Pieces { waiting, size }
    }

    /// The next piece for a stream that has nothing to do.
    pub fn next_piece(&mut self) -> Option<Range<u64>> {
        let front = self.waiting.front_mut()?;
        let end = front.end.min(front.start.saturating_add(self.size));
        let piece = front.start..end;
        front.start = end;
        if front.is_empty() {
            self.waiting.pop_front();
        }
        Some(piece)
    }

    /// Takes back what a stream could not fetch; it is the next to be tried.
    pub fn give_back(&mut self, rest: Range<u64>) {
        if !rest.is_empty() {
            self.waiting.push_front(rest);
        }
    }

    /// Whether there is nothing to hand out. Pieces may still be under way.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ranges::RangeSet;
    use proptest::prelude::*;

    #[test]
    fn one_stream_takes_each_gap_whole() {
        let mut pieces = Pieces::new([0..5, 5..5, 10..u64::MAX], 1);
        assert_eq!(pieces.next_piece(), Some(0..5));
        pieces.give_back(3..5);
        assert_eq!(pieces.next_piece(), Some(3..5));
        assert_eq!(pieces.next_piece(), Some(10..u64::MAX));
        assert!(pieces.is_empty() && pieces.next_piece().is_none());
    }

    proptest! {
        /// All pieces together are exactly what was missing, each once, and all streams get some of a large file.
        #[test]
        fn nothing_is_lost_or_fetched_twice(total in 0u64..2_000_000_000, streams in 1usize..20) {
            let mut pieces = Pieces::new(std::iter::once(0..total), streams);
            let mut fetched = RangeSet::new();
            let mut count = 0;
            while let Some(piece) = pieces.next_piece() {
                let length = piece.end - piece.start;
                prop_assert_eq!(fetched.insert(piece), length);
                count += 1;
            }
            prop_assert_eq!(fetched.iter().map(|range| range.end - range.start).sum::<u64>(), total);
            prop_assert!(total < SMALLEST * 20 || count >= streams);
            prop_assert!(count < 2_000);
        }
    }
}
