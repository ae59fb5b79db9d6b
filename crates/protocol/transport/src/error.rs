//! Errors by fault. What the peer does wrong closes its connection with a code; datagrams without a connection are dropped and
//! counted (`endpoint::DropReason`); what the application does wrong is answered by the error type of the verb it used.

use wire::Malformed;
use wire::error::Code;
use wire::frame::FrameTypeError;

/// The peer broke the protocol: the connection closes with `code`. Source: RFC 9000 §11.1, §20.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportError {
    /// What the CONNECTION_CLOSE frame says.
    pub code: Code,
    /// The type of the frame that was at fault, 0 when unknown.
    pub frame: u64,
    /// For people: what was wrong.
    pub reason: &'static str,
}

impl TransportError {
    /// An error whose frame type the dispatcher fills in.
    pub const fn new(code: Code, reason: &'static str) -> TransportError {
        TransportError { code, frame: 0, reason }
    }
}

impl From<Malformed> for TransportError {
    fn from(Malformed(reason): Malformed) -> TransportError {
        TransportError::new(Code::FRAME_ENCODING_ERROR, reason)
    }
}

impl From<FrameTypeError> for TransportError {
    fn from(error: FrameTypeError) -> TransportError {
        let code = match error {
            FrameTypeError::Truncated => Code::FRAME_ENCODING_ERROR,
            //= rfc9000/12.4#4
            FrameTypeError::NotMinimal => Code::PROTOCOL_VIOLATION,
        };
        TransportError::new(code, Malformed::from(error).0)
    }
}

impl core::fmt::Display for TransportError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "{} ({:#x}, frame type {:#x})", self.reason, self.code.0, self.frame)
    }
}

impl core::error::Error for TransportError {}

/// A connection cannot move to another address. Source: RFC 9000 §9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrateError {
    /// Servers do not move.
    Server,
    /// The handshake is not confirmed, or the connection is over.
    NotConfirmed,
    /// The server has said that its address does not support that (`disable_active_migration`).
    Disabled,
    /// The server was reached over the other family of addresses.
    OtherFamily,
    /// The path in use is from that address.
    SamePath,
    /// The server has given no connection ID that is not in use: it may give one later, unless it uses none.
    NoConnectionId,
}

impl core::fmt::Display for MigrateError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            MigrateError::Server => "a server does not change its address",
            MigrateError::NotConfirmed => "the handshake is not confirmed, or the connection is over",
            MigrateError::Disabled => "the server does not support that its clients change their address",
            MigrateError::OtherFamily => "the address is of another family than the server's",
            MigrateError::SamePath => "the connection uses that address already",
            MigrateError::NoConnectionId => "the server has given no spare connection ID",
        })
    }
}

impl core::error::Error for MigrateError {}

/// A path cannot be used beside others. Source: draft-ietf-quic-multipath §3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenPathError {
    /// Servers open no paths.
    Server,
    /// The handshake is not confirmed, or the connection is over.
    NotConfirmed,
    /// Either end does not use several paths at once.
    Unsupported,
    /// The server has said that its address does not support that (`disable_active_migration`).
    Disabled,
    /// The server was reached over the other family of addresses.
    OtherFamily,
    /// A path in use is from that address.
    SamePath,
    /// All paths that both ends permit are in use, or the server has not given a connection ID for the next one yet.
    NoConnectionId,
}

impl core::fmt::Display for OpenPathError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            OpenPathError::Server => "a server opens no paths",
            OpenPathError::NotConfirmed => "the handshake is not confirmed, or the connection is over",
            OpenPathError::Unsupported => "the other end does not use several paths at once",
            OpenPathError::Disabled => "the server does not support that its clients use other addresses",
            OpenPathError::OtherFamily => "the address is of another family than the server's",
            OpenPathError::SamePath => "the connection uses that address already",
            OpenPathError::NoConnectionId => "the server permits no further path",
        })
    }
}

impl core::error::Error for OpenPathError {}

/// A choice that has to be made before the first packet leaves was made later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadySending;

impl core::fmt::Display for AlreadySending {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("the connection has sent something already")
    }
}

impl core::error::Error for AlreadySending {}
