//! A server's TLS configuration.

use super::error::ConfigError;
use super::identity::Identity;
use super::options::TlsOptions;
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use rustls::{ServerConfig, version::TLS13};
use std::sync::Arc;

/// A server's TLS configuration; clones share it.
#[derive(Clone, Debug)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// The configuration of a server with one certificate.
    ///
    /// # Errors
    /// If the options cannot work, or the key log cannot be opened.
    pub fn new(identity: &Identity, options: &TlsOptions) -> Result<ServerTls, ConfigError> {
        options.check()?;
        let builder = ServerConfig::builder_with_provider(options.provider())
            //= rfc9001/4.2#2
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| ConfigError::Refused(error.to_string()))?;
        let resolver = Arc::new(SingleCertAndKey::from(identity.certified()));
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
