//! Runs: STREAM frames of one stream that continue each other, each of which fills a packet. Source: RFC 9000 §19.8.
//!
//! Most packets of a transfer are such. What `write_data` would write into the next packets is known beforehand where one stream is
//! in front and stays there, and neither its data nor any credit ends with them. So it is computed and booked once for all of them
//! instead of once for each (docs/decisions/025).

use super::Streams;
use super::outgoing::MIN_ROOM;
use super::slots::Slot;
use super::stream::{Stream, Writer};
use crate::sent::SentFrame;
use crate::stream_id::StreamId;
use wire::frame::stream_header_size;
use wire::varint;

/// Frames of new data that continue each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    slot: Slot,
    pub(crate) id: StreamId,
    /// Where the first begins in the stream; not at its beginning.
    pub(crate) offset: u64,
    /// Bytes of data in each.
    pub(crate) len: usize,
    /// How many there are, at least 1.
    pub(crate) count: u64,
}

impl Run {
    /// Where the data of a frame begins in the stream.
    #[inline]
    pub(crate) fn offset_of(&self, index: u64) -> u64 {
        self.offset + index * self.len as u64
    }

    /// What the ledger remembers of a frame.
    #[inline]
    pub(crate) fn frame(&self, index: u64) -> SentFrame {
        SentFrame::Stream { id: self.id, offset: self.offset_of(index), len: self.len as u16, fin: false }
    }
}

impl Streams {
    /// Whether the stream in front has more than a packet of `size` bytes to send: others have no run, and nothing else is asked of them.
    #[inline]
    pub(crate) fn may_run(&self, size: usize) -> bool {
        self.fresh.lasting_front().is_some_and(|slot| self.slots[slot].send.unsent() >= size as u64)
    }

    /// What the next packets hold, with `room` bytes each, if all that `write_data` would write into each of them is one frame up to its
    /// end, with data that is in one piece; at most `most` of them.
    #[inline]
    pub(crate) fn next_run(&mut self, room: usize, most: u64) -> Option<Run> {
        if !self.resend.is_empty() || room < MIN_ROOM {
            return None;
        }
        let slot = self.fresh.lasting_front()?;
        let credit = self.credit.available(self.fresh.rank());
        let Stream { id, send, .. } = &mut self.slots[slot];
        let offset = send.sent();
        // The first frame has no offset, and is alone.
        let offset_size = if offset == 0 { return None } else { varint::size(offset) };
        let len = room.checked_sub(stream_header_size(id.as_u64(), offset, None)).filter(|len| *len > 0)?;
        // A byte stays of each, so that nothing ends with the run: neither the data nor a credit.
        let left = send.unsent().min(send.credit.available()).min(credit).saturating_sub(1);
        // The last frame begins where offsets are as long as that of the first.
        let longer = (1_u64 << (8 * offset_size - 2)).saturating_sub(offset) + (len as u64 - 1);
        let bytes = left.min(longer);
        if bytes < len as u64 {
            return None;
        }
        let count = (bytes.min(send.next_contiguous(offset)) / len as u64).min(most);
        (count > 0).then_some(Run { slot, id: *id, offset, len, count })
    }

    /// The data of a run.
    #[inline]
    pub(crate) fn run_bytes(&self, run: &Run) -> &[u8] {
        self.slots[run.slot].send.slice(run.offset, run.len * run.count as usize).unwrap_or(&[])
    }

    /// The frames of a run were written.
    #[inline]
    pub(crate) fn on_run_sent(&mut self, run: &Run) {
        #[cfg(test)]
        {
            self.in_runs += run.count;
        }
        let bytes = run.len as u64 * run.count;
        let Stream { priority, writer, send, .. } = &mut self.slots[run.slot];
        send.credit.use_up(bytes);
        let (priority, writer, unsent) = (*priority, *writer, send.unsent());
        self.credit.whole.use_up(bytes);
        self.unsent -= bytes;
        self.send_allowance.on_unsent(priority, unsent + bytes, unsent);
        self.fresh.on_turn(priority);
        if writer == Writer::Waiting {
            self.check_writer(run.slot);
        }
    }
}
