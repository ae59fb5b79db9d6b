//! What is read of hellos before rustls reads them: whether a message that must carry QUIC's transport parameters does, whether
//! a ClientHello announces early data, which certificate it asks for, whether a ServerHello asks for another ClientHello.
//!
//! rustls falls back to the extension's code point of the drafts, 0xffa5, which RFC 9001 §8.2 does not know. What is no
//! such message, or is damaged, is left to rustls to judge. Source: RFC 8446 §4.1.2, §4.1.3, §4.2.10, §4.2.11, §4.3.1.

use rustls::SignatureScheme;
use wire::{Malformed, Reader};

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const ENCRYPTED_EXTENSIONS: u8 = 8;
/// Source: RFC 8446 §4.2.
const SERVER_NAME: u16 = 0;
const SIGNATURE_ALGORITHMS: u16 = 13;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
/// The random bytes of a ServerHello that asks for another ClientHello. Source: RFC 8446 §4.1.3.
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
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

/// The transport parameters in a whole ClientHello, with its header; `None` if it is none, is damaged, or has none.
pub(crate) fn client_parameters(message: &[u8]) -> Option<&[u8]> {
    let (header, body) = message.split_first_chunk::<4>()?;
    if header[0] != CLIENT_HELLO {
        return None;
    }
    let mut reader = Reader::new(body);
    skip_to_extensions(&mut reader).ok()?;
    let mut found = None;
    each_extension(&mut reader, |kind, content| {
        if kind == QUIC_TRANSPORT_PARAMETERS {
            found = Some(content);
        }
    })
    .ok()?;
    found
}

/// What a server chooses its certificate by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CertificateWish<'a> {
    /// The name that the client asks for. Source: RFC 6066 §3.
    pub(crate) name: Option<&'a str>,
    /// The signatures that it can check. Source: RFC 8446 §4.2.3.
    pub(crate) schemes: Vec<SignatureScheme>,
}

/// What a whole ClientHello, with its header, says of the certificate; `None` if the message is none, or is damaged.
pub(crate) fn certificate_wish(message: &[u8]) -> Option<CertificateWish<'_>> {
    let (header, body) = message.split_first_chunk::<4>()?;
    if header[0] != CLIENT_HELLO {
        return None;
    }
    let mut reader = Reader::new(body);
    skip_to_extensions(&mut reader).ok()?;
    let mut wish = CertificateWish::default();
    each_extension(&mut reader, |kind, content| match kind {
        SERVER_NAME => wish.name = host_name(content),
        SIGNATURE_ALGORITHMS => {
            let listed = content.get(2..).unwrap_or(&[]).chunks_exact(2);
            wish.schemes = listed.map(|pair| u16::from_be_bytes([pair[0], pair[1]]).into()).collect();
        }
        _ => {}
    })
    .ok()?;
    Some(wish)
}

/// The first name of the extension, if it is a host's.
fn host_name(content: &[u8]) -> Option<&str> {
    let mut reader = Reader::new(content);
    let _all = reader.u16().ok()?;
    let kind = reader.u8().ok()?;
    let len = reader.u16().ok()?;
    let name = reader.bytes(len.into()).ok()?;
    core::str::from_utf8(name).ok().filter(|_| kind == 0)
}

/// The ticket with whose secret a client has sealed early data, and how old it says the ticket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EarlyOffer<'a> {
    pub(crate) ticket: &'a [u8],
    /// In milliseconds, and the number added that came with the ticket. Source: RFC 8446 §4.2.11.1.
    pub(crate) obfuscated_age_ms: u32,
}

/// What a whole ClientHello, with its header, says of early data; `None` if it announces none. Early data goes with the first
/// ticket that is offered. Source: RFC 8446 §4.2.10.
pub(crate) fn early_offer(message: &[u8]) -> Option<EarlyOffer<'_>> {
    let (header, body) = message.split_first_chunk::<4>()?;
    if header[0] != CLIENT_HELLO {
        return None;
    }
    let mut reader = Reader::new(body);
    skip_to_extensions(&mut reader).ok()?;
    let (mut is_early, mut offer) = (false, None);
    each_extension(&mut reader, |kind, content| {
        is_early |= kind == EARLY_DATA;
        if kind == PRE_SHARED_KEY {
            offer = first_ticket(content).ok();
        }
    })
    .ok()?;
    offer.filter(|_| is_early)
}

fn first_ticket(content: &[u8]) -> Result<EarlyOffer<'_>, Malformed> {
    let mut reader = Reader::new(content);
    let _all = reader.u16()?;
    let len = reader.u16()?;
    let ticket = reader.bytes(len.into())?;
    Ok(EarlyOffer { ticket, obfuscated_age_ms: reader.u32()? })
}

/// Whether a whole message, with its header, is a HelloRetryRequest.
pub(crate) fn is_retry_request(message: &[u8]) -> bool {
    message.first() == Some(&SERVER_HELLO) && message.get(6..38) == Some(&RETRY_RANDOM[..])
}

/// Whether a whole message, with its header, brings a server's transport parameters.
pub(crate) fn is_encrypted_extensions(message: &[u8]) -> bool {
    message.first() == Some(&ENCRYPTED_EXTENSIONS)
}

fn in_client_hello(body: &[u8]) -> Result<bool, Malformed> {
    let mut reader = Reader::new(body);
    skip_to_extensions(&mut reader)?;
    in_extensions(&mut reader)
}

fn skip_to_extensions(reader: &mut Reader<'_>) -> Result<(), Malformed> {
    // Version and random bytes.
    reader.bytes(2 + 32)?;
    let session_id = reader.u8()?;
    reader.bytes(session_id.into())?;
    let suites = reader.u16()?;
    reader.bytes(suites.into())?;
    let compression = reader.u8()?;
    reader.bytes(compression.into())?;
    Ok(())
}

fn in_extensions(reader: &mut Reader<'_>) -> Result<bool, Malformed> {
    let mut found = false;
    each_extension(reader, |kind, _| found |= kind == QUIC_TRANSPORT_PARAMETERS)?;
    Ok(found)
}

fn each_extension<'a>(
    reader: &mut Reader<'a>,
    mut visit: impl FnMut(u16, &'a [u8]),
) -> Result<(), Malformed> {
    let len = reader.u16()?;
    let mut extensions = Reader::new(reader.bytes(len.into())?);
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let len = extensions.u16()?;
        visit(kind, extensions.bytes(len.into())?);
    }
    Ok(())
}
