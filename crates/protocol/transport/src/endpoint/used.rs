//! Which tokens of NEW_TOKEN frames have been used: each spares its client one round trip, once. Source: RFC 9000 §8.1.4.
//!
//! Two Bloom filters of fixed size, one for tokens made in the present period and one for those of the period before. A period
//! is as long as a token counts, so that older ones need not be remembered. A token that is taken for a used one by mistake
//! costs its client a round trip (one of a thousand, while 20,000 were used in a period; one of thirty at 100,000).
//!
//! Workers that share a key share the filters, which are atomic: a client's address decides which worker it reaches, so that a
//! filter for each would let a token count once for each. They are asked for by the first packet of a connection that has such
//! a token only.

use core::sync::atomic::{AtomicU64, Ordering};
use crypto::token::NONCE_LEN;
use std::sync::OnceLock;

/// Bits of one filter: 128 KiB.
const BITS: u64 = 1 << 20;

/// The tokens used in the last two periods.
#[derive(Debug, Default)]
pub struct UsedTokens {
    periods: [Period; 2],
}

/// The used tokens that were made in one period.
#[derive(Debug, Default)]
struct Period {
    /// Which one, counted from 1; 0 before any.
    number: AtomicU64,
    bits: OnceLock<Box<[AtomicU64]>>,
}

impl UsedTokens {
    /// Whether a token with this nonce, made in `period`, comes for the first time. It counts as used from now on.
    pub(super) fn is_first_use(&self, nonce: &[u8; NONCE_LEN], period: u64) -> bool {
        let [even, odd] = &self.periods;
        let place = if period.is_multiple_of(2) { even } else { odd };
        place.insert(nonce, period.saturating_add(1))
    }
}

impl Period {
    fn insert(&self, nonce: &[u8; NONCE_LEN], number: u64) -> bool {
        let bits = self.bits.get_or_init(|| (0..BITS / 64).map(|_| AtomicU64::new(0)).collect());
        let held = self.number.load(Ordering::Relaxed);
        if held > number {
            return false; // two periods old
        }
        let relaxed = Ordering::Relaxed;
        if held < number && self.number.compare_exchange(held, number, relaxed, relaxed).is_ok() {
            bits.iter().for_each(|word| word.store(0, relaxed));
        }
        let [a, b, c, d, e, f, g, h, ..] = *nonce;
        let hashes = [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])];
        let mut is_new = false;
        for hash in hashes {
            let (word, bit) = (u64::from(hash) % BITS / 64, 1 << (hash % 64));
            let Some(word) = bits.get(word as usize) else { continue };
            is_new |= word.fetch_or(bit, relaxed) & bit == 0;
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;

    #[test]
    fn a_token_is_known_for_as_long_as_it_counts_and_others_are_not() {
        let (used, mut rng) = (UsedTokens::default(), Rng::from_u64(1));
        let nonces: Vec<[u8; NONCE_LEN]> = (0..20_000).map(|_| rng.bytes()).collect();
        let mistaken = nonces.iter().filter(|nonce| !used.is_first_use(nonce, 7)).count();
        assert!(mistaken < 40, "{mistaken} of 20,000");
        assert!(nonces.iter().all(|nonce| !used.is_first_use(nonce, 7)));
        assert!(used.is_first_use(&nonces[0], 8), "made in another period, so another token");
        assert!(nonces.iter().all(|nonce| !used.is_first_use(nonce, 7)), "the last period is still known");
        assert!(used.is_first_use(&nonces[1], 9), "the filter of period 7 serves period 9");
        assert!(!used.is_first_use(&nonces[2], 7), "too old to count");
    }
}
