//! What a program may set about servers and clients.

use crate::transport_config::TransportConfig;
use crypto::{
    ClientAuth, ClientTls, ConfigError, Ech, Identity, Roots, ServerTls, SessionStore, StrikeRegister,
    TicketKeys, TicketOptions, TlsOptions,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::sync::Arc;

/// The application protocol of configurations that name none.
pub(crate) const DEFAULT_PROTOCOL: &[u8] = b"tercel";

/// Whether data may go with a client's first packets, before the handshake is complete. Source: RFC 9001 §4.6.
///
/// An attacker can send a copy of early data to the server. Ours takes each ticket's early data once; servers that share keys for
/// tickets take it once each. So early data should be what may be done twice. Source: RFC 8446 §8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EarlyData {
    /// None goes, and none is taken.
    #[default]
    Off,
    /// A client may send it by [`Connecting::into_0rtt`](crate::Connecting::into_0rtt); a server takes it, which
    /// [`RecvStream::is_0rtt`](crate::RecvStream::is_0rtt) tells.
    Permitted,
}

fn options(protocols: &[&[u8]]) -> TlsOptions {
    let alpn = protocols.iter().map(|name| name.to_vec()).collect();
    TlsOptions { alpn, ..TlsOptions::default() }
}

/// What an endpoint needs to take connections.
#[derive(Clone)]
pub struct ServerConfig {
    identity: Identity,
    options: TlsOptions,
    tls: ServerTls,
    tickets: Option<Arc<TicketKeys>>,
    early_data: Option<Arc<StrikeRegister>>,
    transport: Arc<TransportConfig>,
}

impl ServerConfig {
    /// A server with one certificate chain, its own certificate first, and the private key.
    ///
    /// # Errors
    /// The chain is empty, or the key is of no known kind or belongs to another certificate.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use rustls_pki_types::{CertificateDer, PrivateKeyDer};
    /// let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    /// let chain = vec![CertificateDer::from(made.cert)];
    /// let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    /// let config = quic::ServerConfig::with_single_cert(chain, key)?.alpn_protocols(&[b"echo"])?;
    /// # drop(config);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_single_cert(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<ServerConfig, ConfigError> {
        let chain = chain.into_iter().map(|certificate| certificate.to_vec()).collect();
        ServerConfig::with_identity(Identity::from_der(chain, key.secret_der().to_vec())?)
    }

    /// A server with one certificate chain and its key.
    ///
    /// # Errors
    /// TLS refuses it.
    pub fn with_identity(identity: Identity) -> Result<ServerConfig, ConfigError> {
        let options = options(&[DEFAULT_PROTOCOL]);
        let tls = ServerTls::new(&identity, &options)?;
        let (tickets, early_data, transport) = (None, None, Arc::default());
        Ok(ServerConfig { identity, options, tls, tickets, early_data, transport })
    }

    /// The application protocols, the preferred one first; each has 1 to 255 bytes. A client that offers none of them is turned
    /// away. Default: `tercel`, which serves programs of one origin. Source: RFC 9001 §8.1.
    ///
    /// # Errors
    /// There is none, or the length of one is wrong.
    pub fn alpn_protocols(self, names: &[&[u8]]) -> Result<ServerConfig, ConfigError> {
        let options = TlsOptions { alpn: options(names).alpn, ..self.options.clone() };
        self.tls_options(&options)
    }

    /// Whether clients are asked for a certificate, and which ones are accepted; [`Connection::peer_identity`] has what they show.
    /// Default: none is asked for. Source: RFC 8446 §4.3.2.
    ///
    /// # Errors
    /// TLS refuses the authorities.
    ///
    /// [`Connection::peer_identity`]: crate::Connection::peer_identity
    pub fn client_auth(self, rule: ClientAuth) -> Result<ServerConfig, ConfigError> {
        let options = TlsOptions { client_auth: rule, ..self.options.clone() };
        self.tls_options(&options)
    }

    /// The same with settings of TLS that programs do not choose: suites, key exchange, key log. Outside semver.
    ///
    /// # Errors
    /// TLS refuses them.
    #[doc(hidden)]
    pub fn tls_options(mut self, options: &TlsOptions) -> Result<ServerConfig, ConfigError> {
        self.tls = ServerTls::new(&self.identity, options)?;
        self.options = options.clone();
        Ok(self)
    }

    /// Issues session tickets, two after each handshake: clients that come back resume, without a certificate. Default: none.
    /// Source: RFC 8446 §2.2.
    pub fn ticket_keys(&mut self, keys: Arc<TicketKeys>) -> &mut ServerConfig {
        self.tickets = Some(keys);
        self
    }

    /// Whether clients that come back with a ticket may send early data. Needs [`ServerConfig::ticket_keys`]. Default: off.
    pub fn early_data(&mut self, early_data: EarlyData) -> &mut ServerConfig {
        self.early_data = match early_data {
            EarlyData::Off => None,
            EarlyData::Permitted => Some(Arc::default()),
        };
        self
    }

    /// Whether early data may come.
    pub(crate) fn takes_early_data(&self) -> bool {
        self.early_data.is_some() && self.tickets.is_some()
    }

    /// How connections behave.
    pub fn transport_config(&mut self, transport: Arc<TransportConfig>) -> &mut ServerConfig {
        self.transport = transport;
        self
    }

    pub(crate) fn to_transport(&self) -> transport::ServerConfig {
        let tls = match &self.tickets {
            Some(keys) => {
                let usual = TicketOptions::new(Arc::clone(keys));
                let options = TicketOptions { early_data: self.early_data.clone(), ..usual };
                self.tls.clone().with_tickets(options)
            }
            None => self.tls.clone(),
        };
        transport::ServerConfig { tls, transport: self.transport.settings() }
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ServerConfig").field("transport", &self.transport).finish_non_exhaustive()
    }
}

