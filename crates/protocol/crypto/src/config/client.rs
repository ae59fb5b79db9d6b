//! A client's TLS configuration.

use super::compression::{COMPRESSORS, DECOMPRESSORS};
use super::error::ConfigError;
use super::identities::Identities;
use super::identity::certificates;
use super::options::TlsOptions;
use super::verify::{AcceptAny, OrPinned, OrVouched};
use crate::resumption::{Client, OfferedTickets, ServerKey, SessionStore};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
#[cfg(test)]
use rustls::crypto::SupportedKxGroup;
use rustls::pki_types::CertificateDer;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version::TLS13};
use std::sync::Arc;
use wire::Version;

/// The certificate authorities that a client trusts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Roots {
    /// The authorities that the operating system trusts.
    System,
    /// The authorities in this PEM text, and no others. A server's self-signed certificate may stand for its authority.
    Pem(Vec<u8>),
    /// Any certificate, unread. For tests only.
    Insecure,
}

/// A client's TLS configuration; clones share it.
#[derive(Clone, Debug)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    /// The one in `config`, which does not show it.
    verifier: Arc<dyn ServerCertVerifier>,
    /// A digest of the certificates that the client shows to servers which ask.
    identity: [u8; 32],
    sessions: Option<Arc<dyn SessionStore>>,
}

impl ClientTls {
    /// The configuration of a client that trusts `roots`.
    ///
    /// # Errors
    /// If there are no trusted roots, the options cannot work, or the key log cannot be opened.
    pub fn new(roots: &Roots, options: &TlsOptions) -> Result<ClientTls, ConfigError> {
        options.check()?;
        //= rfc9001/4.2#1
        let provider = options.provider();
        let verifier: Arc<dyn ServerCertVerifier> =
            Arc::new(OrVouched::new(verifier(roots, Arc::clone(&provider))?));
        let mut config = trusting(Arc::clone(&verifier), options, (provider, &[&TLS13]))?;
        config.alpn_protocols.clone_from(&options.alpn);
        config.resumption = Resumption::disabled();
        if let Some(key_log) = options.open_key_log()? {
            config.key_log = key_log;
        }
        let identity = options.client_identity.as_ref().map(|shown| Identities::from(shown).digest());
        let identity = identity.unwrap_or_default();
        Ok(ClientTls { config: Arc::new(config), verifier, identity, sessions: None })
    }

    /// Knows these groups, and offers a share of the first one alone.
    #[cfg(test)]
    pub(crate) fn with_groups(self, kx_groups: Vec<&'static dyn SupportedKxGroup>) -> ClientTls {
        let options = TlsOptions::default();
        let provider = Arc::new(CryptoProvider { kx_groups, ..CryptoProvider::clone(&options.provider()) });
        let mut config = trusting(Arc::clone(&self.verifier), &options, (provider, &[&TLS13])).unwrap();
        config.alpn_protocols.clone_from(&options.alpn);
        ClientTls { config: Arc::new(config), ..self }
    }

    /// Keeps tickets and address tokens of servers in `sessions`, and uses those of earlier connections. A ticket serves the
    /// configuration only that it was got with, and its clones: another one may trust others. One that was written down serves every
    /// configuration that trusts the server's certificates.
    #[must_use]
    pub fn with_sessions(self, sessions: Arc<dyn SessionStore>) -> ClientTls {
        ClientTls { sessions: Some(sessions), ..self }
    }

    /// Sends early data to servers that take it, with tickets of [`ClientTls::with_sessions`]. An attacker on the way can have
    /// early data carried out a second time (RFC 8446 §8): it should be only what may be done twice.
    #[must_use]
    pub fn with_early_data(self) -> ClientTls {
        let mut config = ClientConfig::clone(&self.config);
        config.enable_early_data = true;
        ClientTls { config: Arc::new(config), ..self }
    }

    /// Whether tickets that come are kept beyond the life of the process.
    pub fn writes_tickets(&self) -> bool {
        self.sessions.as_ref().is_some_and(|sessions| sessions.writes_tickets())
    }

    /// An address token of an earlier connection to this server, which does not come out again. Empty if there is none.
    pub fn take_token(&self, name: &str, port: u16, version: Version) -> Vec<u8> {
        let token = self.sessions.as_ref().and_then(|store| store.take_token(&self.key(name, port, version)));
        token.unwrap_or_default()
    }

    /// Whether the next connection to this server may send early data: it is allowed, and there is a ticket that permits it.
    pub fn offers_early_data(&self, name: &str, port: u16, version: Version) -> bool {
        let key = self.key(name, port, version);
        self.config.enable_early_data
            && self.sessions.as_ref().is_some_and(|sessions| sessions.has_early_ticket(&key))
    }

