//! CONNECTION_CLOSE. RFC 9000 §19.19.

use super::ty;
use crate::error::{Code, Malformed};
use crate::reader::Reader;
use crate::varint;
use crate::writer::Writer;

/// A CONNECTION_CLOSE frame, by who closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionClose<'a> {
    /// QUIC itself (type 0x1c).
    Transport {
        /// What went wrong.
        code: Code,
        /// The type of the frame that was the reason, 0 when none is known.
        frame_type: u64,
        /// For people; should be UTF-8, but nothing makes it so.
        reason: &'a [u8],
    },
    /// The application protocol (type 0x1d).
    Application {
        /// The application's error code.
        code: u64,
        /// For people; should be UTF-8, but nothing makes it so.
        reason: &'a [u8],
    },
}

impl<'a> ConnectionClose<'a> {
    /// Reads the frame behind its type `ty` (0x1c or 0x1d).
    pub fn parse(ty: u64, reader: &mut Reader<'a>) -> Result<ConnectionClose<'a>, Malformed> {
        let code = reader.varint()?;
        if ty == ty::CONNECTION_CLOSE_APPLICATION {
            return Ok(ConnectionClose::Application { code, reason: reader.varint_bytes()? });
        }
        let frame_type = reader.varint()?;
        Ok(ConnectionClose::Transport { code: Code(code), frame_type, reason: reader.varint_bytes()? })
    }

    /// The error code, of either kind.
    #[inline]
    pub const fn code(&self) -> u64 {
        match *self {
            ConnectionClose::Transport { code, .. } => code.0,
            ConnectionClose::Application { code, .. } => code,
        }
    }

    /// The reason phrase.
    #[inline]
    pub const fn reason(&self) -> &'a [u8] {
        match *self {
            ConnectionClose::Transport { reason, .. } | ConnectionClose::Application { reason, .. } => reason,
        }
    }

    /// How many bytes [`ConnectionClose::write`] takes.
    pub const fn size(&self) -> usize {
        let reason = self.reason().len();
        let type_size = match *self {
            ConnectionClose::Transport { frame_type, .. } => varint::size(frame_type),
            ConnectionClose::Application { .. } => 0,
        };
        let fixed = varint::size(self.code()).saturating_add(type_size).saturating_add(1);
        fixed.saturating_add(varint::size(reason as u64)).saturating_add(reason)
    }

    /// The same frame with its reason cut so that [`ConnectionClose::size`] is at most `room`, if that is possible.
    pub fn fitted(&self, room: usize) -> ConnectionClose<'a> {
        let excess = self.size().saturating_sub(room);
        let kept = self.reason().len().saturating_sub(excess);
        let cut = self.reason().get(..kept).unwrap_or(&[]);
        match *self {
            ConnectionClose::Transport { code, frame_type, .. } => {
                ConnectionClose::Transport { code, frame_type, reason: cut }
            }
            ConnectionClose::Application { code, .. } => ConnectionClose::Application { code, reason: cut },
        }
    }

    /// Writes the frame.
    pub fn write(&self, writer: &mut Writer<'_>) {
        match *self {
            ConnectionClose::Transport { code, frame_type, reason } => {
                writer.u8(ty::CONNECTION_CLOSE as u8);
                writer.varint(code.0);
                writer.varint(frame_type);
                writer.varint_bytes(reason);
            }
            ConnectionClose::Application { code, reason } => {
                writer.u8(ty::CONNECTION_CLOSE_APPLICATION as u8);
                writer.varint(code);
                writer.varint_bytes(reason);
            }
        }
    }
}
