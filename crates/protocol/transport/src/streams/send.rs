//! The sending part of a stream. Source: RFC 9000 §3.1, §3.3.
//!
//! Offsets run `acked ≤ sent ≤ end`: below `acked` all is acknowledged and forgotten, up to `sent` all went out at
//! least once, up to `end` the application has written. Between `acked` and `sent` two range sets hold what is known
//! beyond that: acknowledged out of order, and lost. Lost bytes go again before new ones and need no flow-control
//! credit.
//!
//! ```text
//! Open ── finish ──> Finished ── all acknowledged ──> Closed
//!   ├──── reset ───────┼───────> Reset ── acknowledged ──┤
//!   └─── reset_at ─────┴─> ResetAt ── acknowledged, with all that is reliable
//!                             └─ reset ─> Reset
//! ```
//!
//! RESET_STREAM_AT is more like a FIN than like a reset: it goes when the reliable bytes have gone once, because its final size
//! counts them and flow control must have permitted them (draft-ietf-quic-reliable-stream-reset §4, §6).

use super::buffer::SendBuffer;
use super::config::WriteError;
use crate::announce::Announce;
use crate::builder::{PacketBuilder, Rest};
use crate::flow::{Credit, CreditAtRest};
use crate::sent::SentFrame;
use crate::stream_id::StreamId;
use base::ranges::RangeSet;
use bytes::Bytes;
use core::ops::Range;
use wire::frame::{stream_header, stream_header_size};

/// What RESET_STREAM says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reset {
    pub(super) code: u64,
    pub(super) final_size: u64,
}

/// What RESET_STREAM_AT says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResetAt {
    pub(super) reset: Reset,
    pub(super) reliable_size: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum SendState {
    /// Only the peer sends on this stream.
    Absent,
    /// RFC 9000 "Ready" and "Send".
    Open,
    /// The final size is fixed; the announcement is the FIN bit. "Data Sent" once everything went out.
    Finished(Announce<()>),
    /// "Reset Sent".
    Reset(Announce<Reset>),
    /// RFC 9000 "Data Sent", of which only the bytes up to the end of the buffer are sent again; the announcement is RESET_STREAM_AT.
    ResetAt(ResetAt, Announce<()>),
    /// "Data Recvd" or "Reset Recvd".
    Closed,
}

/// What a reset let go, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) unsent: u64,
    pub(super) retained: u64,
}

/// The sending part of a stream.
#[derive(Debug)]
pub(super) struct SendStream {
    pub(super) state: SendState,
    /// The peer's limit on this stream; what is used of it is how much was sent.
    pub(super) credit: Credit,
    buffer: SendBuffer,
    acked: u64,
    /// Acknowledged above `acked`.
    acked_beyond: RangeSet,
    /// Sent, lost, and not acknowledged since.
    lost: RangeSet,
    /// The stream was opened within limits that do not hold: nothing of it may go until the peer permits it.
    is_withheld: bool,
}

impl SendStream {
    pub(super) fn new() -> SendStream {
        SendStream {
            state: SendState::Absent,
            credit: Credit::default(),
            buffer: SendBuffer::default(),
            acked: 0,
            acked_beyond: RangeSet::new(),
            lost: RangeSet::new(),
            is_withheld: false,
        }
    }

    /// Makes it the part of a new stream.
    pub(super) fn open(&mut self, limit: u64) {
        self.state = SendState::Open;
        self.credit = Credit::new(limit);
    }

    /// Makes it ready for the next stream; a little memory stays.
    pub(super) fn recycle(&mut self) {
        self.state = SendState::Absent;
        self.credit = Credit::default();
        self.buffer.recycle();
        self.acked = 0;
        self.acked_beyond.clear();
        self.lost.clear();
        self.is_withheld = false;
    }

    /// Gives back what only bytes to come need.
    pub(super) fn release_memory(&mut self) {
        self.buffer.release_memory();
        self.acked_beyond.shrink();
        self.lost.shrink();
    }

