//! The TLS handshake of one connection: CRYPTO bytes in, CRYPTO bytes and keys out. RFC 9001 §4.
//!
//! Bytes are cut into handshake messages here, and rustls sees whole messages only. That bounds what a peer can make us
//! hold (one message, as far as it has arrived), gives one place where each message is checked against the level it came
//! in, and spares rustls from joining a message that arrives in a thousand pieces.

use crate::config::{ClientTls, ServerTls, SharedIdentities};
use crate::fault;
use crate::hello;
use crate::key_capture::{suite_of, take_secret, ticket_secret};
use crate::keys::{DirectionalKeys, Keys, OneRttSecrets};
use crate::level::Level;
use crate::message::message_len;
use crate::resumption::{EarlyTerms, IssuedTickets, OfferedTickets};
use crate::suite::Suite;
use crate::tls_error::{TlsError, alert};
use crate::undecided::Undecided;
use crate::work::{HandshakeOutcome, HandshakeWork};
use core::fmt;
use rustls::HandshakeKind;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic::{ClientConnection, Connection, ServerConnection};
use std::collections::VecDeque;
use std::sync::Arc;
use wire::{Side, Version};

/// Keys that the handshake brought. What TLS writes from then on belongs to their level.
#[derive(Debug)]
pub enum KeyChange {
    /// Keys of Handshake packets.
    Handshake(Box<Keys>),
    /// What keys of 1-RTT packets are made of, and those of the next generations.
    OneRtt(Box<OneRttSecrets>),
}

/// What TLS wrote at one level, and the keys of the next.
struct Flight {
    bytes: Vec<u8>,
    change: Option<rustls::quic::KeyChange>,
}

/// The server that a client connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerId<'a> {
    /// A host name, or an IP address without brackets: what its certificate must be for.
    pub name: &'a str,
    /// Its port: tickets and tokens of one port are not for another.
    pub port: u16,
}

/// What became of early data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyStatus {
    /// There is none.
    #[default]
    None,
    /// A client may send it and does not know yet whether the server takes it.
    Offered,
    /// The server takes it.
    Accepted,
    /// The server does not take it.
    Rejected,
}

/// What an end keeps between connections.
enum Tickets {
    Off,
    Issued(Arc<IssuedTickets>),
    Offered(Arc<OfferedTickets>),
}

/// One connection's TLS.
pub struct TlsSession {
    /// `None` while a step of the handshake is out.
    tls: Option<Box<Connection>>,
    side: Side,
    tickets: Tickets,
    early: EarlyStatus,
    /// The peer's transport parameters of this connection are there; before, a client may have those that it remembers.
    has_parameters: bool,
    version: Version,
    /// The version of 0-RTT packets: the one that the connection began with.
    early_version: Version,
    /// A server that may yet move to another version.
    undecided: Option<Box<Undecided>>,
    /// On a server that gives slow steps away and has slow keys: its certificates.
    slow_keys: Option<SharedIdentities>,
    /// A step that is to be given away.
    work: Option<Box<HandshakeWork>>,
    /// The level that bytes come from now.
    level: Level,
    /// The beginning of a message that has not arrived whole.
    partial: Vec<u8>,
    /// What TLS wrote and `write` has not handed out.
    flights: VecDeque<Flight>,
    /// Set once the handshake failed: every later call says the same.
    failed: Option<Box<TlsError>>,
}

impl TlsSession {
    /// A client's session with `server`. `params` are the encoded transport parameters.
    ///
    /// # Errors
    /// If the name is neither a host name nor an address, or rustls refuses.
    pub fn client(
        config: &ClientTls,
        version: Version,
        server: &ServerId<'_>,
        params: &[u8],
    ) -> Result<TlsSession, TlsError> {
        let name = ServerName::try_from(server.name.to_owned()).map_err(|_| {
            let reason = format!("{:?} is neither a host name nor an IP address", server.name);
            TlsError::new(alert::UNRECOGNISED_NAME, reason)
        })?;
        let (config, offered) = config.connection(server.name, server.port, version);
        // Version 1 whatever the version: see the carrier.
        let tls = ClientConnection::new(config, rustls::quic::Version::V1, name, params.to_vec())
            .map_err(|error| TlsError::new(alert::INTERNAL_ERROR, error.to_string()))?;
        let tickets = offered.map_or(Tickets::Off, Tickets::Offered);
        let early = if tls.zero_rtt_keys().is_some() { EarlyStatus::Offered } else { EarlyStatus::None };
        Ok(TlsSession { tickets, early, ..TlsSession::new(tls.into(), version) })
    }

