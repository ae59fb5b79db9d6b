//! What an operator says of certificates that are ordered.

use std::fmt;
use std::path::PathBuf;

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// How a server shows that a name is its own. RFC 8555 §8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Challenge {
    /// By a text in plain HTTP, at port 80. RFC 8555 §8.3.
    Http01,
    /// By a certificate for the protocol `acme-tls/1`, at port 443. RFC 8737.
    #[default]
    TlsAlpn01,
}

impl Challenge {
    /// The port at which authorities ask.
    pub fn port(self) -> u16 {
        match self {
            Challenge::Http01 => 80,
            Challenge::TlsAlpn01 => 443,
        }
    }
}

impl fmt::Display for Challenge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Challenge::Http01 => "http-01",
            Challenge::TlsAlpn01 => "tls-alpn-01",
        })
    }
}

/// The kind of a certificate's key. Each certificate has a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// ECDSA with P-256.
    #[default]
    EcdsaP256,
    /// ECDSA with P-384.
    EcdsaP384,
    /// RSA with 2048 bits.
    Rsa2048,
}

impl KeyKind {
    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            KeyKind::EcdsaP256 => "ecdsa-p256",
            KeyKind::EcdsaP384 => "ecdsa-p384",
            KeyKind::Rsa2048 => "rsa-2048",
        }
    }
}

/// An account elsewhere that the authority wants named. RFC 8555 §7.3.4.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// The key identifier.
    pub id: String,
    /// The key itself.
    pub key: Vec<u8>,
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ExternalAccount").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A certificate authority, and how it is dealt with. Its terms are agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The URL of its directory, `https`.
    pub directory: String,
    /// Addresses for email about certificates.
    pub contact: Vec<String>,
    /// The authorities of its own certificate, PEM. Without it those of the system.
    pub roots: Option<PathBuf>,
    /// The account elsewhere, if it wants one.
    pub external: Option<ExternalAccount>,
}

impl Authority {
    /// Its host.
    pub(crate) fn host(&self) -> &str {
        let rest = self.directory.strip_prefix("https://").unwrap_or(&self.directory);
        rest.split(['/', ':', '?']).next().unwrap_or(rest)
    }
}

/// A certificate that is ordered, and again before it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The names of hosts that it is for, at least one, in lower case.
    pub names: Vec<String>,
    /// Who issues it.
    pub authority: Authority,
    /// How the names are proven.
    pub challenge: Challenge,
    /// The kind of its key.
    pub key: KeyKind,
    /// The authority's profile, if it has several.
    pub profile: Option<String>,
}

impl Order {
    /// Its names for people.
    pub(crate) fn title(&self) -> String {
        match self.names.as_slice() {
            [first, second, _, ..] => format!("{first}, {second} and {} more", self.names.len() - 2),
            names => names.join(" and "),
        }
    }
}
