//! What the application asks of streams, and what it hears of them.

use super::Streams;
use super::config::{OpenError, Priority, ResetAtError, WriteError};
use super::send::SendState;
use super::slots::Slot;
use super::stream::{Notices, Stream};
use crate::event::{Event, StreamSink};
use crate::stream_id::{Dir, StreamId};
use base::time::{Duration, Instant};
use bytes::Bytes;

impl Streams {
    /// Opens a stream of our own.
    pub(crate) fn open(&mut self, dir: Dir) -> Result<StreamId, OpenError> {
        let local = &mut self.local[dir.index()];
        match local.open() {
            Some(index) => {
                let id = StreamId::new(self.side, dir, index);
                self.create(id);
                Ok(id)
            }
            None => {
                self.connection_control |= local.credit.blocked.is_pending();
                Err(OpenError::Limit)
            }
        }
    }

    /// How many streams of this kind the peer permits since the beginning of the connection.
    pub(crate) fn permitted_streams(&self, dir: Dir) -> u64 {
        self.local[dir.index()].credit.limit()
    }

    /// From now on the peer may open another stream only when one is over and `release` was called.
    pub(crate) fn hold_peer_streams(&mut self) {
        self.peer.iter_mut().for_each(super::ids::PeerStreams::hold);
    }

    /// The application is done with a stream of the peer's.
    pub(crate) fn release(&mut self, dir: Dir) {
        self.connection_control |= self.peer[dir.index()].release();
    }

    fn writable_slot(&mut self, id: StreamId) -> Result<Slot, WriteError> {
        let slot = self.slots.find(id.as_u64()).ok_or(WriteError::NoSuchStream)?;
        self.slots[slot].send.check_writable()?;
        Ok(slot)
    }

    /// Takes bytes to be sent; they are kept, not copied, until acknowledged. Takes them whatever `send_capacity`
    /// says: they are the application's memory, and it is the application's to wait.
    pub(crate) fn write(&mut self, id: StreamId, bytes: Bytes) -> Result<(), WriteError> {
        let slot = self.writable_slot(id)?;
        let len = bytes.len() as u64;
        self.slots[slot].send.write(bytes);
        self.on_written(slot, len);
        Ok(())
    }

    /// As `write`, but copies. Slices of up to 30 bytes cost no allocation.
    pub(crate) fn write_slice(&mut self, id: StreamId, bytes: &[u8]) -> Result<(), WriteError> {
        let slot = self.writable_slot(id)?;
        self.slots[slot].send.write_slice(bytes);
        self.on_written(slot, bytes.len() as u64);
        Ok(())
    }

    /// Takes all that a stream is still to carry and its end, as `write` and `finish` do one after the other.
    pub(crate) fn write_whole(&mut self, id: StreamId, pieces: [Bytes; 2]) -> Result<(), WriteError> {
        let slot = self.writable_slot(id)?;
        let stream = &mut self.slots[slot];
        let mut len = 0;
        for bytes in pieces {
            len += bytes.len() as u64;
            stream.send.write(bytes);
        }
        stream.send.finish();
        self.end_waiting(slot);
        self.send_allowance.on_finished(id.dir());
        self.on_written(slot, len);
        Ok(())
    }

    #[inline]
    fn on_written(&mut self, slot: Slot, len: u64) {
        self.unsent += len;
        self.retained += len;
        let Stream { priority, send, .. } = &self.slots[slot];
        self.send_allowance.on_unsent(*priority, send.unsent().saturating_sub(len), send.unsent());
        self.refresh_unless_fresh(slot);
    }

    /// As `refresh`, after what changes nothing for a stream that has new data to send and may: more data, or the end behind it.
    #[inline]
    fn refresh_unless_fresh(&mut self, slot: Slot) {
        if !self.fresh.contains(slot) {
            self.refresh(slot);
        }
    }

