//! Errors by what they end: the connection or one stream. RFC 9114 §8.

use core::fmt;

/// An HTTP/3 error code, as RESET_STREAM, STOP_SENDING and CONNECTION_CLOSE carry it. Unknown ones mean what
/// [`Code::NO_ERROR`] means.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u64);

impl Code {
    /// Nothing is wrong; the stream or connection is no longer needed.
    pub const NO_ERROR: Code = Code(0x0100);
    /// A breach of the protocol without a code of its own.
    pub const GENERAL_PROTOCOL_ERROR: Code = Code(0x0101);
    /// An error of ours.
    pub const INTERNAL_ERROR: Code = Code(0x0102);
    /// The peer created a stream that we do not accept.
    pub const STREAM_CREATION_ERROR: Code = Code(0x0103);
    /// A stream that the connection needs was closed or reset.
    pub const CLOSED_CRITICAL_STREAM: Code = Code(0x0104);
    /// A frame that is not permitted now or on this stream.
    pub const FRAME_UNEXPECTED: Code = Code(0x0105);
    /// A frame whose layout or size is wrong.
    pub const FRAME_ERROR: Code = Code(0x0106);
    /// The peer causes work out of proportion.
    pub const EXCESSIVE_LOAD: Code = Code(0x0107);
    /// A stream or push ID was used incorrectly.
    pub const ID_ERROR: Code = Code(0x0108);
    /// An error in a SETTINGS frame.
    pub const SETTINGS_ERROR: Code = Code(0x0109);
    /// The control stream does not begin with SETTINGS.
    pub const MISSING_SETTINGS: Code = Code(0x010a);
    /// The server did nothing with the request: it can safely be sent again.
    pub const REQUEST_REJECTED: Code = Code(0x010b);
    /// The request or its response is no longer wanted.
    pub const REQUEST_CANCELLED: Code = Code(0x010c);
    /// The client's stream ended before its request was complete.
    pub const REQUEST_INCOMPLETE: Code = Code(0x010d);
    /// A malformed message.
    pub const MESSAGE_ERROR: Code = Code(0x010e);
    /// The TCP connection of a CONNECT request failed.
    pub const CONNECT_ERROR: Code = Code(0x010f);
    /// The request can only be served over HTTP/1.1.
    pub const VERSION_FALLBACK: Code = Code(0x0110);

    /// The RFC's name, when it has one. RFC 9114 §8.1, RFC 9204 §6.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0x0100 => "H3_NO_ERROR",
            0x0101 => "H3_GENERAL_PROTOCOL_ERROR",
            0x0102 => "H3_INTERNAL_ERROR",
            0x0103 => "H3_STREAM_CREATION_ERROR",
            0x0104 => "H3_CLOSED_CRITICAL_STREAM",
            0x0105 => "H3_FRAME_UNEXPECTED",
            0x0106 => "H3_FRAME_ERROR",
            0x0107 => "H3_EXCESSIVE_LOAD",
            0x0108 => "H3_ID_ERROR",
            0x0109 => "H3_SETTINGS_ERROR",
            0x010a => "H3_MISSING_SETTINGS",
            0x010b => "H3_REQUEST_REJECTED",
            0x010c => "H3_REQUEST_CANCELLED",
            0x010d => "H3_REQUEST_INCOMPLETE",
            0x010e => "H3_MESSAGE_ERROR",
            0x010f => "H3_CONNECT_ERROR",
            0x0110 => "H3_VERSION_FALLBACK",
            0x0200 => "QPACK_DECOMPRESSION_FAILED",
            0x0201 => "QPACK_ENCODER_STREAM_ERROR",
            0x0202 => "QPACK_DECODER_STREAM_ERROR",
            _ => return None,
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => out.write_str(name),
            None => write!(out, "error {:#x}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// What the peer did ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    /// What CONNECTION_CLOSE says.
    pub code: Code,
    /// For people: what was wrong.
    pub reason: &'static str,
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.reason, self.code)
    }
}

impl core::error::Error for ConnectionError {}

impl From<qpack::Error> for ConnectionError {
    fn from(error: qpack::Error) -> ConnectionError {
        ConnectionError { code: Code(error.code.0), reason: error.reason }
    }
}

/// What is wrong on a request stream, by what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// The connection ends.
    Connection(ConnectionError),
    /// The stream ends.
    Stream { code: Code, reason: &'static str },
    /// A field section is larger than we take: a server answers with status 431, a client gives up the response.
    TooLarge,
    /// More than may be thrown away of a message whose rest does not matter: the peer is asked to stop.
    Unwanted,
}

impl Violation {
    /// A connection error.
    pub(crate) const fn connection(code: Code, reason: &'static str) -> Violation {
        Violation::Connection(ConnectionError { code, reason })
    }

    /// A malformed message. RFC 9114 §4.1.2.
    pub(crate) const fn malformed(reason: &'static str) -> Violation {
        //= rfc9114/4.1.2#1
        Violation::Stream { code: Code::MESSAGE_ERROR, reason }
    }
}

impl From<ConnectionError> for Violation {
    fn from(error: ConnectionError) -> Violation {
        Violation::Connection(error)
    }
}

impl From<qpack::DecodeError> for Violation {
    fn from(error: qpack::DecodeError) -> Violation {
        match error {
            qpack::DecodeError::Failed(error) => Violation::Connection(error.into()),
            qpack::DecodeError::TooLarge => Violation::TooLarge,
        }
    }
}