    /// All that there is to know of an open part whose bytes are all acknowledged.
    pub(super) fn at_rest(&self) -> Option<CreditAtRest> {
        let is_at_rest = self.state == SendState::Open
            && self.buffer.end() == self.acked
            && self.sent() == self.acked
            && self.acked_beyond.is_empty()
            && self.lost.is_empty()
            && !self.is_withheld;
        self.credit.at_rest().filter(|_| is_at_rest)
    }

    /// Makes it, which is new, the part that was at rest.
    pub(super) fn wake(&mut self, credit: CreditAtRest) {
        self.state = SendState::Open;
        self.credit = credit.into();
        self.acked = self.credit.used();
        self.buffer.begin_at(self.acked);
    }

    /// Nothing of what was sent has arrived or will: it begins anew, once the peer permits the stream.
    pub(super) fn rewind(&mut self) {
        match &mut self.state {
            SendState::Finished(fin) => fin.request(()),
            SendState::Reset(announce) => {
                let pending = match announce {
                    Announce::Pending(reset) | Announce::InFlight(reset) => Some(reset.code),
                    Announce::Idle => None,
                };
                if let Some(code) = pending {
                    announce.request(Reset { code, final_size: 0 });
                }
            }
            // Not before the handshake is complete: see `Connection::reset_at`.
            SendState::ResetAt(..) | SendState::Absent | SendState::Open | SendState::Closed => {}
        }
        self.credit = Credit::withheld();
        self.buffer.rewind();
        self.acked = 0;
        self.acked_beyond.clear();
        self.lost.clear();
        self.is_withheld = true;
    }

    /// Whether the stream waits for the peer's permission.
    pub(super) fn is_withheld(&self) -> bool {
        self.is_withheld
    }

    /// The peer permits the stream, and this many bytes on it.
    pub(super) fn release(&mut self, limit: u64) {
        self.credit = Credit::new(limit);
        self.is_withheld = false;
    }

    pub(super) fn is_absent(&self) -> bool {
        self.state == SendState::Absent
    }

