//! The public key in a certificate, whatever else is in it: for a verifier that trusts every certificate.
//!
//! rustls reads certificates by webpki, which takes X.509 version 3 only. A client that does not
//! verify certificates needs the public key only. The key stands at the same place in every version. Source: RFC 5280 §4.1.

use rustls::pki_types::AlgorithmIdentifier;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
/// The version, which version 1 leaves out.
const VERSION: u8 = 0xa0;

/// SubjectPublicKeyInfo.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublicKey<'a> {
    /// All of it, in DER.
    pub(super) info: &'a [u8],
    /// What is in its AlgorithmIdentifier.
    algorithm: &'a [u8],
    /// The key itself, as its algorithm writes it.
    pub(super) key: &'a [u8],
}

impl<'a> PublicKey<'a> {
    /// The key of a certificate in DER; `None` for what is no certificate.
    pub(super) fn of_certificate(certificate: &'a [u8]) -> Option<PublicKey<'a>> {
        let mut tbs = Der(Der(Der(certificate).content(SEQUENCE)?).content(SEQUENCE)?);
        if tbs.tag() == Some(VERSION) {
            tbs.content(VERSION)?;
        }
        tbs.content(INTEGER)?;
        // The signature's algorithm, the issuer, the time of validity, the subject.
        for _ in 0..4 {
            tbs.content(SEQUENCE)?;
        }
        let start = tbs.0;
        let mut fields = Der(tbs.content(SEQUENCE)?);
        let info = start.get(..start.len().checked_sub(tbs.0.len())?)?;
        let algorithm = fields.content(SEQUENCE)?;
        // In front stands how many bits of the last byte are unused.
        let (0, key) = fields.content(BIT_STRING)?.split_first().map(|(unused, key)| (*unused, key))? else {
            return None;
        };
        Some(PublicKey { info, algorithm, key })
    }

    pub(super) fn is_for(&self, algorithm: AlgorithmIdentifier) -> bool {
        self.algorithm == algorithm.as_ref()
    }
}

/// Elements of DER, one after the other. Source: X.690 §8.1.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    fn tag(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// What is in the next element, which must have this tag.
    fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (&found, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (len, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x83 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        (found == tag).then_some(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Authority;
    use proptest::prelude::*;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::server::ParsedCertificate;

    fn certificate() -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(Authority::new().certificate_pem.as_bytes()).unwrap()
    }

    #[test]
    fn the_key_is_the_one_that_webpki_finds() {
        let certificate = certificate();
        let parsed = ParsedCertificate::try_from(&certificate).unwrap();
        let key = PublicKey::of_certificate(&certificate).unwrap();
        assert_eq!(key.info, parsed.subject_public_key_info().as_ref());
        assert!(key.info.ends_with(key.key) && key.is_for(rustls::pki_types::alg_id::ECDSA_P256));
    }

    proptest! {
        #[test]
        fn damaged_certificates_do_no_harm(changes in prop::collection::vec((0..600_usize, any::<u8>()), 0..8), cut in 0..600_usize) {
            let mut bytes = certificate().to_vec();
            for (place, byte) in changes {
                if let Some(place) = bytes.get_mut(place) { *place = byte; }
            }
            bytes.truncate(cut.max(1));
            let _ = PublicKey::of_certificate(&bytes);
        }
    }
}
