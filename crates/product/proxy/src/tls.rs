//! How upstreams with TLS are known.

use crate::address::{Address, Scheme};
use crate::quic::transport;
use crypto::{ClientTls, ConfigError, MemorySessions, Roots, TlsOptions};
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use std::sync::Arc;
use transport::ClientConfig;

/// How upstreams with TLS are known.
#[derive(Clone)]
pub struct Tls {
    /// It offers HTTP/2 and 1.1. `None` where no upstream needs it.
    pub(crate) over_tcp: Option<Arc<rustls::ClientConfig>>,
    /// `None` where no upstream needs it.
    pub(crate) over_quic: Option<ClientConfig>,
    /// The name in certificates; `None`: the host of the address.
    name: Option<ServerName<'static>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tls {
    /// For those of `upstreams` that have certificates: they are of `roots`, and for `name`, or else for the host of each. `None` if there
    /// are none.
    ///
    /// # Errors
    /// There is nothing to trust.
    pub fn new(
        upstreams: &[Address],
        roots: &Roots,
        name: Option<ServerName<'static>>,
    ) -> Result<Option<Tls>, ConfigError> {
        let has = |scheme| upstreams.iter().any(|address| address.scheme() == scheme);
        let offering = |protocols: &[&[u8]]| TlsOptions {
            alpn: protocols.iter().map(|protocol| protocol.to_vec()).collect(),
            ..TlsOptions::default()
        };
        let over_tcp = has(Scheme::Https)
            .then(|| crypto::tcp_client(roots, &offering(&[b"h2", b"http/1.1"])))
            .transpose()?;
        let over_quic = has(Scheme::H3).then(|| ClientTls::new(roots, &offering(&[b"h3"]))).transpose()?;
        let over_quic = over_quic.map(|tls| ClientConfig {
            tls: tls.with_sessions(Arc::new(MemorySessions::default())),
            transport: Arc::new(transport()),
            token: Vec::new(),
        });
        let is_needed = over_tcp.is_some() || over_quic.is_some();
        Ok(is_needed.then_some(Tls { over_tcp, over_quic, name }))
    }

    /// The name that the certificate of an upstream at `host` is for.
    ///
    /// # Errors
    /// The host is no name that a certificate can have.
    pub(crate) fn name_of(&self, host: &str) -> Result<ServerName<'static>, InvalidDnsNameError> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => ServerName::try_from(host.to_owned()),
        }
    }
}
