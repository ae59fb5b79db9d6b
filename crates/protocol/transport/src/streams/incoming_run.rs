//! The receiving end of a run: frames of one stream that continue each other, as they come in (outgoing_run.rs). Source: RFC 9000 §19.8.
//!
//! As long as data is in order and the application takes all of it, a frame changes nothing but sums: what was received, taken and
//! consumed. They are booked once for all frames. Limits and the credit that the peer is owed bound what may come in before that, so
//! that a frame which reaches one of them finds everything booked.

use super::slots::Slot;
use super::stream::Stream;
use super::{Streams, TOO_SCATTERED};
use crate::error::TransportError;
use crate::event::{Fin, StreamSink};
use crate::reassembly::TooManyPieces;
use base::time::{Duration, Instant};
use wire::frame;

/// What the stream that a frame was about last may take in before anything is booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intake {
    slot: Slot,
    id: u64,
    /// Where the data begins that comes next.
    offset: u64,
    /// Bytes that may still come.
    left: u64,
    /// Bytes that the application took and that are not booked.
    taken: u64,
}

/// What the application did with a frame's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lent {
    /// Nothing: the frame does not continue the run.
    No,
    /// It took all.
    Whole,
    /// It took so many bytes. The run is over.
    Part(usize),
}

impl Streams {
    /// What may come in on the stream that a frame was about last, if it is data that would be lent and nothing else.
    #[inline]
    pub(crate) fn intake(&self) -> Option<Intake> {
        let slot = self.slots.recent()?;
        let Stream { id, recv, .. } = &self.slots[slot];
        let offset = recv.next_in_order()?;
        let permitted = recv.window.limit().saturating_sub(offset);
        let permitted = permitted.min(self.window.limit().saturating_sub(self.received));
        let left = permitted.min(recv.window.before_step()).min(self.window.before_step());
        (left > 0).then_some(Intake { slot, id: id.as_u64(), offset, left, taken: 0 })
    }

    /// Lends the data of a frame that continues what came in.
    #[inline]
    pub(crate) fn take_in(
        &mut self,
        intake: &mut Intake,
        frame: &frame::Stream<'_>,
        sink: &mut impl StreamSink,
    ) -> Lent {
        let len = frame.data.len() as u64;
        let continues = frame.id == intake.id && frame.offset == intake.offset;
        if !continues || frame.fin || len == 0 || len > intake.left {
            return Lent::No;
        }
        let stream = &mut self.slots[intake.slot];
        let taken = stream.recv.lend(stream.id, frame.data, sink);
        if (taken as u64) < len {
            return Lent::Part(taken);
        }
        #[cfg(test)]
        {
            self.received_in_runs += 1;
        }
        intake.offset += len;
        intake.left -= len;
        intake.taken += len;
        Lent::Whole
    }

    /// Books what came in.
    #[inline]
    pub(crate) fn settle_intake(&mut self, intake: &Intake, now: Instant) {
        let recv = &mut self.slots[intake.slot].recv;
        recv.on_lent(intake.taken);
        recv.window.on_consumed_within_step(intake.taken, now);
        self.received += intake.taken;
        self.window.on_consumed_within_step(intake.taken, now);
    }

    /// The application took the first `taken` bytes of a frame's data. What came in before is booked.
    pub(crate) fn on_partly_taken(
        &mut self,
        intake: &Intake,
        (frame, taken): (&frame::Stream<'_>, usize),
        now: Instant,
        rtt: Duration,
    ) -> Result<(), TransportError> {
        let room = self.window.limit().saturating_sub(self.received);
        let recv = &mut self.slots[intake.slot].recv;
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        self.received += recv.admit(end, Fin::Open, room)?;
        let held = recv.held();
        let rest = frame.data.get(taken..).unwrap_or(&[]);
        recv.keep(rest).map_err(|TooManyPieces| TOO_SCATTERED)?;
        self.settle_data(intake.slot, held, (taken as u64, now, rtt))
    }
}
