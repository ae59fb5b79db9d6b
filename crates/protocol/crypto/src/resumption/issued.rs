//! A server's tickets, as one connection issues and takes them. RFC 8446 §4.2.11, §4.6.1, §8; RFC 9001 §4.6.1.
//!
//! rustls stores a session under a random name and sends the name as the ticket, when it is to take early data. The store of a
//! connection keeps the few sessions that rustls has stored until their tickets leave, and [`IssuedTickets::rewrite`] puts the
//! sealed session in the place of the name: no hash of the handshake covers these messages. A ticket that comes back is looked
//! up in the store and opened there.
//!
//! A ticket is bound, by authenticated data that is not in it, to QUIC or TCP, the QUIC version (RFC 9369 §5), the certificates and
//! the application protocols of the server; rustls holds the server name against the one in it, and for early data the
//! application protocol and the cipher suite. Early data needs more: limits that are not below those that the client remembers
//! (RFC 9000 §7.4.1), the same settings of the application, an age that fits, and that the ticket was not used before (strikes.rs).
//!
//! A ticket counts as used before the client has proved that it holds the secret, because rustls proves and accepts in one
//! step. Who copies a ticket off the wire can so cost its owner a round trip, and gains nothing.

use super::strikes::StrikeRegister;
use super::ticket_keys::{TicketKeys, fingerprint};
use crate::hello::{self, EarlyOffer};
use core::fmt;
use rustls::server::{ProducesTickets, StoresServerSessions};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use wire::{Malformed, Reader, Version};
use zeroize::Zeroizing;

/// What a server's tickets are like.
#[derive(Clone, Debug)]
pub struct TicketOptions {
    /// The keys that seal them.
    pub keys: Arc<TicketKeys>,
    /// Tickets that a client gets after each handshake; it uses each once. 0 is none. Default: 2.
    pub count: usize,
    /// The register of tickets that have brought early data; `None`, the default, takes no early data. Workers of a process share
    /// it. Processes that share keys and no register rely on the age of tickets: a copy of a client's first flight counts
    /// once for each of them within [`TicketOptions::early_window_s`].
    pub early_data: Option<Arc<StrikeRegister>>,
    /// By how much the age of a ticket that a client claims may differ from what it is when early data comes, in seconds.
    /// Source: RFC 8446 §8.3. Default: 10.
    pub early_window_s: u32,
    /// What the application promises to clients that send early data, such as HTTP/3's SETTINGS: early data counts only while it
    /// is the same. Source: RFC 9114 §7.2.4.2. Default: empty.
    pub application: Vec<u8>,
}

impl TicketOptions {
    /// Two tickets for each handshake, sealed with `keys`, and no early data.
    pub fn new(keys: Arc<TicketKeys>) -> TicketOptions {
        TicketOptions { keys, count: 2, early_data: None, early_window_s: 10, application: Vec::new() }
    }
}

/// What one connection of a server holds early data to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlyTerms {
    /// The limits that the client gets, in an order of the caller's. A client that remembers larger ones sends no early data that
    /// would be taken.
    pub limits: Vec<u64>,
    /// Whether early data may be taken at all.
    pub is_permitted: bool,
}

/// The tickets of one connection.
#[derive(Debug)]
pub(crate) struct IssuedTickets {
    options: TicketOptions,
    /// What the tickets that a client presents are bound to.
    context: Vec<u8>,
    /// What new ones are bound to, if the connection has moved to another version.
    moved: OnceLock<Vec<u8>>,
    terms: EarlyTerms,
    /// What rustls has stored, by the name that it sends.
    stored: Mutex<Vec<Stored>>,
}

/// A session that rustls has stored.
struct Stored {
    name: Vec<u8>,
    session: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stored")
    }
}

/// Sessions that are stored at most until their tickets leave.
const MAX_STORED: usize = 16;
/// The longest ticket: with two of them a client's first flight still has a few packets.
const MAX_TICKET_LEN: usize = 8_192;
/// The type of a NewSessionTicket message. Source: RFC 8446 §4.
const NEW_SESSION_TICKET: u8 = 4;
/// What the context of a ticket begins with; a version and a digest follow.
const CONTEXT: &[u8] = b"quic ";
/// The form of what is sealed.
const FORM: u8 = 1;
const DIGEST_LEN: usize = 32;

