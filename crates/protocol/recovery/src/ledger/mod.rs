//! What was sent in one packet-number space and is not settled yet.
//!
//! Data structure: a ring of 24-byte slots indexed by packet number (a power-of-two mask, no search, no hashing), from
//! `base` to the next number to be sent, and a second ring with the frames of those packets. A skipped number occupies
//! a slot. Both rings grow by doubling and are reused for ever after: no allocation in steady state.
//!
//! Cost: an acknowledged slot says how many slots from it on are known to be acknowledged, and every walk writes what it
//! learned back into the slots it passed (path compression). A cumulative ACK range therefore costs one step, however
//! much of it is old news, and `on_ack` costs the ranges plus the newly acknowledged packets.
//!
//! Invariants:
//! - `base <= first_outstanding <= next`; below `base` everything is settled and forgotten; between `base` and
//!   `first_outstanding` nothing is outstanding.
//! - a packet is Outstanding once and leaves that state once, and the counters change exactly then.
//! - a lost packet stays for a few PTOs so that its late acknowledgement is recognised (and its frames' owners told).
//! - outstanding packets that are not in flight are at most [`MAX_ACK_ONLY`]: a peer that never acknowledges our
//!   acknowledgements cannot make us remember them for ever.
//!
//! Rejected: a sorted map of packets (allocates, chases pointers), a list with tombstones (a walk from its head is as
//! long as the window), a delivery-rate snapshot in each slot (BBR keeps its own, by train: `congestion/delivery.rs`).
//!
//! RFC 9002 §6.1, A.1, A.7, A.10, A.11; RFC 9000 §13.1.

mod frames;
mod losses;
mod outcome;
mod slot;
#[cfg(test)]
mod tests;

pub use outcome::{AckError, AckOutcome, LargestAcked, LossOutcome};

use crate::packet::{PacketFlags, SentPacket};
use base::time::{Duration, Instant};
use core::ops::RangeInclusive;
use frames::FrameRing;
use losses::LossMemory;
use slot::{SkippedNumbers, Slot, SlotRing, State};

/// Unacknowledged packets that are not in flight (acknowledgements, mostly) beyond this push the oldest ones out.
pub const MAX_ACK_ONLY: u32 = 16_384;
/// Frames that the second ring starts with.
const FIRST_FRAMES: usize = 16;

/// The sent packets of one space and, for each, the frames it carried, described by a caller's `F`.
#[derive(Clone, Debug)]
pub struct Ledger<F: Copy> {
    slots: SlotRing,
    frames: FrameRing<F>,
    /// Lowest number that has a slot.
    base: u64,
    /// No packet below is outstanding.
    first_outstanding: u64,
    /// Next number to be sent.
    next: u64,
    /// One more than the largest acknowledged number; 0 if there is none.
    acked_end: u64,
    flight: Flight,
    last_ack_eliciting_at: Option<Instant>,
    /// When the latest packet was sent that was acknowledged.
    acked_sent_at: Option<Instant>,
    skipped: SkippedNumbers,
    losses: LossMemory,
}

/// Sums over the outstanding packets.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    bytes: u64,
    ack_eliciting: u32,
    /// Packets that are not in flight.
    ack_only: u32,
}

impl Flight {
    #[inline]
    fn add(&mut self, packet: &SentPacket) {
        self.add_alike(packet, 1);
    }

    /// Adds so many packets that are alike.
    #[inline]
    fn add_alike(&mut self, packet: &SentPacket, count: u32) {
        self.ack_eliciting += if packet.is_ack_eliciting() { count } else { 0 };
        //= rfc9002/7#2
        if packet.is_in_flight() {
            self.bytes += u64::from(packet.size) * u64::from(count);
        } else {
            self.ack_only += count;
        }
    }

    /// Takes out packets that were outstanding.
    #[inline]
    fn remove(&mut self, left: Flight) {
        self.bytes -= left.bytes;
        self.ack_eliciting -= left.ack_eliciting;
        self.ack_only -= left.ack_only;
    }
}

impl<F: Copy> Default for Ledger<F> {
    fn default() -> Ledger<F> {
        Ledger::new()
    }
}

