//! A server's TLS configuration.

use super::error::ConfigError;
use super::identities::Identities;
use super::options::TlsOptions;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, version::TLS13};
use std::sync::Arc;

/// A server's TLS configuration; clones share it.
#[derive(Clone, Debug)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// The configuration of a server with one certificate ([`Identity`](super::Identity)), or one for each name.
    ///
    /// # Errors
    /// If the options cannot work, or the key log cannot be opened.
    pub fn new(identities: impl Into<Identities>, options: &TlsOptions) -> Result<ServerTls, ConfigError> {
        options.check()?;
        let builder = ServerConfig::builder_with_provider(options.provider())
            //= rfc9001/4.2#2
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| ConfigError::Refused(error.to_string()))?;
        let resolver = Arc::new(identities.into());
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols.clone_from(&options.alpn);
        // No resumption yet, so tickets would be bytes for nothing. 0-RTT needs max_early_data_size = u32::MAX and a ticketer.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
        if let Some(key_log) = options.key_log.open()? {
            config.key_log = key_log;
        }
        Ok(ServerTls { config: Arc::new(config) })
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }
}

/// The configuration of a server over TCP, for rustls itself: TLS 1.3 or 1.2, the suites and key exchange of `options` in
/// our order and not the client's. Clients that come back resume by tickets, whose keys change every six hours.
///
/// # Errors
/// As [`ServerTls::new`].
pub fn tcp_server(
    identities: impl Into<Identities>,
    options: &TlsOptions,
) -> Result<Arc<ServerConfig>, ConfigError> {
    options.check()?;
    let refused = |error: rustls::Error| ConfigError::Refused(error.to_string());
    let builder = ServerConfig::builder_with_provider(options.tcp_provider());
    let builder = builder.with_protocol_versions(rustls::ALL_VERSIONS).map_err(refused)?;
    let resolver = Arc::new(identities.into());
    let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
    config.alpn_protocols.clone_from(&options.alpn);
    config.ignore_client_order = true;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = Ticketer::new().map_err(refused)?;
    if let Some(key_log) = options.key_log.open()? {
        config.key_log = key_log;
    }
    Ok(Arc::new(config))
}
