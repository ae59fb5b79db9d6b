//! How traffic secrets get out of rustls.
//!
//! rustls expands a traffic secret into packet and header keys and wraps them, through a [`rustls::quic::Algorithm`], into
//! trait objects that encrypt one packet each. We want the secret: keys of our own types, and the QUIC version's labels
//! chosen by us ([`crate::secret`]). So each suite that we hand to rustls differs from the library's in two places:
//!
//! - its HKDF answers the labels `quic key` and `quic hp`, which nothing but this expansion uses, with the first 32 and the
//!   remaining bytes of the secret itself; every other label goes to the library;
//! - its QUIC algorithm keeps what it is given and, when asked to encrypt, copies it out instead.
//!
//! The secret of a session ticket comes out the same way, and goes in: what the HKDF derives under the label `resumption` can be asked for
//! ([`ticket_secret`]), and a nonce of this process brings it along (voucher.rs).
//!
//! rustls is told QUIC version 1 always. If a later rustls expanded in another way, every handshake test here would fail.
//!
//! Rejected: keys as rustls hands them out (a virtual call per packet, no batches); reading secrets from the key log hook
//! (shared between connections, and it tells secrets by the client's random only).

use crate::secret::{MAX_SECRET_LEN, Secret};
use crate::suite::Suite;
use crate::voucher;
use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::crypto::{CipherSuiteCommon, hmac};
use rustls::quic::{Algorithm, DirectionalKeys, HeaderProtectionKey, PacketKey, Tag};
use rustls::{CipherSuite, Error, SupportedCipherSuite, Tls13CipherSuite};
use std::cell::RefCell;
use std::sync::LazyLock;
use zeroize::Zeroizing;

/// Bytes of the secret that travel as packet key; what is left travels as header key.
const FIRST: usize = 32;

static SUITES: LazyLock<[Tls13CipherSuite; 3]> = LazyLock::new(|| Suite::ALL.map(carrying));

/// The suite as rustls is to know it.
pub(crate) fn tls_suite(suite: Suite) -> SupportedCipherSuite {
    let [aes128, aes256, chacha] = &*SUITES;
    SupportedCipherSuite::Tls13(match suite {
        Suite::Aes128Gcm => aes128,
        Suite::Aes256Gcm => aes256,
        Suite::ChaCha20Poly1305 => chacha,
    })
}

/// The suite that rustls means.
pub(crate) fn suite_of(suite: CipherSuite) -> Option<Suite> {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => Some(Suite::Aes128Gcm),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => Some(Suite::Aes256Gcm),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Some(Suite::ChaCha20Poly1305),
        _ => None,
    }
}

/// Takes the secret of one direction out of the keys that rustls made.
pub(crate) fn take_secret(suite: Suite, keys: &DirectionalKeys) -> Secret {
    let mut bytes = Zeroizing::new([0; MAX_SECRET_LEN]);
    let (first, rest) = bytes.split_at_mut(FIRST);
    let carried = keys.packet.encrypt_in_place(0, &[], first).is_ok()
        && keys.header.encrypt_in_place(&[], &mut 0, rest).is_ok();
    assert!(carried, "keys of our suites are carriers");
    Secret::new(suite, &bytes)
}

/// The secret of a ticket that rustls reads on this thread.
enum TicketSecret {
    /// It is not asked for.
    Unasked,
    /// It has not been derived yet.
    Awaited,
    Derived(OkmBlock),
}

thread_local! {
    static TICKET_SECRET: RefCell<TicketSecret> = const { RefCell::new(TicketSecret::Unasked) };
}

/// Lets rustls read a NewSessionTicket message, and returns the secret of the ticket too. Source: RFC 8446 §4.6.1.
pub(crate) fn ticket_secret<T>(read: impl FnOnce() -> T) -> (T, Option<OkmBlock>) {
    TICKET_SECRET.set(TicketSecret::Awaited);
    let outcome = read();
    match TICKET_SECRET.replace(TicketSecret::Unasked) {
        TicketSecret::Derived(secret) => (outcome, Some(secret)),
        TicketSecret::Unasked | TicketSecret::Awaited => (outcome, None),
    }
}

