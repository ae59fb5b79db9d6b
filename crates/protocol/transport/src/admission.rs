//! Where endpoint and connection meet: connections begin, their connection IDs are registered, and they are forgotten.

use crate::config::TransportConfig;
use crate::connection::{Connection, ConnectionSetup, FirstInitial, News};
use crate::endpoint::{Endpoint, Incoming};
use base::net::Addresses;
use base::slab::Handle;
use base::time::Instant;
use crypto::{ClientTls, ServerId, ServerTls, TlsError, TlsSession};
use recovery::congestion::Algorithm;
use std::sync::Arc;

/// What a server needs to take connections.
#[derive(Clone)]
pub struct ServerConfig {
    /// Certificates, cipher suites and application protocols.
    pub tls: ServerTls,
    /// How its connections behave.
    pub transport: Arc<TransportConfig>,
}

/// What a client needs to open connections.
#[derive(Clone)]
pub struct ClientConfig {
    /// Whom to trust, cipher suites and application protocols.
    pub tls: ClientTls,
    /// How its connections behave.
    pub transport: Arc<TransportConfig>,
    /// An address token from an earlier connection to the same server. Empty when there is none: then one of the store of sessions
    /// serves, if `tls` has a store.
    pub token: Vec<u8>,
}

impl Endpoint {
    /// Begins the connection that an Initial packet asked for. The train that carried it is still to be given to
    /// `receive`.
    ///
    /// # Errors
    /// TLS does not work as configured.
    pub fn accept(
        &mut self,
        now: Instant,
        handle: Handle,
        incoming: Incoming,
        server: &ServerConfig,
    ) -> Result<Connection, TlsError> {
        let new_token = Some(self.new_token(now, incoming.addresses));
        let first = FirstInitial {
            dcid: incoming.dcid,
            scid: incoming.scid,
            original_dcid: incoming.original_dcid,
            retry_scid: incoming.retry_scid,
            address: incoming.address,
            new_token,
        };
        let version = incoming.version;
        let beginning = self.beginning(now, &server.transport, incoming.addresses, version);
        let is_undecided = server.transport.preferred_version.is_some_and(|preferred| preferred != version);
        let session = if is_undecided { TlsSession::undecided_server } else { TlsSession::server };
        let mut connection = Connection::server(beginning, first, |parameters, terms| {
            session(&server.tls, version, parameters, terms)
        })?;
        for (ecn, datagram) in self.take_held(now, &incoming) {
            connection.keep_early(now, ecn, &datagram);
        }
        self.resume(now, &server.transport, &mut connection);
        self.admit(now, handle, &incoming);
        self.update(handle, &mut connection);
        Ok(connection)
    }

    /// Begins a connection to `addresses.peer`, whose certificate must be for `server_name`.
    ///
    /// # Errors
    /// The name is no DNS name and no IP address, or TLS does not work as configured.
    pub fn connect(
        &mut self,
        now: Instant,
        handle: Handle,
        client: &ClientConfig,
        (server_name, addresses): (&str, Addresses),
    ) -> Result<Connection, TlsError> {
        let (tls, name, port) = (client.tls.clone(), server_name.to_owned(), addresses.peer.port());
        let version = tls.version_of_tickets(server_name, port, client.transport.version);
        let beginning = self.beginning(now, &client.transport, addresses, version);
        let token = if client.token.is_empty() {
            tls.take_token(server_name, port, version)
        } else {
            client.token.clone()
        };
        let mut connection = Connection::client(beginning, token, move |version, parameters| {
            TlsSession::client(&tls, version, &ServerId { name: &name, port }, parameters)
        })?;
        self.resume(now, &client.transport, &mut connection);
        self.update(handle, &mut connection);
        Ok(connection)
    }

    /// What an earlier connection has found out about the path.
    fn resume(&mut self, now: Instant, config: &TransportConfig, connection: &mut Connection) {
        if config.remembers_paths()
            && config.congestion != Algorithm::Bbr
            && let Some(saved) = self.recall(now, &connection.addresses())
        {
            connection.resume_from(saved);
        }
    }

    fn beginning(
        &mut self,
        now: Instant,
        config: &Arc<TransportConfig>,
        addresses: Addresses,
        version: wire::version::Version,
    ) -> ConnectionSetup {
        let local_cids = self.local_cids();
        ConnectionSetup {
            now,
            config: Arc::clone(config),
            addresses,
            version,
            local_cids,
            rng: self.fork_rng(),
        }
    }

    /// Learns which connection IDs a connection has added and dropped, by which tokens its peer would end it, and that its
    /// handshake is complete; and, when it is over, what is to be remembered of its path. Makes a token for a client that has moved.
    #[inline]
    pub fn update(&mut self, handle: Handle, connection: &mut Connection) {
        while let Some(news) = connection.take_news() {
            match news {
                News::LocalCids { cids, is_connected } => {
                    cids.take_changes(|change| self.register(handle, change));
                    if is_connected {
                        self.on_established(handle, connection.first_version(), connection.version());
                    }
                }
                News::TokenWanted { proved_at, addresses, control_frames } => {
                    control_frames.announce_token(self.new_token(proved_at, addresses));
                }
                News::Closed(summary) => self.learn(&summary),
                News::ResetTokens(tokens) => self.register_resets(handle, tokens),
                News::LaneResetTokens(tokens) => self.register_lane_resets(handle, tokens),
            }
        }
    }
}
