//! What this process tells itself through rustls (resumption/restore.rs): signatures and marks that no peer can make, since their keys
//! are random numbers that never leave the process.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use std::sync::LazyLock;

const MARK_LEN: usize = 32;

struct Secrets {
    signing: hmac::Key,
    mark: [u8; MARK_LEN],
}

static SECRETS: LazyLock<Secrets> = LazyLock::new(|| {
    let random = || {
        let mut bytes = [0; MARK_LEN];
        let filled = aws_lc_rs::rand::fill(&mut bytes);
        assert!(filled.is_ok(), "the library has random numbers, or no handshake would work");
        bytes
    };
    Secrets { signing: hmac::Key::new(hmac::HMAC_SHA256, &random()), mark: random() }
});

/// A signature of this process.
pub(crate) fn sign(message: &[u8]) -> Vec<u8> {
    hmac::sign(&SECRETS.signing, message).as_ref().to_vec()
}

/// Whether this process has signed the message.
pub(crate) fn has_signed(message: &[u8], signature: &[u8]) -> bool {
    hmac::verify(&SECRETS.signing, message, signature).is_ok()
}

/// A nonce that brings a secret along.
pub(crate) fn nonce_with(secret: &[u8]) -> Vec<u8> {
    [&SECRETS.mark, secret].concat()
}

/// The secret that this process has put in a nonce. `None` for the nonces of servers.
pub(crate) fn secret_in(nonce: &[u8]) -> Option<&[u8]> {
    let (mark, secret) = nonce.split_at_checked(MARK_LEN)?;
    verify_slices_are_equal(mark, &SECRETS.mark).is_ok().then_some(secret).filter(|secret| !secret.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a server could sign for certificates whose key it does not have.
    #[test]
    fn only_what_this_process_has_signed_or_marked_counts() {
        let signature = sign(b"message");
        assert!(has_signed(b"message", &signature) && !has_signed(b"massage", &signature));
        for other in [&[][..], &signature[1..], &[0; 32]] {
            assert!(!has_signed(b"message", other));
        }
        let nonce = nonce_with(b"secret");
        assert_eq!(secret_in(&nonce), Some(&b"secret"[..]));
        for other in [&[][..], &[0; 8], &[0; 64], &nonce[1..], &nonce[..MARK_LEN]] {
            assert_eq!(secret_in(other), None);
        }
    }
}
