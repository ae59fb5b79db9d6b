//! Places of streams by the IDs of the streams.
//!
//! A table with open addressing, at most half full: an entry stands at the place that its ID chooses or at one of the next. Removal
//! moves entries back, so that no marks of former ones stay. The hash is a multiplication, which keeps sequential numbers apart: IDs are
//! validated against our own limits before they come here, so a peer that chose them to collide could only make a search among the few
//! streams it may have open.
//!
//! Rejected: the standard library's map, whose look-ups are as fast, while each insertion with its removal takes 95 instructions more;
//! streams come and go with each request.

/// No stream has this ID: it is above 2^62.
const FREE: u64 = u64::MAX;
/// Places of the smallest table.
const LEAST: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// [`FREE`]: there is none.
    id: u64,
    place: u32,
}

const NOTHING: Entry = Entry { id: FREE, place: 0 };

/// The table.
#[derive(Debug, Default)]
pub(super) struct IdTable {
    /// A power of two, or none.
    entries: Vec<Entry>,
    len: usize,
}

impl IdTable {
    /// How many streams are in it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The place of stream `id`.
    #[inline]
    pub(super) fn get(&self, id: u64) -> Option<u32> {
        self.find(id).and_then(|at| self.entries.get(at)).map(|entry| entry.place)
    }

    /// Adds a stream that is not in it.
    #[inline]
    pub(super) fn insert(&mut self, id: u64, place: u32) {
        if 2 * (self.len + 1) > self.entries.len() {
            self.resize((2 * self.entries.len()).max(LEAST));
        }
        self.put(Entry { id, place });
        self.len += 1;
    }

    /// Removes a stream. Whether it was in it.
    #[inline]
    pub(super) fn remove(&mut self, id: u64) -> bool {
        let Some(mut gap) = self.find(id) else { return false };
        self.len -= 1;
        let mut at = gap;
        loop {
            at = self.after(at);
            let Some(entry) = self.entries.get(at).copied().filter(|entry| entry.id != FREE) else { break };
            // Around the ring: the gap lies between the place that the entry would have and the one that it has.
            if self.distance(self.wanted(entry.id), at) >= self.distance(gap, at) {
                self.entries[gap] = entry;
                gap = at;
            }
        }
        self.entries[gap] = NOTHING;
        true
    }

    /// Gives back what the streams of now do not need.
    pub(super) fn release_memory(&mut self) {
        let least = if self.len == 0 { 0 } else { (2 * self.len).next_power_of_two().max(LEAST) };
        if least < self.entries.len() {
            self.resize(least);
        }
    }

    fn resize(&mut self, places: usize) {
        let former = core::mem::replace(&mut self.entries, vec![NOTHING; places]);
        former.into_iter().filter(|entry| entry.id != FREE).for_each(|entry| self.put(entry));
    }

    #[inline]
    fn put(&mut self, entry: Entry) {
        let mut at = self.wanted(entry.id);
        while self.entries[at].id != FREE {
            at = self.after(at);
        }
        self.entries[at] = entry;
    }

    #[inline]
    fn find(&self, id: u64) -> Option<usize> {
        let mut at = self.wanted(id);
        // At least half of the places are free, so this ends.
        loop {
            match self.entries.get(at)?.id {
                found if found == id => return Some(at),
                FREE => return None,
                _ => at = self.after(at),
            }
        }
    }

    /// The place that an ID chooses.
    #[inline]
    fn wanted(&self, id: u64) -> usize {
        // The golden ratio's bits: the upper ones of the product are well mixed.
        let mixed = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        mixed as usize & self.mask()
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & self.mask()
    }

    /// How far it is from one place to another, onwards.
    #[inline]
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & self.mask()
    }

    #[inline]
    fn mask(&self) -> usize {
        self.entries.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_u64..60, 0_u8..8), 0..300), stride in 1_u64..300) {
            let mut table = IdTable::default();
            let mut model = HashMap::new();
            for (number, (id, action)) in steps.into_iter().enumerate() {
                let (id, place) = (id * stride, number as u32);
                match action {
                    0..4 if !model.contains_key(&id) => {
                        table.insert(id, place);
                        model.insert(id, place);
                    }
                    4..7 => prop_assert_eq!(table.remove(id), model.remove(&id).is_some()),
                    _ => table.release_memory(),
                }
                prop_assert_eq!(table.len(), model.len());
                prop_assert!(2 * table.len() <= table.entries.len());
                for id in (0..60).map(|id| id * stride) {
                    prop_assert_eq!(table.get(id), model.get(&id).copied());
                }
            }
        }
    }

    /// Deleted, a search could be long in the order in which streams come: a request's ID is four more than the last one's.
    #[test]
    fn sequential_ids_stand_where_they_want_to() {
        let mut table = IdTable::default();
        for number in 0..64 {
            table.insert(4 * number, number as u32);
        }
        let away = |number: u64| table.distance(table.wanted(4 * number), table.find(4 * number).unwrap());
        assert!((0..64).map(away).sum::<usize>() <= 32);
        for number in 64..10_000 {
            assert!(table.remove(4 * (number - 64)));
            table.insert(4 * number, 0);
        }
        assert_eq!((table.len(), table.entries.len()), (64, 128));
        for number in 10_000 - 64..10_000 {
            table.remove(4 * number);
        }
        table.release_memory();
        assert!(table.entries.is_empty() && table.get(0).is_none());
    }
}
