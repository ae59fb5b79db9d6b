//! The order in which streams send: one list per urgency and one before them, walked in constant time. Source: RFC 9218 §10.
//!
//! The lists are doubly linked through a side table indexed by the streams' places, so that joining, leaving from the
//! middle (a reset, a new priority) and going to the back are a few writes and never allocate. Who sends one after
//! the other stays in front until it has nothing left; who shares goes to the back after each packet.
//!
//! Rejected: a heap (a logarithm per packet) and a queue with stale entries (a peer could make them pile up by
//! opening and resetting).

use super::config::Priority;
use super::slots::Slot;

/// The rank of [`Priority::CONTROL`].
pub(super) const CONTROL_RANK: u32 = 0;
/// One for control streams and one for each urgency, see [`Priority::rank`].
const LISTS: usize = 9;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
    /// The list it is in, [`LISTS`] if in none.
    list: u8,
}

const UNLINKED: Link = Link { previous: NONE, next: NONE, list: LISTS as u8 };

/// Streams that have something to send.
#[derive(Debug)]
pub(super) struct SendQueue {
    heads: [u32; LISTS],
    tails: [u32; LISTS],
    /// A bit for each list that is not empty.
    occupied: u16,
    links: Vec<Link>,
}

impl SendQueue {
    pub(super) fn new() -> SendQueue {
        SendQueue { heads: [NONE; LISTS], tails: [NONE; LISTS], occupied: 0, links: Vec::new() }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// The rank of the stream in front; that of no stream if there is none.
    #[inline]
    pub(super) fn rank(&self) -> u32 {
        self.occupied.trailing_zeros()
    }

    /// The stream to be served next.
    #[inline]
    pub(super) fn front(&self) -> Option<Slot> {
        self.heads.get(self.rank() as usize).map(|&head| Slot(head))
    }

    /// Whether `slot` is queued.
    #[inline]
    pub(super) fn contains(&self, slot: Slot) -> bool {
        self.links.get(slot.index()).is_some_and(|link| usize::from(link.list) < LISTS)
    }

    /// Puts `slot` at the back of its list, unless it is queued already.
    pub(super) fn push(&mut self, slot: Slot, priority: Priority) {
        if self.contains(slot) {
            return;
        }
        if slot.index() >= self.links.len() {
            self.links.resize(slot.index() + 1, UNLINKED);
        }
        let list = usize::from(priority.rank());
        let previous = core::mem::replace(&mut self.tails[list], slot.0);
        self.links[slot.index()] = Link { previous, next: NONE, list: list as u8 };
        match self.links.get_mut(previous as usize) {
            Some(before) => before.next = slot.0,
            None => self.heads[list] = slot.0,
        }
        self.occupied |= 1 << list;
    }

    /// Takes `slot` out, wherever it is.
    pub(super) fn remove(&mut self, slot: Slot) {
        if !self.contains(slot) {
            return;
        }
        let Link { previous, next, list } = core::mem::replace(&mut self.links[slot.index()], UNLINKED);
        let list = usize::from(list);
        match self.links.get_mut(previous as usize) {
            Some(before) => before.next = next,
            None => self.heads[list] = next,
        }
        match self.links.get_mut(next as usize) {
            Some(after) => after.previous = previous,
            None => self.tails[list] = previous,
        }
        if self.heads[list] == NONE {
            self.occupied &= !(1 << list);
        }
    }

    /// The stream in front was served; if it shares, the next one's turn has come.
    #[inline]
    pub(super) fn on_served(&mut self, slot: Slot, priority: Priority) {
        if priority.incremental && self.contains(slot) {
            self.remove(slot);
            self.push(slot, priority);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn at(urgency: u8) -> Priority {
        Priority { urgency, incremental: false }
    }

    #[test]
    fn sharers_take_turns_and_the_others_do_not() {
        let shared = Priority { urgency: 3, incremental: true };
        let mut queue = SendQueue::new();
        queue.push(Slot(0), shared);
        queue.push(Slot(1), shared);
        queue.push(Slot(2), at(1));
        let mut order = Vec::new();
        for _ in 0..2 {
            order.push(queue.front());
            queue.on_served(Slot(2), at(1));
        }
        queue.remove(Slot(2));
        for _ in 0..4 {
            let front = queue.front().unwrap();
            order.push(Some(front));
            queue.on_served(front, shared);
        }
        assert_eq!(order, [2, 2, 0, 1, 0, 1].map(|slot| Some(Slot(slot))));
    }

    proptest! {
        /// The linked lists agree with eight plain queues after any sequence of joins and departures.
        #[test]
        fn agrees_with_plain_queues(steps in prop::collection::vec((0u8..3, 0u32..12, 0u8..10), 0..200)) {
            let mut queue = SendQueue::new();
            let mut plain: [VecDeque<u32>; 8] = Default::default();
            for (action, slot, urgency) in steps {
                if action == 0 {
                    queue.remove(Slot(slot));
                    plain.iter_mut().for_each(|list| list.retain(|&other| other != slot));
                } else {
                    queue.push(Slot(slot), at(urgency));
                    if !plain.iter().any(|list| list.contains(&slot)) {
                        plain[usize::from(urgency.min(7))].push_back(slot);
                    }
                }
                let front = plain.iter().find_map(|list| list.front().copied());
                prop_assert_eq!(queue.front(), front.map(Slot));
                prop_assert_eq!(queue.is_empty(), front.is_none());
                let queued = |slot| plain.iter().any(|list| list.contains(&slot));
                prop_assert!((0..12).all(|slot| queue.contains(Slot(slot)) == queued(slot)));
            }
        }
    }
}
