//! NEW_TOKEN. RFC 9000 §19.7.

use super::ty;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::varint;
use crate::writer::Writer;

/// A NEW_TOKEN frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewToken<'a> {
    /// For the Initial packets of a later connection; never empty.
    pub token: &'a [u8],
}

impl<'a> NewToken<'a> {
    /// Reads the frame behind its type.
    pub fn parse(_ty: u64, reader: &mut Reader<'a>) -> Result<NewToken<'a>, Malformed> {
        let token = reader.varint_bytes()?;
        // RFC 9000 §19.7: an empty token is a FRAME_ENCODING_ERROR.
        //= rfc9000/19.7#1
        if token.is_empty() { Err(Malformed("empty token")) } else { Ok(NewToken { token }) }
    }

    /// How many bytes [`NewToken::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        varint::size(self.token.len() as u64).saturating_add(self.token.len()).saturating_add(1)
    }

    /// Writes the frame.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::NEW_TOKEN as u8);
        writer.varint_bytes(self.token);
    }
}
