//! What a client keeps of servers between connections: tickets, address tokens, what the application remembers.
//!
//! Tickets hold the server's transport parameters, as rustls keeps them. Tickets and tokens come out once, so that two
//! connections cannot be linked by them (RFC 8446 appendix C.4, RFC 9000 §8.1.3). Both belong to one QUIC version (RFC 9369 §5).

use super::written::WrittenTicket;
use core::fmt;
use rustls::client::Tls13ClientSessionValue;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::Version;

/// A server, as a client knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerKey {
    /// The name or address that its certificate is for, in lower case.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// The version of QUIC.
    pub version: Version,
    /// The application protocols that were offered, each behind its length.
    pub protocols: Vec<u8>,
}

/// A ticket, with the secret of the session and the server's transport parameters. It must stay secret.
pub struct SessionTicket(pub(super) Form);

pub(super) enum Form {
    /// As rustls has it, and what it was made of if the store writes tickets.
    Live { value: Tls13ClientSessionValue, written: Option<Box<WrittenTicket>> },
    /// As it was written down.
    Written(Box<WrittenTicket>),
}

impl SessionTicket {
    /// Whether the server takes early data with it.
    pub fn permits_early_data(&self) -> bool {
        match &self.0 {
            Form::Live { value, .. } => value.max_early_data_size() > 0,
            Form::Written(written) => written.permits_early_data,
        }
    }

    /// The ticket in bytes, with the secret of its session; they must stay as secret. `None` unless the store that got it says that it
    /// [`writes_tickets`](SessionStore::writes_tickets).
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        self.written().map(WrittenTicket::to_bytes)
    }

    /// A ticket of [`SessionTicket::to_bytes`]. It is good for a client that still trusts the server's certificates and shows the same
    /// as then, until its lifetime is over; for others it is none. `None` for bytes that are no ticket.
    pub fn from_bytes(bytes: &[u8]) -> Option<SessionTicket> {
        WrittenTicket::from_bytes(bytes).map(SessionTicket::from)
    }

    pub(super) fn written(&self) -> Option<&WrittenTicket> {
        match &self.0 {
            Form::Live { written, .. } => written.as_deref(),
            Form::Written(written) => Some(written),
        }
    }
}

impl From<WrittenTicket> for SessionTicket {
    fn from(written: WrittenTicket) -> SessionTicket {
        SessionTicket(Form::Written(Box::new(written)))
    }
}

impl fmt::Debug for SessionTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionTicket")
    }
}

/// A client's memory of servers. What it keeps must be bounded: servers decide how many tickets they send.
pub trait SessionStore: fmt::Debug + Send + Sync {
    /// Whether tickets are kept in bytes ([`SessionTicket::to_bytes`]), which costs a client a copy of the server's certificates for each.
    /// Default: not.
    fn writes_tickets(&self) -> bool {
        false
    }

    /// Keeps a ticket.
    fn put_ticket(&self, server: &ServerKey, ticket: SessionTicket);

    /// A ticket of this server, the latest first. It must never come out again. Source: RFC 8446 appendix C.4.
    fn take_ticket(&self, server: &ServerKey) -> Option<SessionTicket>;

    /// Whether there is a ticket of this server.
    fn has_ticket(&self, server: &ServerKey) -> bool;

    /// Whether the next ticket of this server would permit early data.
    fn has_early_ticket(&self, server: &ServerKey) -> bool;

    /// Keeps an address token. Source: RFC 9000 §8.1.3.
    fn put_token(&self, server: &ServerKey, token: Vec<u8>);

    /// A token of this server, the latest first. It must never come out again.
    fn take_token(&self, server: &ServerKey) -> Option<Vec<u8>>;

    /// Keeps what the application must know of this server before it answers, such as HTTP/3's SETTINGS. Source: RFC 9114 §7.2.4.2.
    fn put_application(&self, server: &ServerKey, state: Vec<u8>);

    /// What was kept last by [`SessionStore::put_application`].
    fn application(&self, server: &ServerKey) -> Option<Vec<u8>>;
}

/// Tickets of one server that are kept.
const MAX_TICKETS: usize = 4;
/// Tokens of one server that are kept.
const MAX_TOKENS: usize = 2;
/// The longest token that is kept, and the longest state of the application, in bytes.
pub(super) const MAX_LEN: usize = 1_024;

/// A store in memory, for the servers that were met last.
pub struct MemorySessions {
    max_servers: usize,
    known: Mutex<Known>,
}

/// The servers that were met last.
#[derive(Default)]
pub(super) struct Known {
    servers: HashMap<ServerKey, Server>,
    /// Counts uses.
    clock: u64,
}

/// What is known of a server.
#[derive(Default)]
pub(super) struct Server {
    pub(super) tickets: VecDeque<SessionTicket>,
    pub(super) tokens: VecDeque<Vec<u8>>,
    pub(super) application: Option<Vec<u8>>,
    used_at: u64,
}

