//! Where handshake messages end, and at which encryption level each belongs. RFC 8446 §4, RFC 9001 §4.1.3.

use crate::level::Level;
use crate::tls_error::{TlsError, alert};

/// The longest handshake message that is accepted, in bytes after its four-byte header.
const MAX_MESSAGE_LEN: usize = (64 << 10) - 1;

/// The length, with its header, of the message that begins here; `None` while the header is incomplete. The type is checked
/// as soon as it is there, the length before anything is kept for it.
pub(crate) fn message_len(level: Level, message: &[u8]) -> Result<Option<usize>, TlsError> {
    let Some(&kind) = message.first() else { return Ok(None) };
    check_kind(level, kind)?;
    let &[_, a, b, c, ..] = message else { return Ok(None) };
    let len = u32::from_be_bytes([0, a, b, c]) as usize;
    if len > MAX_MESSAGE_LEN {
        return Err(TlsError::new(alert::DECODE_ERROR, "a handshake message of more than 64 KiB"));
    }
    Ok(Some(len + 4))
}

/// Whether a message of this type belongs to the level. RFC 8446 §4, RFC 9001 §4.1.3.
fn check_kind(level: Level, kind: u8) -> Result<(), TlsError> {
    const CERTIFICATE_REQUEST: u8 = 13;
    match (level, kind) {
        // ClientHello, ServerHello (and HelloRetryRequest).
        (Level::Initial, 1 | 2) => Ok(()),
        // EncryptedExtensions, Certificate, CertificateRequest, CertificateVerify, Finished, CompressedCertificate.
        //= rfc9001/4.1.3#3
        (Level::Handshake, 8 | 11 | CERTIFICATE_REQUEST | 15 | 20 | 25) => Ok(()),
        // NewSessionTicket.
        (Level::OneRtt, 4) => Ok(()),
        // RFC 9001 §4.4.
        //= rfc9001/4.4#1
        (Level::OneRtt, CERTIFICATE_REQUEST) => {
            Err(TlsError::violation("client authentication after the handshake"))
        }
        // RFC 9001 §6: keys are updated by QUIC.
        //= rfc9001/6#1
        (_, 24) => Err(TlsError::new(alert::UNEXPECTED_MESSAGE, "a TLS KeyUpdate message")),
        _ => {
            let reason = format!("a handshake message of type {kind} in {level:?} packets");
            Err(TlsError::new(alert::UNEXPECTED_MESSAGE, reason))
        }
    }
}
