//! What streams put into packets. Source: RFC 9000 §13.3, §19.4 to §19.14; RFC 9218 §10.
//!
//! Control frames go in front of data: they are few and unblock the peer. Among data the most urgent stream goes
//! first; within an urgency what was lost goes before what is new. The packet that matters is the one with a single
//! STREAM frame up to its end: a look at two queues, and a header of six to eight bytes; sealing reads the data in the stream's buffer.

use super::Streams;
use super::send::{Reset, ResetAt};
use super::slots::Slot;
use super::stream::{Stream, Writer};
use crate::builder::{PacketBuilder, Rest};
use crate::sent::SentFrame;
use crate::stream_id::Dir;
use wire::frame;

/// A STREAM frame is not begun in less room than this: the header would be most of it.
pub(super) const MIN_ROOM: usize = 24;

/// Who may write now, and what.
#[derive(Clone, Copy)]
enum Turn {
    Resend(Slot),
    Fresh(Slot),
}

impl Streams {
    /// Whether control frames wait. May be wrong about a frame that lost its reason, until the next `write_control`.
    #[inline]
    pub(crate) fn wants_control(&self) -> bool {
        self.connection_control || !self.control.is_empty()
    }

    /// Whether lost data waits, or new data that flow control permits.
    #[inline]
    pub(crate) fn wants_data(&self) -> bool {
        !self.resend.is_empty() || (!self.fresh.is_empty() && self.has_fresh_credit())
    }

    /// Fills the packet with STREAM frames.
    #[inline]
    pub(crate) fn write_data(&mut self, packet: &mut PacketBuilder<'_>) {
        while packet.remaining() >= MIN_ROOM {
            let wrote = match self.next_turn() {
                Some(Turn::Fresh(slot)) => self.write_fresh(slot, packet),
                Some(Turn::Resend(slot)) => self.write_resend(slot, packet),
                None => break,
            };
            if !wrote {
                break;
            }
        }
        self.note_connection_blocked();
    }

    /// Fills up a packet whose room is too small for the data that waits. A shorter packet would end its train: the next one would be a
    /// train of its own, for the kernel and for the peer.
    #[inline]
    pub(crate) fn pad_before_data(&self, packet: &mut PacketBuilder<'_>) {
        if (1..MIN_ROOM).contains(&packet.remaining()) && self.wants_data() {
            packet.fill_up();
        }
    }

    #[inline]
    fn next_turn(&self) -> Option<Turn> {
        if !self.resend.is_empty() && (self.resend.rank() <= self.fresh.rank() || !self.has_fresh_credit()) {
            return self.resend.front().map(Turn::Resend);
        }
        if !self.has_fresh_credit() {
            return None;
        }
        self.fresh.front().map(Turn::Fresh)
    }

    #[inline]
    fn write_fresh(&mut self, slot: Slot, packet: &mut PacketBuilder<'_>) -> bool {
        let credit = self.credit.available(self.fresh.rank());
        let Stream { id, priority, writer, send, .. } = &mut self.slots[slot];
        let written = send.write_next(*id, slot.0, credit, packet);
        if written == 0 {
            return false;
        }
        let (id, priority, writer, unsent) = (*id, *priority, *writer, send.unsent());
        let exhausted = unsent == 0 || send.credit.available() == 0;
        self.credit.whole.use_up(written);
        self.unsent -= written;
        self.send_allowance.on_unsent(priority, unsent + written, unsent);
        if exhausted {
            self.fresh.on_turn(priority);
            self.refresh(slot);
            if unsent == 0 && self.slots[slot].send.pending_reset_at().is_some() {
                self.want_control(slot);
            }
        } else {
            self.fresh.on_served(slot, id, priority);
        }
        if writer == Writer::Waiting {
            self.check_writer(slot);
        }
        true
    }

    /// The bytes that the packet written last ends with and that were not copied into it.
    #[inline]
    pub(crate) fn rest(&self, rest: &Rest) -> Option<&[u8]> {
        self.slots[Slot(rest.place)].send.rest(rest)
    }

    fn write_resend(&mut self, slot: Slot, packet: &mut PacketBuilder<'_>) -> bool {
        let stream = &mut self.slots[slot];
        if !stream.send.write_resend(stream.id, packet) {
            return false;
        }
        if stream.send.wants_resend() {
            self.resend.on_served(slot, stream.id, stream.priority);
        } else {
            self.resend.remove(slot);
        }
        true
    }

