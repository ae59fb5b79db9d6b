//! TLS for both ends: which library encrypts, which cipher suite, whom to trust.

use crate::Error;
use clap::{Args, ValueEnum};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CipherSuite, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const AES_128: CipherSuite = CipherSuite::TLS13_AES_128_GCM_SHA256;

#[derive(Args)]
pub(crate) struct Options {
    /// The library that does the cryptography
    #[arg(long, value_enum, default_value = "ring", global = true)]
    provider: Provider,
    /// The one cipher suite to offer or accept; without all, AES-128 preferred
    #[arg(long, value_enum, global = true)]
    cipher: Option<Cipher>,
    /// A server takes early data; a client sends it where it has a ticket
    #[arg(long, global = true)]
    pub(crate) early_data: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Provider {
    Ring,
    AwsLcRs,
}

#[derive(Clone, Copy, ValueEnum)]
enum Cipher {
    Aes128,
    Aes256,
    Chacha20,
}

/// A certificate chain and its key in PEM; without, a server makes one for itself.
#[derive(Args, Default)]
pub(crate) struct Identity {
    #[arg(long, requires = "key")]
    cert: Option<PathBuf>,
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
}

impl Options {
    /// What the flags say by default.
    pub(crate) fn usual() -> Options {
        Options { provider: Provider::Ring, cipher: None, early_data: false }
    }

    /// ChaCha20-Poly1305 and nothing else.
    pub(crate) fn only_chacha20(&mut self) {
        self.cipher = Some(Cipher::Chacha20);
    }

    fn whole_provider(&self) -> CryptoProvider {
        match self.provider {
            Provider::Ring => rustls::crypto::ring::default_provider(),
            Provider::AwsLcRs => rustls::crypto::aws_lc_rs::default_provider(),
        }
    }

    /// The provider cut down to the one suite.
    fn provider(&self) -> Arc<CryptoProvider> {
        let mut provider = self.whole_provider();
        let wanted = match self.cipher {
            None => {
                provider.cipher_suites.sort_by_key(|suite| suite.suite() != AES_128);
                return Arc::new(provider);
            }
            Some(Cipher::Aes128) => AES_128,
            Some(Cipher::Aes256) => CipherSuite::TLS13_AES_256_GCM_SHA384,
            Some(Cipher::Chacha20) => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        };
        provider.cipher_suites.retain(|suite| suite.suite() == wanted);
        Arc::new(provider)
    }

    /// Initial packets are always AES-128-GCM, whatever suite TLS agrees on. RFC 9001 §5.2.
    fn initial_suite(&self) -> Result<rustls::quic::Suite, Error> {
        self.whole_provider()
            .cipher_suites
            .iter()
            .filter(|suite| suite.suite() == AES_128)
            .find_map(|suite| suite.tls13().and_then(|suite| suite.quic_suite()))
            .ok_or_else(|| "the provider has no AES-128-GCM for Initial packets".into())
    }

    pub(crate) fn server(&self, identity: &Identity, alpn: &[&[u8]]) -> Result<Arc<QuicServerConfig>, Error> {
        let (chain, key) = identity.load()?;
        let mut config = rustls::ServerConfig::builder_with_provider(self.provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        config.max_early_data_size = if self.early_data { u32::MAX } else { 0 };
        config.key_log = Arc::new(rustls::KeyLogFile::new());
        Ok(Arc::new(QuicServerConfig::with_initial(Arc::new(config), self.initial_suite()?)?))
    }

    /// With `roots` the server's certificate must lead to one of them, without it is not looked at.
    pub(crate) fn client(&self, roots: Option<&Path>, alpn: &[u8]) -> Result<Arc<QuicClientConfig>, Error> {
        let provider = self.provider();
        let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])?;
        let mut config = match roots {
            Some(path) => builder.with_root_certificates(load_roots(path)?).with_no_client_auth(),
            None => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unverified(
                    provider.signature_verification_algorithms,
                )))
                .with_no_client_auth(),
        };
        config.alpn_protocols = vec![alpn.to_vec()];
        config.enable_early_data = self.early_data;
        config.key_log = Arc::new(rustls::KeyLogFile::new());
        Ok(Arc::new(QuicClientConfig::with_initial(Arc::new(config), self.initial_suite()?)?))
    }
}

impl Identity {
    fn load(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
        let (Some(cert), Some(key)) = (&self.cert, &self.key) else { return self_signed() };
        let chain = CertificateDer::pem_file_iter(cert)
            .and_then(Iterator::collect)
            .map_err(|error| format!("{}: {error}", cert.display()))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| format!("{}: {error}", key.display()))?;
        Ok((chain, key))
    }
}

fn self_signed() -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    Ok((vec![made.cert.der().clone()], key))
}

fn load_roots(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let shown = |error| format!("{}: {error}", path.display());
    for certificate in CertificateDer::pem_file_iter(path).map_err(shown)? {
        roots.add(certificate.map_err(shown)?)?;
    }
    Ok(roots)
}

/// Accepts any certificate, for benchmarks against a server that made its own.
#[derive(Debug)]
struct Unverified(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
