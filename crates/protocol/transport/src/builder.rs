//! A packet's payload while it is filled: the one thing that every component's `write` receives.
//!
//! Components write frames in the order in which they are asked, as long as there is room, and note what must be
//! remembered. The header in front and the tag behind are the sealer's business.

use crate::sent::SentFrame;
use recovery::packet::PacketFlags;
use wire::writer::Writer;

/// Room for frames, and the record of those written.
#[derive(Debug)]
pub(crate) struct PacketBuilder<'a> {
    /// The payload area, without header and tag.
    pub writer: Writer<'a>,
    /// Frames to remember, in order. Reused from packet to packet.
    frames: &'a mut Vec<SentFrame>,
    /// What the frames mean for the packet's treatment. Source: RFC 9002 §2.
    flags: PacketFlags,
    /// What is not the packet's all the same.
    withheld: PacketFlags,
}

impl<'a> PacketBuilder<'a> {
    pub(crate) fn new(writer: Writer<'a>, frames: &'a mut Vec<SentFrame>) -> PacketBuilder<'a> {
        frames.clear();
        PacketBuilder { writer, frames, flags: PacketFlags::NONE, withheld: PacketFlags::NONE }
    }

    /// Bytes of payload that still fit.
    #[inline]
    pub(crate) fn remaining(&self) -> usize {
        self.writer.remaining()
    }

    /// Notes an ack-eliciting frame that was just written and must be remembered.
    #[inline]
    pub(crate) fn sent(&mut self, frame: SentFrame) {
        self.frames.push(frame);
        self.flags = self.flags.with(PacketFlags::DATA);
    }

    /// Notes an ACK frame: remembered, but neither ack-eliciting nor in flight.
    #[inline]
    pub(crate) fn sent_ack(&mut self, largest: u64) {
        self.frames.push(SentFrame::Ack { largest });
    }

    /// Whether the frame written last that is remembered is an ACK.
    pub(crate) fn has_ack(&self) -> bool {
        matches!(self.frames.last(), Some(SentFrame::Ack { .. }))
    }

    /// Records an ack-eliciting frame that is never sent again (PING, PATH_RESPONSE).
    #[inline]
    pub(crate) fn sent_unremembered(&mut self) {
        self.flags = self.flags.with(PacketFlags::DATA);
    }

    /// Fills up with PADDING until the payload is `len` bytes long. Padding counts as in flight (RFC 9002 §2).
    pub(crate) fn pad_to(&mut self, len: usize) {
        let missing = len.saturating_sub(self.writer.position()).min(self.writer.remaining());
        if missing > 0 {
            self.writer.zeros(missing);
            self.flags = self.flags.with(PacketFlags::IN_FLIGHT);
        }
    }

    /// Marks the packet as a probe of the path MTU: its loss is no sign of congestion.
    pub(crate) fn mark_mtu_probe(&mut self) {
        self.flags = self.flags.with(PacketFlags::MTU_PROBE);
    }

    /// Marks the packet as one that takes another path than the active one: it does not count towards what is in flight there,
    /// and its loss is no sign of congestion there. Source: RFC 9000 §9.4.
    pub(crate) fn mark_elsewhere(&mut self) {
        self.withheld = PacketFlags::IN_FLIGHT;
    }

    /// What the frames written so far mean.
    #[inline]
    pub(crate) fn flags(&self) -> PacketFlags {
        self.flags.without(self.withheld)
    }

    /// The frames to remember that were written so far.
    pub(crate) fn frames(&self) -> &[SentFrame] {
        self.frames
    }

    /// Whether nothing has been written.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.writer.position() == 0
    }
}