/// What an endpoint needs to open connections.
#[derive(Clone)]
pub struct ClientConfig {
    roots: Roots,
    options: TlsOptions,
    tls: ClientTls,
    sessions: Option<Arc<dyn SessionStore>>,
    early_data: EarlyData,
    transport: Arc<TransportConfig>,
}

impl ClientConfig {
    /// A client that trusts `roots`.
    ///
    /// # Errors
    /// There is nothing to trust.
    pub fn with_roots(roots: Roots) -> Result<ClientConfig, ConfigError> {
        let options = options(&[DEFAULT_PROTOCOL]);
        let tls = ClientTls::new(&roots, &options)?;
        let early_data = EarlyData::Off;
        Ok(ClientConfig { roots, options, tls, sessions: None, early_data, transport: Arc::default() })
    }

    /// The application protocols, the preferred one first; each has 1 to 255 bytes. Default: `tercel`.
    /// Source: RFC 9001 §8.1.
    ///
    /// # Errors
    /// There is none, or the length of one is wrong.
    pub fn alpn_protocols(self, names: &[&[u8]]) -> Result<ClientConfig, ConfigError> {
        let options = TlsOptions { alpn: options(names).alpn, ..self.options.clone() };
        self.tls_options(&options)
    }

    /// The certificate and key that are shown to servers which ask for one. Default: none. Source: RFC 8446 §4.4.2.
    ///
    /// # Errors
    /// TLS refuses them.
    pub fn client_identity(self, own: Identity) -> Result<ClientConfig, ConfigError> {
        let options = TlsOptions { client_identity: Some(own), ..self.options.clone() };
        self.tls_options(&options)
    }

    /// Whether the server's name is hidden in the handshake. Configurations are for connections to one name. Default: it is not.
    /// Source: RFC 9849.
    ///
    /// # Errors
    /// TLS refuses it.
    pub fn ech(self, ech: Ech) -> Result<ClientConfig, ConfigError> {
        let options = TlsOptions { ech, ..self.options.clone() };
        self.tls_options(&options)
    }

    /// The same with settings of TLS that programs do not choose: suites, key exchange, key log. Outside semver.
    ///
    /// # Errors
    /// TLS refuses them.
    #[doc(hidden)]
    pub fn tls_options(mut self, options: &TlsOptions) -> Result<ClientConfig, ConfigError> {
        self.tls = ClientTls::new(&self.roots, options)?;
        self.options = options.clone();
        Ok(self)
    }

    /// Keeps session tickets and address tokens of servers, and uses those of earlier connections. Tickets serve this configuration
    /// and its clones only. Default: nothing is kept.
    pub fn session_store(&mut self, sessions: Arc<dyn SessionStore>) -> &mut ClientConfig {
        self.sessions = Some(sessions);
        self
    }

    /// Whether early data goes to servers that permit it. Needs [`ClientConfig::session_store`], and
    /// [`Connecting::into_0rtt`](crate::Connecting::into_0rtt) for each connection. Default: off.
    pub fn early_data(&mut self, early_data: EarlyData) -> &mut ClientConfig {
        self.early_data = early_data;
        self
    }

    /// How connections behave.
    pub fn transport_config(&mut self, transport: Arc<TransportConfig>) -> &mut ClientConfig {
        self.transport = transport;
        self
    }

    /// Whether a connection that begins now may send early data.
    pub(crate) fn offered_early_data(&self, name: &str, port: u16) -> EarlyData {
        if self.early_data == EarlyData::Off {
            return EarlyData::Off;
        }
        let config = self.to_transport();
        let version = config.tls.version_of_tickets(name, port, config.transport.version);
        match config.tls.offers_early_data(name, port, version) {
            true => EarlyData::Permitted,
            false => EarlyData::Off,
        }
    }

    pub(crate) fn to_transport(&self) -> transport::ClientConfig {
        let tls = match &self.sessions {
            Some(sessions) => self.tls.clone().with_sessions(Arc::clone(sessions)),
            None => self.tls.clone(),
        };
        transport::ClientConfig {
            tls: match self.early_data {
                EarlyData::Off => tls,
                EarlyData::Permitted => tls.with_early_data(),
            },
            transport: self.transport.settings(),
            token: Vec::new(),
        }
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientConfig").field("transport", &self.transport).finish_non_exhaustive()
    }
}