    /// The version in which a connection to this server can resume: `first`, or else another one in which the server has given
    /// tickets, because it has moved an earlier connection there. `first` if there are no tickets. RFC 9369 §5.
    pub fn version_of_tickets(&self, name: &str, port: u16, first: Version) -> Version {
        let Some(sessions) = &self.sessions else { return first };
        let mut tried = core::iter::once(first).chain(Version::SUPPORTED);
        //= rfc9369/5#1
        tried.find(|version| sessions.has_ticket(&self.key(name, port, *version))).unwrap_or(first)
    }

    fn key(&self, name: &str, port: u16, version: Version) -> ServerKey {
        let protocols = super::protocols(&self.config.alpn_protocols);
        ServerKey { name: name.to_ascii_lowercase(), port, version, protocols }
    }

    /// The configuration of one connection, and the part of the store that it sees.
    pub(crate) fn connection(
        &self,
        name: &str,
        port: u16,
        version: Version,
    ) -> (Arc<ClientConfig>, Option<Arc<OfferedTickets>>) {
        let Some(sessions) = &self.sessions else { return (Arc::clone(&self.config), None) };
        let client = Client {
            config: Arc::clone(&self.config),
            verifier: Arc::clone(&self.verifier),
            identity: self.identity,
        };
        let offered = OfferedTickets::new(Arc::clone(sessions), self.key(name, port, version), client);
        let offered = Arc::new(offered);
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::store(offered.clone());
        (Arc::new(config), Some(offered))
    }

    #[cfg(test)]
    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }
}

/// The configuration of a client over TCP, for rustls itself: TLS 1.3 or 1.2, the suites and key exchange of `options`. Without
/// resumption, so that each handshake costs what a first one costs.
///
/// # Errors
/// As [`ClientTls::new`]; but there may be no application protocol.
pub fn tcp_client(roots: &Roots, options: &TlsOptions) -> Result<Arc<ClientConfig>, ConfigError> {
    let provider = options.tcp_provider();
    let verifier = verifier(roots, Arc::clone(&provider))?;
    let mut config = trusting(verifier, options, (provider, rustls::ALL_VERSIONS))?;
    config.alpn_protocols.clone_from(&options.alpn);
    config.resumption = Resumption::disabled();
    if let Some(key_log) = options.open_key_log()? {
        config.key_log = key_log;
    }
    Ok(Arc::new(config))
}

/// What verifies the certificates of servers.
fn verifier(
    roots: &Roots,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, ConfigError> {
    let library = |roots| {
        let library = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        library.build().map_err(|error| ConfigError::Refused(error.to_string()))
    };
    Ok(match roots {
        Roots::System => library(system_roots()?)?,
        Roots::Pem(text) => {
            let (roots, given) = pem_roots(text)?;
            Arc::new(OrPinned::new(library(roots)?, given))
        }
        Roots::Insecure => Arc::new(AcceptAny::new(provider.signature_verification_algorithms)),
    })
}

/// A configuration with this verifier, which shows the certificate of `options` to servers that ask.
fn trusting(
    verifier: Arc<dyn ServerCertVerifier>,
    options: &TlsOptions,
    (provider, versions): (Arc<CryptoProvider>, &[&'static SupportedProtocolVersion]),
) -> Result<ClientConfig, ConfigError> {
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = match options.ech.mode()? {
        Some(mode) => builder.with_ech(mode),
        None => builder.with_protocol_versions(versions),
    };
    let builder = builder.map_err(|error| ConfigError::Refused(error.to_string()))?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = match &options.client_identity {
        Some(identity) => {
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity.certified())))
        }
        None => builder.with_no_client_auth(),
    };
    config.cert_compressors = COMPRESSORS.to_vec();
    config.cert_decompressors = DECOMPRESSORS.to_vec();
    Ok(config)
}

fn system_roots() -> Result<RootCertStore, ConfigError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let reason = found.errors.first().map_or_else(|| "the system has none".into(), ToString::to_string);
        return Err(ConfigError::NoRoots(reason));
    }
    Ok(roots)
}

/// The authorities in `text`, and the same as certificates.
fn pem_roots(text: &[u8]) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), ConfigError> {
    let mut roots = RootCertStore::empty();
    let given = certificates("CA file", text)?;
    for certificate in &given {
        roots.add(certificate.clone()).map_err(|error| ConfigError::BadCertificate(error.to_string()))?;
    }
    Ok((roots, given))
}
