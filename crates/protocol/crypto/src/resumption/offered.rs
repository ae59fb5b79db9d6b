//! The tickets of one connection of a client: rustls asks for one and hands over those that come, and the store gets both with
//! the whole key of the server, where rustls knows the name only.

use super::restore;
use super::sessions::{Form, ServerKey, SessionStore, SessionTicket};
use super::written::{NEW_SESSION_TICKET, WrittenTicket};
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, NamedGroup};
use std::sync::{Arc, Mutex, PoisonError};
use wire::Version;

/// The client that tickets are for.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) verifier: Arc<dyn ServerCertVerifier>,
    /// A digest of the certificates that it shows.
    pub(crate) identity: [u8; 32],
}

/// The part of a store that one connection sees.
pub(crate) struct OfferedTickets {
    store: Arc<dyn SessionStore>,
    server: ServerKey,
    client: Client,
    /// The version in use, if the server has chosen another one.
    version: AtomicU32,
    /// What rustls has made of the message that it reads, until [`OfferedTickets::keep_written`].
    latest: Mutex<Option<Tls13ClientSessionValue>>,
}

impl OfferedTickets {
    pub(crate) fn new(store: Arc<dyn SessionStore>, server: ServerKey, client: Client) -> OfferedTickets {
        let version = AtomicU32::new(server.version.0);
        OfferedTickets { store, server, client, version, latest: Mutex::default() }
    }

    /// Whether the store wants the ticket in this message written down.
    pub(crate) fn writes(&self, message: &[u8]) -> bool {
        message.first() == Some(&NEW_SESSION_TICKET) && self.store.writes_tickets()
    }

    /// Keeps the ticket that rustls has read in `message`, with what it was made of.
    pub(crate) fn keep_written(&self, message: &[u8], secret: &[u8], chain: &[CertificateDer<'static>]) {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(value) = latest else { return };
        let written = WrittenTicket::new(&value, message, secret, chain, self.client.identity);
        let ticket = SessionTicket(Form::Live { value, written: written.map(Box::new) });
        self.store.put_ticket(&self.server(), ticket);
    }

    /// The server has chosen another version: what it issues belongs to that.
    pub(crate) fn set_version(&self, version: Version) {
        self.version.store(version.0, Ordering::Relaxed);
    }

    fn server(&self) -> ServerKey {
        let version = Version(self.version.load(Ordering::Relaxed));
        ServerKey { version, ..self.server.clone() }
    }

    pub(crate) fn keep_token(&self, token: &[u8]) {
        self.store.put_token(&self.server(), token.to_vec());
    }

    pub(crate) fn keep_application(&self, state: &[u8]) {
        self.store.put_application(&self.server(), state.to_vec());
    }

    pub(crate) fn application(&self) -> Option<Vec<u8>> {
        self.store.application(&self.server())
    }
}

impl ClientSessionStore for OfferedTickets {
    fn set_kx_hint(&self, _server_name: ServerName<'static>, _group: NamedGroup) {}

    fn kx_hint(&self, _server_name: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    // QUIC has TLS 1.3 only.
    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        if self.store.writes_tickets() {
            *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        } else {
            self.store.put_ticket(&self.server(), SessionTicket(Form::Live { value, written: None }));
        }
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let Client { config, verifier, identity } = &self.client;
        match self.store.take_ticket(&self.server())?.0 {
            Form::Live { value, .. } => Some(value),
            Form::Written(ticket) if ticket.identity != *identity => None,
            Form::Written(ticket) => restore::session(config, verifier, &self.server.name, &ticket),
        }
    }
}

impl fmt::Debug for OfferedTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfferedTickets").field("server", &self.server).finish_non_exhaustive()
    }
}
