//! A handshake that has failed, and the alerts that arise here rather than in rustls.

use core::fmt;
use wire::Code;

/// TLS alerts. RFC 8446 §6.
pub(crate) mod alert {
    pub(crate) const UNEXPECTED_MESSAGE: u8 = 10;
    pub(crate) const DECODE_ERROR: u8 = 50;
    pub(crate) const INTERNAL_ERROR: u8 = 80;
    pub(crate) const MISSING_EXTENSION: u8 = 109;
    pub(crate) const UNRECOGNISED_NAME: u8 = 112;
}

/// A handshake that failed. The connection must close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    /// The TLS alert that describes it. RFC 8446 §6.
    pub alert: u8,
    /// The error code to close with: the alert's, or PROTOCOL_VIOLATION where RFC 9001 asks for it.
    pub code: Code,
    /// What went wrong, in one line.
    pub reason: String,
}

impl TlsError {
    pub(crate) fn new(alert: u8, reason: impl Into<String>) -> TlsError {
        //= rfc9001/4.8#1
        TlsError { alert, code: Code::crypto(alert), reason: reason.into() }
    }

    pub(crate) fn violation(reason: &str) -> TlsError {
        TlsError { alert: alert::UNEXPECTED_MESSAGE, code: Code::PROTOCOL_VIOLATION, reason: reason.into() }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS handshake failed: {}", self.reason)
    }
}

impl core::error::Error for TlsError {}
