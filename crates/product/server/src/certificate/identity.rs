//! A certificate chain and its key, from the operator's PEM files.
//!
//! The pair is compared here already, so that the message can name both files; TLS checks again what it is given.

use super::der;
use super::error::{CertificateError, Role};
use crate::date::http_date;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Chains are a few KiB. More is not a certificate, and could be /dev/zero.
const MAX_FILE: u64 = 1 << 20;

/// A certificate with less than this left is worth a warning.
const WARN_BEFORE_S: u64 = 14 * 24 * 3_600;

/// How a chain stands to the present. Times in seconds since 1970. The text says so for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// Valid for 14 days and more.
    Good,
    /// Valid, for fewer than 14 days.
    Soon {
        /// The end.
        until_s: u64,
    },
    /// Not valid any more.
    Expired {
        /// The end.
        since_s: u64,
    },
    /// Not valid yet.
    NotYet {
        /// The beginning.
        from_s: u64,
    },
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, at) = match *self {
            Validity::Good => return f.write_str("is valid"),
            Validity::Soon { until_s } => ("expires soon, on", until_s),
            Validity::Expired { since_s } => ("has expired, on", since_s),
            Validity::NotYet { from_s } => ("is not valid before", from_s),
        };
        write!(f, "{what} {}", String::from_utf8_lossy(&http_date(at)))
    }
}

/// The server's identity: certificate chain and key.
#[derive(Debug)]
pub struct Identity {
    /// The chain, the server's own certificate first. Never empty.
    pub chain: Vec<CertificateDer<'static>>,
    /// The private key of the first certificate.
    pub key: PrivateKeyDer<'static>,
}

impl Clone for Identity {
    fn clone(&self) -> Identity {
        Identity { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

impl Identity {
    /// Reads the chain and the key from PEM files, which may be the same file.
    pub fn load(certificate: &Path, key: &Path) -> Result<Identity, CertificateError> {
        let chain = chain_of(&read(Role::Certificate, certificate)?, certificate)?;
        let secret = key_of(&read(Role::Key, key)?, key)?;
        let first = chain.first().and_then(|first| der::facts(first));
        let facts = first.ok_or_else(|| CertificateError::Damaged(certificate.to_owned()))?;
        // A kind of key that this library does not know is left to TLS to judge.
        if rcgen::KeyPair::try_from(&secret).is_ok_and(|pair| pair.public_key_raw() != facts.public_key) {
            return Err(CertificateError::Mismatch {
                certificate: certificate.to_owned(),
                key: key.to_owned(),
            });
        }
        Ok(Identity { chain, key: secret })
    }

    /// Until when the certificate is valid, in seconds since 1970; `None` if it cannot be parsed.
    pub fn not_after_s(&self) -> Option<u64> {
        self.chain.first().and_then(|first| der::facts(first)).map(|facts| facts.not_after_s)
    }

    /// From when until when the certificate is valid, in seconds since 1970; `None` if it cannot be parsed.
    pub fn span_s(&self) -> Option<(u64, u64)> {
        let facts = self.chain.first().and_then(|first| der::facts(first))?;
        Some((facts.not_before_s, facts.not_after_s))
    }

    /// The key identifier of the certificate's issuer, and the certificate's serial number as it is encoded. RFC 9773 §4.1.
    pub fn issuer_and_serial(&self) -> Option<(&[u8], &[u8])> {
        der::issuer_and_serial(self.chain.first()?)
    }

    /// Whether clients take the chain at `now_s`, seconds since 1970: all its certificates must be valid. What cannot be parsed
    /// is left to TLS to judge. RFC 5280 §6.1.3.
    pub fn validity(&self, now_s: u64) -> Validity {
        let facts = || self.chain.iter().filter_map(|certificate| der::facts(certificate));
        let begins = facts().map(|facts| facts.not_before_s).max().unwrap_or(0);
        let ends = facts().map(|facts| facts.not_after_s).min().unwrap_or(u64::MAX);
        if now_s > ends {
            Validity::Expired { since_s: ends }
        } else if now_s < begins {
            Validity::NotYet { from_s: begins }
        } else if ends - now_s < WARN_BEFORE_S {
            Validity::Soon { until_s: ends }
        } else {
            Validity::Good
        }
    }
}

/// Until when clients take the chain in a PEM file, in seconds since 1970: the end of the first of its certificates to expire. `None`
/// if there is no certificate in it.
pub fn expiry(file: &Path) -> Option<u64> {
    let chain = chain_of(&read(Role::Certificate, file).ok()?, file).ok()?;
    chain.iter().filter_map(|certificate| der::facts(certificate)).map(|facts| facts.not_after_s).min()
}

fn read(role: Role, path: &Path) -> Result<Vec<u8>, CertificateError> {
    let unreadable = |error| CertificateError::Unreadable(role, path.to_owned(), error);
    let mut text = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE {
        return Err(unreadable(io::Error::other("it is larger than any certificate, 1 MiB")));
    }
    Ok(text)
}

fn chain_of(text: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let not_pem = || CertificateError::NotPem(Role::Certificate, path.to_owned());
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(text).collect::<Result<_, _>>().map_err(|_| not_pem())?;
    match (chain.is_empty(), PrivateKeyDer::from_pem_slice(text).is_ok()) {
        (false, _) => Ok(chain),
        (true, true) => Err(CertificateError::Swapped(Role::Certificate, path.to_owned())),
        (true, false) => Err(not_pem()),
    }
}

fn key_of(text: &[u8], path: &Path) -> Result<PrivateKeyDer<'static>, CertificateError> {
    PrivateKeyDer::from_pem_slice(text).map_err(|_| {
        let holds = |what: &str| text.windows(what.len()).any(|window| window == what.as_bytes());
        if holds("BEGIN ENCRYPTED PRIVATE KEY") || holds("Proc-Type: 4,ENCRYPTED") {
            CertificateError::Encrypted(path.to_owned())
        } else if CertificateDer::from_pem_slice(text).is_ok() {
            CertificateError::Swapped(Role::Key, path.to_owned())
        } else {
            CertificateError::NotPem(Role::Key, path.to_owned())
        }
    })
}
