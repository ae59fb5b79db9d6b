//! Frames of the peer that concern streams and flow control. Source: RFC 9000 §19.4, §19.5, §19.8 to §19.14.

use super::slots::Slot;
use super::stream::{Notices, Stream};
use super::{MAX_CONNECTION_PIECES, Part, Streams, TOO_SCATTERED};
use crate::error::TransportError;
use crate::event::{Fin, StreamSink};
use crate::reassembly::{BufferedBytes, TooManyPieces};
use base::time::{Duration, Instant};
use wire::error::Code;
use wire::frame;

impl Streams {
    /// Stream data. Lends to `sink` what is in order now. `rtt` is the smoothed round-trip time.
    #[inline]
    pub(crate) fn on_stream(
        &mut self,
        frame: &frame::Stream<'_>,
        now: Instant,
        rtt: Duration,
        sink: &mut impl StreamSink,
    ) -> Result<(), TransportError> {
        let Some(slot) = self.check_stream_id(frame.id, Part::Recv)? else {
            self.repeated = self.repeated.wrapping_add(1);
            return Ok(());
        };
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        let fin = if frame.fin { Fin::End } else { Fin::Open };
        let room = self.window.limit().saturating_sub(self.received);
        let stream = &mut self.slots[slot];
        self.received += stream.recv.admit(end, fin, room)?;
        self.repeated = self.repeated.wrapping_add(stream.recv.has_come(frame.offset, end).into());
        let held = stream.recv.held();
        let consumed = stream
            .recv
            .on_data(stream.id, frame.offset, frame.data, sink)
            .map_err(|TooManyPieces| TOO_SCATTERED)?;
        self.settle_data(slot, held, (consumed, now, rtt))
    }

    /// Data of a stream was taken in, of which `consumed` bytes need no memory.
    #[inline]
    pub(super) fn settle_data(
        &mut self,
        slot: Slot,
        held: BufferedBytes,
        (consumed, now, rtt): (u64, Instant, Duration),
    ) -> Result<(), TransportError> {
        self.settle_held(slot, held);
        if self.held.is_excessive(MAX_CONNECTION_PIECES) {
            return Err(TOO_SCATTERED);
        }
        self.settle_consumed(slot, consumed, now, rtt);
        Ok(())
    }

    /// What a reassembly buffer holds has changed.
    #[inline]
    pub(super) fn settle_held(&mut self, slot: Slot, before: BufferedBytes) {
        let after = self.slots[slot].recv.held();
        if before != after {
            self.held.pieces = self.held.pieces - before.pieces + after.pieces;
            self.held.bytes = self.held.bytes - before.bytes + after.bytes;
        }
    }

    /// `count` bytes of the stream need no memory any more: the peer gets credit for them.
    #[inline]
    pub(super) fn settle_consumed(&mut self, slot: Slot, count: u64, now: Instant, rtt: Duration) {
        // Where memory is scarce windows do not grow: no time is short then.
        let rtt = if self.send_allowance.is_limited() { Duration::ZERO } else { rtt };
        let stream = &mut self.slots[slot];
        if count > 0 {
            if stream.recv.wants_credit() && stream.recv.window.on_consumed(count, now, rtt) {
                // The connection must not become what holds back a single fast stream.
                self.window.grow_to(stream.recv.window.size().saturating_mul(3) / 2);
                self.want_control(slot);
            }
            self.connection_control |= self.window.on_consumed(count, now, rtt);
        }
        if self.slots[slot].recv.is_ending() {
            self.settle_end(slot);
        }
    }

    /// A receiving part is over, or waits to be: where all that a reset has promised is taken, it ends.
    fn settle_end(&mut self, slot: Slot) {
        if self.slots[slot].recv.is_reset_due() {
            self.end_by_reset(slot);
        }
        if self.slots[slot].recv.is_over() {
            self.retire(slot);
        }
    }

    /// The receiving part ends by the peer's reset. The rest counts as consumed.
    fn end_by_reset(&mut self, slot: Slot) {
        let recv = &mut self.slots[slot].recv;
        let held = recv.held();
        let Some(consumed) = recv.on_reset() else { return };
        if !recv.is_stopped() {
            self.notify(slot, Notices::RESET);
        }
        self.settle_held(slot, held);
        // A reset says nothing about how fast the application reads, so it must not grow a window.
        if consumed > 0 {
            self.connection_control |= self.window.on_consumed(consumed, Instant::ZERO, Duration::ZERO);
        }
    }

