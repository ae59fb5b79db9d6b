//! Whether a TLS message that must carry QUIC's transport parameters does: ClientHello and EncryptedExtensions.
//!
//! rustls falls back to the extension's code point of the drafts, 0xffa5, which RFC 9001 §8.2 does not know. What is no
//! such message, or is damaged, is left to rustls to judge. Source: RFC 8446 §4.1.2, §4.3.1.

use wire::{Malformed, Reader};

const CLIENT_HELLO: u8 = 1;
const ENCRYPTED_EXTENSIONS: u8 = 8;
/// Source: RFC 9001 §8.2.
const QUIC_TRANSPORT_PARAMETERS: u16 = 0x39;

/// `false` for a whole ClientHello or EncryptedExtensions message, with its header, that lacks the extension.
pub(crate) fn may_have_parameters(message: &[u8]) -> bool {
    let Some((header, body)) = message.split_first_chunk::<4>() else { return true };
    let found = match header[0] {
        CLIENT_HELLO => in_client_hello(body),
        ENCRYPTED_EXTENSIONS => in_extensions(&mut Reader::new(body)),
        _ => return true,
    };
    found.unwrap_or(true)
}

fn in_client_hello(body: &[u8]) -> Result<bool, Malformed> {
    let mut reader = Reader::new(body);
    // Version and random bytes.
    reader.bytes(2 + 32)?;
    let session_id = reader.u8()?;
    reader.bytes(session_id.into())?;
    let suites = reader.u16()?;
    reader.bytes(suites.into())?;
    let compression = reader.u8()?;
    reader.bytes(compression.into())?;
    in_extensions(&mut reader)
}

fn in_extensions(reader: &mut Reader<'_>) -> Result<bool, Malformed> {
    let len = reader.u16()?;
    let mut extensions = Reader::new(reader.bytes(len.into())?);
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let len = extensions.u16()?;
        extensions.bytes(len.into())?;
        if kind == QUIC_TRANSPORT_PARAMETERS {
            return Ok(true);
        }
    }
    Ok(false)
}