impl<F: Copy> Ledger<F> {
    /// Empty; allocates with the first packet.
    pub const fn new() -> Ledger<F> {
        Ledger {
            slots: SlotRing::new(),
            frames: FrameRing::new(),
            base: 0,
            first_outstanding: 0,
            next: 0,
            acked_end: 0,
            flight: Flight { bytes: 0, ack_eliciting: 0, ack_only: 0 },
            last_ack_eliciting_at: None,
            acked_sent_at: None,
            skipped: SkippedNumbers::new(),
            losses: LossMemory::new(),
        }
    }

    /// Records a packet. Numbers rise; those left out are skipped for good, and acknowledging one is an error.
    #[inline]
    pub fn on_sent(&mut self, packet: SentPacket, frames: &[F]) {
        debug_assert!(packet.pn >= self.next, "packet numbers rise");
        debug_assert!(frames.len() <= usize::from(u16::MAX), "a datagram has no room for more frames");
        if packet.pn != self.next {
            self.skip_to(packet.pn);
        }
        if self.next - self.base >= self.slots.capacity() {
            self.slots.grow(self.base, self.next);
        }
        let start = match self.frames.push(frames) {
            Some(start) => start,
            None => self.push_frames_growing(frames),
        };
        self.slots.set(self.next, Slot::outstanding(&packet, start, frames.len() as u16));
        self.next += 1;
        self.flight.add(&packet);
        if packet.is_ack_eliciting() {
            self.last_ack_eliciting_at = Some(packet.sent_at);
        }
        if self.flight.ack_only > MAX_ACK_ONLY {
            self.evict_oldest();
        }
    }

    /// Records `count` packets in one step that are alike but for their numbers, which follow each other from `first` on, and for
    /// the one frame of each. They are in flight, as what carries data is.
    #[inline]
    pub fn on_run_sent(&mut self, first: SentPacket, count: u64, frame: impl Fn(u64) -> F) {
        debug_assert!(first.pn >= self.next, "packet numbers rise");
        debug_assert!(first.flags.has(PacketFlags::DATA), "a run is of data");
        if count == 0 {
            return;
        }
        if first.pn != self.next {
            self.skip_to(first.pn);
        }
        while self.next + count - self.base > self.slots.capacity() {
            self.slots.grow(self.base, self.next);
        }
        for index in 0..count {
            // The frame is made where it is used: one that two calls shared would be written to the stack and read again at once.
            let start = match self.frames.push(&[frame(index)]) {
                Some(start) => start,
                None => self.push_frames_growing(&[frame(index)]),
            };
            self.slots.set(self.next, Slot::outstanding(&first, start, 1));
            self.next += 1;
        }
        self.flight.add_alike(&first, count as u32);
        self.last_ack_eliciting_at = Some(first.sent_at);
    }

    /// Takes in an ACK frame: inclusive ranges, descending, as on the wire. Calls `acked` for the newly acknowledged packets, ascending
    /// within each range: with a packet, how many there are from it on that are alike but for their numbers and have one frame each,
    /// and the frames of all of them. After an error the connection must close.
    pub fn on_ack(
        &mut self,
        ranges: impl IntoIterator<Item = RangeInclusive<u64>>,
        acked: &mut impl FnMut(&SentPacket, u64, &[F]),
    ) -> Result<AckOutcome, AckError> {
        let mut outcome = AckOutcome::default();
        let mut frame_largest = None;
        for range in ranges {
            let (low, high) = (*range.start(), *range.end());
            if high >= self.next {
                return Err(AckError::NeverSent(high));
            }
            frame_largest = frame_largest.max(Some(high));
            if let Some(pn) = self.skipped.first_within(low, high) {
                return Err(AckError::NeverSent(pn));
            }
            if high >= self.base {
                self.ack_range(low.max(self.base), high, &mut outcome, acked)?;
            } else if high < self.skipped.oldest() {
                break; // settled long ago, and so is everything lower
            }
        }
        if let (Some(largest), Some(frame_largest)) = (outcome.largest.as_mut(), frame_largest) {
            largest.is_frame_largest = largest.pn == frame_largest;
            self.acked_sent_at = self.acked_sent_at.max(Some(largest.sent_at));
        }
        let end = frame_largest.map_or(0, |pn| pn + 1);
        outcome.is_largest_raised = end > self.acked_end;
        if !outcome.is_largest_raised
            && outcome.ack_eliciting > 0
            && let Some(largest) = outcome.largest
        {
            outcome.overtake(self.acked_end.saturating_sub(largest.pn), Some(largest.sent_at));
        }
        self.acked_end = self.acked_end.max(end);
        if outcome.packets > 0 {
            self.settle();
        }
        Ok(outcome)
    }

