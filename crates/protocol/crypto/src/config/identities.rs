//! Certificates by the name that a client asks for. RFC 6066 §3.
//!
//! A name is looked up as it is, then with its first label replaced by `*`; any other name, and none, gets the default. Rejected:
//! an alert for unknown names, which RFC 6066 permits and clients that connect by address would get.

use super::error::ConfigError;
use super::identity::Identity;
use aws_lc_rs::digest::{Context, SHA256};
use rustls::SignatureScheme;
use rustls::pki_types::DnsName;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A server's default certificate, and those for names of their own. Each may be several with different kinds of keys: a client
/// gets the first that it can check.
#[derive(Clone, Debug)]
pub struct Identities {
    default: Vec<Arc<CertifiedKey>>,
    /// By names in lower case, `*.example.org` among them.
    named: BTreeMap<String, Vec<Arc<CertifiedKey>>>,
}

impl From<&Identity> for Identities {
    fn from(default: &Identity) -> Identities {
        Identities { default: vec![default.certified()], named: BTreeMap::new() }
    }
}

impl From<&Identities> for Identities {
    fn from(identities: &Identities) -> Identities {
        identities.clone()
    }
}

impl Identities {
    /// Adds another default certificate.
    pub fn insert_default(&mut self, identity: &Identity) {
        self.default.push(identity.certified());
    }

    /// Adds a certificate for `name`: exact, or `*.example.org` for all names with one label more. Case does not matter.
    ///
    /// # Errors
    /// It is no DNS name.
    pub fn insert(&mut self, name: &str, identity: &Identity) -> Result<(), ConfigError> {
        let name = name.to_ascii_lowercase();
        let plain = name.strip_prefix("*.").unwrap_or(&name);
        if DnsName::try_from(plain).is_err() || plain.ends_with('.') {
            return Err(ConfigError::BadName(name));
        }
        self.named.entry(name).or_default().push(identity.certified());
        Ok(())
    }

    /// A digest of names and certificates: two servers have the same only if they show the same.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        let mut add = |name: &str, certified: &CertifiedKey| {
            context.update(&(name.len() as u64).to_be_bytes());
            context.update(name.as_bytes());
            for certificate in &certified.cert {
                context.update(&(certificate.len() as u64).to_be_bytes());
                context.update(certificate);
            }
            context.update(&u64::MAX.to_be_bytes());
        };
        self.default.iter().for_each(|certified| add("", certified));
        for (name, several) in &self.named {
            several.iter().for_each(|certified| add(name, certified));
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        digest
    }

    /// The certificate for a client that asks for `name` and can check signatures of `schemes`.
    fn choose(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> Option<&Arc<CertifiedKey>> {
        let found = self.find(name);
        let checked = found.iter().find(|certified| certified.key.choose_scheme(schemes).is_some());
        // Where the client can check none, the handshake says so.
        checked.or(found.first())
    }

    /// Whether a key of any of the certificates takes long to sign.
    pub(super) fn have_slow_keys(&self) -> bool {
        self.default.iter().chain(self.named.values().flatten()).any(|certified| is_slow(certified))
    }

    /// Whether the key takes long that a client gets a signature of which asks for `name` and can check signatures of `schemes`.
    pub(super) fn sign_slowly(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> bool {
        self.choose(name, schemes).is_some_and(|certified| is_slow(certified))
    }

    /// The certificates for a client that asks for `name`.
    fn find(&self, name: Option<&str>) -> &[Arc<CertifiedKey>] {
        let Some(name) = name.filter(|_| !self.named.is_empty()) else { return &self.default };
        let name = name.to_ascii_lowercase();
        let parent = name.split_once('.').map(|(_, parent)| format!("*.{parent}"));
        let found = self.named.get(&name).or_else(|| self.named.get(&parent?));
        found.unwrap_or(&self.default)
    }
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(hello.server_name(), hello.signature_schemes()).cloned()
    }
}

/// Signatures that take no longer than handing them to another thread and back. docs/decisions/030 has the times of all kinds.
const FAST: [SignatureScheme; 2] = [SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::ED25519];

/// Whether a signature takes long; by the kind of the key, since what is measured once may have been disturbed.
fn is_slow(certified: &CertifiedKey) -> bool {
    certified.key.choose_scheme(&FAST).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(name: &str) -> Identity {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        Identity::from_pem(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes()).unwrap()
    }

    #[test]
    fn a_name_is_matched_exactly_then_by_its_parent_and_else_gets_the_default() {
        let [default, exact, wildcard] = ["default", "exact", "wildcard"].map(identity);
        let mut identities = Identities::from(&default);
        identities.insert("One.Example.org", &exact).unwrap();
        identities.insert("*.example.org", &wildcard).unwrap();
        for (name, expected) in [
            (Some("one.example.org"), &exact),
            (Some("ONE.EXAMPLE.ORG"), &exact),
            (Some("two.example.org"), &wildcard),
            (Some("example.org"), &default),
            (Some("a.two.example.org"), &default),
            (Some("localhost"), &default),
            (None, &default),
        ] {
            let found = identities.find(name);
            assert!(found.len() == 1 && Arc::ptr_eq(&found[0], &expected.certified()), "{name:?}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let mut identities = Identities::from(&identity("default"));
        for name in ["", "*", "*.", "*.*.org", "a b", "a..b", "example.org.", "*example.org", "192.0.2.1/"] {
            assert!(identities.insert(name, &identity("x")).is_err(), "{name}");
        }
    }
}
