//! What a certificate authority asks a server for to see that a name is its own (ACME, RFC 8555 §8).
//!
//! - http-01: a request in plain text gets a text, at a path that the authority has chosen (RFC 8555 §8.3).
//! - tls-alpn-01: a handshake for the protocol `acme-tls/1` alone gets a certificate with a digest in it (RFC 8737).
//!
//! Who orders certificates says what to answer, for as long as an order runs. Without such an answer a connection costs a look at a
//! number, and neither path nor protocol is known.

use rustls::ServerConfig;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where an authority asks for its texts. RFC 8555 §8.3.
const PLACE: &str = "/.well-known/acme-challenge/";
/// The protocol that an authority asks for. RFC 8737 §6.2.
pub(crate) const PROTOCOL: &[u8] = b"acme-tls/1";

/// What a server answers to certificate authorities; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Challenges(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// By tokens.
    texts: Answers<String>,
    /// By names in lower case.
    certificates: Arc<Answers<Arc<CertifiedKey>>>,
}

/// What is answered now. No client can add to it.
#[derive(Debug)]
struct Answers<T> {
    held: Mutex<HashMap<String, T>>,
    /// How many there are, to be looked at without the lock.
    count: AtomicUsize,
}

impl<T> Default for Answers<T> {
    fn default() -> Answers<T> {
        Answers { held: Mutex::default(), count: AtomicUsize::new(0) }
    }
}

impl<T> Answers<T> {
    fn held(&self) -> MutexGuard<'_, HashMap<String, T>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<String, T>)) {
        let mut held = self.held();
        change(&mut held);
        self.count.store(held.len(), Ordering::Relaxed);
    }
}

/// An answer is given until this is dropped.
#[derive(Debug)]
#[must_use = "the answer is given until this is dropped"]
pub struct Told {
    challenges: Challenges,
    key: String,
}

impl Drop for Told {
    fn drop(&mut self) {
        self.challenges.0.texts.change(|held| drop(held.remove(&self.key)));
        self.challenges.0.certificates.change(|held| drop(held.remove(&self.key)));
    }
}

impl Challenges {
    /// Answers requests in plain text for `token` by `text`. RFC 8555 §8.3.
    pub fn tell_text(&self, token: &str, text: String) -> Told {
        self.0.texts.change(|held| drop(held.insert(token.to_owned(), text)));
        Told { challenges: self.clone(), key: token.to_owned() }
    }

    /// Answers handshakes for the protocol `acme-tls/1` and `name` by this certificate, DER, which is shown unread: what is critical
    /// in it is for authorities alone. RFC 8737 §3.
    ///
    /// # Errors
    /// The key is none.
    pub fn tell_certificate(
        &self,
        name: &str,
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Told, rustls::Error> {
        let key = rustls::crypto::aws_lc_rs::default_provider().key_provider.load_private_key(key)?;
        let certified = Arc::new(CertifiedKey::new(vec![certificate], key));
        let key = name.to_ascii_lowercase();
        self.0.certificates.change(|held| drop(held.insert(key.clone(), certified)));
        Ok(Told { challenges: self.clone(), key })
    }

    /// The text for a GET of `path`, if an authority was promised one.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let token = path.strip_prefix(PLACE)?;
        self.0.texts.held().get(token).cloned()
    }

    /// How to answer authorities that want a handshake, if one may come.
    pub(crate) fn tls(&self) -> Option<Arc<ServerConfig>> {
        if self.0.certificates.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
        let resolver = Arc::new(Resolver(Arc::clone(&self.0.certificates)));
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Some(Arc::new(config))
    }
}

/// Whether a client hello is an authority's. RFC 8737 §3: it offers that protocol alone.
pub(crate) fn is_of_authority(hello: &ClientHello<'_>) -> bool {
    hello.alpn().is_some_and(|mut offered| offered.next() == Some(PROTOCOL) && offered.next().is_none())
}

#[derive(Debug)]
struct Resolver(Arc<Answers<Arc<CertifiedKey>>>);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_ascii_lowercase();
        self.0.held().get(&name).cloned()
    }
}

/// A client that is refused hears why by an alert, if the socket takes it.
pub(crate) fn refuse(
    (error, mut alert): (rustls::Error, rustls::server::AcceptedAlert),
    socket: &mut impl io::Write,
) -> io::Error {
    // What does not fit is lost: the connection ends anyway.
    let _ = alert.write_all(socket);
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, an answer could be given for ever, or one of an order that goes on could end with another.
    #[test]
    fn answers_are_given_for_as_long_as_an_order_runs() {
        let challenges = Challenges::default();
        let path = |token: &str| format!("{PLACE}{token}");
        assert_eq!(challenges.text(&path("a")), None);
        let one = challenges.tell_text("a", "a.key".into());
        let other = challenges.tell_text("b", "b.key".into());
        assert_eq!(challenges.text(&path("a")).as_deref(), Some("a.key"));
        for other in ["a", "/a", "/.well-known/a", &path(""), &path("a/"), &path("a?x"), &path("c")] {
            assert_eq!(challenges.text(other), None, "{other}");
        }
        drop(one);
        assert_eq!((challenges.text(&path("a")), challenges.text(&path("b"))), (None, Some("b.key".into())));
        drop(other);
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        assert!(challenges.tls().is_none());
        let told = challenges.tell_certificate("Example.org", made.cert.der().clone(), key).unwrap();
        assert_eq!(challenges.tls().unwrap().alpn_protocols, [PROTOCOL]);
        drop(told);
        assert!(challenges.tls().is_none());
    }
}
