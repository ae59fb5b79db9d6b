//! The requests that are outstanding on one connection, by stream.
//!
//! Streams are numbered in sequence, so a stream's index modulo the table's size is a place that its neighbours leave free;
//! a stream that stays open for long makes another one take the next free place. The table has at least twice as many
//! places as there may be requests, so almost every look-up is one comparison, and it never allocates.

use crate::accounts::RequestTimes;
use transport::StreamId;

/// A request without its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) id: StreamId,
    pub(super) times: RequestTimes,
    /// The status of its answer; 0 until the head has arrived.
    pub(super) status: u16,
    /// Content of the request that was not handed over yet.
    pub(super) unsent: u64,
}

/// The table.
#[derive(Debug)]
pub(super) struct Slots {
    table: Box<[Option<Slot>]>,
    len: usize,
    limit: usize,
}

impl Slots {
    /// For up to `limit` requests at a time.
    pub(super) fn new(limit: usize) -> Slots {
        let size = limit.saturating_mul(2).next_power_of_two().max(4);
        Slots { table: vec![None; size].into_boxed_slice(), len: 0, limit }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.len < self.limit
    }

    /// Puts in a request whose stream is not there.
    #[inline]
    pub(super) fn insert(&mut self, slot: Slot) {
        let mask = self.table.len() - 1;
        let home = slot.id.index() as usize & mask;
        for step in 0..self.table.len() {
            if let Some(place @ None) = self.table.get_mut((home + step) & mask) {
                *place = Some(slot);
                self.len += 1;
                return;
            }
        }
        debug_assert!(false, "an insertion follows a check for room");
    }

    #[inline]
    fn find(&mut self, id: StreamId) -> Option<&mut Option<Slot>> {
        let mask = self.table.len() - 1;
        let home = id.index() as usize & mask;
        let is_it = |place: &Option<Slot>| place.is_some_and(|slot| slot.id == id);
        // Not past the first gap: who stood there may have left since. Streams that are not there are rare.
        let at = (0..self.table.len()).map(|step| (home + step) & mask);
        let found = { at }.find(|at| self.table.get(*at).is_some_and(is_it))?;
        self.table.get_mut(found)
    }

    /// The request on a stream.
    #[inline]
    pub(super) fn entry_mut(&mut self, id: StreamId) -> Option<&mut Slot> {
        self.find(id)?.as_mut()
    }

    /// Takes a request out.
    #[inline]
    pub(super) fn remove(&mut self, id: StreamId) -> Option<Slot> {
        let slot = self.find(id)?.take();
        self.len -= usize::from(slot.is_some());
        slot
    }

    /// All of them, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.table.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::time::Instant;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use transport::Dir;
    use wire::Side;

    fn slot(index: u64) -> Slot {
        let id = StreamId::new(Side::Client, Dir::Bidi, index);
        let times = RequestTimes { intended: Instant::ZERO, began: Instant::ZERO, is_counted: true };
        Slot { id, times, status: 0, unsent: index }
    }

    proptest! {
        /// It is a map, whichever streams stay open. Deleted, an answer could end another request than its own.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_usize..8, any::<bool>()), 0..300)) {
            let (mut slots, mut model, mut next) = (Slots::new(5), BTreeMap::new(), 0);
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
