//! How far writers may run ahead of the network, and when those that wait are told. Source: RFC 9000 §4.1.
//!
//! What was written and cannot leave is memory that the peer makes us hold, so a writer is offered what flow control
//! permits and no more. Within that it may have as much unsent as it has in flight, so that a fast path finds data for a
//! whole round trip, or its allowance if that is more. The allowance follows the order of sending (RFC 9218 §10): the
//! stream that is next gets [`WRITE_AHEAD`], those behind it get [`MIN_SHARE`], those that take turns get equal shares. So
//! a hundred responses on a slow connection hold a hundred small shares. Too little local room counts as none, so that
//! writes stay large; what flow control permits is offered to the last byte, because nothing says that more will follow.
//!
//! Invariant: a writer that waits is told when the limit that stopped it gives way. The limits are its own unsent bytes
//! (they leave), its retained bytes (they are acknowledged), its credit (MAX_STREAM_DATA), and the two of the
//! connection. Writers that wait for those stand in a queue in the order of sending. When such a limit gives way, as many of them
//! are told as there is room for, so that thousands that wait cost nothing. Once the application has taken these events
//! and acted, what room they have left is the next ones'.

use super::Streams;
use super::config::{Priority, StreamConfig};
use super::queue::SendQueue;
use super::slots::Slot;
use super::stream::{Notices, Stream, Writer};
use crate::stream_id::{Dir, StreamId};

/// What the writer whose stream is next may have unsent, in bytes, whatever the network takes.
const WRITE_AHEAD: u64 = 256 * 1024;
/// What each of the others may have unsent, however many there are, in bytes.
const MIN_SHARE: u64 = 16 * 1024;
/// See [`Priority::rank`].
const RANKS: usize = 9;

/// What writers share.
#[derive(Debug)]
pub(super) struct SendAllowance {
    /// Bidirectional streams that may be written to.
    writers: u64,
    /// Unsent bytes of all streams beyond [`MIN_SHARE`] of each, by rank; of none before there were any.
    excess: Vec<u64>,
    /// The largest allowance.
    most: u64,
    /// A writer waits for the connection's retained bytes to become fewer.
    is_full: bool,
    /// A writer waits for credit of the connection.
    lacks_credit: bool,
    /// Places of writers that wait for either.
    waiting: SendQueue,
    /// A limit of the connection gave way, and the first of those may have room.
    is_roused: bool,
    /// What those were offered that were told since the application last took all events, in bytes.
    offered: u64,
    /// What the connection may retain while memory is scarce, in bytes; else the largest number.
    limit: u64,
}

impl SendAllowance {
    pub(super) fn new(config: &StreamConfig) -> SendAllowance {
        let most = WRITE_AHEAD.min(config.send_buffer).min(config.connection_send_buffer);
        let excess = Vec::new();
        SendAllowance {
            writers: 0,
            excess,
            most,
            is_full: false,
            lacks_credit: false,
            waiting: SendQueue::new(),
            is_roused: false,
            offered: 0,
            limit: u64::MAX,
        }
    }

    /// A stream can be written to.
    #[inline]
    pub(super) fn on_opened(&mut self, dir: Dir) {
        if dir == Dir::Bidi {
            self.writers += 1;
        }
    }

    /// A stream that could be written to cannot be any more.
    #[inline]
    pub(super) fn on_finished(&mut self, dir: Dir) {
        if dir == Dir::Bidi {
            self.writers = self.writers.saturating_sub(1);
        }
    }

    /// The allowance of each of `writers` that take turns.
    #[inline]
    fn share(&self) -> u64 {
        // Divided by a power of two, because this runs for each request.
        let halvings = u64::BITS - self.writers.saturating_sub(1).leading_zeros();
        let share = self.most.checked_shr(halvings).unwrap_or(0);
        share.max(MIN_SHARE.min(self.most))
    }

    /// A stream of this priority has `after` bytes unsent, and had `before`.
    #[inline]
    pub(super) fn on_unsent(&mut self, priority: Priority, before: u64, after: u64) {
        let (before, after) = (excess(before), excess(after));
        if before == after {
            return;
        }
        match self.excess.get_mut(level(priority)) {
            Some(sum) => *sum = (*sum + after).saturating_sub(before),
            None => self.begin_sums(priority, after),
        }
    }