impl Known {
    /// A server, which is new if need be; then the one that was not used for longest gives way if there are `max_servers`.
    pub(super) fn server(&mut self, key: &ServerKey, max_servers: usize) -> &mut Server {
        self.clock += 1;
        if self.servers.len() >= max_servers && !self.servers.contains_key(key) {
            let oldest = self.servers.iter().min_by_key(|(_, server)| server.used_at);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.servers.remove(&oldest);
            }
        }
        let server = self.servers.entry(key.clone()).or_default();
        server.used_at = self.clock;
        server
    }

    pub(super) fn find(&mut self, key: &ServerKey) -> Option<&mut Server> {
        self.servers.get_mut(key)
    }

    /// All servers, the one that was not used for longest first.
    pub(super) fn by_use(&self) -> Vec<(&ServerKey, &Server)> {
        let mut servers: Vec<_> = self.servers.iter().collect();
        servers.sort_by_key(|(_, server)| server.used_at);
        servers
    }

    pub(super) fn len(&self) -> usize {
        self.servers.len()
    }
}

impl Server {
    pub(super) fn put_ticket(&mut self, ticket: SessionTicket) {
        push_bounded(&mut self.tickets, ticket, MAX_TICKETS);
    }

    pub(super) fn put_token(&mut self, token: Vec<u8>) {
        push_bounded(&mut self.tokens, token, MAX_TOKENS);
    }

    pub(super) fn has_early_ticket(&self) -> bool {
        self.tickets.back().is_some_and(SessionTicket::permits_early_data)
    }
}

impl MemorySessions {
    /// A store for at most `max_servers` servers; the one that was not used for longest gives way.
    pub fn new(max_servers: usize) -> MemorySessions {
        MemorySessions { max_servers: max_servers.max(1), known: Mutex::default() }
    }

    /// Servers that are known.
    pub fn servers(&self) -> usize {
        self.lock().len()
    }

    /// Tickets that are kept of all servers.
    pub fn tickets(&self) -> usize {
        self.lock().servers.values().map(|server| server.tickets.len()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, key: &ServerKey, look: impl FnOnce(&mut Server) -> Option<T>) -> Option<T> {
        self.lock().find(key).and_then(look)
    }
}

impl Default for MemorySessions {
    /// For 256 servers.
    fn default() -> MemorySessions {
        MemorySessions::new(256)
    }
}

impl SessionStore for MemorySessions {
    fn put_ticket(&self, server: &ServerKey, ticket: SessionTicket) {
        self.lock().server(server, self.max_servers).put_ticket(ticket);
    }

    fn take_ticket(&self, server: &ServerKey) -> Option<SessionTicket> {
        self.with(server, |server| server.tickets.pop_back())
    }

    fn has_ticket(&self, server: &ServerKey) -> bool {
        self.with(server, |server| server.tickets.back().map(|_| ())).is_some()
    }

    fn has_early_ticket(&self, server: &ServerKey) -> bool {
        self.with(server, |server| Some(server.has_early_ticket())) == Some(true)
    }

    fn put_token(&self, server: &ServerKey, token: Vec<u8>) {
        if token.len() <= MAX_LEN {
            self.lock().server(server, self.max_servers).put_token(token);
        }
    }

    fn take_token(&self, server: &ServerKey) -> Option<Vec<u8>> {
        self.with(server, |server| server.tokens.pop_back())
    }

    fn put_application(&self, server: &ServerKey, state: Vec<u8>) {
        if state.len() <= MAX_LEN {
            self.lock().server(server, self.max_servers).application = Some(state);
        }
    }

    fn application(&self, server: &ServerKey) -> Option<Vec<u8>> {
        self.with(server, |server| server.application.clone())
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    queue.push_back(item);
    if queue.len() > most {
        queue.pop_front();
    }
}

impl fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessions").field("servers", &self.servers()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(port: u16) -> ServerKey {
        ServerKey { name: "localhost".into(), port, version: Version::V1, protocols: b"\x02h3".to_vec() }
    }

    /// Deleted, a client that meets many servers, or one that sends many tokens, grows without end.
    #[test]
    fn what_is_kept_is_bounded_and_the_server_not_used_for_longest_gives_way() {
        let store = MemorySessions::new(3);
        for port in [1, 2, 3, 1, 4] {
            store.put_token(&server(port), vec![port as u8]);
        }
        assert_eq!(store.servers(), 3);
        assert_eq!(store.take_token(&server(2)), None, "it gave way");
        for byte in 10..20 {
            store.put_token(&server(3), vec![byte]);
        }
        let tokens: Vec<_> = std::iter::from_fn(|| store.take_token(&server(3))).collect();
        assert_eq!(tokens, [[19], [18]], "the latest first, each once");
        store.put_token(&server(3), vec![0; MAX_LEN + 1]);
        assert_eq!(store.take_token(&server(3)), None, "longer than any server needs");
    }

    #[test]
    fn a_server_is_its_name_port_version_and_protocols() {
        let store = MemorySessions::default();
        store.put_application(&server(1), vec![7]);
        assert_eq!(store.application(&server(1)), Some(vec![7]));
        for other in [
            ServerKey { port: 2, ..server(1) },
            ServerKey { name: "elsewhere".into(), ..server(1) },
            ServerKey { version: Version::V2, ..server(1) },
            ServerKey { protocols: b"\x02h2".to_vec(), ..server(1) },
        ] {
            assert_eq!(store.application(&other), None, "{other:?}");
        }
    }
}
