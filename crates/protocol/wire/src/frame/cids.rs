//! NEW_CONNECTION_ID and RETIRE_CONNECTION_ID. RFC 9000 §19.15, §19.16.

use super::ty;
use crate::cid::ConnectionId;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::varint;
use crate::writer::Writer;

/// A NEW_CONNECTION_ID frame, its fields consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewConnectionId {
    /// The number of this connection ID.
    pub sequence: u64,
    /// Connection IDs with a lower number are to be retired; at most `sequence`.
    pub retire_prior_to: u64,
    /// The connection ID, 1 to 20 bytes.
    pub cid: ConnectionId,
    /// What a stateless reset with this connection ID ends with.
    pub reset_token: [u8; 16],
}

impl NewConnectionId {
    /// Reads the frame behind its type.
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<NewConnectionId, Malformed> {
        let sequence = reader.varint()?;
        let retire_prior_to = reader.varint()?;
        // RFC 9000 §19.15: both of these are a FRAME_ENCODING_ERROR.
        //= rfc9000/19.15#1
        if retire_prior_to > sequence {
            return Err(Malformed("Retire Prior To above the sequence number"));
        }
        let cid = ConnectionId::read(reader)?;
        //= rfc9000/19.15#2
        if cid.is_empty() {
            return Err(Malformed("new connection ID without bytes"));
        }
        Ok(NewConnectionId { sequence, retire_prior_to, cid, reset_token: reader.array()? })
    }

    /// How many bytes [`NewConnectionId::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        let numbers = varint::size(self.sequence).saturating_add(varint::size(self.retire_prior_to));
        numbers.saturating_add(self.cid.len()).saturating_add(18)
    }

    /// Writes the frame.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::NEW_CONNECTION_ID as u8);
        self.write_fields(writer);
    }

    pub(super) fn write_fields(&self, writer: &mut Writer<'_>) {
        writer.varint(self.sequence);
        writer.varint(self.retire_prior_to);
        self.cid.write(writer);
        writer.bytes(&self.reset_token);
    }
}

/// A RETIRE_CONNECTION_ID frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetireConnectionId {
    /// The number of the connection ID that its user gives up.
    pub sequence: u64,
}

impl RetireConnectionId {
    /// Reads the frame behind its type.
    #[inline]
    pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<RetireConnectionId, Malformed> {
        Ok(RetireConnectionId { sequence: reader.varint()? })
    }

    /// How many bytes [`RetireConnectionId::write`] takes.
    #[inline]
    pub const fn size(&self) -> usize {
        varint::size(self.sequence).saturating_add(1)
    }

    /// Writes the frame.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ty::RETIRE_CONNECTION_ID as u8);
        writer.varint(self.sequence);
    }
}
