//! A server's certificates, which are replaced while it runs.
//!
//! Each handshake takes the lock once, to share what is held. No packet of an established connection does.

use super::identities::Identities;
use super::identity::Identity;
use crate::hello::{self, CertificateWish};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::{Arc, PoisonError, RwLock};

/// The certificates of a server; clones are the same.
#[derive(Clone, Debug)]
pub struct SharedIdentities(Arc<RwLock<Arc<Held>>>);

#[derive(Debug)]
struct Held {
    identities: Identities,
    digest: [u8; 32],
    has_slow_keys: bool,
}

impl Held {
    fn new(identities: Identities) -> Arc<Held> {
        let (digest, has_slow_keys) = (identities.digest(), identities.have_slow_keys());
        Arc::new(Held { identities, digest, has_slow_keys })
    }
}

impl From<Identities> for SharedIdentities {
    fn from(identities: Identities) -> SharedIdentities {
        SharedIdentities(Arc::new(RwLock::new(Held::new(identities))))
    }
}

impl From<&Identities> for SharedIdentities {
    fn from(identities: &Identities) -> SharedIdentities {
        SharedIdentities::from(identities.clone())
    }
}

impl From<&Identity> for SharedIdentities {
    fn from(default: &Identity) -> SharedIdentities {
        SharedIdentities::from(Identities::from(default))
    }
}

impl SharedIdentities {
    /// Handshakes that begin from now on use `identities`. Tickets that were issued with other certificates cost a full handshake.
    pub fn replace(&self, identities: Identities) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Held::new(identities);
    }

    fn held(&self) -> Arc<Held> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether any of them has a key that takes long to sign.
    pub fn have_slow_keys(&self) -> bool {
        self.held().has_slow_keys
    }

    /// Whether the answer to a whole ClientHello, with its header, may need a signature that takes long. A ticket in it is not looked
    /// at: whether rustls accepts it, rustls alone can say. What cannot be read counts as slow.
    pub(crate) fn sign_slowly(&self, hello: &[u8]) -> bool {
        let held = self.held();
        let is_slow = |wish: CertificateWish<'_>| held.identities.sign_slowly(wish.name, &wish.schemes);
        held.has_slow_keys && hello::certificate_wish(hello).is_none_or(is_slow)
    }

    /// As [`SharedIdentities::sign_slowly`], where rustls has read the ClientHello.
    pub fn sign_slowly_for(&self, hello: &ClientHello<'_>) -> bool {
        let held = self.held();
        held.has_slow_keys && held.identities.sign_slowly(hello.server_name(), hello.signature_schemes())
    }

    /// A digest of names and certificates.
    pub(super) fn digest(&self) -> [u8; 32] {
        self.held().digest
    }
}

impl ResolvesServerCert for SharedIdentities {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.held().identities.resolve(hello)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a ticket of a client that was shown another certificate could resume, or one that was shown this one could not.
    #[test]
    fn clones_show_the_same_and_tickets_are_bound_to_it() {
        let identity = || {
            let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
            Identity::from_pem(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes())
                .unwrap()
        };
        let [first, second] = [identity(), identity()];
        let shared = SharedIdentities::from(&first);
        let (clone, of_first) = (shared.clone(), shared.digest());
        shared.replace(Identities::from(&second));
        assert!(clone.digest() == shared.digest() && clone.digest() != of_first);
        clone.replace(Identities::from(&first));
        assert_eq!(shared.digest(), of_first);
    }
}
