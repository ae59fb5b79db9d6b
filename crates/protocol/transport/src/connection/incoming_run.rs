//! Packets of a train that are like the one before them, as they come in: one STREAM frame up to the end, of one stream, each
//! continuing the last in number and in offset.
//!
//! Each is opened by itself. Then a comparison replaces dispatch: data is lent, and what the packets mean for streams, for
//! acknowledgements and for counters is booked once, when another packet comes or the train is over (receive.rs). Nothing
//! reads these in between. The sending end is in outgoing_run.rs; `tests/runs.rs` compares with the general way.

use crate::event::StreamSink;
use crate::streams::{Intake, Lent, Streams};
use recovery::ack::AckTracker;
use wire::frame::{self, ty};
use wire::reader::Reader;

/// The type of the frames: with an offset, up to the packet's end, and nothing ends with it.
const TYPE: u8 = (ty::STREAM | ty::STREAM_OFF) as u8;

/// The packets of a run that were opened and are not booked.
pub(super) struct IncomingRun {
    /// The number of the first.
    first: u64,
    /// The number that comes next.
    next: u64,
    pub(super) intake: Intake,
}

/// What became of a packet.
pub(super) enum Continued<'a> {
    /// It belongs to the run.
    Yes,
    /// It does, and is the last: the application took so many bytes of its frame, and no more.
    Last(frame::Stream<'a>, usize),
    /// It does not.
    No,
}

impl IncomingRun {
    /// The run that begins with the next packet, if that may be one: all so far came in order.
    #[inline]
    pub(super) fn begin(streams: &Streams, acks: &AckTracker) -> Option<IncomingRun> {
        let next = acks.next_in_order()?;
        Some(IncomingRun { first: next, next, intake: streams.intake()? })
    }

    /// The number that is expected.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// How many packets there are.
    #[inline]
    pub(super) fn packets(&self) -> u64 {
        self.next - self.first
    }

    /// Takes in the payload of a packet if it continues the run.
    #[inline]
    pub(super) fn take<'a>(
        &mut self,
        streams: &mut Streams,
        pn: u64,
        payload: &'a [u8],
        sink: &mut impl StreamSink,
    ) -> Continued<'a> {
        let mut reader = Reader::new(payload);
        let is_like = pn == self.next && reader.u8() == Ok(TYPE);
        let (Ok(id), Ok(offset), true) = (reader.varint(), reader.varint(), is_like) else {
            return Continued::No;
        };
        let stream = frame::Stream { id, offset, fin: false, data: reader.rest() };
        match streams.take_in(&mut self.intake, &stream, sink) {
            Lent::No => Continued::No,
            Lent::Whole => {
                self.next += 1;
                Continued::Yes
            }
            Lent::Part(taken) => Continued::Last(stream, taken),
        }
    }
}