impl IssuedTickets {
    /// `server` is a digest of the server's configuration.
    pub(crate) fn new(
        options: &TicketOptions,
        server: &[u8],
        version: Version,
        terms: EarlyTerms,
    ) -> IssuedTickets {
        let context = [CONTEXT, &version.0.to_be_bytes()[..], server].concat();
        let options = options.clone();
        IssuedTickets { options, context, moved: OnceLock::new(), terms, stored: Mutex::default() }
    }

    /// The connection has moved to another version, whose connections the tickets are for from now on. Source: RFC 9369 §5.
    pub(crate) fn set_version(&self, version: Version) {
        let server = self.context.get(CONTEXT.len() + 4..).unwrap_or(&[]);
        //= rfc9369/5#2
        self.moved.get_or_init(|| [CONTEXT, &version.0.to_be_bytes()[..], server].concat());
    }

    /// Whether any early data may be taken.
    pub(crate) fn takes_early_data(&self) -> bool {
        self.terms.is_permitted && self.options.early_data.is_some()
    }

    /// Whether the early data that a ClientHello announces may be taken; `None` if it announces none.
    pub(crate) fn judge_early_data(&self, hello: &[u8]) -> Option<bool> {
        let offer = hello::early_offer(hello)?;
        Some(self.takes_early_data() && self.may_take(&offer).is_some())
    }

    fn may_take(&self, offer: &EarlyOffer<'_>) -> Option<()> {
        let TicketOptions { keys, early_data, early_window_s, application, .. } = &self.options;
        let (register, window_s) = (early_data.as_ref()?, u64::from(*early_window_s));
        let opened = keys.open(&self.context, offer.ticket)?;
        let promise = Promise::read(&mut Reader::new(&opened.session)).ok()?;
        // RFC 9000 §7.4.1: early data was sent within the limits that the client remembers.
        //= rfc9000/7.4.1#1
        let is_kept = promise.limits.len() == self.terms.limits.len()
            && promise.limits.iter().zip(&self.terms.limits).all(|(then, now)| then <= now)
            && promise.application == digest(application);
        let claimed_s = u64::from(offer.obfuscated_age_ms.wrapping_sub(promise.age_add)) / 1_000;
        let now_s = keys.now_s();
        // RFC 8446 §8.2: a process that has just begun does not know what the one before it has taken.
        let is_unknown = keys.are_shared()
            && opened.issued_s <= keys.begun_s()
            && now_s <= keys.begun_s().saturating_add(2 * window_s + 1);
        if !is_kept || is_unknown || claimed_s.abs_diff(opened.age_s) > window_s {
            return None;
        }
        // Until then a copy of this ClientHello would have an age that fits.
        let until_s = opened.issued_s.saturating_add(claimed_s).saturating_add(window_s + 1);
        register.is_first_use(fingerprint(offer.ticket)?, now_s, until_s.max(now_s)).then_some(())
    }

    /// Puts sealed sessions in the place of their names in the NewSessionTicket messages that rustls wrote.
    pub(crate) fn rewrite(&self, messages: &mut Vec<u8>) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.is_empty() {
            return;
        }
        let mut rewritten = Vec::with_capacity(messages.len() + 1_024);
        let mut reader = Reader::new(messages);
        while let Ok(message) = next_message(&mut reader) {
            match NewSessionTicket::read(message) {
                Ok(Some(ticket)) => {
                    let found = stored.iter().position(|stored| stored.name == ticket.ticket);
                    if let Some(place) = found {
                        let Stored { session, .. } = stored.swap_remove(place);
                        self.write_sealed(&ticket, &session, &mut rewritten);
                    }
                }
                Ok(None) | Err(_) => rewritten.extend_from_slice(message),
            }
        }
        *messages = rewritten;
    }

    /// Writes the message with the session sealed in it; nothing if that is too long for a ticket.
    fn write_sealed(&self, message: &NewSessionTicket<'_>, session: &[u8], out: &mut Vec<u8>) {
        let promise = Promise {
            age_add: message.age_add,
            limits: self.terms.limits.clone(),
            application: digest(&self.options.application),
        };
        let mut plain = Zeroizing::new(Vec::with_capacity(session.len() + 128));
        promise.write(&mut plain);
        plain.extend_from_slice(session);
        let context = self.moved.get().unwrap_or(&self.context);
        let sealed = self.options.keys.seal(context, &plain);
        if let Some(ticket) = sealed.filter(|ticket| ticket.len() <= MAX_TICKET_LEN) {
            message.write(self.options.keys.lifetime_s(), &ticket, out);
        }
    }
}

