//! Keys of tickets, and which of them are known at a time (ticket_keys.rs).

use aws_lc_rs::aead::{AES_256_GCM_SIV, LessSafeKey, UnboundKey};
use std::sync::Arc;
use zeroize::Zeroizing;

pub(super) const NAME_LEN: usize = 8;
pub(super) const SECRET_LEN: usize = 32;

/// One key.
pub(super) struct TicketKey {
    pub(super) name: [u8; NAME_LEN],
    /// When it begins to seal, in seconds since 1970.
    pub(super) from_s: u64,
    pub(super) secret: Zeroizing<[u8; SECRET_LEN]>,
    pub(super) aead: LessSafeKey,
}

impl TicketKey {
    pub(super) fn new(name: [u8; NAME_LEN], from_s: u64, secret: [u8; SECRET_LEN]) -> TicketKey {
        let secret = Zeroizing::new(secret);
        let Ok(key) = UnboundKey::new(&AES_256_GCM_SIV, &*secret) else {
            unreachable!("AES-256 keys have 32 bytes")
        };
        TicketKey { name, from_s, secret, aead: LessSafeKey::new(key) }
    }

    fn generate(from_s: u64) -> TicketKey {
        TicketKey::new(random(), from_s, random())
    }
}

/// Random bytes of the library that TLS uses.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let filled = aws_lc_rs::rand::fill(&mut bytes);
    assert!(filled.is_ok(), "the library has random numbers, or no handshake would work");
    bytes
}

/// The keys that are known, the earliest first.
#[derive(Clone, Default)]
pub(super) struct KeySet(pub(super) Vec<Arc<TicketKey>>);

impl KeySet {
    /// The set as it should be at `now_s`; `None` if it is so.
    pub(super) fn rotated(&self, now_s: u64, period_s: u64) -> Option<KeySet> {
        let is_alive = |key: &&Arc<TicketKey>| now_s < key.from_s.saturating_add(2 * period_s);
        let mut keys: Vec<_> = self.0.iter().filter(is_alive).cloned().collect();
        if keys.last().is_none_or(|last| last.from_s.saturating_add(period_s) <= now_s) {
            keys.push(Arc::new(TicketKey::generate(now_s)));
        }
        let last = keys.last().map_or(now_s, |last| last.from_s);
        if last <= now_s {
            keys.push(Arc::new(TicketKey::generate(last.saturating_add(period_s))));
        }
        let is_same = keys.len() == self.0.len() && keys.iter().zip(&self.0).all(|(a, b)| Arc::ptr_eq(a, b));
        (!is_same).then_some(KeySet(keys))
    }

    /// The key that seals at `now_s`.
    pub(super) fn sealing(&self, now_s: u64) -> Option<&TicketKey> {
        let begun = self.0.iter().rfind(|key| key.from_s <= now_s);
        // A clock that went back: the first key has its time yet to come.
        begun.or(self.0.first()).map(|key| &**key)
    }
}
