//! The places of a thread's connections, and how many of them are in which state, so that a run's course is looked at without a look at
//! each of them.

use crate::run_phase::{ConnectionSummary, PAUSES};
use base::slab::Handle;
use base::time::{Duration, Instant};

/// The place of a connection, which several may fill one after the other.
#[derive(Clone, Copy, Debug)]
struct ConnectionSlot {
    handle: Option<Handle>,
    is_up: bool,
    /// Failed once, or worked once.
    is_settled: bool,
    /// Failed when it was last made.
    has_failed: bool,
    retry_at: Option<Instant>,
    pause: Duration,
}

/// When the next connection of a place is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    At(Instant),
    /// After a pause that is twice as long each time.
    AfterPause(Instant),
}

/// How many places are in a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Neither failed nor worked yet.
    unsettled: usize,
    /// Have a connection that takes requests.
    up: usize,
    /// Have a connection.
    filled: usize,
    /// Failed when it was last made.
    failed: usize,
}

impl Counts {
    fn of(slot: &ConnectionSlot) -> Counts {
        Counts {
            unsettled: usize::from(!slot.is_settled),
            up: usize::from(slot.is_up),
            filled: usize::from(slot.handle.is_some()),
            failed: usize::from(slot.has_failed),
        }
    }

    /// A place was `before` and is `after`.
    fn note(&mut self, before: Counts, after: Counts) {
        self.unsettled = self.unsettled + after.unsettled - before.unsettled;
        self.up = self.up + after.up - before.up;
        self.filled = self.filled + after.filled - before.filled;
        self.failed = self.failed + after.failed - before.failed;
    }
}

/// The places of a thread.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    slots: Vec<ConnectionSlot>,
    counts: Counts,
}

impl ConnectionSlots {
    /// `count` places, whose first connections are due at `now`.
    pub(super) fn new(count: usize, now: Instant) -> ConnectionSlots {
        let slot = ConnectionSlot {
            handle: None,
            is_up: false,
            is_settled: false,
            has_failed: false,
            retry_at: Some(now),
            pause: PAUSES[0],
        };
        let counts = Counts { unsettled: count, ..Counts::default() };
        ConnectionSlots { slots: vec![slot; count], counts }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the next connection of a place is due. What never worked is tried once, unless others have worked (`has_hope`).
    pub(super) fn is_due(&self, number: usize, now: Instant, has_hope: bool) -> bool {
        self.slots
            .get(number)
            .is_some_and(|slot| (has_hope || !slot.is_settled) && slot.retry_at.is_some_and(|at| at <= now))
    }

    /// A connection is being made.
    pub(super) fn on_begun(&mut self, number: usize, handle: Handle) {
        self.change(number, |slot| (slot.handle, slot.retry_at) = (Some(handle), None));
    }

    /// None can be made, now or later.
    pub(super) fn on_refused(&mut self, number: usize) {
        self.change(number, |slot| {
            (slot.is_settled, slot.has_failed, slot.retry_at) = (true, true, None);
        });
    }

    /// The connection takes requests.
    pub(super) fn on_up(&mut self, number: usize) {
        self.change(number, |slot| {
            (slot.is_up, slot.is_settled, slot.has_failed, slot.pause) = (true, true, false, PAUSES[0]);
        });
    }

    /// The connection is gone.
    pub(super) fn on_down(&mut self, number: usize, was_up: bool, next: Due) {
        self.change(number, |slot| {
            (slot.is_up, slot.is_settled, slot.handle) = (false, true, None);
            slot.has_failed |= !was_up;
            slot.retry_at = Some(match next {
                Due::At(at) => at,
                Due::AfterPause(now) => now + slot.pause,
            });
            slot.pause = (slot.pause * 2).min(PAUSES[1]);
        });
    }

    /// The connection of a place, if it has one.
    pub(super) fn handle(&self, number: usize) -> Option<Handle> {
        self.slots.get(number)?.handle
    }

    /// The connection of a place, if it takes requests.
    pub(super) fn handle_if_up(&self, number: usize) -> Option<Handle> {
        self.slots.get(number).filter(|slot| slot.is_up)?.handle
    }

    /// All connections.
    pub(super) fn handles(&self) -> impl Iterator<Item = Handle> {
        self.slots.iter().filter_map(|slot| slot.handle)
    }

    /// Whether a connection is being made that takes no requests yet.
    pub(super) fn is_connecting(&self) -> bool {
        self.counts.filled > self.counts.up
    }

    pub(super) fn summary(&self) -> ConnectionSummary {
        let Counts { unsettled, up, filled, failed } = self.counts;
        ConnectionSummary {
            is_settled: unsettled == 0,
            has_up: up > 0,
            is_under_way: filled > 0,
            has_failed: failed > 0,
        }
    }

    fn change(&mut self, number: usize, change: impl FnOnce(&mut ConnectionSlot)) {
        if let Some(slot) = self.slots.get_mut(number) {
            let before = Counts::of(slot);
            change(slot);
            self.counts.note(before, Counts::of(slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::slab::Slab;
    use proptest::prelude::*;

    proptest! {
        /// Deleted, a run could begin before all its connections stand, or never.
        #[test]
        fn counts_are_those_of_a_look_at_each_place(
            events in prop::collection::vec((0_usize..4, 0_u8..5), 0..60)
        ) {
            let mut slab = Slab::new();
            let handle = slab.insert(());
            let now = Instant::default();
            let mut slots = ConnectionSlots::new(4, now);
            for (number, event) in events {
                match event {
                    0 => slots.on_begun(number, handle),
                    1 => slots.on_refused(number),
                    2 if slots.handle(number).is_some() => slots.on_up(number),
                    2 => {}
                    3 => slots.on_down(number, true, Due::At(now)),
                    _ => slots.on_down(number, false, Due::AfterPause(now)),
                }
                let all = &slots.slots;
                prop_assert_eq!(slots.summary().is_settled, all.iter().all(|slot| slot.is_settled));
                prop_assert_eq!(slots.summary().has_up, all.iter().any(|slot| slot.is_up));
                prop_assert_eq!(slots.summary().is_under_way, all.iter().any(|slot| slot.handle.is_some()));
                prop_assert_eq!(slots.summary().has_failed, all.iter().any(|slot| slot.has_failed));
                let is_connecting = all.iter().any(|slot| slot.handle.is_some() && !slot.is_up);
                prop_assert_eq!(slots.is_connecting(), is_connecting);
            }
        }
    }
}
