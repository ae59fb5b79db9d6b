//! How the QUIC connections of a server behave.

use crate::bind_error::BindError;
use crate::listen::Listen;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use traces::Qlog;
use transport::{RetryPolicy, TransportConfig};

/// How QUIC connections behave.
#[derive(Debug, Default)]
pub(crate) struct QuicSettings {
    pub(crate) transport: TransportConfig,
    /// Traces of connections.
    pub(crate) qlog: Option<Qlog>,
    /// When clients must prove their address by a Retry.
    pub(crate) retry: Option<RetryPolicy>,
    /// Where clients are asked to go on after the handshake.
    pub(crate) preferred: Vec<IpAddr>,
}

impl QuicSettings {
    /// How connections behave at a server that listens at `addresses`.
    ///
    /// # Errors
    /// A setting cannot work.
    pub(crate) fn build(
        &self,
        addresses: &[SocketAddr],
        handshake_timeout: Option<Duration>,
    ) -> Result<TransportConfig, BindError> {
        let mut settings = self.transport.clone();
        if let Some(qlog) = &self.qlog {
            settings.qlog = Some(qlog.tracer());
        }
        for &ip in &self.preferred {
            let reaches =
                |at: &&SocketAddr| Listen::At(**at).includes(Listen::At(SocketAddr::new(ip, at.port())));
            let Some(address) = addresses.iter().find(reaches) else {
                let text = format!(
                    "clients do not reach the server at its preferred address {ip}: listen there too, or on every address, by a \
                     port alone"
                );
                return Err(BindError::Setting(text));
            };
            let preferred = SocketAddr::new(ip, address.port());
            settings.preferred_address = settings.preferred_address.with(preferred);
        }
        let mut settings = settings.build().map_err(|error| BindError::Setting(error.to_string()))?;
        if let Some(at_most) = handshake_timeout {
            settings.handshake_timeout = at_most.into();
        }
        Ok(settings)
    }
}