    /// A server's session. `params` are the encoded transport parameters, `terms` what early data is held to.
    ///
    /// # Errors
    /// If rustls refuses.
    pub fn server(
        config: &ServerTls,
        version: Version,
        params: &[u8],
        terms: EarlyTerms,
    ) -> Result<TlsSession, TlsError> {
        TlsSession::begin_server(config, version, params, terms).map(|(session, _)| session)
    }

    /// The same for a server that chooses the version by the client's transport parameters: once
    /// [`TlsSession::offered_parameters`] are there, it calls [`TlsSession::settle_version`]. Errors are the same.
    pub fn undecided_server(
        config: &ServerTls,
        version: Version,
        params: &[u8],
        terms: EarlyTerms,
    ) -> Result<TlsSession, TlsError> {
        let (session, config) = TlsSession::begin_server(config, version, params, terms)?;
        Ok(TlsSession { undecided: Some(Box::new(Undecided::new(config))), ..session })
    }

    /// A server's session, and the configuration that rustls has for it.
    fn begin_server(
        config: &ServerTls,
        version: Version,
        params: &[u8],
        terms: EarlyTerms,
    ) -> Result<(TlsSession, Arc<rustls::ServerConfig>), TlsError> {
        let (rustls_config, issued) = config.connection(version, terms);
        let tickets = issued.map_or(Tickets::Off, Tickets::Issued);
        let session = TlsSession::new(server_connection(Arc::clone(&rustls_config), params)?, version);
        Ok((TlsSession { tickets, slow_keys: config.slow_keys(), ..session }, rustls_config))
    }

    fn new(tls: Connection, version: Version) -> TlsSession {
        let side = match &tls {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        };
        TlsSession {
            tls: Some(Box::new(tls)),
            side,
            tickets: Tickets::Off,
            early: EarlyStatus::None,
            has_parameters: false,
            version,
            early_version: version,
            undecided: None,
            slow_keys: None,
            work: None,
            level: Level::Initial,
            partial: Vec::new(),
            flights: VecDeque::new(),
            failed: None,
        }
    }

    /// The connection settled on another version, before any key came out. RFC 9369 §4.1.
    pub fn set_version(&mut self, version: Version) {
        self.version = version;
        match &self.tickets {
            Tickets::Offered(offered) => offered.set_version(version),
            Tickets::Issued(issued) => issued.set_version(version),
            Tickets::Off => {}
        }
    }

    /// On an undecided server whose client's ClientHello has arrived whole, the transport parameters in it, which are not authentic
    /// yet; empty if it has none.
    pub fn offered_parameters(&self) -> Option<&[u8]> {
        self.undecided.as_ref()?.parameters()
    }

    /// An undecided server goes on: in the version that the client has begun with, or in another one with transport parameters that
    /// say so. Source: RFC 9368 §2.3.
    ///
    /// # Errors
    /// As [`TlsSession::read`]; and if rustls refuses.
    pub fn settle_version(&mut self, change: Option<(Version, &[u8])>) -> Result<(), TlsError> {
        let Some(undecided) = self.undecided.take() else { return Ok(()) };
        let Undecided { config, hello } = *undecided;
        if let Some((version, params)) = change {
            self.tls = Some(Box::new(server_connection(config, params)?));
            self.set_version(version);
        }
        self.read(Level::Initial, &hello.unwrap_or_default())
    }

    /// Takes bytes of CRYPTO frames, in order and each once, that came in packets of `level`.
    ///
    /// # Errors
    /// If the peer breaks the protocol or does not satisfy us; the connection must close with the error's code.
    pub fn read(&mut self, level: Level, bytes: &[u8]) -> Result<(), TlsError> {
        if let Some(error) = &self.failed {
            return Err((**error).clone());
        }
        let outcome = self.on_bytes(level, bytes);
        self.note_failure(outcome)
    }

    fn note_failure(&mut self, outcome: Result<(), TlsError>) -> Result<(), TlsError> {
        if let Err(error) = &outcome {
            self.failed = Some(Box::new(error.clone()));
            self.partial = Vec::new();
        }
        outcome
    }

