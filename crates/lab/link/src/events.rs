//! What will happen when: a heap by time, then by the order of scheduling, so that a run has one order only.

use base::time::Instant;
use core::cmp::Ordering;
use std::collections::BinaryHeap;

#[derive(Debug)]
struct ScheduledEvent<T> {
    at: Instant,
    sequence: u64,
    event: T,
}

impl<T> PartialEq for ScheduledEvent<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for ScheduledEvent<T> {}

impl<T> PartialOrd for ScheduledEvent<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for ScheduledEvent<T> {
    /// The standard heap gives the greatest first: the earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

/// Events to come.
#[derive(Debug)]
pub struct EventQueue<T> {
    heap: BinaryHeap<ScheduledEvent<T>>,
    sequence: u64,
}

impl<T> Default for EventQueue<T> {
    fn default() -> EventQueue<T> {
        EventQueue::new()
    }
}

impl<T> EventQueue<T> {
    /// None.
    pub fn new() -> EventQueue<T> {
        EventQueue { heap: BinaryHeap::new(), sequence: 0 }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// `event` happens at `at`.
    pub fn schedule(&mut self, at: Instant, event: T) {
        self.sequence += 1;
        self.heap.push(ScheduledEvent { at, sequence: self.sequence, event });
    }

    /// The time of the next event.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// The next event that is not later than `now`, with its time.
    pub fn take_due(&mut self, now: Instant) -> Option<(Instant, T)> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_time_then_by_order_of_scheduling() {
        let mut queue = EventQueue::new();
        for (at, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b'), (9, 'e')] {
            queue.schedule(Instant::from_nanos(at), event);
        }
        let due = |queue: &mut EventQueue<char>, now| -> String {
            std::iter::from_fn(|| queue.take_due(Instant::from_nanos(now))).map(|(_, event)| event).collect()
        };
        assert_eq!(due(&mut queue, 4), "ab");
        assert_eq!(due(&mut queue, 5), "cd");
        assert_eq!(queue.next_at(), Some(Instant::from_nanos(9)));
    }
}
