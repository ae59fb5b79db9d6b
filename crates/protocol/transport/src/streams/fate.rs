//! What became of the frames that streams put into packets. Source: RFC 9000 §13.3.

use super::Streams;
use super::slots::Slot;
use super::stream::Notices;
use crate::sent::SentFrame;
use crate::stream_id::{Dir, StreamId};
use core::ops::Range;

impl Streams {
    /// Stream data was acknowledged, and the end of the stream if `fin`. The caller merges adjacent ranges.
    #[inline]
    pub(crate) fn on_stream_acked(&mut self, id: StreamId, range: Range<u64>, fin: bool) {
        #[cfg(test)]
        {
            self.acked_ranges += 1;
        }
        let Some(slot) = self.slots.find(id.as_u64()) else { return };
        let send = &mut self.slots[slot].send;
        if send.is_over() {
            return;
        }
        if id.dir() == Dir::Bidi {
            self.delivered = self.delivered.saturating_add(range.end.saturating_sub(range.start));
        }
        let resending = send.wants_resend();
        let is_reset = send.is_reset_at();
        let released = send.on_acked(range, fin);
        let over = send.is_over();
        if resending {
            self.refresh(slot);
        }
        if released > 0 {
            self.on_released(released);
            self.check_writer(slot);
        }
        if over && is_reset {
            self.retire(slot);
        } else if over {
            self.slots[slot].notices.remove(Notices::WRITABLE);
            self.notify(slot, Notices::FINISHED);
        }
    }

    /// A frame of ours was acknowledged.
    pub(crate) fn on_frame_acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Stream { id, offset, len, fin } => {
                self.on_stream_acked(id, offset..offset + u64::from(len), fin);
            }
            SentFrame::ResetStream { id } => {
                if let Some(slot) = self.slots.find(id.as_u64()) {
                    self.slots[slot].send.on_reset_acked();
                    self.retire(slot);
                }
            }
            SentFrame::ResetStreamAt { id, reliable_size } => {
                if let Some(slot) = self.slots.find(id.as_u64()) {
                    let released = self.slots[slot].send.on_reset_at_acked(reliable_size);
                    self.on_released(released);
                    self.retire(slot);
                }
            }
            SentFrame::StopSending { id } => {
                if let Some(slot) = self.slots.find(id.as_u64()) {
                    self.slots[slot].recv.stop.on_acked();
                }
            }
            SentFrame::MaxData { limit } => self.window.on_acked(limit),
            SentFrame::MaxStreamData { id, limit } => {
                if let Some(slot) = self.slots.find(id.as_u64()) {
                    self.slots[slot].recv.window.on_acked(limit);
                }
            }
            SentFrame::MaxStreams { dir, limit } => self.peer[dir.index()].window.on_acked(limit),
            SentFrame::DataBlocked { limit } => self.credit.whole.blocked.on_value_acked(&limit),
            SentFrame::StreamDataBlocked { id, limit } => {
                if let Some(slot) = self.slots.find(id.as_u64()) {
                    self.slots[slot].send.credit.blocked.on_value_acked(&limit);
                }
            }
            SentFrame::StreamsBlocked { dir, limit } => {
                self.local[dir.index()].credit.blocked.on_value_acked(&limit);
            }
            _ => {}
        }
    }

    /// A frame of ours was lost, or is to be sent again by a probe.
    pub(crate) fn on_frame_lost(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Stream { id, offset, len, fin } => {
                if let Some(slot) = self.slots.find(id.as_u64()) {
                    self.slots[slot].send.on_lost(offset..offset + u64::from(len), fin);
                    self.refresh(slot);
                }
            }
            SentFrame::ResetStream { id } => self.resend_control(id, |this, slot| {
                this.slots[slot].send.on_reset_lost();
            }),
            SentFrame::ResetStreamAt { id, reliable_size } => self.resend_control(id, |this, slot| {
                this.slots[slot].send.on_reset_at_lost(reliable_size);
            }),
            SentFrame::StopSending { id } => self.resend_control(id, |this, slot| {
                this.slots[slot].recv.stop.on_lost();
            }),
            SentFrame::MaxStreamData { id, limit } => self.resend_control(id, |this, slot| {
                this.slots[slot].recv.window.on_lost(limit);
            }),
            SentFrame::StreamDataBlocked { id, limit } => self.resend_control(id, |this, slot| {
                this.slots[slot].send.credit.blocked.on_value_lost(&limit);
            }),
            SentFrame::MaxData { limit } => self.connection_control |= self.window.on_lost(limit),
            SentFrame::MaxStreams { dir, limit } => {
                self.connection_control |= self.peer[dir.index()].window.on_lost(limit);
            }
            SentFrame::DataBlocked { limit } => {
                self.credit.whole.blocked.on_value_lost(&limit);
                self.connection_control |= self.credit.whole.blocked.is_pending();
            }
            SentFrame::StreamsBlocked { dir, limit } => {
                let blocked = &mut self.local[dir.index()].credit.blocked;
                blocked.on_value_lost(&limit);
                self.connection_control |= blocked.is_pending();
            }
            _ => {}
        }
    }

    /// Tells the stream, if it is still there, that its frame was lost; it decides whether that matters.
    fn resend_control(&mut self, id: StreamId, on_lost: impl FnOnce(&mut Streams, Slot)) {
        let Some(slot) = self.slots.find(id.as_u64()) else { return };
        on_lost(self, slot);
        if self.slots[slot].wants_control() {
            self.want_control(slot);
        }
    }
}
