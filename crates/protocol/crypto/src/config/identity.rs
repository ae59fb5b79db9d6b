//! A server's certificate chain and private key.

use super::error::ConfigError;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use std::path::Path;
use std::sync::Arc;

/// A certificate chain, the server's own certificate first, with its private key.
#[derive(Clone, Debug)]
pub struct Identity {
    certified: Arc<CertifiedKey>,
    spki_sha256: [u8; 32],
}

impl Identity {
    /// Reads both from PEM files.
    ///
    /// # Errors
    /// If a file is missing or unreadable, holds nothing of its kind, or the key belongs to another certificate.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Identity, ConfigError> {
        Identity::from_pem(&read("certificate", certificate)?, &read("private key", key)?)
    }

    /// Reads both from PEM text.
    ///
    /// # Errors
    /// If a text holds nothing of its kind, or the key belongs to another certificate.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Identity, ConfigError> {
        let chain = certificates("certificate", certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            pem::Error::NoItemsFound => ConfigError::NoKey,
            other => ConfigError::BadPem { what: "private key", reason: other.to_string() },
        })?;
        Identity::new(chain, key)
    }

    /// Takes both in DER, the key as PKCS #8, SEC 1 or PKCS #1.
    ///
    /// # Errors
    /// If the chain is empty, the key is of no known kind or belongs to another certificate.
    pub fn from_der(chain: Vec<Vec<u8>>, key: Vec<u8>) -> Result<Identity, ConfigError> {
        let key = PrivateKeyDer::try_from(key).map_err(|reason| ConfigError::BadKey(reason.into()))?;
        Identity::new(chain.into_iter().map(CertificateDer::from).collect(), key)
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Identity, ConfigError> {
        let leaf = chain.first().ok_or(ConfigError::NoCertificate)?;
        let parsed = ParsedCertificate::try_from(leaf);
        let parsed = parsed.map_err(|error| ConfigError::BadCertificate(error.to_string()))?;
        let spki = parsed.subject_public_key_info();
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &spki);
        let mut spki_sha256 = [0; 32];
        spki_sha256.copy_from_slice(digest.as_ref());
        let certified = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => ConfigError::KeyMismatch,
            other => ConfigError::BadKey(other.to_string()),
        })?;
        Ok(Identity { certified: Arc::new(certified), spki_sha256 })
    }

    /// The chain in DER, the own certificate first.
    pub fn certificates(&self) -> impl Iterator<Item = &[u8]> {
        self.certified.cert.iter().map(|certificate| certificate.as_ref())
    }

    /// Whether clients that ask for `name` accept the certificate's names: RFC 6125 §6.4. A name is a DNS name or an address;
    /// `*.example.org` is one if every name with one label more is.
    pub fn is_for(&self, name: &str) -> bool {
        // A label that no certificate names alone.
        let name = name
            .strip_prefix("*.")
            .map_or_else(|| name.to_owned(), |parent| format!("any-other-name.{parent}"));
        let (Some(leaf), Ok(name)) = (self.certified.cert.first(), ServerName::try_from(name)) else {
            return false;
        };
        ParsedCertificate::try_from(leaf).is_ok_and(|leaf| verify_server_name(&leaf, &name).is_ok())
    }

    /// SHA-256 of the certificate's public key as SubjectPublicKeyInfo; in base64 it is what browsers take to trust it.
    pub fn spki_sha256(&self) -> [u8; 32] {
        self.spki_sha256
    }

    /// The same key behind other certificates, which are shown unread.
    #[cfg(test)]
    pub(crate) fn showing(&self, chain: Vec<CertificateDer<'static>>) -> Identity {
        let certified = Arc::new(CertifiedKey::new(chain, Arc::clone(&self.certified.key)));
        Identity { certified, ..self.clone() }
    }

    pub(super) fn certified(&self) -> Arc<CertifiedKey> {
        self.certified.clone()
    }
}

fn provider() -> CryptoProvider {
    rustls::crypto::aws_lc_rs::default_provider()
}

/// All certificates of a PEM text; at least one.
pub(super) fn certificates(
    what: &'static str,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(ConfigError::NoCertificate),
        Ok(chain) => Ok(chain),
        Err(error) => Err(ConfigError::BadPem { what, reason: error.to_string() }),
    }
}

pub(super) fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path).map_err(|error| ConfigError::Unreadable { what, path: path.to_owned(), error })
}
