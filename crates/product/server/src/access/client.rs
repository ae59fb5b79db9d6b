//! Which certificates a client must have shown in the handshake, for a route. RFC 9110 §15.5.4, §15.5.20.

use super::{Asked, Refusal};
use crate::certificate::subject_names;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The SHA-256 digest of a certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// 64 hexadecimal digits, with or without colons between them; `None` if it is none.
    pub fn parse(text: &str) -> Option<Fingerprint> {
        let digits: Vec<u32> = text
            .chars()
            .filter(|letter| *letter != ':')
            .map(|letter| letter.to_digit(16))
            .collect::<Option<_>>()?;
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digits.iter().fold(0, |sum, digit| sum << 4 | *digit as u8);
        }
        Some(Fingerprint(bytes))
    }

    fn of(certificate: &[u8]) -> Fingerprint {
        Fingerprint(Sha256::digest(certificate).into())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// Clients whose certificate the server has verified, and is one of these. Without names and fingerprints: any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientRule {
    /// Names in certificates: the common name of the subject, or a DNS name or email address in subjectAltName.
    pub names: Vec<String>,
    /// Certificates.
    pub fingerprints: Vec<Fingerprint>,
}

impl ClientRule {
    /// # Errors
    /// 403; or 421 where the client has come without a certificate by a connection for another name: it may have one for this name.
    pub(super) fn judge(&self, asked: &Asked<'_>) -> Result<(), Refusal> {
        let refused = |status, what| Err(Refusal { status, what, field: None });
        let chain = asked.connection.client_certificates();
        let Some(own) = chain.as_deref().and_then(<[_]>::first) else {
            let asked_for = asked.connection.server_name().map(str::as_bytes);
            if asked_for.is_some_and(|name| !name.eq_ignore_ascii_case(asked.host)) {
                return refused(421, "this connection was opened for another host");
            }
            return refused(403, "a client certificate is required");
        };
        if self.takes(own) { Ok(()) } else { refused(403, "this client certificate is not accepted") }
    }

    fn takes(&self, certificate: &[u8]) -> bool {
        if self.names.is_empty() && self.fingerprints.is_empty() {
            return true;
        }
        let has_name =
            || subject_names(certificate).iter().any(|name| self.names.iter().any(|known| known == name));
        self.fingerprints.contains(&Fingerprint::of(certificate)) || has_name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(common_name: &str, names: &[&str]) -> Vec<u8> {
        let key = rcgen::KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "operators");
        params.distinguished_name.push(rcgen::DnType::CommonName, common_name);
        params.subject_alt_names.push(rcgen::SanType::Rfc822Name("alice@example.org".try_into().unwrap()));
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn a_certificate_is_known_by_its_names_or_its_digest() {
        let shown = certificate("alice", &["alice.example.org"]);
        let rule = |names: &[&str], fingerprints: &[Fingerprint]| ClientRule {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            fingerprints: fingerprints.to_vec(),
        };
        for name in ["alice", "alice.example.org", "alice@example.org"] {
            assert!(rule(&[name], &[]).takes(&shown), "{name}");
        }
        // Neither a part of a name, nor another spelling, nor another field of the subject.
        for name in ["Alice", "alic", "example.org", "operators", "", "alice\0"] {
            assert!(!rule(&[name], &[]).takes(&shown), "{name}");
        }
        let of = Fingerprint::of(&shown);
        assert!(rule(&[], &[of]).takes(&shown) && rule(&["bob"], &[of]).takes(&shown));
        assert!(rule(&[], &[]).takes(&shown));
        let other = certificate("alice", &[]);
        assert!(!rule(&["bob"], &[of]).takes(&other));
    }

    #[test]
    fn fingerprints_are_digits_with_or_without_colons() {
        let plain = "0123456789abcdef".repeat(4);
        let colons: Vec<&str> = (0..32).map(|at| &plain[at * 2..at * 2 + 2]).collect();
        let parsed = Fingerprint::parse(&plain).unwrap();
        assert_eq!(Fingerprint::parse(&colons.join(":").to_uppercase()), Some(parsed));
        assert_eq!(format!("{parsed:?}"), plain);
        for text in ["", "01", &plain[1..], &format!("{plain}00"), &plain.replace('a', "g"), "é"] {
            assert_eq!(Fingerprint::parse(text), None, "{text}");
        }
    }
}
