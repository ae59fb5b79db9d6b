//! Stateless reset tokens. RFC 9000 §10.3.
//!
//! A token is a keyed hash of the connection ID, so that an endpoint that has lost its state can still make it and
//! no attacker can (RFC 9000 §10.3.2). One key serves one space of connection IDs: two servers that share it and hand out the same
//! ID could be made to reset each other's connections.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use core::fmt;
use zeroize::Zeroizing;

/// Bytes in a token.
pub const RESET_TOKEN_LEN: usize = 16;

/// The static key of all of an endpoint's tokens.
pub struct StatelessResetKey(hmac::Key);

impl StatelessResetKey {
    /// The key of 32 random bytes.
    pub fn new(key: [u8; 32]) -> StatelessResetKey {
        let key = Zeroizing::new(key);
        StatelessResetKey(hmac::Key::new(hmac::HMAC_SHA256, &*key))
    }

    /// The token of a connection ID that this endpoint issued.
    pub fn token(&self, cid: &[u8]) -> [u8; RESET_TOKEN_LEN] {
        let tag = hmac::sign(&self.0, cid);
        let mut token = [0; RESET_TOKEN_LEN];
        for (to, from) in token.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        token
    }

    /// Whether two tokens are the same, in time that does not depend on where they differ. RFC 9000 §10.3.1.
    pub fn same(left: &[u8; RESET_TOKEN_LEN], right: &[u8; RESET_TOKEN_LEN]) -> bool {
        verify_slices_are_equal(left, right).is_ok()
    }
}

impl fmt::Debug for StatelessResetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StatelessResetKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token must be the same after a restart, and tell connection IDs and keys apart.
    #[test]
    fn tokens_follow_from_key_and_connection_id() {
        let token = StatelessResetKey::new([1; 32]).token(b"12345678");
        assert_eq!(token, StatelessResetKey::new([1; 32]).token(b"12345678"));
        assert_ne!(token, StatelessResetKey::new([1; 32]).token(b"12345679"));
        assert_ne!(token, StatelessResetKey::new([2; 32]).token(b"12345678"));
        assert!(StatelessResetKey::same(&token, &token.clone()));
        assert!(!StatelessResetKey::same(&token, &[0; 16]));
    }

    /// RFC 4231 §4.2 (test case 1 has a 20-byte key, ours are 32): checked against HMAC-SHA256 computed elsewhere.
    #[test]
    fn a_token_is_the_beginning_of_hmac_sha256() {
        let token = StatelessResetKey::new([0; 32]).token(b"");
        assert_eq!(
            token,
            [0xb6, 0x13, 0x67, 0x9a, 0x08, 0x14, 0xd9, 0xec, 0x77, 0x2f, 0x95, 0xd7, 0x78, 0xc3, 0x5f, 0xc5]
        );
    }
}
