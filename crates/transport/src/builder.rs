//! A packet's payload while it is filled: the one thing that every component's `write` receives.
//!
//! Components write frames in the order in which they are asked, as long as there is room, and note what must be
//! remembered. The header in front and the tag behind are the sealer's business.

use crate::sent::SentFrame;
use wire::writer::Writer;

/// What the frames of a packet mean for its treatment. Source: RFC 9002 §2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// The peer must acknowledge the packet.
    pub ack_eliciting: bool,
    /// The packet counts as bytes in flight.
    pub in_flight: bool,
}

/// Room for frames, and the record of those written.
#[derive(Debug)]
pub(crate) struct PacketBuilder<'a> {
    /// The payload area, without header and tag.
    pub writer: Writer<'a>,
    /// Frames to remember, in order. Reused from packet to packet.
    frames: &'a mut Vec<SentFrame>,
    content: Content,
}

impl<'a> PacketBuilder<'a> {
    pub(crate) fn new(writer: Writer<'a>, frames: &'a mut Vec<SentFrame>) -> PacketBuilder<'a> {
        frames.clear();
        PacketBuilder { writer, frames, content: Content::default() }
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
        self.content = Content { ack_eliciting: true, in_flight: true };
    }

    /// Notes an ACK frame: remembered, but neither ack-eliciting nor in flight.
    #[inline]
    pub(crate) fn sent_ack(&mut self, largest: u64) {
        self.frames.push(SentFrame::Ack { largest });
    }

    /// Notes an ack-eliciting frame that nobody resends (PING, PATH_RESPONSE).
    #[inline]
    pub(crate) fn sent_unremembered(&mut self) {
        self.content = Content { ack_eliciting: true, in_flight: true };
    }

    /// Fills up with PADDING until the payload is `len` bytes long. Padding counts as in flight (RFC 9002 §2).
    pub(crate) fn pad_to(&mut self, len: usize) {
        while self.writer.position() < len && self.writer.remaining() > 0 {
            self.writer.u8(0);
            self.content.in_flight = true;
        }
    }

    /// What has been written so far.
    #[inline]
    pub(crate) fn content(&self) -> Content {
        self.content
    }

    /// Whether nothing has been written.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.writer.position() == 0
    }
}
