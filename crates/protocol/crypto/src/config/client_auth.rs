//! Whether a server asks clients for a certificate, and which ones it accepts. RFC 8446 §4.3.2, §4.4.2.4.

use super::error::ConfigError;
use super::identity::{certificates, read};
use aws_lc_rs::digest::{Context, SHA256};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::path::Path;
use std::sync::Arc;

/// Whether a server asks clients for a certificate. What a client shows is verified: dates, chain, use for client authentication.
/// A client whose certificate is not accepted has no connection, whichever of the two is asked for.
///
/// A connection that resumes an earlier one has the certificate of that one, which is not verified again. A ticket is good for the
/// same authorities only.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ClientAuth {
    /// No certificate is asked for.
    #[default]
    Off,
    /// Clients without a certificate are served too.
    Optional(Authorities),
    /// Clients without a certificate have no connection: TLS alert certificate_required. RFC 8446 §6.2.
    Required(Authorities),
}

/// The certificate authorities whose certificates a server accepts from clients.
#[derive(Clone, Debug)]
pub struct Authorities {
    roots: Arc<RootCertStore>,
    digest: [u8; 32],
}

impl Authorities {
    /// Reads them from a PEM file.
    ///
    /// # Errors
    /// The file is missing or unreadable, or as [`Authorities::from_pem`].
    pub fn from_file(path: &Path) -> Result<Authorities, ConfigError> {
        Authorities::from_pem(&read("client CA", path)?)
    }

    /// Reads them from PEM text.
    ///
    /// # Errors
    /// There is no certificate in it, or one that cannot be an authority's.
    pub fn from_pem(text: &[u8]) -> Result<Authorities, ConfigError> {
        let given = certificates("client CA file", text)?;
        let mut context = Context::new(&SHA256);
        let mut roots = RootCertStore::empty();
        for certificate in given {
            add(&mut context, &certificate);
            roots.add(certificate).map_err(|error| ConfigError::BadCertificate(error.to_string()))?;
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        Ok(Authorities { roots: Arc::new(roots), digest })
    }
}

fn add(context: &mut Context, certificate: &CertificateDer<'_>) {
    context.update(&(certificate.len() as u64).to_be_bytes());
    context.update(certificate);
}

impl ClientAuth {
    /// What verifies certificates.
    ///
    /// # Errors
    /// The library refuses the authorities.
    pub(super) fn verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, ConfigError> {
        let of = |authorities: &Authorities| {
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&authorities.roots), provider)
        };
        let verifier = match self {
            ClientAuth::Off => return Ok(WebPkiClientVerifier::no_client_auth()),
            ClientAuth::Optional(authorities) => of(authorities).allow_unauthenticated().build(),
            ClientAuth::Required(authorities) => of(authorities).build(),
        };
        verifier.map_err(|error| ConfigError::Refused(error.to_string()))
    }

    /// What distinguishes it from others: tickets of a server that accepts other clients are refused. Empty: no client is asked.
    pub(super) fn digest(&self) -> Vec<u8> {
        match self {
            ClientAuth::Off => Vec::new(),
            ClientAuth::Optional(authorities) => [&[1], &authorities.digest[..]].concat(),
            ClientAuth::Required(authorities) => [&[2], &authorities.digest[..]].concat(),
        }
    }
}