    #[inline]
    fn ack_range(
        &mut self,
        low: u64,
        high: u64,
        outcome: &mut AckOutcome,
        acked: &mut impl FnMut(&SentPacket, u64, &[F]),
    ) -> Result<(), AckError> {
        // Summed up here and booked once, so that the loop keeps the sums in registers.
        let mut new = AckOutcome::default();
        let mut left = Flight::default();
        let (mut last, mut late) = (None, 0);
        let mut pn = low;
        while pn <= high {
            let slot = self.slots.at_mut(pn);
            let state = slot.state;
            // Everything from here to the range's end will be acknowledged when this walk is over.
            let known = (high - pn + 1) as u32;
            if state == State::Acked {
                pn += slot.step();
                slot.run = slot.run.max(known);
                continue;
            }
            if state == State::Skipped {
                return Err(AckError::NeverSent(pn));
            }
            slot.state = State::Acked;
            slot.run = known;
            let packet = slot.packet(pn);
            let (frames_start, frames_count) = (slot.frames_start, slot.frames_count);
            let mut count = 1;
            if state == State::Outstanding && frames_count == 1 {
                let most = known.min(self.frames.before_end(frames_start));
                count = self.slots.ack_alike(pn, known, most);
            }
            let frames = self.frames.slice(frames_start, frames_count * count as u16);
            let count = u64::from(count);
            new.packets += count;
            new.ect0 += if packet.flags.has(PacketFlags::ECT0) { count } else { 0 };
            new.ect1 += if packet.flags.has(PacketFlags::ECT1) { count } else { 0 };
            if state == State::Outstanding {
                left.add_alike(&packet, count as u32);
            } else if packet.is_ack_eliciting() {
                late += 1;
                // Of the order of packets a probe of their size tells as much as any.
                if packet.is_in_flight() {
                    new.overtake(self.acked_end.saturating_sub(pn), Some(packet.sent_at));
                    if !packet.flags.has(PacketFlags::MTU_PROBE) {
                        new.spurious += 1;
                        new.spurious_from.get_or_insert(packet.sent_at);
                    }
                }
            }
            new.earliest_sent_at.get_or_insert(packet.sent_at);
            acked(&packet, count, frames);
            pn += count;
            last = Some(SentPacket { pn: pn - 1, ..packet });
        }
        new.bytes = left.bytes;
        new.ack_eliciting = u64::from(left.ack_eliciting) + late;
        self.flight.remove(left);
        outcome.merge(new, last);
        Ok(())
    }

    /// Visits the oldest outstanding ack-eliciting packets, whose frames a probe shall carry again, and remembers that they
    /// were sent again ([`SentPacket::is_probed`]); they stay outstanding. `visit` says whether a packet has any such frame: it
    /// ends with `count` that have. Packets already probed come only when the others are too few. Source: RFC 9002 §6.2.4.
    pub fn probe(&mut self, count: usize, visit: &mut impl FnMut(&SentPacket, &[F]) -> bool) {
        let found = self.probe_those(count, PacketFlags::NONE, visit);
        self.probe_those(count - found, PacketFlags::PROBED, visit);
    }

    /// As [`Ledger::probe`], but of several the second is the newest that no probe has repeated: where acknowledgements are lost, a receiver may
    /// lack only that.
    pub fn probe_ends(&mut self, count: usize, visit: &mut impl FnMut(&SentPacket, &[F]) -> bool) {
        let oldest = self.probe_those(count.min(1), PacketFlags::NONE, visit);
        let has_newest = oldest < count
            && (self.first_outstanding..self.next)
                .rev()
                .any(|pn| self.probe_one(pn, PacketFlags::NONE, visit));
        self.probe(count - oldest - usize::from(has_newest), visit);
    }

