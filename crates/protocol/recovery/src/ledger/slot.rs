//! One packet number's entry, the ring of them, and the memory of skipped numbers.

use crate::packet::{PacketFlags, SentPacket};
use base::time::Instant;

/// Slots that a ring starts with.
const FIRST_SLOTS: u64 = 16;
/// Skipped numbers that are remembered after their slot is gone.
const REMEMBERED_SKIPS: usize = 8;

/// What became of a packet number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// Never sent, on purpose.
    Skipped,
    /// Sent; fate unknown.
    Outstanding,
    /// Acknowledged.
    Acked,
    /// Declared lost; may still be acknowledged.
    Lost,
}

/// 24 bytes. The packet number is the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    sent_at: Instant,
    /// Position of the packet's frames in their ring; monotonic over the slots.
    pub(super) frames_start: u32,
    /// If acknowledged: this many slots from this one on are known to be acknowledged.
    pub(super) run: u32,
    pub(super) frames_count: u16,
    size: u16,
    pub(super) flags: PacketFlags,
    pub(super) state: State,
}

const _: () = assert!(size_of::<Slot>() == 24, "the ledger's cost is its cache lines");

impl Slot {
    #[inline]
    pub(super) const fn outstanding(packet: &SentPacket, frames_start: u32, frames_count: u16) -> Slot {
        Slot {
            sent_at: packet.sent_at,
            frames_start,
            run: 1,
            frames_count,
            size: packet.size,
            flags: packet.flags,
            state: State::Outstanding,
        }
    }

    pub(super) const fn skipped(frames_start: u32) -> Slot {
        Slot {
            sent_at: Instant::ZERO,
            frames_start,
            run: 1,
            frames_count: 0,
            size: 0,
            flags: PacketFlags::NONE,
            state: State::Skipped,
        }
    }

    /// The packet of this slot, whose number is `pn`.
    #[inline]
    pub(super) const fn packet(&self, pn: u64) -> SentPacket {
        SentPacket { pn, sent_at: self.sent_at, size: self.size, flags: self.flags }
    }

    /// How far to the next slot that may be in another state.
    #[inline]
    pub(super) fn step(&self) -> u64 {
        if self.state == State::Acked { u64::from(self.run.max(1)) } else { 1 }
    }
}

/// Slots by packet number.
#[derive(Clone, Debug)]
pub(super) struct SlotRing {
    /// A power of two of them, or none.
    slots: Vec<Slot>,
    /// Slots looked at for writing, so that a test can say what a walk costs.
    #[cfg(test)]
    pub(super) steps: core::cell::Cell<u64>,
}

impl SlotRing {
    pub(super) const fn new() -> SlotRing {
        SlotRing {
            slots: Vec::new(),
            #[cfg(test)]
            steps: core::cell::Cell::new(0),
        }
    }

    #[inline]
    pub(super) const fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }

    #[inline]
    fn index(&self, pn: u64) -> usize {
        pn as usize & self.slots.len().wrapping_sub(1)
    }

    /// The slot of `pn`, which must be one that the ring holds.
    #[inline]
    pub(super) fn at(&self, pn: u64) -> &Slot {
        &self.slots[self.index(pn)]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, pn: u64) -> &mut Slot {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
        let index = self.index(pn);
        &mut self.slots[index]
    }

    #[inline]
    pub(super) fn set(&mut self, pn: u64, slot: Slot) {
        *self.at_mut(pn) = slot;
    }

    /// The packets behind `pn`, which was outstanding and had one frame, are acknowledged with it as far as they are like it: at most
    /// `most` with `pn`. Returns how many there are. `known` slots from `pn` on will be acknowledged.
    #[inline]
    pub(super) fn ack_alike(&mut self, pn: u64, known: u32, most: u32) -> u32 {
        let first = *self.at(pn);
        let mut count = 1;
        while count < most {
            let slot = self.at_mut(pn + u64::from(count));
            let is_like = slot.state == State::Outstanding
                && slot.sent_at == first.sent_at
                && (slot.frames_count, slot.size, slot.flags) == (1, first.size, first.flags);
            if !is_like {
                break;
            }
            slot.state = State::Acked;
            slot.run = known - count;
            count += 1;
        }
        count
    }

    /// Doubles the ring, which holds the numbers from `base` up to `next`.
    #[cold]
    pub(super) fn grow(&mut self, base: u64, next: u64) {
        let capacity = (self.capacity() * 2).max(FIRST_SLOTS);
        let mut grown = SlotRing::new();
        grown.slots = vec![Slot::skipped(0); capacity as usize];
        for pn in base..next {
            grown.set(pn, *self.at(pn));
        }
        *self = grown;
    }
}

/// The last few skipped numbers, so that acknowledging one is noticed long after its slot was reused.
#[derive(Clone, Debug)]
pub(super) struct SkippedNumbers {
    /// Boxed: most connections end before they skip a number.
    numbers: Option<Box<[u64; REMEMBERED_SKIPS]>>,
    at: usize,
    newest: Option<u64>,
}

impl SkippedNumbers {
    pub(super) const fn new() -> SkippedNumbers {
        SkippedNumbers { numbers: None, at: 0, newest: None }
    }

    pub(super) fn push(&mut self, pn: u64) {
        let numbers = self.numbers.get_or_insert_with(|| Box::new([u64::MAX; REMEMBERED_SKIPS]));
        numbers[self.at % REMEMBERED_SKIPS] = pn;
        self.at = self.at.wrapping_add(1);
        self.newest = Some(pn);
    }

    /// The lowest number remembered; larger than any number if there is none.
    pub(super) fn oldest(&self) -> u64 {
        self.remembered().fold(u64::MAX, u64::min)
    }

    /// A remembered number from `low` to `high`, both included.
    #[inline]
    pub(super) fn first_within(&self, low: u64, high: u64) -> Option<u64> {
        // Nearly always the range lies above the last skip.
        if self.newest.is_none_or(|newest| newest < low) {
            return None;
        }
        self.remembered().find(|number| (low..=high).contains(number))
    }

    fn remembered(&self) -> impl Iterator<Item = u64> {
        self.numbers.iter().flat_map(|numbers| numbers.iter().copied())
    }
}