    /// The peer gives up sending, but for the first bytes of the stream.
    pub(crate) fn on_reset_stream_at(&mut self, frame: &frame::ResetStreamAt) -> Result<(), TransportError> {
        let Some(slot) = self.check_stream_id(frame.id, Part::Recv)? else { return Ok(()) };
        let room = self.window.limit().saturating_sub(self.received);
        let stream = &mut self.slots[slot];
        //= reliable-stream-reset/4#4
        self.received += stream.recv.admit(frame.final_size, Fin::End, room)?;
        check_code(stream, frame.code)?;
        let held = stream.recv.held();
        if !stream.recv.is_over() {
            stream.reset_code = frame.code;
            stream.recv.on_reset_at(frame.reliable_size);
        }
        self.settle_held(slot, held);
        self.settle_end(slot);
        Ok(())
    }

    /// The peer gives up sending.
    pub(crate) fn on_reset_stream(&mut self, frame: &frame::ResetStream) -> Result<(), TransportError> {
        let Some(slot) = self.check_stream_id(frame.id, Part::Recv)? else { return Ok(()) };
        let room = self.window.limit().saturating_sub(self.received);
        let stream = &mut self.slots[slot];
        //= rfc9000/4.4#1
        self.received += stream.recv.admit(frame.final_size, Fin::End, room)?;
        check_code(stream, frame.code)?;
        if !stream.recv.is_over() {
            stream.reset_code = frame.code;
            self.end_by_reset(slot);
            self.retire(slot);
        }
        Ok(())
    }

    /// The peer does not want what we send: we reset with its code. Source: RFC 9000 §3.5.
    pub(crate) fn on_stop_sending(&mut self, frame: &frame::StopSending) -> Result<(), TransportError> {
        let Some(slot) = self.check_stream_id(frame.id, Part::Send)? else { return Ok(()) };
        //= rfc9000/3.5#1
        if self.reset_slot(slot, frame.code) {
            self.slots[slot].stop_code = frame.code;
            self.notify(slot, Notices::STOPPED);
        }
        Ok(())
    }

    pub(crate) fn on_max_data(&mut self, frame: &frame::MaxData) -> Result<(), TransportError> {
        if self.credit.whole.on_limit(frame.maximum) {
            self.on_connection_credit();
        }
        Ok(())
    }

    pub(crate) fn on_max_stream_data(&mut self, frame: &frame::MaxStreamData) -> Result<(), TransportError> {
        let Some(slot) = self.check_stream_id(frame.id, Part::Send)? else { return Ok(()) };
        if self.slots[slot].send.credit.on_limit(frame.maximum) {
            self.refresh(slot);
            self.check_writer(slot);
        }
        Ok(())
    }

    pub(crate) fn on_max_streams(&mut self, frame: &frame::MaxStreams) -> Result<(), TransportError> {
        self.local[frame.dir.index()].on_limit(frame.maximum);
        self.release_withheld();
        Ok(())
    }

    /// The peer is blocked. Credit comes from consumption alone, so there is nothing to do; nor for the next two, but
    /// that the stream named must be one that the peer may name.
    pub(crate) fn on_data_blocked(&mut self, _: &frame::DataBlocked) -> Result<(), TransportError> {
        Ok(())
    }

    pub(crate) fn on_stream_data_blocked(
        &mut self,
        frame: &frame::StreamDataBlocked,
    ) -> Result<(), TransportError> {
        //= rfc9000/19.13#1
        self.check_stream_id(frame.id, Part::Recv).map(|_| ())
    }

    pub(crate) fn on_streams_blocked(&mut self, _: &frame::StreamsBlocked) -> Result<(), TransportError> {
        Ok(())
    }
}

/// What a reset says does not change. Source: draft-ietf-quic-reliable-stream-reset §5.2.
fn check_code(stream: &Stream, code: u64) -> Result<(), TransportError> {
    //= reliable-stream-reset/5.2#5
    if stream.recv.is_reset_at() && stream.reset_code != code {
        return Err(TransportError::new(Code::STREAM_STATE_ERROR, "a reset with another code than before"));
    }
    Ok(())
}