    /// Whether nothing is left to do here.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, SendState::Absent | SendState::Closed)
    }

    /// Whether data may still have to be sent or resent.
    #[inline]
    fn is_sending(&self) -> bool {
        matches!(self.state, SendState::Open | SendState::Finished(_) | SendState::ResetAt(..))
    }

    #[inline]
    pub(super) fn sent(&self) -> u64 {
        self.credit.used()
    }

    /// Written and never sent, in bytes.
    #[inline]
    pub(super) fn unsent(&self) -> u64 {
        self.buffer.end().saturating_sub(self.sent())
    }

    /// All that the application has written, in bytes; of a stream that is reset, what of it can still be promised.
    pub(super) fn written(&self) -> u64 {
        self.buffer.end()
    }

    /// Sent and not acknowledged, in bytes, but for gaps.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        self.sent() - self.acked
    }

    /// Bytes of the application's buffers held.
    #[inline]
    pub(super) fn retained(&self) -> u64 {
        self.buffer.retained()
    }

    /// Whether anything is not acknowledged that was written: data, the end, or a reset.
    pub(super) fn is_unacknowledged(&self) -> bool {
        match self.state {
            SendState::Open => self.retained() > 0,
            SendState::Finished(_) | SendState::Reset(_) | SendState::ResetAt(..) => true,
            SendState::Absent | SendState::Closed => false,
        }
    }

    /// Whether the application may still write.
    pub(super) fn check_writable(&self) -> Result<(), WriteError> {
        match self.state {
            SendState::Open => Ok(()),
            //= rfc9000/4.5#2
            SendState::Finished(_) => Err(WriteError::Finished),
            SendState::Reset(_) | SendState::ResetAt(..) => Err(WriteError::Reset),
            SendState::Absent | SendState::Closed => Err(WriteError::NoSuchStream),
        }
    }

    /// The application hands over bytes, which it may.
    pub(super) fn write(&mut self, bytes: Bytes) {
        self.buffer.push(bytes);
    }

    /// As `write`, with a copy.
    pub(super) fn write_slice(&mut self, bytes: &[u8]) {
        self.buffer.push_slice(bytes);
    }

    /// Nothing follows what was written.
    pub(super) fn finish(&mut self) {
        self.state = SendState::Finished(Announce::Pending(()));
    }

    /// Gives up. `None` if there is nothing to give up any more.
    pub(super) fn reset(&mut self, code: u64) -> Option<Dropped> {
        if !self.is_sending() {
            return None;
        }
        let unsent = self.unsent();
        // An earlier RESET_STREAM_AT has fixed the code, and the final size, once it could go.
        //= reliable-stream-reset/5.2#1
        let code = self.said_at().map_or(code, |said| said.reset.code);
        //= rfc9000/3.3#1
        self.state = SendState::Reset(Announce::Pending(Reset { code, final_size: self.sent() }));
        self.credit.blocked.cancel();
        self.acked_beyond.clear();
        self.lost.clear();
        Some(Dropped { unsent, retained: self.buffer.clear() })
    }

    /// Gives up all but the first `reliable_size` bytes, of which no more are promised than before. `None` if there is nothing to give
    /// up any more, or not so much was written.
    pub(super) fn reset_at(&mut self, code: u64, reliable_size: u64) -> Option<Dropped> {
        if !self.is_sending() || reliable_size > self.written() {
            return None;
        }
        //= reliable-stream-reset/5.2#2
        let (code, promised) =
            self.said_at().map_or((code, u64::MAX), |said| (said.reset.code, said.reliable_size));
        if reliable_size >= promised {
            return None;
        }
        let unsent = self.unsent();
        let retained = self.buffer.truncate(reliable_size);
        let final_size = self.sent().max(reliable_size);
        let said = ResetAt { reset: Reset { code, final_size }, reliable_size };
        self.state = SendState::ResetAt(said, Announce::Pending(()));
        //= reliable-stream-reset/5#2
        self.lost.remove(reliable_size..u64::MAX);
        if self.unsent() == 0 {
            self.credit.blocked.cancel();
        }
        Some(Dropped { unsent: unsent - self.unsent(), retained: retained + self.close_when_acked() })
    }

    /// What RESET_STREAM_AT says, if the stream is reset so.
    fn said_at(&self) -> Option<ResetAt> {
        match &self.state {
            SendState::ResetAt(said, _) => Some(*said),
            _ => None,
        }
    }

    /// Whether only the first bytes of the stream are promised.
    #[inline]
    pub(super) fn is_reset_at(&self) -> bool {
        matches!(self.state, SendState::ResetAt(..))
    }

    /// Closes when the reset and all that is reliable were acknowledged. Returns how many retained bytes went.
    fn close_when_acked(&mut self) -> u64 {
        if matches!(self.state, SendState::ResetAt(_, Announce::Idle)) && self.acked >= self.buffer.end() {
            self.state = SendState::Closed;
            return self.buffer.clear();
        }
        0
    }

    /// Whether something must go that needs no flow-control credit: lost data, or a FIN behind data that all went
    /// out.
    #[inline]
    pub(super) fn wants_resend(&self) -> bool {
        !self.lost.is_empty() || self.wants_bare_fin()
    }

    #[inline]
    fn wants_bare_fin(&self) -> bool {
        self.state == SendState::Finished(Announce::Pending(()))
            && self.sent() == self.buffer.end()
            && !self.is_withheld
    }

    /// Whether there is new data; the credit may still forbid to send it.
    #[inline]
    pub(super) fn wants_send(&self) -> bool {
        self.unsent() > 0 && self.is_sending()
    }

    /// Writes a frame of new data, at most `credit` bytes of it. Returns how many; 0 when the packet has no room. Data up to the
    /// packet's end stays in the buffer if the packet allows it, see [`PacketBuilder::rest`].
    #[inline]
    pub(super) fn write_next(
        &mut self,
        id: StreamId,
        place: u32,
        credit: u64,
        packet: &mut PacketBuilder<'_>,
    ) -> u64 {
        let offset = self.sent();
        //= rfc9000/4.1#5
        let available = self.unsent().min(self.credit.available()).min(credit);
        let Some(layout) = Layout::of(id, offset, available, packet.remaining()) else { return 0 };
        self.credit.use_up(layout.len as u64);
        let fin = self.take_fin(offset + layout.len as u64);
        stream_header(&mut packet.writer, id.as_u64(), offset, fin, layout.length_field);
        let may_stay = packet.takes_rest() && layout.length_field.is_none();
        if may_stay && self.buffer.is_next_contiguous(offset, layout.len) {
            packet.set_rest(Rest { place, offset, len: layout.len });
        } else if let Some(room) = packet.writer.room(layout.len) {
            self.buffer.copy_next(offset, room);
        }
        packet.writer.advance(layout.len);
        packet.sent(SentFrame::Stream { id, offset, len: layout.len as u16, fin });
        layout.len as u64
    }

    /// How many bytes that were never sent are in one piece, from `offset` on, which is the first of them.
    #[inline]
    pub(super) fn next_contiguous(&mut self, offset: u64) -> u64 {
        self.buffer.next_contiguous(offset)
    }

    /// The bytes of that piece.
    #[inline]
    pub(super) fn slice(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.buffer.slice(offset, len)
    }

    /// The bytes of a packet's rest.
    #[inline]
    pub(super) fn rest(&self, rest: &Rest) -> Option<&[u8]> {
        self.buffer.slice(rest.offset, rest.len)
    }

    /// Writes a frame of lost data, or a FIN without data. Returns whether the packet had room.
    pub(super) fn write_resend(&mut self, id: StreamId, packet: &mut PacketBuilder<'_>) -> bool {
        let Range { start, end } = self.lost.first().unwrap_or(self.sent()..self.sent());
        let Some(layout) = Layout::of(id, start, end - start, packet.remaining()) else { return false };
        let sent = start..start + layout.len as u64;
        let fin = self.take_fin(sent.end);
        stream_header(&mut packet.writer, id.as_u64(), start, fin, layout.length_field);
        if let Some(room) = packet.writer.room(layout.len) {
            self.buffer.copy(start, room);
        }
        packet.writer.advance(layout.len);
        packet.sent(SentFrame::Stream { id, offset: start, len: layout.len as u16, fin });
        self.lost.remove(sent);
        true
    }

    /// Whether a frame that ends at `end` ends the stream; if so the FIN is on its way.
    #[inline]
    fn take_fin(&mut self, end: u64) -> bool {
        match &mut self.state {
            SendState::Finished(fin) if end == self.buffer.end() => {
                fin.on_sent();
                true
            }
            _ => false,
        }
    }

    /// Data was acknowledged, and the FIN if so. Returns how many retained bytes went.
    #[inline]
    pub(super) fn on_acked(&mut self, range: Range<u64>, fin: bool) -> u64 {
        if !self.is_sending() {
            return 0;
        }
        let Range { start, end } = range;
        if !self.lost.is_empty() {
            self.lost.remove(start..end);
        }
        let mut released = 0;
        if start > self.acked {
            self.acked_beyond.insert(start..end);
        } else if end > self.acked {
            self.acked = end;
            while let Some(next) = self.acked_beyond.first().filter(|next| next.start <= self.acked) {
                self.acked = self.acked.max(next.end);
                self.acked_beyond.pop_first();
            }
            released = self.buffer.release_below(self.acked);
        }
        if let SendState::Finished(announce) = &mut self.state {
            if fin {
                announce.on_acked();
            }
            if *announce == Announce::Idle && self.acked == self.buffer.end() {
                self.state = SendState::Closed;
            }
        } else if self.is_reset_at() {
            released += self.close_when_acked();
        }
        released
    }

    /// Data was lost, and the FIN if so.
    pub(super) fn on_lost(&mut self, range: Range<u64>, fin: bool) {
        //= rfc9000/13.3#4
        if !self.is_sending() {
            return;
        }
        let mut range = range.start.max(self.acked)..range.end.max(self.acked);
        if self.is_reset_at() {
            //= reliable-stream-reset/5#2
            let end = self.buffer.end();
            range = range.start.min(end)..range.end.min(end);
        }
        self.lost.insert(range.clone());
        // What was resent in the meantime may be acknowledged already.
        for acked in self.acked_beyond.overlapping(range) {
            self.lost.remove(acked);
        }
        if let SendState::Finished(announce) = &mut self.state
            && fin
        {
            announce.on_lost();
        }
    }

    /// The RESET_STREAM_AT to be written: not before all that counts was sent once.
    pub(super) fn pending_reset_at(&self) -> Option<ResetAt> {
        match &self.state {
            //= reliable-stream-reset/4#2
            SendState::ResetAt(said, Announce::Pending(())) if self.sent() >= self.buffer.end() => {
                Some(*said)
            }
            _ => None,
        }
    }

    /// The RESET_STREAM_AT was written.
    pub(super) fn on_reset_at_sent(&mut self) {
        if let SendState::ResetAt(_, announce) = &mut self.state {
            announce.on_sent();
        }
    }

    /// A RESET_STREAM_AT was acknowledged. Returns how many retained bytes went.
    pub(super) fn on_reset_at_acked(&mut self, reliable_size: u64) -> u64 {
        match &mut self.state {
            //= reliable-stream-reset/5.2#3
            SendState::ResetAt(said, announce) if said.reliable_size == reliable_size => announce.on_acked(),
            _ => {}
        }
        self.close_when_acked()
    }

    /// A RESET_STREAM_AT was lost.
    pub(super) fn on_reset_at_lost(&mut self, reliable_size: u64) {
        match &mut self.state {
            //= reliable-stream-reset/4#3
            SendState::ResetAt(said, announce) if said.reliable_size == reliable_size => announce.on_lost(),
            _ => {}
        }
    }

    /// The RESET_STREAM was acknowledged.
    pub(super) fn on_reset_acked(&mut self) {
        if matches!(self.state, SendState::Reset(_)) {
            self.state = SendState::Closed;
        }
    }

    /// The RESET_STREAM was written.
    pub(super) fn on_reset_sent(&mut self) {
        if let SendState::Reset(reset) = &mut self.state {
            reset.on_sent();
        }
    }

    /// The RESET_STREAM was lost.
    pub(super) fn on_reset_lost(&mut self) {
        if let SendState::Reset(reset) = &mut self.state {
            reset.on_lost();
        }
    }

    /// The RESET_STREAM to be written.
    pub(super) fn pending_reset(&self) -> Option<Reset> {
        match &self.state {
            SendState::Reset(reset) => reset.pending().copied(),
            _ => None,
        }
    }
}

