//! ACK_FREQUENCY. draft-ietf-quic-ack-frequency §4. (IMMEDIATE_ACK, §5, is a type without fields.)

use super::ty;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::varint;
use crate::writer::Writer;

/// An ACK_FREQUENCY frame: how the sender of data wants it acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Frames with a lower number than one already seen are out of date.
    pub sequence: u64,
    /// How many ack-eliciting packets may arrive without an acknowledgement.
    pub ack_eliciting_threshold: u64,
    /// What max_ack_delay becomes, in microseconds.
    pub requested_max_ack_delay_us: u64,
    /// How far out of order a packet must be to be acknowledged at once; 0: never because of that.
    pub reordering_threshold: u64,
}

impl AckFrequency {
    const fn fields(&self) -> [u64; 4] {
        [
            self.sequence,
            self.ack_eliciting_threshold,
            self.requested_max_ack_delay_us,
            self.reordering_threshold,
        ]
    }

    /// Reads the frame behind its type.
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<AckFrequency, Malformed> {
        Ok(AckFrequency {
            sequence: reader.varint()?,
            ack_eliciting_threshold: reader.varint()?,
            requested_max_ack_delay_us: reader.varint()?,
            reordering_threshold: reader.varint()?,
        })
    }

    /// How many bytes [`AckFrequency::write`] takes.
    pub fn size(&self) -> usize {
        // The type takes two bytes.
        self.fields().into_iter().map(varint::size).fold(2, usize::saturating_add)
    }

    /// Writes the frame.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.varint(ty::ACK_FREQUENCY);
        for field in self.fields() {
            writer.varint(field);
        }
    }
}
