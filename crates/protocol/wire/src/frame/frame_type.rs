//! Reading the type that every frame begins with. RFC 9000 §12.4.

use crate::error::Malformed;
use crate::reader::Reader;
use crate::varint;

/// Why a frame's type cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameTypeError {
    /// The packet ends within it: a FRAME_ENCODING_ERROR.
    Truncated,
    /// It is longer than it need be: a PROTOCOL_VIOLATION.
    NotMinimal,
}

impl From<FrameTypeError> for Malformed {
    fn from(error: FrameTypeError) -> Malformed {
        Malformed(match error {
            FrameTypeError::Truncated => "frame type cut off",
            FrameTypeError::NotMinimal => "frame type not in its shortest encoding",
        })
    }
}

/// Reads a frame's type. It must be in its shortest encoding, as every type is that anyone has defined.
///
/// # Errors
/// The bytes end too early, or the encoding is not the shortest one.
#[inline]
pub fn read_type(reader: &mut Reader<'_>) -> Result<u64, FrameTypeError> {
    let before = reader.remaining();
    let ty = reader.varint().map_err(|_| FrameTypeError::Truncated)?;
    // RFC 9000 §12.4: a longer encoding may be treated as a PROTOCOL_VIOLATION.
    //= rfc9000/12.4#4
    if before.saturating_sub(reader.remaining()) == varint::size(ty) {
        Ok(ty)
    } else {
        Err(FrameTypeError::NotMinimal)
    }
}
