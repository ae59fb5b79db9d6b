//! RESET_STREAM, RESET_STREAM_AT and STOP_SENDING: the end of a stream before its data is through. RFC 9000 §19.4, §19.5,
//! draft-ietf-quic-reliable-stream-reset §4.

use super::ty;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::varint;
use crate::writer::Writer;

/// A RESET_STREAM frame: the sender gives up a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetStream {
    /// Stream ID.
    pub id: u64,
    /// The application's error code.
    pub code: u64,
    /// How many bytes the sender had sent, which the flow control counts.
    pub final_size: u64,
}

impl ResetStream {
    /// Reads the frame behind its type.
    #[inline]
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<ResetStream, Malformed> {
        Ok(ResetStream { id: reader.varint()?, code: reader.varint()?, final_size: reader.varint()? })
    }

    /// How many bytes [`ResetStream::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        let fixed = varint::size(self.id).saturating_add(varint::size(self.code));
        fixed.saturating_add(varint::size(self.final_size)).saturating_add(1)
    }

    /// Writes the frame.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::RESET_STREAM as u8);
        writer.varint(self.id);
        writer.varint(self.code);
        writer.varint(self.final_size);
    }
}

/// A RESET_STREAM_AT frame: the sender gives up a stream, but for its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetStreamAt {
    /// Stream ID.
    pub id: u64,
    /// The application's error code.
    pub code: u64,
    /// How many bytes the sender has sent or will send, which the flow control counts.
    pub final_size: u64,
    /// How many bytes reach the receiver's application all the same, at most `final_size`.
    pub reliable_size: u64,
}

impl ResetStreamAt {
    /// Reads the frame behind its type.
    ///
    /// # Errors
    /// A field is missing, or more is reliable than there is.
    #[inline]
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<ResetStreamAt, Malformed> {
        let (id, code) = (reader.varint()?, reader.varint()?);
        let (final_size, reliable_size) = (reader.varint()?, reader.varint()?);
        //= reliable-stream-reset/4#1
        if reliable_size > final_size {
            return Err(Malformed("RESET_STREAM_AT with a reliable size beyond the final size"));
        }
        Ok(ResetStreamAt { id, code, final_size, reliable_size })
    }

    /// How many bytes [`ResetStreamAt::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        let fixed = varint::size(self.id).saturating_add(varint::size(self.code));
        let sizes = varint::size(self.final_size).saturating_add(varint::size(self.reliable_size));
        fixed.saturating_add(sizes).saturating_add(1)
    }

    /// Writes the frame.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::RESET_STREAM_AT as u8);
        writer.varint(self.id);
        writer.varint(self.code);
        writer.varint(self.final_size);
        writer.varint(self.reliable_size);
    }
}

/// A STOP_SENDING frame: the receiver does not want the rest of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopSending {
    /// Stream ID.
    pub id: u64,
    /// The application's error code.
    pub code: u64,
}

impl StopSending {
    /// Reads the frame behind its type.
    #[inline]
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<StopSending, Malformed> {
        Ok(StopSending { id: reader.varint()?, code: reader.varint()? })
    }

    /// How many bytes [`StopSending::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        varint::size(self.id).saturating_add(varint::size(self.code)).saturating_add(1)
    }

    /// Writes the frame.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::STOP_SENDING as u8);
        writer.varint(self.id);
        writer.varint(self.code);
    }
}
