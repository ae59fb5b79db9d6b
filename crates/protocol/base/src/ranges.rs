//! Sets of 64-bit numbers kept as disjoint, non-adjacent, ascending half-open ranges, with a bound on their count.
//!
//! A sorted `Vec` rather than a tree: the sets are small by construction (the bound), the common insert touches the last
//! range only, and walking them is a scan of contiguous memory.

use core::ops::Range;

/// Numbers as ascending ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: Vec<Range<u64>>,
}

impl RangeSet {
    /// The empty set. Allocates nothing until the first insert.
    pub const fn new() -> RangeSet {
        RangeSet { ranges: Vec::new() }
    }

    /// Adds `added`. Returns how many of its numbers were new.
    #[inline]
    pub fn insert(&mut self, added: Range<u64>) -> u64 {
        // In order: nearly all inserts extend the last range.
        match self.ranges.last_mut() {
            Some(last) if last.end == added.start && !added.is_empty() => {
                last.end = added.end;
                added.end - added.start
            }
            _ => self.insert_anywhere(added),
        }
    }

    fn insert_anywhere(&mut self, added: Range<u64>) -> u64 {
        if added.is_empty() {
            return 0;
        }
        match self.ranges.last_mut() {
            None => {
                self.ranges.push(added.clone());
                return added.end - added.start;
            }
            Some(last) if added.start > last.end => {
                self.ranges.push(added.clone());
                return added.end - added.start;
            }
            Some(last) if added.start >= last.start => {
                let new = added.end.saturating_sub(last.end);
                last.end = last.end.max(added.end);
                return new;
            }
            Some(_) => {}
        }
        self.insert_within(added)
    }

    fn insert_within(&mut self, added: Range<u64>) -> u64 {
        let first = self.ranges.partition_point(|range| range.end < added.start);
        let after = self.ranges.partition_point(|range| range.start <= added.end);
        let touched = self.ranges.get(first..after).unwrap_or(&[]);
        let held: u64 = touched
            .iter()
            .map(|range| range.end.min(added.end).saturating_sub(range.start.max(added.start)))
            .sum();
        let merged = touched
            .iter()
            .fold(added.clone(), |sum, range| sum.start.min(range.start)..sum.end.max(range.end));
        self.ranges.splice(first..after, [merged]);
        added.end - added.start - held
    }

    /// Takes `removed` out. Returns how many numbers went.
    pub fn remove(&mut self, removed: Range<u64>) -> u64 {
        if removed.is_empty() {
            return 0;
        }
        let first = self.ranges.partition_point(|range| range.end <= removed.start);
        let after = self.ranges.partition_point(|range| range.start < removed.end);
        let touched = self.ranges.get(first..after).unwrap_or(&[]);
        let (Some(front), Some(back)) = (touched.first(), touched.last()) else { return 0 };
        let left = front.start..removed.start;
        let right = removed.end..back.end;
        let gone = touched
            .iter()
            .map(|range| range.end.min(removed.end).saturating_sub(range.start.max(removed.start)))
            .sum();
        let kept = [left, right].into_iter().filter(|range| !range.is_empty());
        self.ranges.splice(first..after, kept);
        gone
    }

    /// Removes and returns the lowest range.
    pub fn pop_first(&mut self) -> Option<Range<u64>> {
        if self.ranges.is_empty() { None } else { Some(self.ranges.remove(0)) }
    }

    /// Whether `number` is in the set.
    pub fn contains(&self, number: u64) -> bool {
        let next = self.ranges.partition_point(|range| range.end <= number);
        self.ranges.get(next).is_some_and(|range| range.start <= number)
    }

    /// What the set has in common with `range`, ascending.
    pub fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self.ranges.partition_point(|held| held.end <= range.start);
        self.ranges
            .get(first..)
            .unwrap_or(&[])
            .iter()
            .map(move |held| held.start.max(range.start)..held.end.min(range.end))
            .take_while(|common| !common.is_empty())
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + '_ {
        self.ranges.iter().cloned()
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.first().cloned()
    }

    /// The highest range.
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.last().cloned()
    }

    /// How many ranges there are, not how many numbers.
    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Gives back memory that the ranges of now do not need.
    pub fn shrink(&mut self) {
        self.ranges.shrink_to_fit();
    }

    /// Forgets the lowest ranges until at most `count` are left.
    pub fn keep_highest(&mut self, count: usize) {
        let excess = self.ranges.len().saturating_sub(count);
        self.ranges.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check_shape(set: &RangeSet) {
        let ranges: Vec<_> = set.iter().collect();
        assert!(ranges.iter().all(|range| range.start < range.end));
        assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{ranges:?}");
    }

    proptest! {
        /// The set agrees with a plain set of numbers after any sequence of inserts and removals.
        #[test]
        fn agrees_with_a_plain_set(steps in prop::collection::vec((any::<bool>(), 0u64..64, 0u64..16), 0..60)) {
            let mut set = RangeSet::new();
            let mut plain = BTreeSet::new();
            for (add, start, len) in steps {
                let range = start..start + len;
                let before = plain.len();
                if add {
                    plain.extend(range.clone());
                    prop_assert_eq!(set.insert(range), (plain.len() - before) as u64);
                } else {
                    plain.retain(|number| !range.contains(number));
                    prop_assert_eq!(set.remove(range), (before - plain.len()) as u64);
                }
                check_shape(&set);
                prop_assert!((0..90).all(|number| set.contains(number) == plain.contains(&number)));
                let common: Vec<u64> = set.overlapping(start..start + 9).flatten().collect();
                prop_assert_eq!(common, plain.range(start..start + 9).copied().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn keeps_the_highest() {
        let mut set = RangeSet::new();
        for start in 0..10 {
            set.insert(start * 10..start * 10 + 1);
        }
        set.keep_highest(3);
        assert_eq!(set.iter().collect::<Vec<_>>(), [70..71, 80..81, 90..91]);
        assert_eq!(set.pop_first(), Some(70..71));
    }
}
