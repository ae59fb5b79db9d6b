//! Address validation tokens: a statement of ours about a client's address, handed to the client to keep. RFC 9000 §8.1.
//!
//! A token is one byte that tells Retry tokens from NEW_TOKEN tokens (RFC 9000 §8.1.1), a random nonce, and the statement
//! sealed with AES-256-GCM-SIV, which stays safe should a nonce ever come twice. Each kind has one length; anything else is
//! not ours. An address is written as IPv6, so that a client is the same whichever kind of socket heard it.
//!
//! Invariant: bytes that do not authenticate count as no token at all, so that an invented token gains nothing.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use base::rng::Rng;
use base::time::Duration;
use core::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use wire::{ConnectionId, Reader, Writer};
use zeroize::Zeroizing;

const RETRY: u8 = 0xa1;
const NEW_TOKEN: u8 = 0xa2;
/// Bytes of the random number in each token.
pub const NONCE_LEN: usize = 12;
const TAG_LEN: usize = 16;
/// Kind, nonce and tag.
const FRAME_LEN: usize = 1 + NONCE_LEN + TAG_LEN;
/// Time of issue and address.
const NEW_TOKEN_STATEMENT_LEN: usize = 8 + 16;
/// The same, port and two connection IDs.
const RETRY_STATEMENT_LEN: usize = NEW_TOKEN_STATEMENT_LEN + 2 + 2 * 21;

/// Bytes in a Retry token.
pub const RETRY_TOKEN_LEN: usize = FRAME_LEN + RETRY_STATEMENT_LEN;

/// Bytes in a token for NEW_TOKEN frames.
pub const NEW_TOKEN_LEN: usize = FRAME_LEN + NEW_TOKEN_STATEMENT_LEN;

/// What a server states about a client. Times are milliseconds of a clock that all holders of the key share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressToken {
    /// The client at this address and port sent an Initial and was answered with a Retry.
    Retry {
        /// The client.
        peer: SocketAddr,
        /// Where the client sent its first Initial; goes into the transport parameters.
        original_dcid: ConnectionId,
        /// The source connection ID of the Retry, to which the client must send now.
        retry_scid: ConnectionId,
        /// When.
        issued_ms: u64,
    },
    /// The client at this address, on any port, completed a handshake.
    NewToken {
        /// The client.
        peer: IpAddr,
        /// When.
        issued_ms: u64,
    },
}

/// What a token in an Initial packet is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenCheck {
    /// There is none.
    None,
    /// It proves the address, and that the client received our Retry.
    Retry {
        /// For the transport parameter original_destination_connection_id.
        original_dcid: ConnectionId,
        /// For the transport parameter retry_source_connection_id; the Initial was sent there.
        retry_scid: ConnectionId,
    },
    /// It proves the address, if it was not used before.
    NewToken {
        /// Random, and its own: to know the token by when it is used again.
        nonce: [u8; NONCE_LEN],
        /// When it was made.
        issued_ms: u64,
    },
    /// A Retry token of ours that does not fit: expired, another address, another connection ID. The connection should be
    /// refused with INVALID_TOKEN. RFC 9000 §8.1.2.
    Invalid,
    /// Not ours, or a NEW_TOKEN token that no longer counts: as if there was none. RFC 9000 §8.1.3.
    Foreign,
}

/// An Initial packet with a token, as far as the token's worth depends on it.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedToken<'a> {
    /// The token.
    pub token: &'a [u8],
    /// Who sent it.
    pub peer: SocketAddr,
    /// The packet's destination connection ID.
    pub dcid: ConnectionId,
    /// Now, in milliseconds of the clock that the tokens were issued by.
    pub now_ms: u64,
}

/// The key that seals tokens, and how long they count.
pub struct TokenKey {
    key: LessSafeKey,
    retry_lifetime: Duration,
    new_token_lifetime: Duration,
}

