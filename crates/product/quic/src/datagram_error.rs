//! Why a datagram cannot be sent, and why there is no keying material.

use crate::error::ConnectionError;
use core::fmt;

/// Why a datagram cannot be sent. Source: RFC 9221.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendDatagramError {
    /// The peer takes no datagrams. Source: RFC 9221 §3.
    UnsupportedByPeer,
    /// Larger than [`crate::Connection::max_datagram_size`].
    TooLarge,
    /// The connection is over.
    ConnectionLost(ConnectionError),
}

impl fmt::Display for SendDatagramError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendDatagramError::UnsupportedByPeer => out.write_str("the peer takes no datagrams"),
            SendDatagramError::TooLarge => out.write_str("the datagram is larger than fits a packet"),
            SendDatagramError::ConnectionLost(error) => error.fmt(out),
        }
    }
}

impl core::error::Error for SendDatagramError {}

/// The connection is over, or the exporter cannot fill this many bytes. Source: RFC 8446 §7.5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportError;

impl fmt::Display for ExportError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("there is no keying material of this length")
    }
}

impl core::error::Error for ExportError {}
