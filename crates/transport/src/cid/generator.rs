//! Makes connection IDs and the stateless reset tokens that belong to them.
//!
//! Layout, after QUIC-LB (draft-ietf-quic-load-balancers): the first byte is for whoever steers datagrams and holds the
//! worker's number; the other seven are random. A server ID for balancers in front of several machines will take bytes from
//! the front of the random part, which has some to spare: at 56 bits a new ID meets one of a million others with a chance of
//! about one in 10^11.
//!
//! All are of one length, so that a short header can be read without state (RFC 9000 §10.3.2), and a length of eight makes
//! look-ups by a 64-bit number possible.

use base::rng::Rng;
use crypto::StatelessResetKey;
use std::sync::Arc;
use wire::cid::ConnectionId;

/// Bytes of every connection ID that we issue.
pub(crate) const LOCAL_CID_LEN: usize = 8;

/// The source of our connection IDs; every connection has its own.
pub(crate) struct CidGenerator {
    worker: u8,
    rng: Rng,
    reset_key: Arc<StatelessResetKey>,
}

impl CidGenerator {
    pub(crate) fn new(worker: u8, rng: Rng, reset_key: Arc<StatelessResetKey>) -> CidGenerator {
        CidGenerator { worker, rng, reset_key }
    }

    /// Another generator, whose values tell nothing about this one's.
    pub(crate) fn fork(&mut self) -> CidGenerator {
        CidGenerator { worker: self.worker, rng: self.rng.fork(), reset_key: Arc::clone(&self.reset_key) }
    }

    /// A connection ID never issued before.
    pub(crate) fn next_cid(&mut self) -> ConnectionId {
        //= rfc9000/5.1#1
        let mut bytes: [u8; LOCAL_CID_LEN] = self.rng.bytes();
        bytes[0] = self.worker;
        ConnectionId::new(&bytes).unwrap_or(ConnectionId::EMPTY)
    }

    /// The token that resets whoever sends to `cid`. A function of a secret and the ID, so that it is there after the state
    /// is lost, and cannot be guessed from the ID that everybody sees. Source: RFC 9000 §10.3.2.
    pub(crate) fn reset_token(&self, cid: &ConnectionId) -> [u8; 16] {
        //= rfc9000/10.3.2#1
        self.reset_key.token(cid.as_slice())
    }
}

/// The worker that a connection ID of ours names.
pub(crate) fn worker_of(cid: [u8; LOCAL_CID_LEN]) -> u8 {
    cid[0]
}
