//! Why a connection ended, and why one cannot begin.

use crate::varint::VarInt;
use bytes::Bytes;
use core::fmt;
use std::io;
use transport::CloseReason;

/// Why a connection is over. All handles of the connection return the same value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The server speaks neither QUIC version 1 nor version 2.
    VersionMismatch,
    /// The peer broke the protocol and this end closed the connection.
    TransportError(TransportError),
    /// The peer's QUIC implementation closed the connection.
    ConnectionClosed(ConnectionClose),
    /// The peer's application closed the connection.
    ApplicationClosed(ApplicationClose),
    /// The peer has lost its state and sent a stateless reset. Source: RFC 9000 §10.3.
    Reset,
    /// Nothing was received for the idle timeout. Source: RFC 9000 §10.1.
    TimedOut,
    /// The handshake did not finish in time.
    HandshakeTimeout,
    /// The peer did not answer at its new address, and no other is known. Source: RFC 9000 §9.3.2.
    PathLost,
    /// TLS failed at this end: the certificate is not acceptable, for example.
    Tls(TlsFailure),
    /// The application of this end closed the connection, by [`crate::Connection::close`], [`crate::Endpoint::close`] or by
    /// dropping the last handle.
    LocallyClosed,
}

/// What the transport of one end says about a breach of the protocol. Source: RFC 9000 §20.1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportError {
    /// The transport error code.
    pub code: u64,
    /// The type of the frame that was at fault; 0 if unknown.
    pub frame: u64,
    /// What was wrong.
    pub reason: &'static str,
}

/// A close by the peer's transport. Source: RFC 9000 §19.19, type 0x1c.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionClose {
    /// The transport error code. Source: RFC 9000 §20.1.
    pub error_code: u64,
    /// What the peer says; at most 256 bytes, without control characters.
    pub reason: String,
}

/// A close by the peer's application. Source: RFC 9000 §19.19, type 0x1d.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplicationClose {
    /// The application's error code.
    pub error_code: VarInt,
    /// What the peer says; at most 256 bytes, without control characters.
    pub reason: Bytes,
}

/// A TLS failure at this end. Source: RFC 8446 §6.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFailure {
    /// The TLS alert.
    pub alert: u8,
    /// One line, which says what to do where that is known.
    pub reason: String,
}

impl ConnectionError {
    /// What the transport's reason means to the application.
    pub(crate) fn of(reason: CloseReason) -> ConnectionError {
        match reason {
            CloseReason::Local { .. } => ConnectionError::LocallyClosed,
            CloseReason::PeerApplication { code, reason } => {
                let error_code = VarInt::saturating(code);
                ConnectionError::ApplicationClosed(ApplicationClose { error_code, reason: reason.into() })
            }
            CloseReason::PeerTransport { code, reason } => {
                ConnectionError::ConnectionClosed(ConnectionClose { error_code: code.0, reason })
            }
            CloseReason::Violation(error) => ConnectionError::TransportError(TransportError {
                code: error.code.0,
                frame: error.frame,
                reason: error.reason,
            }),
            CloseReason::Tls { alert, reason } => ConnectionError::Tls(TlsFailure { alert, reason }),
            CloseReason::IdleTimeout => ConnectionError::TimedOut,
            CloseReason::PathLost => ConnectionError::PathLost,
            CloseReason::HandshakeTimeout => ConnectionError::HandshakeTimeout,
            CloseReason::StatelessReset => ConnectionError::Reset,
            CloseReason::VersionNegotiation => ConnectionError::VersionMismatch,
        }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionError::VersionMismatch => {
                out.write_str("the server speaks neither QUIC version 1 nor version 2")
            }
            ConnectionError::TransportError(error) => {
                write!(out, "the peer broke the protocol: {} (code {:#x})", error.reason, error.code)
            }
            ConnectionError::ConnectionClosed(close) => {
                write!(out, "closed by the peer's transport: code {:#x}", close.error_code)?;
                if close.reason.is_empty() { Ok(()) } else { write!(out, ", {}", close.reason) }
            }
            ConnectionError::ApplicationClosed(close) => {
                write!(out, "closed by the peer: code {}", close.error_code)?;
                match core::str::from_utf8(&close.reason) {
                    Ok(text) if !text.is_empty() => write!(out, ", {text}"),
                    _ => Ok(()),
                }
            }
            ConnectionError::Reset => out.write_str("reset by the peer"),
            ConnectionError::TimedOut => out.write_str("timed out"),
            ConnectionError::HandshakeTimeout => out.write_str("the handshake timed out"),
            ConnectionError::PathLost => out.write_str("the peer does not answer at its new address"),
            ConnectionError::Tls(failure) => write!(out, "TLS handshake failed: {}", failure.reason),
            ConnectionError::LocallyClosed => out.write_str("closed by this end"),
        }
    }
}

impl core::error::Error for ConnectionError {}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> io::Error {
        let kind = match error {
            ConnectionError::TimedOut | ConnectionError::HandshakeTimeout | ConnectionError::PathLost => {
                io::ErrorKind::TimedOut
            }
            ConnectionError::Reset => io::ErrorKind::ConnectionReset,
            ConnectionError::ApplicationClosed(_) | ConnectionError::ConnectionClosed(_) => {
                io::ErrorKind::ConnectionAborted
            }
            ConnectionError::LocallyClosed => io::ErrorKind::NotConnected,
            ConnectionError::TransportError(_)
            | ConnectionError::VersionMismatch
            | ConnectionError::Tls(_) => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

/// Why a connection cannot begin. Nothing has been sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint was closed, or its driver has failed.
    EndpointStopping,
    /// The name is neither a host name nor an IP address.
    InvalidServerName(String),
    /// The address has port 0, or is of a family that the endpoint's socket does not reach.
    InvalidRemoteAddress(std::net::SocketAddr),
    /// [`crate::Endpoint::connect`] needs [`crate::Endpoint::set_default_client_config`] first.
    NoDefaultClientConfig,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::EndpointStopping => out.write_str("the endpoint is closed"),
            ConnectError::InvalidServerName(name) => {
                write!(out, "{name:?} is neither a host name nor an IP address")
            }
            ConnectError::InvalidRemoteAddress(address) => {
                write!(out, "the endpoint's socket cannot reach {address}")
            }
            ConnectError::NoDefaultClientConfig => {
                out.write_str("no client configuration: call set_default_client_config or connect_with")
            }
        }
    }
}

impl core::error::Error for ConnectError {}
