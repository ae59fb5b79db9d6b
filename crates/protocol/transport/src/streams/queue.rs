//! The order in which streams send. Source: RFC 9218 §10.
//!
//! Control streams have a rank of their own, before those of the urgencies. Each rank has two lists. Streams that are not
//! incremental stand in the order of their IDs, which is the order of the requests: the first one sends until it has nothing
//! left, and a stream whose content pauses finds its place again. Incremental streams take turns, a frame each. Where a rank
//! has both kinds, the two lists take turns too, so that neither starves.
//!
//! The lists are doubly linked through a side table indexed by the streams' places, so that joining, leaving from the
//! middle (a reset, a new priority) and going to the back are a few writes and never allocate. Joining by ID walks from both
//! ends at once: a stream that joins is nearly always the newest, or one of the first, which are served and pause. The
//! walk is at most as long as the list, and the limits on streams bound that.
//!
//! Rejected: a heap (a logarithm per packet); a queue with stale entries (a peer could make them pile up by opening and
//! resetting); one list for both kinds (an early stream that is not incremental starves the others).

use super::config::Priority;
use super::slots::Slot;
use crate::stream_id::StreamId;

/// The rank of [`Priority::CONTROL`].
pub(super) const CONTROL_RANK: u32 = 0;
/// One for control streams and one for each urgency, see [`Priority::rank`].
const RANKS: usize = 9;
/// Of each rank first the list in the order of IDs, then that of the sharers.
const LISTS: usize = 2 * RANKS;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
    /// The list it is in, [`LISTS`] if in none.
    list: u8,
    /// The stream's ID.
    id: u64,
}

const UNLINKED: Link = Link { previous: NONE, next: NONE, list: LISTS as u8, id: 0 };

/// The first and the last of a list, [`NONE`] if it is empty.
#[derive(Clone, Copy, Debug)]
struct Ends {
    head: u32,
    tail: u32,
}

/// Streams that have something to send.
#[derive(Debug)]
pub(super) struct SendQueue {
    /// Of each list; none are kept where nothing was queued for a while.
    ends: Vec<Ends>,
    /// A bit for each list that is not empty.
    occupied: u32,
    /// A bit for each rank whose sharers are next when it has streams of both kinds.
    sharers_next: u16,
    links: Vec<Link>,
}

impl SendQueue {
    pub(super) fn new() -> SendQueue {
        SendQueue { ends: Vec::new(), occupied: 0, sharers_next: 0, links: Vec::new() }
    }

