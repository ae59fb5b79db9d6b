//! A server's TLS configuration.

use super::compression;
use super::error::ConfigError;
use super::options::TlsOptions;
use super::shared::SharedIdentities;
use crate::resumption::{EarlyTerms, IssuedTickets, SealedForTcp, TicketOptions};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, version::TLS13};
use std::sync::Arc;
use wire::Version;

/// A server's TLS configuration; clones share it.
#[derive(Clone, Debug)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    /// What its tickets are bound to.
    terms: Terms,
    tickets: Option<Arc<TicketOptions>>,
    slow_steps: SlowSteps,
}

/// Where steps of handshakes are taken that take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlowSteps {
    /// At once, within [`TlsSession::read`](crate::TlsSession::read).
    Inline,
    /// Where the caller of [`TlsSession::take_work`](crate::TlsSession::take_work) wants.
    Apart,
}

impl ServerTls {
    /// The configuration of a server with one certificate ([`Identity`](super::Identity)), or one for each name.
    ///
    /// # Errors
    /// If the options cannot work, or the key log cannot be opened.
    pub fn new(
        identities: impl Into<SharedIdentities>,
        options: &TlsOptions,
    ) -> Result<ServerTls, ConfigError> {
        options.check()?;
        let provider = options.provider();
        let clients = options.client_auth.verifier(Arc::clone(&provider))?;
        let builder = ServerConfig::builder_with_provider(provider)
            //= rfc9001/4.2#2
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| ConfigError::Refused(error.to_string()))?;
        let terms = Terms::new(identities.into(), options);
        let resolver = Arc::new(terms.identities.clone());
        let mut config = builder.with_client_cert_verifier(clients).with_cert_resolver(resolver);
        compression::apply_to(&mut config);
        config.alpn_protocols.clone_from(&options.alpn);
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
        if let Some(key_log) = options.open_key_log()? {
            config.key_log = key_log;
        }
        Ok(ServerTls { config: Arc::new(config), terms, tickets: None, slow_steps: SlowSteps::Inline })
    }

    /// Issues tickets and takes those that it has issued: clients that come back need no certificate, and may send early data
    /// if the tickets say so. Without it each handshake is a full one.
    #[must_use]
    pub fn with_tickets(self, tickets: TicketOptions) -> ServerTls {
        let mut config = ServerConfig::clone(&self.config);
        config.send_tls13_tickets = tickets.count;
        // RFC 9001 §4.6.1: the only number that permits early data.
        //= rfc9001/4.6.1#1
        config.max_early_data_size = if tickets.early_data.is_some() { u32::MAX } else { 0 };
        ServerTls { config: Arc::new(config), tickets: Some(Arc::new(tickets)), ..self }
    }

    /// Sessions give away the steps in which a key signs that takes long, such as one for RSA: who calls
    /// [`TlsSession::read`](crate::TlsSession::read) has to ask for [`TlsSession::take_work`](crate::TlsSession::take_work) then.
    #[must_use]
    pub fn with_slow_steps_apart(self) -> ServerTls {
        ServerTls { slow_steps: SlowSteps::Apart, ..self }
    }

    /// The certificates, if sessions give slow steps away and any of them has a slow key.
    pub(crate) fn slow_keys(&self) -> Option<SharedIdentities> {
        let identities = &self.terms.identities;
        (self.slow_steps == SlowSteps::Apart && identities.have_slow_keys()).then(|| identities.clone())
    }

    /// The configuration of one connection, and its tickets.
    pub(crate) fn connection(
        &self,
        version: Version,
        terms: EarlyTerms,
    ) -> (Arc<ServerConfig>, Option<Arc<IssuedTickets>>) {
        let Some(tickets) = &self.tickets else { return (Arc::clone(&self.config), None) };
        let issued = Arc::new(IssuedTickets::new(tickets, &self.terms.digest(), version, terms));
        let mut config = ServerConfig::clone(&self.config);
        config.session_storage = issued.clone();
        (Arc::new(config), Some(issued))
    }

    #[cfg(test)]
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }
}

/// What a server's tickets are bound to: its certificates, its application protocols, and which clients it accepts.
#[derive(Clone, Debug)]
struct Terms {
    identities: SharedIdentities,
    /// What does not change while the server runs.
    others: Arc<[u8]>,
}

impl Terms {
    fn new(identities: SharedIdentities, options: &TlsOptions) -> Terms {
        let others = [super::protocols(&options.alpn), options.client_auth.digest().to_vec()].concat();
        Terms { identities, others: others.into() }
    }

    /// As of now.
    fn digest(&self) -> Vec<u8> {
        [&self.identities.digest()[..], &self.others].concat()
    }
}

/// The configuration of a server over TCP, for rustls itself: TLS 1.3 or 1.2, the suites and key exchange of `options` in
/// our order and not the client's. Clients that come back resume by `tickets`, of which the count and the keys matter.
///
/// # Errors
/// As [`ServerTls::new`].
pub fn tcp_server(
    identities: impl Into<SharedIdentities>,
    options: &TlsOptions,
    tickets: &TicketOptions,
) -> Result<Arc<ServerConfig>, ConfigError> {
    options.check()?;
    let refused = |error: rustls::Error| ConfigError::Refused(error.to_string());
    let provider = options.tcp_provider();
    let clients = options.client_auth.verifier(Arc::clone(&provider))?;
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(rustls::ALL_VERSIONS).map_err(refused)?;
    let terms = Terms::new(identities.into(), options);
    let resolver = Arc::new(terms.identities.clone());
    let mut config = builder.with_client_cert_verifier(clients).with_cert_resolver(resolver);
    compression::apply_to(&mut config);
    config.alpn_protocols.clone_from(&options.alpn);
    config.ignore_client_order = true;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = tickets.count;
    if tickets.count > 0 {
        config.ticketer = Arc::new(SealedForTcp::new(Arc::clone(&tickets.keys), move || terms.digest()));
    }
    if let Some(key_log) = options.open_key_log()? {
        config.key_log = key_log;
    }
    Ok(Arc::new(config))
}