impl StoresServerSessions for IssuedTickets {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = stored.len() < MAX_STORED;
        if has_room {
            stored.push(Stored { name: key, session: Zeroizing::new(value) });
        }
        has_room
    }

    fn get(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let opened = self.options.keys.open(&self.context, key)?;
        let mut reader = Reader::new(&opened.session);
        Promise::read(&mut reader).ok()?;
        Some(reader.rest().to_vec())
    }

    fn can_cache(&self) -> bool {
        true
    }
}

fn digest(bytes: &[u8]) -> [u8; DIGEST_LEN] {
    let mut digest = [0; DIGEST_LEN];
    digest.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref());
    digest
}

/// What a client with the ticket may rely on when it sends early data, in front of the session of rustls.
struct Promise {
    /// What the client adds to the age of the ticket.
    age_add: u32,
    limits: Vec<u64>,
    application: [u8; DIGEST_LEN],
}

impl Promise {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(FORM);
        out.extend_from_slice(&self.age_add.to_be_bytes());
        let count = self.limits.len().min(usize::from(u8::MAX));
        out.push(count as u8);
        self.limits.iter().take(count).for_each(|limit| out.extend_from_slice(&limit.to_be_bytes()));
        out.extend_from_slice(&self.application);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Promise, Malformed> {
        if reader.u8()? != FORM {
            return Err(Malformed("a ticket of another form"));
        }
        let age_add = reader.u32()?;
        let count = reader.u8()?;
        let limits = (0..count).map(|_| reader.u64()).collect::<Result<_, _>>()?;
        let bytes = reader.bytes(DIGEST_LEN)?;
        let application = bytes.try_into().map_err(|_| Malformed("a digest of another length"))?;
        Ok(Promise { age_add, limits, application })
    }
}

/// The fields of a NewSessionTicket message that matter here. Source: RFC 8446 §4.6.1.
struct NewSessionTicket<'a> {
    age_add: u32,
    nonce: &'a [u8],
    ticket: &'a [u8],
    extensions: &'a [u8],
}

impl NewSessionTicket<'_> {
    /// `None` if the message, with its header, is another one.
    fn read(message: &[u8]) -> Result<Option<NewSessionTicket<'_>>, Malformed> {
        let mut reader = Reader::new(message);
        if reader.u8()? != NEW_SESSION_TICKET {
            return Ok(None);
        }
        reader.bytes(3)?;
        let _lifetime = reader.u32()?;
        let age_add = reader.u32()?;
        let len = reader.u8()?;
        let nonce = reader.bytes(len.into())?;
        let len = reader.u16()?;
        let ticket = reader.bytes(len.into())?;
        Ok(Some(NewSessionTicket { age_add, nonce, ticket, extensions: reader.rest() }))
    }

    fn write(&self, lifetime_s: u32, ticket: &[u8], out: &mut Vec<u8>) {
        let body = [
            &lifetime_s.to_be_bytes()[..],
            &self.age_add.to_be_bytes(),
            &[self.nonce.len() as u8],
            self.nonce,
            &(ticket.len() as u16).to_be_bytes(),
            ticket,
            self.extensions,
        ]
        .concat();
        out.extend_from_slice(&[NEW_SESSION_TICKET]);
        out.extend(body.len().to_be_bytes().iter().skip(size_of::<usize>() - 3));
        out.extend_from_slice(&body);
    }
}

/// The next handshake message, with its header.
fn next_message<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let whole = reader.peek();
    let &[_, a, b, c, ..] = whole else { return Err(Malformed("no whole message")) };
    reader.bytes(4 + u32::from_be_bytes([0, a, b, c]) as usize)
}

/// Tickets over TCP, where rustls seals them itself and no early data is taken.
pub(crate) struct SealedForTcp<D> {
    keys: Arc<TicketKeys>,
    server: D,
}

impl<D> fmt::Debug for SealedForTcp<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealedForTcp")
    }
}

impl<D: Fn() -> Vec<u8>> SealedForTcp<D> {
    /// `server` is a digest of the server's configuration as of now.
    pub(crate) fn new(keys: Arc<TicketKeys>, server: D) -> SealedForTcp<D> {
        SealedForTcp { keys, server }
    }

    fn context(&self) -> Vec<u8> {
        [b"tcp ", (self.server)().as_slice()].concat()
    }
}

impl<D: Fn() -> Vec<u8> + Send + Sync> ProducesTickets for SealedForTcp<D> {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.keys.lifetime_s()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keys.seal(&self.context(), plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.keys.open(&self.context(), cipher).map(|opened| opened.session.to_vec())
    }
}
