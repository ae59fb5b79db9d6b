//! A client's ticket in bytes, so that the next process has it.
//!
//! rustls shows neither the secret of a client's session nor takes one, so a ticket is kept as what it was made of: the NewSessionTicket
//! message, the secret (key_capture.rs), the server's certificates and transport parameters. restore.rs makes a session of
//! rustls of that.

use crate::key_capture::suite_of;
use crate::suite::Suite;
use rustls::CipherSuite;
use rustls::client::Tls13ClientSessionValue;
use rustls::pki_types::{CertificateDer, UnixTime};
use zeroize::Zeroizing;

/// The longest ticket in bytes that is written down. A chain of certificates is most of it.
const MAX_LEN: usize = 32 << 10;
/// The longest secret: that of SHA-384.
const MAX_SECRET_LEN: usize = 48;
/// Certificates in a chain.
const MAX_CHAIN: usize = 16;

/// What a ticket was made of.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct WrittenTicket {
    pub(super) suite: Suite,
    /// Whether the server takes early data with it.
    pub(super) permits_early_data: bool,
    /// When it came, in seconds since 1970.
    pub(super) received_s: u64,
    /// A digest of the certificates that the client has shown.
    pub(super) identity: [u8; 32],
    /// The NewSessionTicket message.
    pub(super) message: Vec<u8>,
    pub(super) secret: Zeroizing<Vec<u8>>,
    /// The server's transport parameters.
    pub(super) params: Vec<u8>,
    /// The server's certificates, its own first.
    pub(super) chain: Vec<CertificateDer<'static>>,
}

/// The parts of a NewSessionTicket message that count. RFC 8446 §4.6.1.
pub(super) struct Parts<'a> {
    /// Lifetime and number added to the age, 8 bytes.
    pub(super) head: &'a [u8],
    /// Ticket and extensions.
    pub(super) tail: &'a [u8],
}

/// The type of the message.
pub(super) const NEW_SESSION_TICKET: u8 = 4;

impl<'a> Parts<'a> {
    pub(super) fn of(message: &'a [u8]) -> Option<Parts<'a>> {
        let (_, body) =
            message.split_at_checked(4).filter(|(head, _)| head.first() == Some(&NEW_SESSION_TICKET))?;
        let (head, rest) = body.split_at_checked(8)?;
        let (nonce_len, rest) = rest.split_first()?;
        let (_nonce, tail) = rest.split_at_checked(usize::from(*nonce_len))?;
        Some(Parts { head, tail })
    }

    fn lifetime_s(&self) -> u64 {
        let lifetime = self.head.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        lifetime.into()
    }
}

impl WrittenTicket {
    /// What `value` was made of, when it has just come in `message`. `None` if that is too much to keep.
    pub(super) fn new(
        value: &Tls13ClientSessionValue,
        message: &[u8],
        secret: &[u8],
        chain: &[CertificateDer<'static>],
        identity: [u8; 32],
    ) -> Option<WrittenTicket> {
        let written = WrittenTicket {
            suite: suite_of(value.suite().common.suite)?,
            permits_early_data: value.max_early_data_size() > 0,
            received_s: UnixTime::now().as_secs(),
            identity,
            message: message.to_vec(),
            secret: Zeroizing::new(secret.to_vec()),
            params: value.quic_params(),
            chain: chain.to_vec(),
        };
        Some(written).filter(WrittenTicket::is_sound)
    }

    fn is_sound(&self) -> bool {
        let certificates: usize = self.chain.iter().map(|certificate| certificate.len()).sum();
        (1..=MAX_SECRET_LEN).contains(&self.secret.len())
            && (1..=MAX_CHAIN).contains(&self.chain.len())
            && Parts::of(&self.message).is_some()
            && self.message.len() + self.params.len() + certificates <= MAX_LEN
    }

    /// Whether its lifetime is over.
    pub(super) fn is_expired(&self, now_s: u64) -> bool {
        let lifetime_s = Parts::of(&self.message).map_or(0, |parts| parts.lifetime_s());
        self.received_s.saturating_add(lifetime_s) < now_s
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.message.len() + 4_096);
        bytes.extend(u16::from(code_of(self.suite)).to_be_bytes());
        bytes.push(u8::from(self.permits_early_data));
        bytes.extend(self.received_s.to_be_bytes());
        bytes.extend(self.identity);
        put(&mut bytes, &self.message);
        put(&mut bytes, &self.secret);
        put(&mut bytes, &self.params);
        self.chain.iter().for_each(|certificate| put(&mut bytes, certificate));
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<WrittenTicket> {
        let (suite, bytes) = bytes.split_first_chunk()?;
        let (permits_early_data, bytes) = bytes.split_first()?;
        let (received_s, bytes) = bytes.split_first_chunk()?;
        let (identity, bytes) = bytes.split_first_chunk()?;
        let (message, bytes) = take(bytes)?;
        let (secret, bytes) = take(bytes)?;
        let (params, mut bytes) = take(bytes)?;
        let mut chain = Vec::new();
        while !bytes.is_empty() && chain.len() < MAX_CHAIN {
            let (certificate, rest) = take(bytes)?;
            chain.push(CertificateDer::from(certificate.to_vec()));
            bytes = rest;
        }
        let written = WrittenTicket {
            suite: suite_of(CipherSuite::from(u16::from_be_bytes(*suite)))?,
            permits_early_data: *permits_early_data == 1,
            received_s: u64::from_be_bytes(*received_s),
            identity: *identity,
            message: message.to_vec(),
            secret: Zeroizing::new(secret.to_vec()),
            params: params.to_vec(),
            chain,
        };
        (bytes.is_empty() && *permits_early_data <= 1).then_some(written).filter(WrittenTicket::is_sound)
    }
}

fn code_of(suite: Suite) -> CipherSuite {
    match suite {
        Suite::Aes128Gcm => CipherSuite::TLS13_AES_128_GCM_SHA256,
        Suite::Aes256Gcm => CipherSuite::TLS13_AES_256_GCM_SHA384,
        Suite::ChaCha20Poly1305 => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    }
}

/// Appends a field behind its length. What is longer than 32 bits tell is not written (MAX_LEN).
fn put(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.extend(u32::try_from(field.len()).unwrap_or(0).to_be_bytes());
    bytes.extend_from_slice(field);
}

fn take(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, bytes) = bytes.split_first_chunk()?;
    bytes.split_at_checked(u32::from_be_bytes(*len) as usize)
}