    /// A stream of this priority is the first with such an excess.
    #[cold]
    fn begin_sums(&mut self, priority: Priority, excess: u64) {
        self.excess.resize(RANKS, 0);
        if let Some(sum) = self.excess.get_mut(level(priority)) {
            *sum = excess;
        }
    }

    /// Gives back what only bytes to come need.
    pub(super) fn release_memory(&mut self) {
        if self.excess.iter().all(|sum| *sum == 0) {
            self.excess = Vec::new();
        }
        self.waiting.release_memory();
    }

    /// Whether a writer that waits for the connection may have room.
    #[inline]
    pub(super) fn is_roused(&self) -> bool {
        self.is_roused
    }

    /// The stream at `slot` has another priority.
    pub(super) fn on_priority(&mut self, slot: Slot, id: StreamId, priority: Priority) {
        if self.waiting.contains(slot) {
            self.waiting.remove(slot);
            self.waiting.push(slot, id, priority);
        }
    }

    /// What a stream may always have unsent when it has `own` bytes unsent.
    #[inline]
    fn allowance(&self, priority: Priority, own: u64) -> u64 {
        if self.writers <= 1 {
            return self.most;
        }
        let share = self.share();
        if priority.incremental || share == self.most {
            return share;
        }
        let in_front: u64 = self.excess.iter().take(level(priority) + 1).sum();
        if in_front <= excess(own) { self.most } else { MIN_SHARE.min(self.most) }
    }

    /// Whether memory is scarce.
    #[inline]
    pub(super) fn is_limited(&self) -> bool {
        self.limit < u64::MAX
    }

    /// Whether a writer waits for credit of the connection.
    #[inline]
    pub(super) fn lacks_credit(&self) -> bool {
        self.lacks_credit
    }
}

fn excess(unsent: u64) -> u64 {
    unsent.saturating_sub(MIN_SHARE)
}

fn level(priority: Priority) -> usize {
    usize::from(priority.rank())
}

/// Local room for what a stream's writer writes, in bytes.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// What the stream alone would have.
    own: u64,
    allowance: u64,
    /// The part of the connection that all its writers share.
    connection: u64,
}

impl Room {
    fn free(&self) -> u64 {
        self.own.min(self.connection)
    }
}

/// What a writer that finds no room waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// Its own bytes to leave or to be acknowledged, or credit for its stream.
    ForStream,
    /// A limit of the connection.
    ForConnection,
}

impl Streams {
    /// Bytes that the stream's writer should write now; 0 lets it wait.
    pub(super) fn capacity(&self, slot: Slot) -> u64 {
        let room = self.room(slot);
        if room.free() < room.allowance.div_ceil(4) { 0 } else { room.free().min(self.permitted(slot)) }
    }

    #[inline]
    fn room(&self, slot: Slot) -> Room {
        let stream = &self.slots[slot];
        let send = &stream.send;
        let allowance =
            self.send_allowance.allowance(stream.priority, send.unsent()).min(self.send_allowance.limit / 2);
        let send_allowance = allowance.max(send.in_flight()).saturating_sub(send.unsent());
        let kept = self.limits.send_buffer.saturating_sub(send.retained());
        let connection = self.connection_room();
        Room { own: send_allowance.min(kept), allowance, connection }
    }

    /// What a writer may write in any case: a share, as far as there is memory and flow control permits it, and no writer waits for either.
    #[inline]
    pub(super) fn small_room(&self, slot: Slot) -> u64 {
        if self.send_allowance.is_full || self.send_allowance.lacks_credit {
            return 0;
        }
        let send = &self.slots[slot].send;
        let share = MIN_SHARE.saturating_sub(send.unsent());
        let kept = self.limits.send_buffer.saturating_sub(send.retained());
        share.min(kept).min(self.connection_room()).min(self.permitted(slot))
    }

    /// What the connection may retain more, in bytes.
    fn connection_room(&self) -> u64 {
        self.limits.connection_send_buffer.min(self.send_allowance.limit).saturating_sub(self.retained)
    }

    /// What flow control permits beyond what was written, in bytes.
    fn permitted(&self, slot: Slot) -> u64 {
        let send = &self.slots[slot].send;
        send.credit.available().min(self.connection_credit(slot)).saturating_sub(send.unsent())
    }

