//! The tickets of one connection of a client: rustls asks for one and hands over those that come, and the store gets both with
//! the whole key of the server, where rustls knows the name only.

use super::sessions::{ServerKey, SessionStore, SessionTicket};
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use std::sync::Arc;
use wire::Version;

/// The part of a store that one connection sees.
pub(crate) struct OfferedTickets {
    store: Arc<dyn SessionStore>,
    server: ServerKey,
    /// The version in use, if the server has chosen another one.
    version: AtomicU32,
}

impl OfferedTickets {
    pub(crate) fn new(store: Arc<dyn SessionStore>, server: ServerKey) -> OfferedTickets {
        let version = AtomicU32::new(server.version.0);
        OfferedTickets { store, server, version }
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
        self.store.put_ticket(&self.server(), SessionTicket(value));
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.store.take_ticket(&self.server()).map(|ticket| ticket.0)
    }
}

impl fmt::Debug for OfferedTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfferedTickets").field("server", &self.server).finish_non_exhaustive()
    }
}
