//! Verifiers beside the library's own. The peer must in any case prove that it holds the certificate's key.
//!
//! [`AcceptAny`] trusts every certificate, of every version of X.509, for tests: its handshakes are the same. [`OrPinned`] asks the library, and trusts
//! a server's certificate that was itself given as trusted though it is marked as an authority's (CA:TRUE): self-signed
//! certificates made by `openssl req -x509` are. The library refuses those as a server's own (RFC 5280 §4.2.1.9), where other
//! clients take what they were given. [`OrVouched`] takes signatures of this process, too, which restores sessions by them.

use super::spki::PublicKey;
use crate::voucher;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;

/// Trusts every certificate.
#[derive(Debug)]
pub(super) struct AcceptAny {
    algorithms: WebPkiSupportedAlgorithms,
}

impl AcceptAny {
    pub(super) fn new(algorithms: WebPkiSupportedAlgorithms) -> AcceptAny {
        AcceptAny { algorithms }
    }
}

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = key_of(certificate)?;
        let schemes = self.algorithms.mapping.iter();
        let algorithms = schemes.filter(|(scheme, _)| *scheme == signature.scheme).flat_map(|(_, all)| *all);
        let mut fitting = algorithms.filter(|algorithm| key.is_for(algorithm.public_key_alg_id()));
        if fitting
            .any(|algorithm| algorithm.verify_signature(key.key, message, signature.signature()).is_ok())
        {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(CertificateError::BadSignature.into())
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key_of(certificate)?.info);
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn key_of<'a>(certificate: &'a CertificateDer<'_>) -> Result<PublicKey<'a>, Error> {
    PublicKey::of_certificate(certificate).ok_or_else(|| CertificateError::BadEncoding.into())
}

/// Whether the library refuses a server's own certificate because it is marked as an authority's. The library finds that after
/// the dates, so those are in order.
pub(crate) fn is_of_authority(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.to_string() == "CaUsedAsEndEntity")
}

/// Trusts what the library's verifier trusts, and certificates that were given as trusted.
#[derive(Debug)]
pub(super) struct OrPinned {
    library: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl OrPinned {
    pub(super) fn new(library: Arc<WebPkiServerVerifier>, given: Vec<CertificateDer<'static>>) -> OrPinned {
        OrPinned { library, given }
    }
}

impl ServerCertVerifier for OrPinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict =
            self.library.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verdict {
            Err(Error::InvalidCertificate(error))
                if is_of_authority(&error) && self.given.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.library.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.library.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.library.supported_verify_schemes()
    }
}

/// Takes what another verifier takes, and signatures of this process for any certificate that the other one takes
/// (resumption/restore.rs).
#[derive(Debug)]
pub(super) struct OrVouched(Arc<dyn ServerCertVerifier>);

impl OrVouched {
    pub(super) fn new(other: Arc<dyn ServerCertVerifier>) -> OrVouched {
        OrVouched(other)
    }
}

impl ServerCertVerifier for OrVouched {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if voucher::has_signed(message, signature.signature()) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
