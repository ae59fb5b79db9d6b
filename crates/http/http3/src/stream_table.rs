//! What is kept for each open stream of one kind: a hash table without a hash.
//!
//! Stream indices are given out in sequence, so an index modulo the table's size is a place that its neighbours leave
//! free, as in a ring; but a stream that stays open for long does not hold up the others, as it would in a ring. Where two
//! meet, the next free place is taken; removal closes the gap, where any value stands beside its own place. The table never
//! holds more than half its places. The peer chooses which streams stay open and could make a run of full places, but one no
//! longer than the number of its open streams.

/// Values by the index of their stream.
#[derive(Debug)]
pub struct StreamTable<T> {
    /// A power of two, or empty.
    places: Vec<Option<(u64, T)>>,
    len: usize,
    /// Values that do not stand at their own place.
    displaced: usize,
    /// The lowest index that was never opened.
    next: u64,
    /// An empty table with more places gives its memory back.
    kept: usize,
}

const FIRST_SIZE: usize = 8;
/// The places that an empty table keeps at least.
const KEPT_SIZE: usize = 32;

impl<T> Default for StreamTable<T> {
    fn default() -> StreamTable<T> {
        StreamTable::keeping(0)
    }
}

impl<T> StreamTable<T> {
    /// An empty table, which keeps its memory as long as it holds no more than `streams` at a time.
    pub fn keeping(streams: usize) -> StreamTable<T> {
        let kept = streams.saturating_mul(2).checked_next_power_of_two().unwrap_or(usize::MAX).max(KEPT_SIZE);
        StreamTable { places: Vec::new(), len: 0, displaced: 0, next: 0, kept }
    }

    /// Gives the memory back if there is no value.
    pub fn release_memory(&mut self) {
        if self.is_empty() {
            self.places = Vec::new();
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The lowest index that was never opened: an index below it that is not found is over.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Puts in a value for a stream that has none. Indices need not come in order.
    pub fn insert(&mut self, index: u64, value: T) {
        self.next = self.next.max(index + 1);
        if 2 * (self.len + 1) > self.places.len() {
            self.grow();
        }
        self.put(index, value);
        self.len += 1;
    }

    /// Notes that a stream was opened that gets no value.
    pub fn skip(&mut self, index: u64) {
        self.next = self.next.max(index + 1);
    }

    fn put(&mut self, index: u64, value: T) {
        let mask = self.places.len() - 1;
        let wanted = index as usize & mask;
        let mut at = wanted;
        while let Some(Some(_)) = self.places.get(at) {
            at = (at + 1) & mask;
        }
        self.displaced += usize::from(at != wanted);
        if let Some(place) = self.places.get_mut(at) {
            *place = Some((index, value));
        }
    }

    fn grow(&mut self) {
        let size = (2 * self.places.len()).max(FIRST_SIZE);
        let old = core::mem::take(&mut self.places);
        self.displaced = 0;
        self.places.resize_with(size, || None);
        old.into_iter().flatten().for_each(|(index, value)| self.put(index, value));
    }

    #[inline]
    fn find(&self, index: u64) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let mask = self.places.len() - 1;
        let mut at = index as usize & mask;
        // At least half of the places are free, so this ends.
        while let Some(Some((found, _))) = self.places.get(at) {
            if *found == index {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// The value of a stream, if it has one.
    #[inline]
    pub fn entry_mut(&mut self, index: u64) -> Option<&mut T> {
        let at = self.find(index)?;
        self.places.get_mut(at)?.as_mut().map(|(_, value)| value)
    }

    /// Takes a value out.
    pub fn remove(&mut self, index: u64) -> Option<T> {
        let gap = self.find(index)?;
        let (_, removed) = self.places.get_mut(gap)?.take()?;
        self.len -= 1;
        // Mostly all stand at their own places, so that nothing can have stood in the gap.
        if self.displaced > 0 {
            self.close(gap, index);
        }
        if self.len == 0 && self.places.len() > self.kept {
            self.places = Vec::new();
        }
        Some(removed)
    }

    /// Moves back the values that stand behind the gap which `index` left and could have stood in it.
    fn close(&mut self, mut gap: usize, index: u64) {
        let mask = self.places.len() - 1;
        self.displaced -= usize::from(gap != index as usize & mask);
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let Some(Some((found, _))) = self.places.get(at) else { break };
            let wanted = *found as usize & mask;
            // Distances around the ring: `gap` lies between `wanted` and `at`.
            if (at.wrapping_sub(wanted) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.displaced -= usize::from(gap == wanted);
                self.places.swap(gap, at);
                gap = at;
            }
        }
    }

    /// Takes all values out.
    pub fn drain(&mut self) -> impl Iterator<Item = (u64, T)> + use<T> {
        (self.len, self.displaced) = (0, 0);
        core::mem::take(&mut self.places).into_iter().flatten()
    }

    /// All indices with their values, in no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.places.iter_mut().flatten().map(|(index, value)| (*index, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// 100,000 requests beside one that stays open must not take memory for each.
    #[test]
    fn a_stream_that_stays_does_not_hold_the_others() {
        let mut table = StreamTable::<u64>::default();
        table.insert(0, 0);
        for index in 1..100_000 {
            table.insert(index, index);
            assert_eq!(table.remove(index), Some(index));
        }
        assert_eq!(table.places.len(), FIRST_SIZE);
        assert_eq!(table.entry_mut(0), Some(&mut 0));
        assert_eq!(table.next(), 100_000);
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in proptest::collection::vec((0_u64..80, any::<bool>()), 0..400), stride in 1_u64..70) {
            let mut table = StreamTable::<u64>::default();
            let mut model = BTreeMap::new();
            for (step, (number, insert)) in steps.into_iter().enumerate() {
                let index = number * stride;
                if insert && !model.contains_key(&index) {
                    table.insert(index, step as u64);
                    model.insert(index, step as u64);
                } else if !insert {
                    prop_assert_eq!(table.remove(index), model.remove(&index));
                }
                prop_assert_eq!(table.len(), model.len());
                let is_displaced = |(at, place): &(usize, &Option<(u64, u64)>)| {
                    place.is_some_and(|(index, _)| *at != index as usize % table.places.len())
                };
                let displaced = table.places.iter().enumerate().filter(is_displaced).count();
                prop_assert_eq!(table.displaced, displaced);
                for (index, value) in &mut model {
                    prop_assert_eq!(table.entry_mut(*index), Some(value));
                }
            }
            let all: BTreeMap<u64, u64> = table.iter_mut().map(|(index, value)| (index, *value)).collect();
            prop_assert_eq!(&all, &model);
            prop_assert_eq!(table.drain().collect::<BTreeMap<_, _>>(), model);
            prop_assert_eq!((table.len(), table.entry_mut(0)), (0, None));
        }
    }
}