    /// Writes the control frames that wait, as far as the packet has room.
    pub(crate) fn write_control(&mut self, packet: &mut PacketBuilder<'_>) {
        if self.connection_control {
            self.connection_control = !self.write_connection_control(packet);
        }
        while let Some(&slot) = self.control.front() {
            let stream = &mut self.slots[slot];
            if !write_stream_control(stream, packet) {
                return;
            }
            stream.in_control = false;
            self.control.pop_front();
        }
    }

    /// Returns whether everything is written.
    fn write_connection_control(&mut self, packet: &mut PacketBuilder<'_>) -> bool {
        if let Some(limit) = self.window.pending() {
            let frame = frame::MaxData { maximum: limit };
            if packet.remaining() < frame.size() {
                return false;
            }
            frame.write(&mut packet.writer);
            packet.sent(SentFrame::MaxData { limit });
            self.window.on_sent();
        }
        if let Some(&limit) = self.credit.whole.blocked.pending() {
            let frame = frame::DataBlocked { limit };
            if packet.remaining() < frame.size() {
                return false;
            }
            frame.write(&mut packet.writer);
            packet.sent(SentFrame::DataBlocked { limit });
            self.credit.whole.blocked.on_sent();
        }
        Dir::ALL.into_iter().all(|dir| self.write_stream_limits(dir, packet))
    }

    fn write_stream_limits(&mut self, dir: Dir, packet: &mut PacketBuilder<'_>) -> bool {
        let peer = &mut self.peer[dir.index()];
        if let Some(limit) = peer.pending_limit() {
            let frame = frame::MaxStreams { dir, maximum: limit };
            if packet.remaining() < frame.size() {
                return false;
            }
            frame.write(&mut packet.writer);
            packet.sent(SentFrame::MaxStreams { dir, limit });
            peer.window.on_sent();
        }
        let local = &mut self.local[dir.index()];
        if let Some(&limit) = local.credit.blocked.pending() {
            let frame = frame::StreamsBlocked { dir, limit };
            if packet.remaining() < frame.size() {
                return false;
            }
            frame.write(&mut packet.writer);
            packet.sent(SentFrame::StreamsBlocked { dir, limit });
            local.credit.blocked.on_sent();
        }
        true
    }
}

/// Returns whether everything is written.
fn write_stream_control(stream: &mut Stream, packet: &mut PacketBuilder<'_>) -> bool {
    let (id, raw) = (stream.id, stream.id.as_u64());
    if stream.send.is_withheld() {
        return true;
    }
    if let Some(reset) = stream.send.pending_reset() {
        let frame = frame::ResetStream { id: raw, code: reset.code, final_size: reset.final_size };
        if packet.remaining() < frame.size() {
            return false;
        }
        frame.write(&mut packet.writer);
        packet.sent(SentFrame::ResetStream { id });
        stream.send.on_reset_sent();
    }
    if let Some(ResetAt { reset: Reset { code, final_size }, reliable_size }) = stream.send.pending_reset_at()
    {
        let frame = frame::ResetStreamAt { id: raw, code, final_size, reliable_size };
        if packet.remaining() < frame.size() {
            return false;
        }
        frame.write(&mut packet.writer);
        packet.sent(SentFrame::ResetStreamAt { id, reliable_size });
        stream.send.on_reset_at_sent();
    }
    if let Some(&code) = stream.recv.stop.pending() {
        let frame = frame::StopSending { id: raw, code };
        if packet.remaining() < frame.size() {
            return false;
        }
        frame.write(&mut packet.writer);
        packet.sent(SentFrame::StopSending { id });
        stream.recv.stop.on_sent();
    }
    if let Some(limit) = stream.recv.window.pending() {
        let frame = frame::MaxStreamData { id: raw, maximum: limit };
        if packet.remaining() < frame.size() {
            return false;
        }
        frame.write(&mut packet.writer);
        packet.sent(SentFrame::MaxStreamData { id, limit });
        stream.recv.window.on_sent();
    }
    if let Some(&limit) = stream.send.credit.blocked.pending() {
        let frame = frame::StreamDataBlocked { id: raw, limit };
        if packet.remaining() < frame.size() {
            return false;
        }
        frame.write(&mut packet.writer);
        packet.sent(SentFrame::StreamDataBlocked { id, limit });
        stream.send.credit.blocked.on_sent();
    }
    true
}