    /// As [`Ledger::probe`], all packets that no probe has repeated: for information that goes on another path meanwhile.
    pub fn probe_fresh(&mut self, visit: &mut impl FnMut(&SentPacket, &[F]) -> bool) {
        self.probe_those(usize::MAX, PacketFlags::NONE, visit);
    }

    /// Returns how many packets had something to repeat.
    fn probe_those(
        &mut self,
        count: usize,
        probed: PacketFlags,
        visit: &mut impl FnMut(&SentPacket, &[F]) -> bool,
    ) -> usize {
        let mut found = 0;
        let mut pn = self.first_outstanding;
        while pn < self.next && found < count {
            found += usize::from(self.probe_one(pn, probed, visit));
            pn += self.slots.at_mut(pn).step();
        }
        found
    }

    /// Visits a packet if it is outstanding and was probed, or was not, as wanted. Whether it has something to repeat.
    fn probe_one(
        &mut self,
        pn: u64,
        probed: PacketFlags,
        visit: &mut impl FnMut(&SentPacket, &[F]) -> bool,
    ) -> bool {
        let slot = self.slots.at_mut(pn);
        let packet = slot.packet(pn);
        let is_wanted = slot.state == State::Outstanding
            && packet.is_ack_eliciting()
            && packet.is_probed() == probed.has(PacketFlags::PROBED);
        if !is_wanted {
            return false;
        }
        //= rfc9002/6.2.1#5
        slot.flags = slot.flags.with(PacketFlags::PROBED);
        visit(&packet, self.frames.slice(slot.frames_start, slot.frames_count))
    }

    /// The path changed: what is outstanding stays subject to loss detection, but leaves flight, because it says
    /// nothing about the new path. Returns the bytes that left flight. Source: RFC 9000 §9.4.
    pub fn on_path_change(&mut self) -> u64 {
        let mut pn = self.first_outstanding;
        while pn < self.next {
            let slot = self.slots.at_mut(pn);
            if slot.state == State::Outstanding && slot.flags.has(PacketFlags::IN_FLIGHT) {
                slot.flags = slot.flags.without(PacketFlags::IN_FLIGHT);
                self.flight.ack_only += 1;
            }
            pn += slot.step();
        }
        core::mem::take(&mut self.flight.bytes)
    }

    /// The space's keys are gone: forgets everything, visiting what was outstanding, and frees the memory. Returns the
    /// bytes that left flight. Source: RFC 9002 §6.4.
    pub fn discard(&mut self, visit: &mut impl FnMut(&SentPacket, &[F])) -> u64 {
        let mut pn = self.first_outstanding;
        while pn < self.next {
            let slot = self.slots.at_mut(pn);
            if slot.state == State::Outstanding {
                visit(&slot.packet(pn), self.frames.slice(slot.frames_start, slot.frames_count));
            }
            pn += slot.step();
        }
        let (next, acked_end, bytes) = (self.next, self.acked_end, self.flight.bytes);
        // Numbers are never used twice, not even after a Retry.
        //= rfc9000/17.2.5.3#2
        *self = Ledger { base: next, first_outstanding: next, next, acked_end, ..Ledger::new() };
        bytes
    }

    /// Gives the memory of both rings back if nothing is in them but packets that only acknowledge, which are forgotten, and such as
    /// were lost longer than `forget_after` ago. The next packet allocates again.
    pub fn release_memory(&mut self, now: Instant, forget_after: Duration) {
        self.losses.forget(now, forget_after);
        if self.flight.bytes > 0 || self.flight.ack_eliciting > 0 || self.losses.remembers() {
            return;
        }
        (self.base, self.first_outstanding) = (self.next, self.next);
        self.flight = Flight::default();
        self.slots = SlotRing::new();
        self.frames = FrameRing::new();
    }

    /// Bytes in flight in this space.
    #[inline]
    pub const fn in_flight_bytes(&self) -> u64 {
        self.flight.bytes
    }

    /// Outstanding ack-eliciting packets: the PTO timer runs while there are any.
    #[inline]
    pub const fn ack_eliciting_in_flight(&self) -> u32 {
        self.flight.ack_eliciting
    }

