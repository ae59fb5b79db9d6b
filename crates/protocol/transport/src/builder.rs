//! A packet's payload while it is filled: the one thing that every component's `write` receives.
//!
//! Components write frames in the order in which they are asked, as long as there is room, and note what must be
//! remembered. The header in front and the tag behind are the sealer's business.

use crate::sent::SentFrame;
use recovery::packet::PacketFlags;
use wire::writer::Writer;

/// The bytes at the end of a packet's payload that stay in a stream's buffer until the packet is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The stream's place among those of the connection.
    pub(crate) place: u32,
    /// Where the bytes begin in the stream.
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

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
    rest: Elsewhere,
}

/// Whether the payload's last bytes are in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elsewhere {
    /// All bytes are, because something else than sealing reads them.
    Never,
    /// They are so far.
    No,
    Rest(Rest),
}

impl<'a> PacketBuilder<'a> {
    pub(crate) fn new(writer: Writer<'a>, frames: &'a mut Vec<SentFrame>) -> PacketBuilder<'a> {
        frames.clear();
        PacketBuilder {
            writer,
            frames,
            flags: PacketFlags::NONE,
            withheld: PacketFlags::NONE,
            rest: Elsewhere::Never,
        }
    }

    /// The payload's last bytes may stay in the buffer of a stream: sealing asks for [`PacketBuilder::rest`].
    #[inline]
    pub(crate) fn allow_rest(&mut self) {
        self.rest = Elsewhere::No;
    }

    /// Whether the payload's last bytes may stay where they are.
    #[inline]
    pub(crate) fn takes_rest(&self) -> bool {
        self.rest == Elsewhere::No
    }

    /// The payload's last bytes stay where they are. They fill the packet, so that nothing can be written behind them.
    #[inline]
    pub(crate) fn set_rest(&mut self, rest: Rest) {
        debug_assert_eq!(rest.len, self.remaining(), "the rest ends with the packet");
        self.rest = Elsewhere::Rest(rest);
    }

    /// The payload's last bytes, if they are elsewhere. What the packet has in their place is not theirs.
    #[inline]
    pub(crate) fn rest(&self) -> Option<Rest> {
        match self.rest {
            Elsewhere::Rest(rest) => Some(rest),
            Elsewhere::Never | Elsewhere::No => None,
        }
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

    /// Fills up with PADDING to the end.
    pub(crate) fn fill_up(&mut self) {
        self.pad_to(self.writer.position() + self.writer.remaining());
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