/// How a STREAM frame lies in the rest of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    len: usize,
    /// Without it the frame reaches to the packet's end.
    length_field: Option<usize>,
}

impl Layout {
    /// A frame of up to `available` bytes at `offset` in `room` bytes; `None` if not even one byte fits, or for
    /// `available` 0 the header.
    #[inline]
    fn of(id: StreamId, offset: u64, available: u64, room: usize) -> Option<Layout> {
        let fill = room.checked_sub(stream_header_size(id.as_u64(), offset, None))?;
        if fill > 0 && available >= fill as u64 {
            return Some(Layout { len: fill, length_field: None });
        }
        let available = available as usize;
        let header = stream_header_size(id.as_u64(), offset, Some(available));
        let len = room.checked_sub(header)?.min(available);
        (len > 0 || available == 0).then_some(Layout { len, length_field: Some(len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_left_out_only_when_the_frame_fills_the_packet() {
        let id = StreamId::from_u64(0);
        let layout = |offset, available, room| Layout::of(id, offset, available, room);
        let frame = |len, length_field| Some(Layout { len, length_field });
        assert_eq!(layout(0, 1_000, 100), frame(98, None));
        assert_eq!(layout(0, 98, 100), frame(98, None));
        // One byte short: the length field takes two, so a byte of data has to wait for the next packet.
        assert_eq!(layout(0, 97, 100), frame(96, Some(96)));
        assert_eq!(layout(0, 50, 100), frame(50, Some(50)));
        assert_eq!(layout(70_000, 50, 100), frame(50, Some(50)));
        assert_eq!(layout(70_000, 50, 6), None);
        assert_eq!(layout(0, 0, 3), frame(0, Some(0)));
        assert_eq!(layout(0, 0, 2), None);
    }
}