    /// Gives back what only streams to come need.
    pub(super) fn release_memory(&mut self) {
        if self.is_empty() {
            (self.ends, self.links) = (Vec::new(), Vec::new());
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// The rank of the stream in front; that of no stream if there is none.
    #[inline]
    pub(super) fn rank(&self) -> u32 {
        self.occupied.trailing_zeros() / 2
    }

    /// The stream to be served next.
    #[inline]
    pub(super) fn front(&self) -> Option<Slot> {
        let first = self.occupied.trailing_zeros() as usize;
        // The first list is that of the sharers only where there is no other.
        let both = first < LISTS && first.is_multiple_of(2) && self.occupied >> first & 2 != 0;
        let list = first + usize::from(both && self.sharers_next >> (first / 2) & 1 != 0);
        self.ends.get(list).map(|ends| Slot(ends.head))
    }

    /// Whether `slot` is queued.
    #[inline]
    pub(super) fn contains(&self, slot: Slot) -> bool {
        self.links.get(slot.index()).is_some_and(|link| usize::from(link.list) < LISTS)
    }

    /// Puts the stream `id` at `slot` where it belongs: by its ID, or at the back of the sharers. Does nothing if it is
    /// queued already.
    pub(super) fn push(&mut self, slot: Slot, id: StreamId, priority: Priority) {
        if self.contains(slot) {
            return;
        }
        if slot.index() >= self.links.len() {
            self.links.resize(slot.index() + 1, UNLINKED);
            self.ends.resize(LISTS, Ends { head: NONE, tail: NONE });
        }
        let list = 2 * usize::from(priority.rank()) + usize::from(priority.incremental);
        let id = id.as_u64();
        let previous = if priority.incremental { self.ends[list].tail } else { self.before(list, id) };
        let next = match self.links.get_mut(previous as usize) {
            Some(before) => core::mem::replace(&mut before.next, slot.0),
            None => core::mem::replace(&mut self.ends[list].head, slot.0),
        };
        match self.links.get_mut(next as usize) {
            Some(after) => after.previous = slot.0,
            None => self.ends[list].tail = slot.0,
        }
        self.links[slot.index()] = Link { previous, next, list: list as u8, id };
        self.occupied |= 1 << list;
    }

    /// The place behind which a stream stands in a list that is in the order of IDs; [`NONE`] is the front.
    fn before(&self, list: usize, id: u64) -> u32 {
        let Ends { mut head, mut tail } = self.ends[list];
        // The walks meet at the latest where the place is.
        loop {
            match self.links.get(tail as usize) {
                Some(link) if link.id > id => tail = link.previous,
                _ => return tail,
            }
            match self.links.get(head as usize) {
                Some(link) if link.id > id => return link.previous,
                Some(link) => head = link.next,
                None => return tail,
            }
        }
    }

    /// Takes `slot` out, wherever it is.
    pub(super) fn remove(&mut self, slot: Slot) {
        if !self.contains(slot) {
            return;
        }
        let Link { previous, next, list, .. } = core::mem::replace(&mut self.links[slot.index()], UNLINKED);
        let list = usize::from(list);
        match self.links.get_mut(previous as usize) {
            Some(before) => before.next = next,
            None => self.ends[list].head = next,
        }
        match self.links.get_mut(next as usize) {
            Some(after) => after.previous = previous,
            None => self.ends[list].tail = previous,
        }
        if self.ends[list].head == NONE {
            self.occupied &= !(1 << list);
        }
    }

    /// The stream in front, if it stays there however often it is served.
    #[inline]
    pub(super) fn lasting_front(&self) -> Option<Slot> {
        let first = self.occupied.trailing_zeros() as usize;
        let Ends { head, tail } = *self.ends.get(first).filter(|_| first < LISTS)?;
        let takes_turns =
            if first.is_multiple_of(2) { self.occupied >> first & 2 != 0 } else { head != tail };
        (!takes_turns).then_some(Slot(head))
    }

    /// The stream in front was served and has more: if it shares, the next one's turn has come.
    #[inline]
    pub(super) fn on_served(&mut self, slot: Slot, id: StreamId, priority: Priority) {
        self.on_turn(priority);
        if priority.incremental && self.contains(slot) {
            self.remove(slot);
            self.push(slot, id, priority);
        }
    }

    /// A stream with this priority sent a frame: the other kind is next.
    #[inline]
    pub(super) fn on_turn(&mut self, priority: Priority) {
        let bit = 1 << priority.rank();
        if priority.incremental {
            self.sharers_next &= !bit;
        } else {
            self.sharers_next |= bit;
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

    fn stream(number: u32) -> StreamId {
        StreamId::from_u64(4 * u64::from(number))
    }

    /// Serves the stream in front `times` times.
    fn serve(queue: &mut SendQueue, priorities: &[Priority], times: usize) -> Vec<u32> {
        let serve_one = |_| {
            let front = queue.front().unwrap();
            queue.on_served(front, stream(front.0), priorities[front.index()]);
            front.0
        };
        (0..times).map(serve_one).collect()
    }

    #[test]
    fn sharers_take_turns_and_the_others_do_not() {
        let shared = Priority { urgency: 3, incremental: true };
        let mut queue = SendQueue::new();
        queue.push(Slot(0), stream(0), shared);
        queue.push(Slot(1), stream(1), shared);
        queue.push(Slot(2), stream(2), at(1));
        let priorities = [shared, shared, at(1)];
        assert_eq!(serve(&mut queue, &priorities, 2), [2, 2]);
        queue.remove(Slot(2));
        assert_eq!(serve(&mut queue, &priorities, 4), [0, 1, 0, 1]);
    }

    /// RFC 9218 §10: ascending stream IDs, whatever the order in which content comes and pauses.
    #[test]
    fn who_paused_finds_its_place_again() {
        let mut queue = SendQueue::new();
        for number in [5, 2, 9, 0, 7] {
            queue.push(Slot(number), stream(number), at(3));
        }
        queue.remove(Slot(2));
        queue.remove(Slot(0));
        queue.push(Slot(2), stream(2), at(3));
        queue.push(Slot(0), stream(0), at(3));
        let mut order = Vec::new();
        while let Some(front) = queue.front() {
            order.push(front.0);
            queue.remove(front);
        }
        assert_eq!(order, [0, 2, 5, 7, 9]);
    }

    /// Deleted, a walk could stop short of the place: the random queues below are shorter.
    #[test]
    fn a_stream_finds_its_place_from_either_end() {
        let mut queue = SendQueue::new();
        for number in (0..100).rev() {
            queue.push(Slot(number), stream(number), at(3));
        }
        for number in [50, 1, 98, 30, 70] {
            queue.remove(Slot(number));
            queue.push(Slot(number), stream(number), at(3));
        }
        let served = core::iter::from_fn(|| {
            let front = queue.front()?;
            queue.remove(front);
            Some(front.0)
        });
        assert!(served.eq(0..100));
    }

    /// RFC 9218 §10: an early response that is large must not starve those that share, nor they it.
    #[test]
    fn both_kinds_take_turns() {
        let shared = Priority { urgency: 3, incremental: true };
        let mut queue = SendQueue::new();
        let priorities = [at(3), shared, at(3), shared];
        for number in 0..4 {
            queue.push(Slot(number), stream(number), priorities[number as usize]);
        }
        assert_eq!(serve(&mut queue, &priorities, 6), [0, 1, 0, 3, 0, 1]);
    }

    proptest! {
        /// The linked lists agree with plain queues after any sequence of joins and departures.
        #[test]
        fn agrees_with_plain_queues(
            steps in prop::collection::vec((0u8..4, 0u32..12, 0u8..10), 0..200),
        ) {
            let mut queue = SendQueue::new();
            let mut plain: [VecDeque<u32>; LISTS] = Default::default();
            for (action, slot, urgency) in steps {
                if action == 0 {
                    queue.remove(Slot(slot));
                    plain.iter_mut().for_each(|list| list.retain(|&other| other != slot));
                } else {
                    let priority = Priority { urgency, incremental: action == 1 };
                    queue.push(Slot(slot), stream(slot), priority);
                    if !plain.iter().any(|list| list.contains(&slot)) {
                        let list = &mut plain[2 * usize::from(urgency.min(7) + 1) + usize::from(action == 1)];
                        let at = list.iter().position(|&other| action != 1 && other > slot);
                        list.insert(at.unwrap_or(list.len()), slot);
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