    /// When the last ack-eliciting packet left: the PTO counts from there.
    pub const fn last_ack_eliciting_at(&self) -> Option<Instant> {
        self.last_ack_eliciting_at
    }

    /// When the latest packet was sent that was acknowledged.
    pub const fn acked_sent_at(&self) -> Option<Instant> {
        self.acked_sent_at
    }

    /// The largest packet number the peer acknowledged.
    #[inline]
    pub const fn largest_acked(&self) -> Option<u64> {
        self.acked_end.checked_sub(1)
    }

    /// The largest packet number sent or skipped.
    pub const fn largest_sent(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }

    /// When loss detection must look again, if no acknowledgement comes first. As of the last
    /// [`Ledger::detect_losses`].
    pub fn loss_time(&self) -> Option<Instant> {
        self.losses.loss_time
    }

    /// Packet numbers that the ledger holds a slot for, for tests of its bounds.
    pub const fn span(&self) -> u64 {
        self.next - self.base
    }

    #[cold]
    fn skip_to(&mut self, pn: u64) {
        while self.next < pn {
            if self.next - self.base >= self.slots.capacity() {
                self.slots.grow(self.base, self.next);
            }
            self.slots.set(self.next, Slot::skipped(self.frames.position()));
            self.skipped.push(self.next);
            self.next += 1;
        }
    }

    #[cold]
    fn push_frames_growing(&mut self, added: &[F]) -> u32 {
        let Some(&filler) = added.first() else { return self.frames.position() };
        let mut capacity = (self.frames.capacity() * 2).max(FIRST_FRAMES);
        loop {
            let mut grown = FrameRing::with_capacity(capacity, filler);
            if let Some(start) = self.move_frames(&mut grown, added) {
                self.frames = grown;
                return start;
            }
            capacity *= 2;
        }
    }

    /// Copies the frames of all slots to `target`, `added` behind them, and returns where those are. `None` if they do not all fit: then
    /// nothing has changed, because a slot whose frames had moved would be wrong about the old ring.
    fn move_frames(&mut self, target: &mut FrameRing<F>, added: &[F]) -> Option<u32> {
        let mut trial = target.clone();
        for pn in self.base..self.next {
            let slot = self.slots.at(pn);
            trial.push(self.frames.slice(slot.frames_start, slot.frames_count))?;
        }
        trial.push(added)?;
        for pn in self.base..self.next {
            let slot = self.slots.at_mut(pn);
            slot.frames_start = target.push(self.frames.slice(slot.frames_start, slot.frames_count))?;
        }
        target.push(added)
    }

    /// Too many packets that the peer may never acknowledge: the oldest go. One that is in flight or ack-eliciting is
    /// declared lost by the next look for losses, which is due at once.
    #[cold]
    fn evict_oldest(&mut self) {
        let pn = self.first_outstanding;
        if pn >= self.next {
            return;
        }
        let slot = self.slots.at_mut(pn);
        if slot.state == State::Outstanding {
            let packet = slot.packet(pn);
            if packet.is_in_flight() || packet.is_ack_eliciting() {
                self.losses.expire_below(pn + 1, packet.sent_at);
            } else {
                slot.state = State::Lost;
                let mut left = Flight::default();
                left.add(&packet);
                self.flight.remove(left);
                self.losses.forget_below(pn + 1);
            }
        }
        self.settle();
    }

    /// Moves both lower bounds up as far as they go, and frees the frames below.
    #[inline]
    fn settle(&mut self) {
        while self.base < self.next {
            let slot = self.slots.at(self.base);
            let is_settled = match slot.state {
                State::Acked | State::Skipped => true,
                State::Lost => self.losses.is_forgotten(self.base),
                State::Outstanding => false,
            };
            if !is_settled {
                break;
            }
            self.base += slot.step();
        }
        self.first_outstanding = self.first_outstanding.max(self.base);
        while self.first_outstanding < self.next {
            let slot = self.slots.at(self.first_outstanding);
            if slot.state == State::Outstanding {
                break;
            }
            self.first_outstanding += slot.step();
        }
        let live = if self.base < self.next {
            self.slots.at(self.base).frames_start
        } else {
            self.frames.position()
        };
        self.frames.free_before(live);
    }
}
