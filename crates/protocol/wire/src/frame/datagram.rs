//! DATAGRAM. RFC 9221 §4.

use super::ty;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::varint;
use crate::writer::Writer;

/// A DATAGRAM frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The payload.
    pub data: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads the frame behind its type `ty` (0x30 or 0x31).
    #[inline]
    pub fn parse(ty: u64, reader: &mut Reader<'a>) -> Result<Datagram<'a>, Malformed> {
        //= rfc9221/4#1
        let data = if ty == ty::DATAGRAM { reader.rest() } else { reader.varint_bytes()? };
        Ok(Datagram { data })
    }

    /// How many bytes [`Datagram::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        varint::size(self.data.len() as u64).saturating_add(self.data.len()).saturating_add(1)
    }

    /// Writes the frame, with a length field.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::DATAGRAM_LEN as u8);
        writer.varint_bytes(self.data);
    }

    /// Writes the frame without a length field: it must be the last one, and the packet must end with it.
    #[inline]
    pub fn write_last(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::DATAGRAM as u8);
        writer.bytes(self.data);
    }
}
