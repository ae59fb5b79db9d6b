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
//! connection, which [`SendAllowance`] remembers.

use super::Streams;
use super::config::{Priority, StreamConfig};
use super::slots::Slot;
use super::stream::{Notices, Writer};
use crate::stream_id::Dir;

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
    /// What the connection may retain while memory is scarce, in bytes; else the largest number.
    limit: u64,
}

impl SendAllowance {
    pub(super) fn new(config: &StreamConfig) -> SendAllowance {
        let most = WRITE_AHEAD.min(config.send_buffer).min(config.connection_send_buffer);
        let excess = Vec::new();
        SendAllowance { writers: 0, excess, most, is_full: false, lacks_credit: false, limit: u64::MAX }
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
    free: u64,
    allowance: u64,
    /// The part of the connection that all its writers share.
    connection: u64,
}

impl Streams {
    /// Bytes that the stream's writer should write now; 0 lets it wait.
    pub(super) fn capacity(&self, slot: Slot) -> u64 {
        let room = self.room(slot);
        if room.free < room.allowance.div_ceil(4) { 0 } else { room.free.min(self.permitted(slot)) }
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
        Room { free: send_allowance.min(kept).min(connection), allowance, connection }
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
        self.note_limits(slot, self.room(slot));
        // The peer hears of it if its limits are what keeps the writer waiting.
        self.refresh(slot);
        self.note_connection_blocked();
    }

    /// Remembers which limits of the connection a waiting writer waits for.
    fn note_limits(&mut self, slot: Slot, room: Room) {
        self.send_allowance.is_full |= room.connection < room.allowance.div_ceil(2);
        self.send_allowance.lacks_credit |= self.connection_credit(slot) <= self.slots[slot].send.unsent();
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
        if room.free >= room.allowance.div_ceil(2) && self.permitted(slot) > 0 {
            self.slots[slot].writer = Writer::Content;
            self.notify(slot, Notices::WRITABLE);
        } else {
            self.note_limits(slot, room);
        }
    }

    /// Retained bytes went.
    pub(super) fn on_released(&mut self, bytes: u64) {
        self.retained -= bytes;
        let most = self.send_allowance.most.min(self.send_allowance.limit / 2);
        if self.send_allowance.is_full && self.connection_room() >= most.div_ceil(2) {
            self.send_allowance.is_full = false;
            self.check_writers();
        }
    }

    /// Memory is scarce, and the connection may retain this much of what is written to it; `None`: it is not any more.
    pub(crate) fn limit_memory(&mut self, retained: Option<u64>) {
        let limit = retained.unwrap_or(u64::MAX);
        if limit > core::mem::replace(&mut self.send_allowance.limit, limit) {
            self.send_allowance.is_full = false;
            self.check_writers();
        }
    }

    /// The connection's credit grew.
    pub(super) fn on_connection_credit(&mut self) {
        if core::mem::take(&mut self.send_allowance.lacks_credit) {
            self.check_writers();
        }
    }

    fn check_writers(&mut self) {
        for slot in self.slots.all() {
            self.check_writer(slot);
        }
    }
}