    fn connection_credit(&self, slot: Slot) -> u64 {
        self.credit.available(u32::from(self.slots[slot].priority.rank()))
    }

    /// The writer finds no room and waits for it.
    pub(super) fn await_room(&mut self, slot: Slot) {
        self.slots[slot].writer = Writer::Waiting;
        self.keep_waiting(slot, self.room(slot));
        // The peer hears of it if its limits are what keeps the writer waiting.
        self.refresh(slot);
        self.note_connection_blocked();
    }

    /// Remembers which limits of the connection a waiting writer waits for.
    fn note_limits(&mut self, slot: Slot, room: Room) -> Waits {
        let credit = self.connection_credit(slot);
        let send = &self.slots[slot].send;
        self.send_allowance.is_full |= room.connection < room.allowance.div_ceil(2);
        self.send_allowance.lacks_credit |= credit <= send.unsent();
        let has_own = room.own >= room.allowance.div_ceil(2) && send.credit.available() > send.unsent();
        if has_own { Waits::ForConnection } else { Waits::ForStream }
    }

    /// The writer waits on, in the queue if it is for the connection.
    fn keep_waiting(&mut self, slot: Slot, room: Room) {
        if self.note_limits(slot, room) == Waits::ForConnection {
            let Stream { id, priority, .. } = self.slots[slot];
            self.send_allowance.waiting.push(slot, id, priority);
        }
    }

    /// Tells a waiting writer when it has room again.
    #[inline]
    pub(super) fn check_writer(&mut self, slot: Slot) {
        if self.slots[slot].writer == Writer::Waiting {
            self.check_waiting_writer(slot);
        }
    }

    fn check_waiting_writer(&mut self, slot: Slot) {
        let room = self.room(slot);
        if self.suffices(slot, room) { self.tell(slot) } else { self.keep_waiting(slot, room) }
    }

    fn suffices(&self, slot: Slot, room: Room) -> bool {
        room.free() >= room.allowance.div_ceil(2) && self.permitted(slot) > 0
    }

    /// A waiting writer has room.
    fn tell(&mut self, slot: Slot) {
        self.end_waiting(slot);
        self.notify(slot, Notices::WRITABLE);
    }

    /// The stream's writer waits no more.
    #[inline]
    pub(super) fn end_waiting(&mut self, slot: Slot) {
        self.slots[slot].writer = Writer::Content;
        self.send_allowance.waiting.remove(slot);
    }

    /// Tells the first of those that wait for the connection, if it has room beside those that were told before it. Returns
    /// whether it did; if not, the application acts on what it was told before it asks again.
    pub(super) fn tell_next_waiting(&mut self) -> bool {
        let offered = core::mem::take(&mut self.send_allowance.offered);
        while let Some(slot) = self.send_allowance.waiting.front() {
            let room = self.room(slot);
            if self.suffices(slot, room) {
                if offered >= room.connection.min(self.connection_credit(slot)) {
                    return false;
                }
                self.send_allowance.offered = offered + room.free().min(self.permitted(slot));
                self.tell(slot);
                return true;
            }
            if self.note_limits(slot, room) == Waits::ForConnection {
                break;
            }
            // What gives way next on its own stream looks at it again.
            self.send_allowance.waiting.remove(slot);
        }
        self.send_allowance.is_roused = false;
        false
    }

    /// Retained bytes went.
    pub(super) fn on_released(&mut self, bytes: u64) {
        self.retained -= bytes;
        let most = self.send_allowance.most.min(self.send_allowance.limit / 2);
        if self.send_allowance.is_full && self.connection_room() >= most.div_ceil(2) {
            self.send_allowance.is_full = false;
            self.send_allowance.is_roused = true;
        }
    }

    /// Memory is scarce, and the connection may retain this much of what is written to it; `None`: it is not any more.
    pub(crate) fn limit_memory(&mut self, retained: Option<u64>) {
        let limit = retained.unwrap_or(u64::MAX);
        if limit > core::mem::replace(&mut self.send_allowance.limit, limit) {
            self.send_allowance.is_full = false;
            // The allowance of each has grown.
            for slot in self.slots.all() {
                self.check_writer(slot);
            }
        }
    }

    /// The connection's credit grew.
    pub(super) fn on_connection_credit(&mut self) {
        self.send_allowance.is_roused |= core::mem::take(&mut self.send_allowance.lacks_credit);
    }
}
