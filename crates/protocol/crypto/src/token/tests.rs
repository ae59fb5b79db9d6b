//! A token must prove what it says and nothing else, and invented ones must count for nothing.

use super::*;
use base::rng::Rng;
use proptest::prelude::*;

fn cid(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn retry(peer: &str) -> AddressToken {
    AddressToken::Retry {
        peer: address(peer),
        original_dcid: cid(b"original"),
        retry_scid: cid(b"a retry's own cid..."),
        issued_ms: 1_000_000,
    }
}

fn sealed(key: &TokenKey, statement: &AddressToken) -> Vec<u8> {
    let mut out = [0; RETRY_TOKEN_LEN];
    let len = key.seal(statement, &mut Rng::from_u64(1), &mut out);
    out[..len].to_vec()
}

fn presented<'a>(token: &'a [u8], peer: &str, now_ms: u64) -> ReceivedToken<'a> {
    ReceivedToken { token, peer: address(peer), dcid: cid(b"a retry's own cid..."), now_ms }
}

#[test]
fn a_retry_token_proves_address_and_connection_id_for_a_while() {
    let key = TokenKey::new([1; 32]);
    for peer in ["192.0.2.1:443", "[2001:db8::1]:443"] {
        let token = sealed(&key, &retry(peer));
        assert_eq!(token.len(), RETRY_TOKEN_LEN);
        let good =
            TokenCheck::Retry { original_dcid: cid(b"original"), retry_scid: cid(b"a retry's own cid...") };
        assert_eq!(key.check(&presented(&token, peer, 1_000_000)), good);
        assert_eq!(key.check(&presented(&token, peer, 1_015_000)), good);
        assert_eq!(key.check(&presented(&token, peer, 999_000)), good, "another machine's clock");
        assert_eq!(key.check(&presented(&token, peer, 1_015_001)), TokenCheck::Invalid);
        assert_eq!(key.check(&presented(&token, "192.0.2.1:444", 1_000_000)), TokenCheck::Invalid);
        assert_eq!(key.check(&presented(&token, "192.0.2.2:443", 1_000_000)), TokenCheck::Invalid);
        let elsewhere = ReceivedToken { dcid: cid(b"other"), ..presented(&token, peer, 1_000_000) };
        assert_eq!(key.check(&elsewhere), TokenCheck::Invalid);
    }
}

#[test]
fn a_new_token_proves_the_address_on_any_port_or_counts_as_none() {
    let key = TokenKey::new([1; 32]).with_lifetimes(Duration::from_secs(1), Duration::from_secs(60));
    let statement = AddressToken::NewToken { peer: "192.0.2.1".parse().unwrap(), issued_ms: 1_000 };
    let token = sealed(&key, &statement);
    assert_eq!(token.len(), NEW_TOKEN_LEN);
    let nonce = token[1..].first_chunk().copied().unwrap();
    let good = TokenCheck::NewToken { nonce, issued_ms: 1_000 };
    assert_eq!(key.check(&presented(&token, "192.0.2.1:1", 61_000)), good);
    assert_eq!(key.check(&presented(&token, "[::ffff:192.0.2.1]:2", 61_000)), good);
    assert_eq!(key.check(&presented(&token, "192.0.2.1:1", 61_001)), TokenCheck::Foreign);
    assert_eq!(key.check(&presented(&token, "192.0.2.2:1", 2_000)), TokenCheck::Foreign);
    assert_eq!(key.check(&presented(b"", "192.0.2.1:1", 2_000)), TokenCheck::None);
}

/// A token of one kind must not pass for the other, nor under another key, nor with any bit changed.
#[test]
fn changed_tokens_are_foreign() {
    let key = TokenKey::new([1; 32]);
    let other = TokenKey::new([2; 32]);
    for statement in
        [retry("192.0.2.1:443"), AddressToken::NewToken { peer: [192, 0, 2, 1].into(), issued_ms: 0 }]
    {
        let token = sealed(&key, &statement);
        let check = |key: &TokenKey, token: &[u8]| key.check(&presented(token, "192.0.2.1:443", 1_000_000));
        assert_ne!(check(&key, &token), TokenCheck::Foreign);
        assert_eq!(check(&other, &token), TokenCheck::Foreign);
        for at in 0..token.len() {
            let mut changed = token.clone();
            changed[at] ^= 0x40;
            assert_eq!(check(&key, &changed), TokenCheck::Foreign);
            assert_eq!(check(&key, &token[..at.max(1)]), TokenCheck::Foreign);
        }
        let longer = [&token[..], &[0]].concat();
        assert_eq!(check(&key, &longer), TokenCheck::Foreign);
    }
}

/// Two tokens for the same client must not look alike: they would link its connections.
#[test]
fn equal_statements_make_different_tokens() {
    let (key, mut rng) = (TokenKey::new([1; 32]), Rng::from_u64(7));
    let mut tokens = [[0; RETRY_TOKEN_LEN]; 2];
    for token in &mut tokens {
        key.seal(&retry("192.0.2.1:443"), &mut rng, token);
    }
    assert!(tokens[0][1..13] != tokens[1][1..13] && tokens[0][13..] != tokens[1][13..]);
}

proptest! {
    #[test]
    fn invented_tokens_are_foreign(token in proptest::collection::vec(any::<u8>(), 1..200), kind in 0u8..3) {
        let mut token = token;
        token[0] = 0xa0 + kind;
        let key = TokenKey::new([1; 32]);
        prop_assert_eq!(key.check(&presented(&token, "192.0.2.1:443", 0)), TokenCheck::Foreign);
        token.resize(if kind == 1 { RETRY_TOKEN_LEN } else { NEW_TOKEN_LEN }, 0);
        prop_assert_eq!(key.check(&presented(&token, "192.0.2.1:443", 0)), TokenCheck::Foreign);
    }
}
