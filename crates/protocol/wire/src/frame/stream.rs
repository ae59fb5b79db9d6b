//! STREAM and CRYPTO: the frames that carry ordered bytes. RFC 9000 §19.6, §19.8.
//!
//! The hottest two in the crate. A sender writes the header first and copies the payload straight into the packet behind
//! it, hence the header functions beside the views.

use super::ty;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::varint;
use crate::writer::Writer;

/// A STREAM frame. `offset + data.len()` is at most 2^62-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream<'a> {
    /// Stream ID.
    pub id: u64,
    /// Where in the stream the data begins, in bytes.
    pub offset: u64,
    /// Whether the stream ends with this data.
    pub fin: bool,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Stream<'a> {
    /// Reads the frame behind its type `ty` (0x08 to 0x0f).
    #[inline]
    pub fn parse(ty: u64, reader: &mut Reader<'a>) -> Result<Stream<'a>, Malformed> {
        let id = reader.varint()?;
        let offset = if ty & ty::STREAM_OFF != 0 { reader.varint()? } else { 0 };
        let data = if ty & ty::STREAM_LEN != 0 { reader.varint_bytes()? } else { reader.rest() };
        // RFC 9000 §19.8: the largest offset delivered on a stream cannot exceed 2^62-1.
        //= rfc9000/19.8#1
        varint::end_of(offset, data.len())?;
        Ok(Stream { id, offset, fin: ty & ty::STREAM_FIN != 0, data })
    }

    /// How many bytes [`Stream::write`] takes.
    #[inline]
    pub fn size(&self) -> usize {
        stream_header_size(self.id, self.offset, Some(self.data.len())).saturating_add(self.data.len())
    }

    /// Writes the frame, with a length field.
    pub fn write(&self, writer: &mut Writer<'_>) {
        stream_header(writer, self.id, self.offset, self.fin, Some(self.data.len()));
        writer.bytes(self.data);
    }
}

/// How many bytes [`stream_header`] takes.
#[inline]
pub const fn stream_header_size(id: u64, offset: u64, len: Option<usize>) -> usize {
    let offset_size = if offset == 0 { 0 } else { varint::size(offset) };
    let len_size = match len {
        Some(len) => varint::size(len as u64),
        None => 0,
    };
    varint::size(id).saturating_add(offset_size).saturating_add(len_size).saturating_add(1)
}

/// Writes a STREAM frame up to its data, which must follow. Without a length the data reaches to the end of the packet.
#[inline]
pub fn stream_header(writer: &mut Writer<'_>, id: u64, offset: u64, fin: bool, len: Option<usize>) {
    let fin_bit = if fin { ty::STREAM_FIN } else { 0 };
    let off_bit = if offset != 0 { ty::STREAM_OFF } else { 0 };
    let len_bit = if len.is_some() { ty::STREAM_LEN } else { 0 };
    writer.u8((ty::STREAM | fin_bit | off_bit | len_bit) as u8);
    writer.varint(id);
    if offset != 0 {
        writer.varint(offset);
    }
    if let Some(len) = len {
        writer.varint(len as u64);
    }
}

/// A CRYPTO frame. `offset + data.len()` is at most 2^62-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crypto<'a> {
    /// Where in the handshake bytes of this encryption level the data begins.
    pub offset: u64,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Crypto<'a> {
    /// Reads the frame behind its type.
    #[inline]
    pub fn parse(_ty: u64, reader: &mut Reader<'a>) -> Result<Crypto<'a>, Malformed> {
        let offset = reader.varint()?;
        let data = reader.varint_bytes()?;
        // RFC 9000 §19.6: as for streams.
        //= rfc9000/19.6#1
        varint::end_of(offset, data.len())?;
        Ok(Crypto { offset, data })
    }

    /// How many bytes [`Crypto::write`] takes.
    #[inline]
    pub fn size(&self) -> usize {
        crypto_header_size(self.offset, self.data.len()).saturating_add(self.data.len())
    }

    /// Writes the frame.
    pub fn write(&self, writer: &mut Writer<'_>) {
        crypto_header(writer, self.offset, self.data.len());
        writer.bytes(self.data);
    }
}

/// How many bytes [`crypto_header`] takes.
#[inline]
pub const fn crypto_header_size(offset: u64, len: usize) -> usize {
    varint::size(offset).saturating_add(varint::size(len as u64)).saturating_add(1)
}

/// Writes a CRYPTO frame up to its data of `len` bytes, which must follow.
#[inline]
pub fn crypto_header(writer: &mut Writer<'_>, offset: u64, len: usize) {
    writer.u8(ty::CRYPTO as u8);
    writer.varint(offset);
    writer.varint(len as u64);
}
