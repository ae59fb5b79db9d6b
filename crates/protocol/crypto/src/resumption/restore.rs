//! How a ticket that was written down becomes a session of rustls again.
//!
//! rustls makes a client's session in one place only: behind a handshake, of a NewSessionTicket message and a secret that follows
//! from that handshake. So a handshake is made in memory, between the client's own verifier and a server of this process
//! that shows the certificates of the real one, and then the client reads the real server's ticket. In two places this process vouches
//! for itself (voucher.rs):
//!
//! - its server signs with a MAC, which the client's verifier takes for the signature of whatever key the certificates have
//!   (config/verify.rs). The certificates themselves are verified as in any handshake: what the client does not trust now is no
//!   session of its;
//! - the ticket's nonce brings the secret along, and our HKDF gives it back as what it derives (key_capture.rs).
//!
//! It costs a key exchange with X25519, once for each ticket that is used. Rejected: the development release of rustls 0.24, which can
//! write sessions down; a changed copy of rustls; tickets without their secret, which are of no use.

use super::written::{NEW_SESSION_TICKET, Parts, WrittenTicket};
use crate::key_capture::tls_suite;
use crate::voucher;
use core::sync::atomic::{AtomicU64, Ordering};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::quic::{ClientConnection, Connection, ServerConnection, Version};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{ClientConfig, Error, NamedGroup, ServerConfig, SignatureAlgorithm, SignatureScheme};
use std::sync::{Arc, Mutex, PoisonError};

/// The session of a ticket for a client with this configuration and verifier. `None` if the client does not trust the server's
/// certificates now, or does not use the cipher suite any more.
pub(super) fn session(
    config: &ClientConfig,
    verifier: &Arc<dyn ServerCertVerifier>,
    name: &str,
    ticket: &WrittenTicket,
) -> Option<Tls13ClientSessionValue> {
    let suite = tls_suite(ticket.suite);
    config.crypto_provider().cipher_suites.iter().find(|offered| offered.suite() == suite.suite())?;
    let provider = Arc::new(CryptoProvider {
        cipher_suites: vec![suite],
        kx_groups: vec![kx_group::X25519],
        ..CryptoProvider::clone(config.crypto_provider())
    });
    let (caught, clock) = (Arc::new(Caught::default()), Arc::new(Clock::default()));
    let mut client = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(verifier))
        .with_client_cert_resolver(Arc::clone(&config.client_auth_cert_resolver));
    client.resumption = Resumption::store(caught.clone());
    client.time_provider = clock.clone();
    let name = ServerName::try_from(name.to_owned()).ok()?;
    let client = ClientConnection::new(Arc::new(client), Version::V1, name, Vec::new()).ok()?;
    let mut client = Connection::from(client);
    shake_hands(&mut client, server(provider, ticket)?).ok()?;
    // The age of the ticket counts from when it came.
    clock.set(ticket.received_s);
    client.read_hs(&message(ticket)?).ok()?;
    caught.take()
}

/// A server of this process that shows the certificates of the real one.
fn server(provider: Arc<CryptoProvider>, ticket: &WrittenTicket) -> Option<Connection> {
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .ok()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Shown::new(ticket)));
    config.send_tls13_tickets = 0;
    ServerConnection::new(Arc::new(config), Version::V1, ticket.params.clone()).ok().map(Connection::from)
}

fn shake_hands(client: &mut Connection, mut server: Connection) -> Result<(), Error> {
    carry(client, &mut server)?;
    carry(&mut server, client)?;
    carry(client, &mut server)?;
    if client.is_handshaking() { Err(Error::HandshakeNotComplete) } else { Ok(()) }
}

/// Hands over what one end has to say, level by level.
fn carry(from: &mut Connection, to: &mut Connection) -> Result<(), Error> {
    loop {
        let mut bytes = Vec::new();
        let change = from.write_hs(&mut bytes);
        if !bytes.is_empty() {
            to.read_hs(&bytes)?;
        }
        if change.is_none() {
            return Ok(());
        }
    }
}

/// The server's NewSessionTicket message with a nonce that brings the secret along.
fn message(ticket: &WrittenTicket) -> Option<Vec<u8>> {
    let Parts { head, tail } = Parts::of(&ticket.message)?;
    let nonce = voucher::nonce_with(&ticket.secret);
    let nonce_len = [u8::try_from(nonce.len()).ok()?];
    let body = [head, &nonce_len, &nonce, tail].concat();
    let len = u32::try_from(body.len()).ok()?.to_be_bytes();
    Some([&[NEW_SESSION_TICKET], len.get(1..)?, &body].concat())
}

/// The certificates of the real server, and a key that signs for this process.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl Shown {
    fn new(ticket: &WrittenTicket) -> Shown {
        Shown(Arc::new(CertifiedKey::new(ticket.chain.clone(), Arc::new(OurKey))))
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// A key whose signatures only this process takes, whatever scheme they are said to be of.
#[derive(Debug)]
struct OurKey;

const SCHEME: SignatureScheme = SignatureScheme::ECDSA_NISTP256_SHA256;

impl SigningKey for OurKey {
    fn choose_scheme(&self, _offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        Some(Box::new(OurKey))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }
}

impl Signer for OurKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(voucher::sign(message))
    }

    fn scheme(&self) -> SignatureScheme {
        SCHEME
    }
}

/// The time of the handshake is now, that of the ticket is set.
#[derive(Debug, Default)]
struct Clock(AtomicU64);

impl Clock {
    fn set(&self, time_s: u64) {
        self.0.store(time_s, Ordering::Relaxed);
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(match self.0.load(Ordering::Relaxed) {
            0 => UnixTime::now(),
            time_s => UnixTime::since_unix_epoch(core::time::Duration::from_secs(time_s)),
        })
    }
}

/// What rustls has made.
#[derive(Debug, Default)]
struct Caught(Mutex<Option<Tls13ClientSessionValue>>);

impl Caught {
    fn take(&self) -> Option<Tls13ClientSessionValue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl ClientSessionStore for Caught {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        None
    }
}
