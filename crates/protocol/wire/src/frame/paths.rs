//! The frames of several paths at once: PATH_ACK, PATH_ABANDON, PATH_STATUS_AVAILABLE, PATH_STATUS_BACKUP,
//! PATH_NEW_CONNECTION_ID, PATH_RETIRE_CONNECTION_ID, MAX_PATH_ID, PATHS_BLOCKED, PATH_CIDS_BLOCKED.
//! draft-ietf-quic-multipath §4, with the types that its text of March 2026 suggests.
//!
//! Path IDs are kept as they come, up to 2^62: which of them a peer may name is the connection's matter.

use super::ack::Ack;
use super::cids::NewConnectionId;
use super::ty;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::varint;
use crate::writer::Writer;

/// The largest path ID: it is 32 bits of the nonce. draft-ietf-quic-multipath §2.1.
pub const MAX_PATH_ID: u64 = u32::MAX as u64;

/// A PATH_ACK frame: an ACK frame of the packet-number space of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathAck<'a> {
    /// The path whose packets are acknowledged.
    pub path: u64,
    /// What an ACK frame says.
    pub ack: Ack<'a>,
}

impl<'a> PathAck<'a> {
    /// Reads the frame behind its type `ty` (0x3e or 0x3f).
    pub fn parse(ty: u64, reader: &mut Reader<'a>) -> Result<PathAck<'a>, Malformed> {
        let path = reader.varint()?;
        let ty = if ty == ty::PATH_ACK_ECN { ty::ACK_ECN } else { ty::ACK };
        Ok(PathAck { path, ack: Ack::parse(ty, reader)? })
    }

    /// How many bytes [`PathAck::write`] takes.
    pub fn size(&self) -> usize {
        varint::size(self.path).saturating_add(self.ack.size())
    }

    /// Writes the frame as it was read.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.varint(if self.ack.ecn().is_some() { ty::PATH_ACK_ECN } else { ty::PATH_ACK });
        writer.varint(self.path);
        self.ack.write_fields(writer);
    }
}

/// A PATH_NEW_CONNECTION_ID frame: a NEW_CONNECTION_ID frame for one path, which has sequence numbers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathNewConnectionId {
    /// The path that the connection ID belongs to.
    pub path: u64,
    /// What a NEW_CONNECTION_ID frame says.
    pub new: NewConnectionId,
}

impl PathNewConnectionId {
    /// Reads the frame behind its type.
    pub fn parse(ty: u64, reader: &mut Reader<'_>) -> Result<PathNewConnectionId, Malformed> {
        Ok(PathNewConnectionId { path: reader.varint()?, new: NewConnectionId::parse(ty, reader)? })
    }

    /// How many bytes [`PathNewConnectionId::write`] takes.
    pub const fn size(&self) -> usize {
        let type_size = varint::size(ty::PATH_NEW_CONNECTION_ID).saturating_sub(1);
        self.new.size().saturating_add(type_size).saturating_add(varint::size(self.path))
    }

    /// Writes the frame.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.varint(ty::PATH_NEW_CONNECTION_ID);
        writer.varint(self.path);
        self.new.write_fields(writer);
    }
}

/// How an endpoint would like a path to be used. draft-ietf-quic-multipath §3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPreference {
    /// As any other path.
    Available,
    /// Only when no available path can be used.
    Backup,
}

/// A PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStatus {
    /// The path.
    pub path: u64,
    /// Rises with each frame for the path: a frame that does not raise it is out of date.
    pub sequence: u64,
    /// What the sender would like.
    pub preference: PathPreference,
}

impl PathStatus {
    /// Reads the frame behind its type `ty`.
    pub fn parse(ty: u64, reader: &mut Reader<'_>) -> Result<PathStatus, Malformed> {
        let preference = match ty {
            ty::PATH_STATUS_BACKUP => PathPreference::Backup,
            _ => PathPreference::Available,
        };
        Ok(PathStatus { path: reader.varint()?, sequence: reader.varint()?, preference })
    }

    const fn ty(&self) -> u64 {
        match self.preference {
            PathPreference::Available => ty::PATH_STATUS_AVAILABLE,
            PathPreference::Backup => ty::PATH_STATUS_BACKUP,
        }
    }

    /// How many bytes [`PathStatus::write`] takes.
    pub fn size(&self) -> usize {
        size_of_fields(&[self.ty(), self.path, self.sequence])
    }

    /// Writes the frame.
    pub fn write(&self, writer: &mut Writer<'_>) {
        write_fields(writer, &[self.ty(), self.path, self.sequence]);
    }
}

/// Frames whose fields are integers: each with the name of its type and its fields in the order of the wire.
macro_rules! integers {
    ($($(#[$doc:meta])* $name:ident = $ty:ident { $($(#[$field_doc:meta])* $field:ident),+ })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)+
        }

        impl $name {
            /// Reads the frame behind its type.
            pub fn parse(_ty: u64, reader: &mut Reader<'_>) -> Result<$name, Malformed> {
                Ok($name { $($field: reader.varint()?),+ })
            }

            /// How many bytes `write` takes.
            pub fn size(&self) -> usize {
                size_of_fields(&[ty::$ty, $(self.$field),+])
            }

            /// Writes the frame.
            pub fn write(&self, writer: &mut Writer<'_>) {
                write_fields(writer, &[ty::$ty, $(self.$field),+]);
            }
        }
    )*};
}

integers! {
    /// A PATH_ABANDON frame: its sender uses the path no more.
    PathAbandon = PATH_ABANDON {
        /// The path.
        path,
        /// Why: a transport error code.
        code
    }
    /// A PATH_RETIRE_CONNECTION_ID frame.
    PathRetireConnectionId = PATH_RETIRE_CONNECTION_ID {
        /// The path that the connection ID belongs to.
        path,
        /// The number of the connection ID among those of its path.
        sequence
    }
    /// A MAX_PATH_ID frame.
    MaxPathId = MAX_PATH_ID {
        /// The largest path ID that the receiver may use.
        maximum
    }
    /// A PATHS_BLOCKED frame.
    PathsBlocked = PATHS_BLOCKED {
        /// The limit that keeps its sender from opening a path.
        maximum
    }
    /// A PATH_CIDS_BLOCKED frame.
    PathCidsBlocked = PATH_CIDS_BLOCKED {
        /// The path that lacks connection IDs.
        path,
        /// The number of the connection ID that its sender waits for.
        next_sequence
    }
}

fn size_of_fields(fields: &[u64]) -> usize {
    fields.iter().map(|&field| varint::size(field)).fold(0, usize::saturating_add)
}

fn write_fields(writer: &mut Writer<'_>, fields: &[u64]) {
    for &field in fields {
        writer.varint(field);
    }
}
