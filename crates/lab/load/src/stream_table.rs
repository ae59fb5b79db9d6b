//! What is outstanding on one connection, by stream: requests of HTTP/3, exchanges of the perf protocol.
//!
//! Streams are numbered in sequence, so a stream's index modulo the table's size is a place that its neighbours leave free;
//! a stream that stays open for long makes another one take the next free place. The table has at least twice as many
//! places as there may be requests, so almost every look-up is one comparison, and it never allocates.

use transport::StreamId;

/// What stands in a table: it is on one stream.
pub(crate) trait OnStream: Copy {
    /// The stream.
    fn id(&self) -> StreamId;
}

/// The table.
#[derive(Debug)]
pub(crate) struct StreamTable<T> {
    places: Box<[Option<T>]>,
    len: usize,
    limit: usize,
}

impl<T: OnStream> StreamTable<T> {
    /// For up to `limit` requests at a time.
    pub(crate) fn new(limit: usize) -> StreamTable<T> {
        let size = limit.saturating_mul(2).next_power_of_two().max(4);
        StreamTable { places: vec![None; size].into_boxed_slice(), len: 0, limit }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.len < self.limit
    }

    /// Puts in a request whose stream is not there.
    #[inline]
    pub(crate) fn insert(&mut self, slot: T) {
        let mask = self.places.len() - 1;
        let home = slot.id().index() as usize & mask;
        for step in 0..self.places.len() {
            if let Some(place @ None) = self.places.get_mut((home + step) & mask) {
                *place = Some(slot);
                self.len += 1;
                return;
            }
        }
        debug_assert!(false, "an insertion follows a check for room");
    }

    #[inline]
    fn find(&mut self, id: StreamId) -> Option<&mut Option<T>> {
        let mask = self.places.len() - 1;
        let home = id.index() as usize & mask;
        let is_it = |place: &Option<T>| place.is_some_and(|slot| slot.id() == id);
        // Not past the first gap: who stood there may have left since. Streams that are not there are rare.
        let at = (0..self.places.len()).map(|step| (home + step) & mask);
        let found = { at }.find(|at| self.places.get(*at).is_some_and(is_it))?;
        self.places.get_mut(found)
    }

    /// The request on a stream.
    #[inline]
    pub(crate) fn entry_mut(&mut self, id: StreamId) -> Option<&mut T> {
        self.find(id)?.as_mut()
    }

    /// Takes a request out.
    #[inline]
    pub(crate) fn remove(&mut self, id: StreamId) -> Option<T> {
        let slot = self.find(id)?.take();
        self.len -= usize::from(slot.is_some());
        slot
    }

    /// All of them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use transport::Dir;
    use wire::Side;

    #[derive(Clone, Copy, Debug)]
    struct Slot {
        id: StreamId,
        unsent: u64,
    }

    impl OnStream for Slot {
        fn id(&self) -> StreamId {
            self.id
        }
    }

    fn slot(index: u64) -> Slot {
        let id = StreamId::new(Side::Client, Dir::Bidi, index);
        Slot { id, unsent: index }
    }

    proptest! {
        /// It is a map, whichever streams stay open. Deleted, an answer could end another request than its own.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_usize..8, any::<bool>()), 0..300)) {
            let (mut slots, mut model, mut next) = (StreamTable::new(5), BTreeMap::new(), 0);
            for (pick, inserts) in steps {
                if inserts {
                    prop_assert_eq!(slots.has_room(), model.len() < 5);
                    if slots.has_room() {
                        slots.insert(slot(next));
                        model.insert(next, next);
                    }
                    // Some streams are skipped.
                    next += 1 + pick as u64;
                } else if let Some(index) = model.keys().nth(pick).copied() {
                    model.remove(&index);
                    prop_assert_eq!(slots.remove(slot(index).id).map(|slot| slot.unsent), Some(index));
                    prop_assert!(slots.remove(slot(index).id).is_none());
                }
                prop_assert_eq!(slots.len(), model.len());
                for index in model.keys() {
                    prop_assert_eq!(slots.entry_mut(slot(*index).id).map(|slot| slot.unsent), Some(*index));
                }
                prop_assert_eq!(slots.iter().count(), model.len());
            }
        }
    }
}
