//! The exchanges that are outstanding on one connection, by stream.
//!
//! There are few, and they end nearly in the order in which they began: a ring of places, searched from the place where the
//! stream's number points. It has at least twice as many places as there may be exchanges, so nearly every look-up is one
//! comparison, and it never allocates. A search goes through the whole ring at worst, since an entry at a gap may have
//! left.

use base::time::Instant;
use transport::StreamId;

/// An exchange that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) id: StreamId,
    pub(crate) began: Instant,
    /// Whether it began while exchanges were counted.
    pub(crate) is_counted: bool,
    /// Bytes of the request that were not handed over yet.
    pub(crate) unsent: u64,
    /// Bytes of the answer that have not come yet.
    pub(crate) missing: u64,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Table {
    places: Box<[Option<Exchange>]>,
    len: usize,
    limit: usize,
}

impl Table {
    /// For up to `limit` exchanges at a time.
    pub(crate) fn new(limit: usize) -> Table {
        let size = limit.saturating_mul(2).next_power_of_two().max(4);
        Table { places: vec![None; size].into_boxed_slice(), len: 0, limit }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.len < self.limit
    }

    #[inline]
    fn ring(&self, id: StreamId) -> impl Iterator<Item = usize> + use<> {
        let (size, home) = (self.places.len(), id.index() as usize);
        (0..size).map(move |step| home.wrapping_add(step) & (size - 1))
    }

    /// Puts in an exchange whose stream is not there; there must be room.
    #[inline]
    pub(crate) fn insert(&mut self, exchange: Exchange) {
        let is_free = |at: &usize| self.places.get(*at).is_some_and(Option::is_none);
        let free = self.ring(exchange.id).find(is_free);
        debug_assert!(free.is_some(), "an insertion follows a check for room");
        if let Some(place) = free.and_then(|at| self.places.get_mut(at)) {
            *place = Some(exchange);
            self.len += 1;
        }
    }

    #[inline]
    fn place_mut(&mut self, id: StreamId) -> Option<&mut Option<Exchange>> {
        let is_it = |place: &Option<Exchange>| place.is_some_and(|exchange| exchange.id == id);
        let at = self.ring(id).find(|at| self.places.get(*at).is_some_and(is_it))?;
        self.places.get_mut(at)
    }

    /// The exchange on a stream.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Exchange> {
        self.place_mut(id)?.as_mut()
    }

    /// Takes an exchange out.
    #[inline]
    pub(crate) fn remove(&mut self, id: StreamId) -> Option<Exchange> {
        let taken = self.place_mut(id)?.take();
        self.len -= usize::from(taken.is_some());
        taken
    }

    /// Takes all of them out, and says how many there were and how many of them count.
    pub(crate) fn clear(&mut self) -> (usize, u64) {
        let counted = self.places.iter().flatten().filter(|exchange| exchange.is_counted).count();
        self.places.fill(None);
        (core::mem::take(&mut self.len), counted as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use transport::Dir;
    use wire::Side;

    fn id(index: u64) -> StreamId {
        StreamId::new(Side::Client, Dir::Bidi, index)
    }

    proptest! {
        /// It is a map, whichever exchanges stay open. Deleted, an answer could end another exchange than its own.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_usize..8, any::<bool>()), 0..300)) {
            let (mut table, mut model, mut next) = (Table::new(5), BTreeSet::new(), 0);
            for (pick, inserts) in steps {
                prop_assert_eq!(table.has_room(), model.len() < 5);
                if inserts && table.has_room() {
                    let exchange = Exchange {
                        id: id(next), began: Instant::ZERO, is_counted: true, unsent: next, missing: 0
                    };
                    table.insert(exchange);
                    model.insert(next);
                    next += 1 + pick as u64;
                } else if let Some(index) = model.iter().nth(pick).copied() {
                    model.remove(&index);
                    prop_assert_eq!(table.remove(id(index)).map(|exchange| exchange.unsent), Some(index));
                    prop_assert!(table.remove(id(index)).is_none());
                }
                prop_assert_eq!(table.len(), model.len());
                for index in &model {
                    prop_assert_eq!(table.get_mut(id(*index)).map(|exchange| exchange.unsent), Some(*index));
                }
            }
            prop_assert_eq!(table.clear(), (model.len(), model.len() as u64));
            prop_assert_eq!(table.len(), 0);
        }
    }
}
