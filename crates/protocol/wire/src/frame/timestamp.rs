//! TIMESTAMP. draft-huitema-quic-ts §2.3.

use super::ty;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::varint;
use crate::writer::Writer;

/// A TIMESTAMP frame: the sender's clock when the packet left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// Units of 2^ack_delay_exponent µs, by the sender's exponent, since an epoch of the sender's.
    pub time: u64,
}

impl Timestamp {
    /// Reads the frame behind its type.
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<Timestamp, Malformed> {
        Ok(Timestamp { time: reader.varint()? })
    }

    /// How many bytes [`Timestamp::write`] takes.
    pub fn size(&self) -> usize {
        varint::size(ty::TIMESTAMP).saturating_add(varint::size(self.time))
    }

    /// Writes the frame.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.varint(ty::TIMESTAMP);
        writer.varint(self.time);
    }
}
