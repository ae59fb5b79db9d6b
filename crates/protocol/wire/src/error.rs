//! What can be wrong with bytes, and the error codes that tell the peer. RFC 9000 §20.1, RFC 9368 §7, RFC 9001 §4.8.
//!
//! [`Malformed`] carries a sentence and no code: the code follows from where the bytes stood (a frame, a transport
//! parameter), which the caller knows. A packet that is malformed is dropped and has no code at all.

use core::fmt;

/// Bytes that do not follow the format. The text says what was wrong, in words fit for a CONNECTION_CLOSE reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for Malformed {}

/// A transport error code, as CONNECTION_CLOSE (0x1c) carries it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u64);

impl Code {
    /// The connection closes without an error.
    pub const NO_ERROR: Code = Code(0x00);
    /// The endpoint cannot go on, for a reason of its own.
    pub const INTERNAL_ERROR: Code = Code(0x01);
    /// The server does not take new connections.
    pub const CONNECTION_REFUSED: Code = Code(0x02);
    /// More data than the advertised limits allow.
    pub const FLOW_CONTROL_ERROR: Code = Code(0x03);
    /// A stream above the advertised limit.
    pub const STREAM_LIMIT_ERROR: Code = Code(0x04);
    /// A frame for a stream in a state that does not permit it.
    pub const STREAM_STATE_ERROR: Code = Code(0x05);
    /// Data beyond, or a change of, a stream's final size.
    pub const FINAL_SIZE_ERROR: Code = Code(0x06);
    /// A frame that is badly formed.
    pub const FRAME_ENCODING_ERROR: Code = Code(0x07);
    /// Transport parameters that are badly formed, invalid, missing or forbidden.
    pub const TRANSPORT_PARAMETER_ERROR: Code = Code(0x08);
    /// More connection IDs than the advertised limit.
    pub const CONNECTION_ID_LIMIT_ERROR: Code = Code(0x09);
    /// Any other breach of the protocol.
    pub const PROTOCOL_VIOLATION: Code = Code(0x0a);
    /// A client's Initial carried a token that is not valid.
    pub const INVALID_TOKEN: Code = Code(0x0b);
    /// The application, or its protocol, closed the connection during the handshake.
    pub const APPLICATION_ERROR: Code = Code(0x0c);
    /// More CRYPTO data than can be buffered.
    pub const CRYPTO_BUFFER_EXCEEDED: Code = Code(0x0d);
    /// A key update that was not permitted.
    pub const KEY_UPDATE_ERROR: Code = Code(0x0e);
    /// The AEAD's confidentiality or integrity limit is reached.
    pub const AEAD_LIMIT_REACHED: Code = Code(0x0f);
    /// No network path can carry QUIC.
    pub const NO_VIABLE_PATH: Code = Code(0x10);
    /// Version negotiation was tampered with. RFC 9368 §7.
    pub const VERSION_NEGOTIATION_ERROR: Code = Code(0x11);
    /// The application wants no more of a path. This and the next three are for PATH_ABANDON: draft-ietf-quic-multipath §4.2.1.
    pub const APPLICATION_ABANDON_PATH: Code = Code(0x3e);
    /// A path that its end cannot keep.
    pub const PATH_RESOURCE_LIMIT_REACHED: Code = Code(0x3e75);
    /// A path that carries nothing, or little.
    pub const PATH_UNSTABLE_OR_POOR: Code = Code(0x3e76);
    /// A path without connection IDs.
    pub const NO_CID_AVAILABLE_FOR_PATH: Code = Code(0x3e77);

    /// The code of a TLS alert (CRYPTO_ERROR, 0x0100 to 0x01ff).
    #[inline]
    pub const fn crypto(alert: u8) -> Code {
        Code(0x100 | alert as u64)
    }

    /// The TLS alert, when the code is a CRYPTO_ERROR.
    #[inline]
    pub const fn alert(self) -> Option<u8> {
        if self.0 >> 8 == 1 { Some((self.0 & 0xff) as u8) } else { None }
    }

    /// The RFC's name, when it has one.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Code::NO_ERROR => "NO_ERROR",
            Code::INTERNAL_ERROR => "INTERNAL_ERROR",
            Code::CONNECTION_REFUSED => "CONNECTION_REFUSED",
            Code::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
            Code::STREAM_LIMIT_ERROR => "STREAM_LIMIT_ERROR",
            Code::STREAM_STATE_ERROR => "STREAM_STATE_ERROR",
            Code::FINAL_SIZE_ERROR => "FINAL_SIZE_ERROR",
            Code::FRAME_ENCODING_ERROR => "FRAME_ENCODING_ERROR",
            Code::TRANSPORT_PARAMETER_ERROR => "TRANSPORT_PARAMETER_ERROR",
            Code::CONNECTION_ID_LIMIT_ERROR => "CONNECTION_ID_LIMIT_ERROR",
            Code::PROTOCOL_VIOLATION => "PROTOCOL_VIOLATION",
            Code::INVALID_TOKEN => "INVALID_TOKEN",
            Code::APPLICATION_ERROR => "APPLICATION_ERROR",
            Code::CRYPTO_BUFFER_EXCEEDED => "CRYPTO_BUFFER_EXCEEDED",
            Code::KEY_UPDATE_ERROR => "KEY_UPDATE_ERROR",
            Code::AEAD_LIMIT_REACHED => "AEAD_LIMIT_REACHED",
            Code::NO_VIABLE_PATH => "NO_VIABLE_PATH",
            Code::VERSION_NEGOTIATION_ERROR => "VERSION_NEGOTIATION_ERROR",
            Code::APPLICATION_ABANDON_PATH => "APPLICATION_ABANDON_PATH",
            Code::PATH_RESOURCE_LIMIT_REACHED => "PATH_RESOURCE_LIMIT_REACHED",
            Code::PATH_UNSTABLE_OR_POOR => "PATH_UNSTABLE_OR_POOR",
            Code::NO_CID_AVAILABLE_FOR_PATH => "NO_CID_AVAILABLE_FOR_PATH",
            _ => return None,
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.alert()) {
            (Some(name), _) => f.write_str(name),
            (None, Some(alert)) => write!(f, "CRYPTO_ERROR (TLS alert {alert})"),
            (None, None) => write!(f, "error {:#x}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TLS alert must survive the way into a code and back, and no other code may look like one.
    #[test]
    fn alerts_map_to_crypto_errors() {
        assert_eq!(Code::crypto(40), Code(0x128));
        assert!((0..=255).all(|alert| Code::crypto(alert).alert() == Some(alert)));
        assert_eq!(Code(0xff).alert(), None);
        assert_eq!(Code(0x200).alert(), None);
        assert_eq!(Code::PROTOCOL_VIOLATION.to_string(), "PROTOCOL_VIOLATION");
        assert_eq!(Code::crypto(80).to_string(), "CRYPTO_ERROR (TLS alert 80)");
        assert_eq!(Code(0x1234).to_string(), "error 0x1234");
    }
}