    /// The step that this server's handshake waits for, if it is one that would take long; once. Any thread may run it, and
    /// [`TlsSession::finish`] takes the outcome. Only where the configuration says so: [`ServerTls::with_slow_steps_apart`].
    pub fn take_work(&mut self) -> Option<HandshakeWork> {
        self.work.take().map(|work| *work)
    }

    /// Whether there is something for [`TlsSession::take_work`].
    #[inline]
    pub fn has_work(&self) -> bool {
        self.work.is_some()
    }

    /// Whether the handshake waits for a step that was given away, or is to be. Until it is back the session knows nothing and says
    /// nothing.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.tls.is_none()
    }

    /// Goes on after a step that was given away.
    ///
    /// # Errors
    /// As [`TlsSession::read`].
    pub fn finish(&mut self, HandshakeOutcome { work, outcome }: HandshakeOutcome) -> Result<(), TlsError> {
        let HandshakeWork { tls, message, permits_early_data } = work;
        self.tls = Some(tls);
        if let Some(error) = &self.failed {
            return Err((**error).clone());
        }
        let outcome = self.on_read(&message, permits_early_data, outcome);
        self.note_failure(outcome)
    }

    fn on_bytes(&mut self, level: Level, bytes: &[u8]) -> Result<(), TlsError> {
        if level != self.level {
            // RFC 9001 §4.1.3: a message lies within one level, and levels only go up.
            //= rfc9001/4.1.3#1
            if !self.partial.is_empty() {
                return Err(TlsError::violation("a handshake message reaches across encryption levels"));
            }
            //= rfc9001/4.1.3#2
            if level < self.level {
                return Err(TlsError::violation("handshake data from an encryption level that is done with"));
            }
            self.level = level;
        }
        let mut bytes = bytes;
        while !bytes.is_empty() {
            if self.partial.is_empty()
                && let Some(len) = message_len(level, bytes)?
                && let Some((message, rest)) = bytes.split_at_checked(len)
            {
                self.on_message(message)?;
                bytes = rest;
                continue;
            }
            bytes = self.on_piece(level, bytes)?;
        }
        Ok(())
    }

    /// Adds to the message that is incomplete; returns what lies behind it.
    fn on_piece<'a>(&mut self, level: Level, bytes: &'a [u8]) -> Result<&'a [u8], TlsError> {
        let wanted = message_len(level, &self.partial)?.unwrap_or(4);
        let (piece, rest) = bytes.split_at(bytes.len().min(wanted.saturating_sub(self.partial.len())));
        self.partial.extend_from_slice(piece);
        // Asked again, because the piece may have completed the message's header: its type must be checked at once.
        if message_len(level, &self.partial)? == Some(self.partial.len()) {
            let message = core::mem::take(&mut self.partial);
            self.on_message(&message)?;
        }
        Ok(rest)
    }

    fn on_message(&mut self, message: &[u8]) -> Result<(), TlsError> {
        // rustls takes the code point of the drafts for the real one.
        //= rfc9001/8.2#1
        if !hello::may_have_parameters(message) {
            return Err(TlsError::new(
                alert::MISSING_EXTENSION,
                "the peer sends no QUIC transport parameters",
            ));
        }
        if let Some(undecided) = &mut self.undecided {
            return undecided.keep(message).ok_or_else(unanswered);
        }
        let is_slow = self.level == Level::Initial
            && self.slow_keys.as_ref().is_some_and(|identities| identities.sign_slowly(message));
        let permits_early_data = self.judge_early_data(message);
        if is_slow {
            let Some(tls) = self.tls.take() else { return Err(unanswered()) };
            let message = message.to_vec();
            self.work = Some(Box::new(HandshakeWork { tls, message, permits_early_data }));
            return Ok(());
        }
        let Some(tls) = &mut self.tls else { return Err(unanswered()) };
        let outcome = read_message(tls, &self.tickets, message);
        self.on_read(message, permits_early_data, outcome)
    }

    /// rustls has read a message.
    fn on_read(
        &mut self,
        message: &[u8],
        permits_early_data: Option<bool>,
        outcome: Result<(), rustls::Error>,
    ) -> Result<(), TlsError> {
        outcome.map_err(|error| {
            let alert = self.tls().and_then(|tls| tls.alert()).map_or(alert::INTERNAL_ERROR, u8::from);
            TlsError::new(alert, fault::in_words(&error, self.side))
        })?;
        self.note_outcome(message, permits_early_data);
        self.collect();
        Ok(())
    }

    #[inline]
    fn tls(&self) -> Option<&Connection> {
        self.tls.as_deref()
    }

    /// On a server, whether the early data that a ClientHello announces may be taken; `None` where none is announced.
    fn judge_early_data(&mut self, message: &[u8]) -> Option<bool> {
        let (Tickets::Issued(issued), Some(Connection::Server(tls))) =
            (&self.tickets, self.tls.as_deref_mut())
        else {
            return None;
        };
        let permits = issued.judge_early_data(message).filter(|_| tls.is_handshaking())?;
        if !permits {
            tls.reject_early_data();
        }
        Some(permits)
    }

    /// What a message that rustls has taken has settled.
    fn note_outcome(&mut self, message: &[u8], permits: Option<bool>) {
        match self.tls.as_deref() {
            None => {}
            Some(Connection::Server(tls)) => {
                self.has_parameters = true;
                if permits.is_some() {
                    let is_taken = permits == Some(true) && tls.zero_rtt_keys().is_some();
                    self.early = if is_taken { EarlyStatus::Accepted } else { EarlyStatus::Rejected };
                }
            }
            Some(Connection::Client(tls)) => {
                let has_parameters = hello::is_encrypted_extensions(message);
                self.has_parameters |= has_parameters;
                if self.early == EarlyStatus::Offered {
                    if has_parameters && tls.is_early_data_accepted() {
                        self.early = EarlyStatus::Accepted;
                    } else if has_parameters || hello::is_retry_request(message) {
                        // RFC 9001 §4.6.2; RFC 8446 §4.2.10: no early data goes with a second ClientHello.
                        self.early = EarlyStatus::Rejected;
                    }
                }
            }
        }
    }

    /// Fetches what rustls has to say. After every message, because rustls counts the first bytes that it has not handed out
    /// to the level below the new keys, even if they came after them.
    fn collect(&mut self) {
        let Some(tls) = &mut self.tls else { return };
        loop {
            let mut bytes = Vec::new();
            let change = tls.write_hs(&mut bytes);
            if let Tickets::Issued(issued) = &self.tickets
                && !bytes.is_empty()
            {
                issued.rewrite(&mut bytes);
            }
            let last = change.is_none();
            if !bytes.is_empty() || !last {
                self.flights.push_back(Flight { bytes, change });
            }
            if last {
                return;
            }
        }
    }

    /// Lets TLS write: appends handshake bytes, which belong to the level whose keys came last, and returns the keys that
    /// come next. To be called until it returns `None`, after creation and after each `read`.
    pub fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        if self.flights.is_empty() {
            self.collect();
        }
        while let Some(flight) = self.flights.pop_front() {
            out.extend_from_slice(&flight.bytes);
            if let Some(change) = flight.change {
                return self.ours(&change);
            }
        }
        // TLS has nothing more to say for a long time, mostly never.
        self.flights = VecDeque::new();
        None
    }

    /// The keys of rustls as ours. `None` never happens: the suite is settled when the first keys come.
    fn ours(&self, change: &rustls::quic::KeyChange) -> Option<KeyChange> {
        let suite = self.suite()?;
        let (rustls::quic::KeyChange::Handshake { keys } | rustls::quic::KeyChange::OneRtt { keys, .. }) =
            change;
        let (local, peer) = (take_secret(suite, &keys.local), take_secret(suite, &keys.remote));
        Some(match change {
            rustls::quic::KeyChange::Handshake { .. } => {
                KeyChange::Handshake(Box::new(Keys::new(self.version, &local, &peer)))
            }
            rustls::quic::KeyChange::OneRtt { .. } => {
                KeyChange::OneRtt(Box::new(OneRttSecrets::new(self.version, local, peer)))
            }
        })
    }

    /// Whether the handshake is not complete yet. RFC 9001 §4.1.1.
    pub fn is_handshaking(&self) -> bool {
        self.tls().is_none_or(|tls| tls.is_handshaking())
    }

    /// The peer's transport parameters, encoded; authentic only once the handshake is complete.
    pub fn peer_parameters(&self) -> Option<&[u8]> {
        self.tls()?.quic_transport_parameters().filter(|_| self.has_parameters)
    }

    /// On a client that resumes, the transport parameters of the server that came with the ticket, encoded; until the server has
    /// sent those of this connection. RFC 9000 §7.4.1.
    pub fn remembered_parameters(&self) -> Option<&[u8]> {
        self.tls()?.quic_transport_parameters().filter(|_| !self.has_parameters)
    }

    /// What became of early data so far.
    pub fn early_status(&self) -> EarlyStatus {
        self.early
    }

    /// On a server, whether a ClientHello may still come that announces early data which would be taken.
    pub fn awaits_early_data(&self) -> bool {
        match &self.tickets {
            Tickets::Issued(issued) => !self.has_parameters && issued.takes_early_data(),
            Tickets::Off | Tickets::Offered(_) => false,
        }
    }

    /// Whether the handshake has used a ticket and no certificate.
    pub fn is_resumed(&self) -> bool {
        self.tls().and_then(|tls| tls.handshake_kind()) == Some(HandshakeKind::Resumed)
    }

    /// On a client, keeps an address token for the next connection to this server, if there is a store.
    pub fn keep_token(&self, token: &[u8]) {
        if let Tickets::Offered(offered) = &self.tickets {
            offered.keep_token(token);
        }
    }

    /// On a client, keeps what the application must know of this server before it answers, if there is a store.
    pub fn keep_application(&self, state: &[u8]) {
        if let Tickets::Offered(offered) = &self.tickets {
            offered.keep_application(state);
        }
    }

    /// What [`TlsSession::keep_application`] has kept of this server last.
    pub fn application(&self) -> Option<Vec<u8>> {
        match &self.tickets {
            Tickets::Offered(offered) => offered.application(),
            Tickets::Off | Tickets::Issued(_) => None,
        }
    }

    /// The application protocol.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.tls()?.alpn_protocol()
    }

    /// The cipher suite.
    pub fn suite(&self) -> Option<Suite> {
        suite_of(self.tls()?.negotiated_cipher_suite()?.suite())
    }

    /// The name of the key exchange, as IANA lists it.
    pub fn key_exchange(&self) -> Option<&'static str> {
        self.tls()?.negotiated_key_exchange_group()?.name().as_str()
    }

    /// On a server, the name that the client asked for.
    pub fn server_name(&self) -> Option<&str> {
        match self.tls()? {
            Connection::Server(tls) => tls.server_name(),
            Connection::Client(_) => None,
        }
    }

    /// The peer's certificate chain, its own certificate first; `None` when it has shown none.
    pub fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.tls()?.peer_certificates()
    }

    /// Fills `out` with keying material of this connection, the same at both ends. RFC 8446 §7.5, RFC 5705.
    ///
    /// # Errors
    /// The handshake is not complete, or `out` is empty or longer than the exporter can fill.
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), TlsError> {
        let unfinished = || rustls::Error::HandshakeNotComplete;
        let tls = self.tls().ok_or_else(unfinished);
        let outcome = tls.and_then(|tls| tls.export_keying_material(out, label, context));
        outcome.map(drop).map_err(|error| TlsError::new(alert::INTERNAL_ERROR, error.to_string()))
    }

    /// Keys of 0-RTT packets, if both ends agree to have any: a client's to send, a server's to receive.
    pub fn zero_rtt_keys(&self) -> Option<DirectionalKeys> {
        let keys = self.tls()?.zero_rtt_keys()?;
        //= rfc9369/4.1#5
        Some(DirectionalKeys::new(self.early_version, &take_secret(self.suite()?, &keys)))
    }
}

/// Lets rustls read a message. A ticket is kept with what it was made of, if the store wants that.
fn read_message(tls: &mut Connection, tickets: &Tickets, message: &[u8]) -> Result<(), rustls::Error> {
    match tickets {
        Tickets::Offered(offered) if offered.writes(message) => {
            let (outcome, secret) = ticket_secret(|| tls.read_hs(message));
            if let Some((secret, chain)) = secret.zip(tls.peer_certificates()) {
                offered.keep_written(message, secret.as_ref(), chain);
            }
            outcome
        }
        _ => tls.read_hs(message),
    }
}

/// A client says no more before the server has answered its ClientHello.
fn unanswered() -> TlsError {
    TlsError::violation("a second message before the first one was answered")
}

fn server_connection(config: Arc<rustls::ServerConfig>, params: &[u8]) -> Result<Connection, TlsError> {
    // Version 1 whatever the version: see the carrier.
    let tls = ServerConnection::new(config, rustls::quic::Version::V1, params.to_vec());
    tls.map(Connection::from).map_err(|error| TlsError::new(alert::INTERNAL_ERROR, error.to_string()))
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSession").field("version", &self.version).field("level", &self.level).finish()
    }
}

#[cfg(test)]
mod tests;
