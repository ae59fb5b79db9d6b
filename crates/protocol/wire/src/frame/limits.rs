//! The frames that raise a limit and those that say that one is in the way. RFC 9000 §19.9 to §19.14.

use super::ty;
use crate::dir::Dir;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::varint;
use crate::writer::Writer;

/// The most streams of one kind, so that every stream ID fits in a variable-length integer: 2^60. RFC 9000 §4.6.
pub const MAX_STREAM_COUNT: u64 = 1 << 60;

const TOO_MANY_STREAMS: Malformed = Malformed("stream count above 2^60");

/// A MAX_DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxData {
    /// How many bytes of stream data may be sent on the connection in all.
    pub maximum: u64,
}

impl MaxData {
    /// Reads the frame behind its type.
    #[inline]
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<MaxData, Malformed> {
        Ok(MaxData { maximum: reader.varint()? })
    }

    /// How many bytes [`MaxData::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        varint::size(self.maximum).saturating_add(1)
    }

    /// Writes the frame.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::MAX_DATA as u8);
        writer.varint(self.maximum);
    }
}

/// A MAX_STREAM_DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxStreamData {
    /// Stream ID.
    pub id: u64,
    /// How many bytes may be sent on the stream in all.
    pub maximum: u64,
}

impl MaxStreamData {
    /// Reads the frame behind its type.
    #[inline]
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<MaxStreamData, Malformed> {
        Ok(MaxStreamData { id: reader.varint()?, maximum: reader.varint()? })
    }

    /// How many bytes [`MaxStreamData::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        varint::size(self.id).saturating_add(varint::size(self.maximum)).saturating_add(1)
    }

    /// Writes the frame.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::MAX_STREAM_DATA as u8);
        writer.varint(self.id);
        writer.varint(self.maximum);
    }
}

/// A MAX_STREAMS frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxStreams {
    /// Which kind of stream.
    pub dir: Dir,
    /// How many streams of that kind may be opened in all, at most 2^60.
    pub maximum: u64,
}

impl MaxStreams {
    /// Reads the frame behind its type `ty` (0x12 or 0x13).
    #[inline]
    pub fn parse(ty: u64, reader: &mut Reader<'_>) -> Result<MaxStreams, Malformed> {
        let dir = if ty == ty::MAX_STREAMS_BIDI { Dir::Bidi } else { Dir::Uni };
        // RFC 9000 §19.11: more than 2^60 is a FRAME_ENCODING_ERROR.
        Ok(MaxStreams { dir, maximum: stream_count(reader)? })
    }

    /// How many bytes [`MaxStreams::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        varint::size(self.maximum).saturating_add(1)
    }

    /// Writes the frame.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(match self.dir {
            Dir::Bidi => ty::MAX_STREAMS_BIDI,
            Dir::Uni => ty::MAX_STREAMS_UNI,
        } as u8);
        writer.varint(self.maximum);
    }
}

/// A DATA_BLOCKED frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataBlocked {
    /// The connection's limit that is in the way.
    pub limit: u64,
}

impl DataBlocked {
    /// Reads the frame behind its type.
    #[inline]
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<DataBlocked, Malformed> {
        Ok(DataBlocked { limit: reader.varint()? })
    }

    /// How many bytes [`DataBlocked::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        varint::size(self.limit).saturating_add(1)
    }

    /// Writes the frame.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::DATA_BLOCKED as u8);
        writer.varint(self.limit);
    }
}

/// A STREAM_DATA_BLOCKED frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamDataBlocked {
    /// Stream ID.
    pub id: u64,
    /// The stream's limit that is in the way.
    pub limit: u64,
}

impl StreamDataBlocked {
    /// Reads the frame behind its type.
    #[inline]
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<StreamDataBlocked, Malformed> {
        Ok(StreamDataBlocked { id: reader.varint()?, limit: reader.varint()? })
    }

    /// How many bytes [`StreamDataBlocked::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        varint::size(self.id).saturating_add(varint::size(self.limit)).saturating_add(1)
    }

    /// Writes the frame.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::STREAM_DATA_BLOCKED as u8);
        writer.varint(self.id);
        writer.varint(self.limit);
    }
}

/// A STREAMS_BLOCKED frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamsBlocked {
    /// Which kind of stream.
    pub dir: Dir,
    /// The limit that is in the way, at most 2^60.
    pub limit: u64,
}

impl StreamsBlocked {
    /// Reads the frame behind its type `ty` (0x16 or 0x17).
    #[inline]
    pub fn parse(ty: u64, reader: &mut Reader<'_>) -> Result<StreamsBlocked, Malformed> {
        let dir = if ty == ty::STREAMS_BLOCKED_BIDI { Dir::Bidi } else { Dir::Uni };
        // RFC 9000 §19.14: more than 2^60 is a FRAME_ENCODING_ERROR.
        Ok(StreamsBlocked { dir, limit: stream_count(reader)? })
    }

    /// How many bytes [`StreamsBlocked::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        varint::size(self.limit).saturating_add(1)
    }

    /// Writes the frame.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(match self.dir {
            Dir::Bidi => ty::STREAMS_BLOCKED_BIDI,
            Dir::Uni => ty::STREAMS_BLOCKED_UNI,
        } as u8);
        writer.varint(self.limit);
    }
}

#[inline]
fn stream_count(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    let count = reader.varint()?;
    //= rfc9000/4.6#3
    if count <= MAX_STREAM_COUNT { Ok(count) } else { Err(TOO_MANY_STREAMS) }
}