impl TokenKey {
    /// The key of 32 random bytes. Retry tokens count for 15 s, others for 24 h.
    pub fn new(key: [u8; 32]) -> TokenKey {
        let key = Zeroizing::new(key);
        let Ok(key) = UnboundKey::new(&AES_256_GCM_SIV, &*key) else {
            unreachable!("AES-256 keys have 32 bytes")
        };
        TokenKey {
            key: LessSafeKey::new(key),
            retry_lifetime: Duration::from_secs(15),
            new_token_lifetime: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// Changes how long tokens count.
    pub fn with_lifetimes(mut self, retry: Duration, new_token: Duration) -> TokenKey {
        self.retry_lifetime = retry;
        self.new_token_lifetime = new_token;
        self
    }

    /// Seals a statement. Returns how many bytes of `out` the token takes.
    pub fn seal(&self, statement: &AddressToken, rng: &mut Rng, out: &mut [u8; RETRY_TOKEN_LEN]) -> usize {
        let (kind, len) = match statement {
            AddressToken::Retry { .. } => (RETRY, RETRY_TOKEN_LEN),
            AddressToken::NewToken { .. } => (NEW_TOKEN, NEW_TOKEN_LEN),
        };
        let nonce: [u8; NONCE_LEN] = rng.bytes();
        let (head, rest) = out.split_at_mut(1 + NONCE_LEN);
        //= rfc9000/8.1.1#1
        head[0] = kind;
        head[1..].copy_from_slice(&nonce);
        let (body, tag) = rest[..len - 1 - NONCE_LEN].split_at_mut(len - FRAME_LEN);
        write_statement(statement, body);
        let nonce = Nonce::assume_unique_for_key(nonce);
        //= rfc9000/8.1.4#1
        let sealed = self.key.seal_in_place_separate_tag(nonce, Aad::from([kind]), body);
        let Ok(sealed) = sealed else { unreachable!("an AEAD refuses only payloads of gigabytes") };
        tag.copy_from_slice(sealed.as_ref());
        len
    }

    /// Says what the token of an Initial packet is worth.
    pub fn check(&self, presented: &ReceivedToken<'_>) -> TokenCheck {
        if presented.token.is_empty() {
            return TokenCheck::None;
        }
        match self.open(presented.token) {
            Some(AddressToken::Retry { peer, original_dcid, retry_scid, issued_ms }) => {
                let fits = is_fresh(issued_ms, presented.now_ms, self.retry_lifetime)
                    && canonical(peer.ip()) == canonical(presented.peer.ip())
                    && peer.port() == presented.peer.port()
                    && retry_scid == presented.dcid;
                if fits { TokenCheck::Retry { original_dcid, retry_scid } } else { TokenCheck::Invalid }
            }
            Some(AddressToken::NewToken { peer, issued_ms }) => {
                //= rfc9000/8.1.3#1
                let fits = is_fresh(issued_ms, presented.now_ms, self.new_token_lifetime)
                    && canonical(peer) == canonical(presented.peer.ip());
                match presented.token.get(1..).and_then(|rest| rest.first_chunk()) {
                    Some(&nonce) if fits => TokenCheck::NewToken { nonce, issued_ms },
                    _ => TokenCheck::Foreign,
                }
            }
            None => TokenCheck::Foreign,
        }
    }

    /// The statement in a token, if it is one of ours.
    fn open(&self, token: &[u8]) -> Option<AddressToken> {
        let &kind = token.first()?;
        let expected = match kind {
            RETRY => RETRY_TOKEN_LEN,
            NEW_TOKEN => NEW_TOKEN_LEN,
            _ => return None,
        };
        if token.len() != expected {
            return None;
        }
        let mut copy = [0; RETRY_TOKEN_LEN];
        let copy = copy.get_mut(..token.len())?;
        copy.copy_from_slice(token);
        let (_, rest) = copy.split_first_mut()?;
        let (nonce, sealed) = rest.split_first_chunk_mut::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let statement = self.key.open_in_place(nonce, Aad::from([kind]), sealed).ok()?;
        read_statement(kind, statement)
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey")
    }
}

fn is_fresh(issued_ms: u64, now_ms: u64, lifetime: Duration) -> bool {
    // A token from the future was sealed by a machine whose clock is ahead; it is as good as one from now.
    now_ms.saturating_sub(issued_ms) <= lifetime.as_millis()
}

fn canonical(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// `body` has the length of the statement's kind.
fn write_statement(statement: &AddressToken, body: &mut [u8]) {
    body.fill(0);
    let mut writer = Writer::new(body);
    match statement {
        AddressToken::Retry { peer, original_dcid, retry_scid, issued_ms } => {
            writer.u64(*issued_ms);
            writer.bytes(&canonical(peer.ip()).octets());
            writer.u16(peer.port());
            for cid in [original_dcid, retry_scid] {
                let mut padded = [0; 20];
                padded[..cid.len()].copy_from_slice(cid.as_slice());
                writer.u8(cid.len() as u8);
                writer.bytes(&padded);
            }
        }
        AddressToken::NewToken { peer, issued_ms } => {
            writer.u64(*issued_ms);
            writer.bytes(&canonical(*peer).octets());
        }
    }
}

fn read_statement(kind: u8, body: &[u8]) -> Option<AddressToken> {
    let mut reader = Reader::new(body);
    let issued_ms = reader.u64().ok()?;
    let octets: [u8; 16] = reader.bytes(16).ok()?.try_into().ok()?;
    let address = IpAddr::from(octets).to_canonical();
    if kind == NEW_TOKEN {
        return Some(AddressToken::NewToken { peer: address, issued_ms });
    }
    let port = reader.u16().ok()?;
    let mut cid = || {
        let len = usize::from(reader.u8().ok()?);
        ConnectionId::new(reader.bytes(20).ok()?.get(..len)?)
    };
    let (original_dcid, retry_scid) = (cid()?, cid()?);
    Some(AddressToken::Retry { peer: SocketAddr::new(address, port), original_dcid, retry_scid, issued_ms })
}

#[cfg(test)]
mod tests;
