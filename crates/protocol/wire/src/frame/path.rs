//! PATH_CHALLENGE and PATH_RESPONSE. RFC 9000 §19.17, §19.18.

use super::ty;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::writer::Writer;

/// A PATH_CHALLENGE frame: a peer that receives on this path returns its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathChallenge(pub [u8; 8]);

impl PathChallenge {
    /// How many bytes the frame takes.
    pub const SIZE: usize = 9;

    /// Reads the frame behind its type.
    #[inline]
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<PathChallenge, Malformed> {
        reader.array().map(PathChallenge)
    }

    /// How many bytes [`PathChallenge::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        PathChallenge::SIZE
    }

    /// Writes the frame.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::PATH_CHALLENGE as u8);
        writer.bytes(&self.0);
    }
}

/// A PATH_RESPONSE frame: the bytes of a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathResponse(pub [u8; 8]);

impl PathResponse {
    /// How many bytes the frame takes.
    pub const SIZE: usize = 9;

    /// Reads the frame behind its type.
    #[inline]
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<PathResponse, Malformed> {
        reader.array().map(PathResponse)
    }

    /// How many bytes [`PathResponse::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        PathResponse::SIZE
    }

    /// Writes the frame.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::PATH_RESPONSE as u8);
        writer.bytes(&self.0);
    }
}
