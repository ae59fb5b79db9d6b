//! Reading the type that every frame begins with. RFC 9000 §12.4.

use crate::error::Malformed;
use crate::reader::Reader;
use crate::varint;

/// Reads a frame's type. It must be in its shortest encoding, as every type is that anyone has defined.
#[inline]
pub fn read_type(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    let before = reader.remaining();
    let ty = reader.varint()?;
    // RFC 9000 §12.4: a longer encoding may be treated as a PROTOCOL_VIOLATION.
    //= rfc9000/12.4#4
    if before.saturating_sub(reader.remaining()) == varint::size(ty) {
        Ok(ty)
    } else {
        Err(Malformed("frame type not in its shortest encoding"))
    }
}