/// The library's suite with our HKDF and our QUIC algorithm.
fn carrying(suite: Suite) -> Tls13CipherSuite {
    let library = match suite {
        Suite::Aes128Gcm => cipher_suite::TLS13_AES_128_GCM_SHA256,
        Suite::Aes256Gcm => cipher_suite::TLS13_AES_256_GCM_SHA384,
        Suite::ChaCha20Poly1305 => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    };
    let Some(library) = library.tls13() else { unreachable!("suites named TLS13 are of TLS 1.3") };
    Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: library.common.suite,
            hash_provider: library.common.hash_provider,
            confidentiality_limit: library.common.confidentiality_limit,
        },
        // Leaked three times in the life of the process.
        hkdf_provider: Box::leak(Box::new(CapturingHkdf(library.hkdf_provider))),
        aead_alg: library.aead_alg,
        quic: Some(&CapturingQuic),
    }
}

/// An HKDF whose expanders know the secret they expand.
struct CapturingHkdf(&'static dyn Hkdf);

impl Hkdf for CapturingHkdf {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        self.0.extract_from_zero_ikm(salt)
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        self.0.extract_from_secret(salt, secret)
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Box::new(CapturingExpander { inner: self.0.expander_for_okm(okm), secret: okm.clone() })
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> hmac::Tag {
        self.0.hmac_sign(key, message)
    }
}

struct CapturingExpander {
    inner: Box<dyn HkdfExpander>,
    /// Wiped when dropped.
    secret: OkmBlock,
}

impl HkdfExpander for CapturingExpander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        let secret = self.secret.as_ref();
        let part = match info {
            [_, _, b"tls13 ", b"quic key", ..] => secret.get(..FIRST),
            [_, _, b"tls13 ", b"quic hp", ..] => secret.get(FIRST..),
            _ => return self.inner.expand_slice(info, output),
        };
        let part = part.ok_or(OutputLengthError)?;
        output.get_mut(..part.len()).ok_or(OutputLengthError)?.copy_from_slice(part);
        Ok(())
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        let [_, _, b"tls13 ", b"resumption", _, nonce] = info else { return self.inner.expand_block(info) };
        if let Some(secret) = voucher::secret_in(nonce).filter(|secret| secret.len() == self.hash_len()) {
            return OkmBlock::new(secret);
        }
        let secret = self.inner.expand_block(info);
        TICKET_SECRET.with_borrow_mut(|ticket| {
            if matches!(ticket, TicketSecret::Awaited) {
                *ticket = TicketSecret::Derived(secret.clone());
            }
        });
        secret
    }

    fn hash_len(&self) -> usize {
        self.inner.hash_len()
    }
}

/// The QUIC algorithm whose keys carry bytes.
struct CapturingQuic;

impl Algorithm for CapturingQuic {
    fn packet_key(&self, key: AeadKey, _iv: Iv) -> Box<dyn PacketKey> {
        Box::new(CapturedKey(key))
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        Box::new(CapturedKey(key))
    }

    fn aead_key_len(&self) -> usize {
        FIRST
    }
}

/// Bytes on their way through rustls; wiped when dropped.
struct CapturedKey(AeadKey);

impl CapturedKey {
    /// Fills `out` from the front of what is carried.
    fn unload(&self, out: &mut [u8]) -> Result<(), Error> {
        let bytes = self.0.as_ref().get(..out.len()).ok_or(Error::EncryptError)?;
        out.copy_from_slice(bytes);
        Ok(())
    }
}

impl PacketKey for CapturedKey {
    fn encrypt_in_place(&self, _pn: u64, _header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        self.unload(payload)?;
        Ok(Tag::from(&[0; 16][..]))
    }

    fn decrypt_in_place<'a>(&self, _: u64, _: &[u8], _: &'a mut [u8]) -> Result<&'a [u8], Error> {
        Err(Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        16
    }

    fn confidentiality_limit(&self) -> u64 {
        0
    }

    fn integrity_limit(&self) -> u64 {
        0
    }
}

impl HeaderProtectionKey for CapturedKey {
    fn encrypt_in_place(&self, _: &[u8], _: &mut u8, packet_number: &mut [u8]) -> Result<(), Error> {
        self.unload(packet_number)
    }

    fn decrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::DecryptError)
    }

    fn sample_len(&self) -> usize {
        16
    }
}