    /// No more bytes follow.
    pub(crate) fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        let slot = self.writable_slot(id)?;
        self.slots[slot].send.finish();
        self.end_waiting(slot);
        self.send_allowance.on_finished(id.dir());
        self.refresh_unless_fresh(slot);
        Ok(())
    }

    /// Gives up sending. Does nothing if there is nothing to give up.
    pub(crate) fn reset(&mut self, id: StreamId, code: u64) {
        if let Some(slot) = self.slots.find(id.as_u64()) {
            self.reset_slot(slot, code);
        }
    }

    /// Gives up sending but for the first bytes.
    pub(crate) fn reset_at(
        &mut self,
        id: StreamId,
        code: u64,
        reliable_size: u64,
    ) -> Result<(), ResetAtError> {
        let slot = self.slots.find(id.as_u64()).ok_or(ResetAtError::NoSuchStream)?;
        let send = &self.slots[slot].send;
        if send.is_over() || matches!(send.state, SendState::Reset(_)) {
            return Err(ResetAtError::NoSuchStream);
        }
        if reliable_size > send.written() {
            return Err(ResetAtError::NotWritten);
        }
        self.reset_slot_at(slot, code, reliable_size);
        Ok(())
    }

    /// Asks the peer to give up sending; what is here and what still comes is discarded.
    pub(crate) fn stop_sending(&mut self, id: StreamId, code: u64) {
        let Some(slot) = self.slots.find(id.as_u64()) else { return };
        let recv = &mut self.slots[slot].recv;
        let held = recv.held();
        let consumed = recv.stop(code.min(wire::varint::MAX));
        let wants_control = recv.stop.is_pending();
        self.settle_held(slot, held);
        if wants_control {
            self.want_control(slot);
        }
        self.settle_consumed(slot, consumed, Instant::ZERO, Duration::ZERO);
    }

    /// Lends a paused stream's bytes again.
    pub(crate) fn deliver(&mut self, id: StreamId, now: Instant, rtt: Duration, sink: &mut impl StreamSink) {
        let Some(slot) = self.slots.find(id.as_u64()) else { return };
        let recv = &mut self.slots[slot].recv;
        if recv.is_over() {
            return;
        }
        let held = recv.held();
        let consumed = recv.deliver(id, sink);
        self.settle_held(slot, held);
        self.settle_consumed(slot, consumed, now, rtt);
    }

    /// How the stream shares the connection with others. Source: RFC 9218.
    pub(crate) fn set_priority(&mut self, id: StreamId, priority: Priority) {
        let Some(slot) = self.slots.find(id.as_u64()) else { return };
        //= rfc9000/2.3#1
        let before = core::mem::replace(&mut self.slots[slot].priority, priority);
        if before != priority {
            let send = &self.slots[slot].send;
            let unsent = if send.wants_send() { send.unsent() } else { 0 };
            self.send_allowance.on_unsent(before, unsent, 0);
            self.send_allowance.on_unsent(priority, 0, unsent);
            self.resend.remove(slot);
            self.fresh.remove(slot);
            self.refresh(slot);
            self.send_allowance.on_priority(slot, id, priority);
        }
        if priority == Priority::CONTROL {
            self.credit.keep_reserve();
        }
    }

    /// Streams of this kind on which the peer has not acknowledged all that we sent or have to send: data, the end, or a reset.
    /// Walks over all streams: for the end of a connection, not for every packet.
    pub(crate) fn unacknowledged(&self, dir: Dir) -> usize {
        let is_owed = |stream: &Stream| stream.id.dir() == dir && stream.send.is_unacknowledged();
        self.slots.all().filter(|&slot| is_owed(&self.slots[slot])).count()
    }

    /// How the stream shares the connection with others.
    pub(crate) fn priority(&mut self, id: StreamId) -> Priority {
        let slot = self.slots.find(id.as_u64());
        slot.map_or(Priority::default(), |slot| self.slots[slot].priority)
    }

    /// Bytes that the stream's writer should write now: what flow control permits, as far as there is room. 0 asks it to
    /// wait for `Event::Writable`, or means that nothing can be written to such a stream.
    pub(crate) fn send_capacity(&mut self, id: StreamId) -> usize {
        let Ok(slot) = self.writable_slot(id) else { return 0 };
        let capacity = self.capacity(slot);
        if capacity == 0 {
            self.await_room(slot);
        }
        usize::try_from(capacity).unwrap_or(usize::MAX)
    }

    /// Whether so many bytes, of which there are few, can be written to the stream at once.
    pub(crate) fn has_room(&mut self, id: StreamId, bytes: u64) -> bool {
        self.writable_slot(id).is_ok_and(|slot| bytes <= self.small_room(slot))
    }

    /// Whether `next_event` may have something to tell.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
            || self.send_allowance.is_roused()
            || self.local.iter().any(|local| local.available)
    }

    /// Takes out the next event about a stream. One event of each kind per stream may wait, so a peer that makes them
    /// faster than they are taken makes no queue grow.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        for dir in Dir::ALL {
            if core::mem::take(&mut self.local[dir.index()].available) {
                return Some(Event::StreamsAvailable { dir });
            }
        }
        loop {
            let Some(&slot) = self.events.front() else {
                if self.send_allowance.is_roused() && self.tell_next_waiting() {
                    continue;
                }
                return None;
            };
            let stream = &mut self.slots[slot];
            let (id, reset_code, stop_code) = (stream.id, stream.reset_code, stream.stop_code);
            let notice = stream.notices.take_first();
            if stream.notices.is_empty() {
                stream.in_events = false;
                self.events.pop_front();
            }
            let event = match notice {
                None => continue,
                Some(Notices::RESET) => Event::StreamReset { id, code: reset_code },
                Some(Notices::STOPPED) => Event::StopSending { id, code: stop_code },
                Some(Notices::WRITABLE) => Event::Writable { id },
                Some(_) => Event::Finished { id },
            };
            self.retire(slot);
            return Some(event);
        }
    }

    /// Bytes that were written and not acknowledged.
    pub(crate) fn retained(&self) -> u64 {
        self.retained
    }

    /// Bytes on bidirectional streams that the peer has acknowledged. Bytes that were sent twice may count twice.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes that were written and have not left yet, whether or not flow control permits them.
    pub(crate) fn unsent(&self) -> u64 {
        self.unsent
    }

    /// The same where that may wait for others to leave with: none is to be sent again.
    pub(crate) fn waiting(&self) -> u64 {
        if self.resend.is_empty() { self.unsent } else { 0 }
    }

    /// Whether anything waits to be sent or resent, flow control permitting or not.
    #[cfg(test)]
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent > 0 || !self.resend.is_empty()
    }

    /// Bytes that streams hold: written and not acknowledged, or received and not taken.
    pub(crate) fn retained_bytes(&self) -> u64 {
        self.retained + self.held.bytes as u64
    }

    /// How many streams exist.
    pub(crate) fn count(&self) -> usize {
        self.slots.len()
    }
}
