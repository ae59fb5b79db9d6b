//! The key of a WebSocket's handshake over HTTP/1.1. RFC 6455 §4.
//!
//! Over HTTP/2 and 3 a client sends none (RFC 8441 §5), and HTTP/1.1 demands one: the proxy sends its own, and looks at the answer in the
//! client's place; or it answers in the upstream's.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY};
use sha1::{Digest as _, Sha1};
use std::io;

/// What a server adds to a key. RFC 6455 §1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A key that was sent, as the answer that it demands.
#[derive(Debug)]
pub(crate) struct SentKey {
    accept: String,
}

impl SentKey {
    /// Puts a new key into the fields of a request.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn add(fields: &mut HeaderMap) -> io::Result<SentKey> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let key = BASE64_STANDARD.encode(nonce);
        let value = HeaderValue::from_str(&key).map_err(io::Error::other)?;
        fields.insert(SEC_WEBSOCKET_KEY, value);
        Ok(SentKey { accept: accept(key.as_bytes()) })
    }

    /// Takes the answer out of the fields of a response 101. Returns whether it is the one.
    pub(crate) fn take_answer(&self, fields: &mut HeaderMap) -> bool {
        let mut answers = fields.get_all(SEC_WEBSOCKET_ACCEPT).iter();
        let is_right = answers.next().is_some_and(|answer| answer.as_bytes() == self.accept.as_bytes());
        let is_one = answers.next().is_none();
        fields.remove(SEC_WEBSOCKET_ACCEPT);
        is_right && is_one
    }
}

/// What a server answers to a client's key.
pub(crate) fn answer_to(key: &HeaderValue) -> Option<HeaderValue> {
    HeaderValue::from_str(&accept(key.as_bytes().trim_ascii())).ok()
}

/// What a server answers to `key`. RFC 6455 §4.2.2.
fn accept(key: &[u8]) -> String {
    BASE64_STANDARD.encode(Sha1::new().chain_update(key).chain_update(GUID).finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a server that speaks no WebSocket could be taken for one that does.
    #[test]
    fn the_answer_to_a_key_is_the_one_of_the_rfc() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "RFC 6455 §1.3");
        let mut sent = HeaderMap::new();
        sent.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_static("a client's"));
        let key = SentKey::add(&mut sent).unwrap();
        let sent = sent.get_all(SEC_WEBSOCKET_KEY).iter().collect::<Vec<_>>();
        let [sent] = sent.as_slice() else { panic!("{sent:?}") };
        let right = HeaderValue::from_str(&accept(sent.as_bytes())).unwrap();
        let wrong = HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for (answers, is_right) in [
            (vec![&right], true),
            (vec![&wrong], false),
            (vec![&right, &right], false),
            (vec![&wrong, &right], false),
            (vec![], false),
        ] {
            let mut fields = HeaderMap::new();
            answers.iter().for_each(|answer| _ = fields.append(SEC_WEBSOCKET_ACCEPT, (*answer).clone()));
            assert_eq!(key.take_answer(&mut fields), is_right, "{answers:?}");
            assert!(fields.is_empty());
        }
        assert_ne!(SentKey::add(&mut HeaderMap::new()).unwrap().accept, key.accept, "each has its own");
    }
}
