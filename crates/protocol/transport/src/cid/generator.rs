//! Makes connection IDs and the stateless reset tokens that belong to them.
//!
//! ```text
//! byte   0          1 and 2      3                                    4 to 7
//!        RRR 00111  server ID    worker + generation × workers        random
//! ```
//!
//! The layout of QUIC-LB in plain text (draft-ietf-quic-load-balancers, "first octet" and "plaintext CID"). The first octet
//! holds the config rotation in its upper three bits and the length of the rest, 7, in the lower five. Without a server ID
//! the rotation is 0b111, which balancers know as "not to be routed by", and bytes 1 and 2 are random. To a balancer the
//! worker's number is part of the nonce; to the steering programs of this machine it is all they look at:
//! `worker = cid[3] % workers`, the same for the IDs that clients make up, so that a handshake begins where it goes on.
//!
//! The generation is the number of the process among those that take each other's place at one address. `cid[3] / workers` costs the
//! steering programs nothing, since they see the remainder alone, and is looked at for datagrams of unknown connections only.
//!
//! All are of one length, so that a short header can be read without state (RFC 9000 §10.3.2), and a length of eight makes
//! look-ups by a 64-bit number possible. With a server ID 32 bits are left to chance: among a million connections a new ID
//! is taken already once in 4,000 times. The caller therefore checks each new ID and asks again on a collision.
//!
//! Rejected: IDs counted and then encrypted, which cannot collide. Every connection would need the endpoint for each new ID.

use base::rng::{Rng, SparseRng};
use crypto::StatelessResetKey;
use std::sync::Arc;
use wire::cid::ConnectionId;

/// Bytes of every connection ID that we issue.
pub(crate) const LOCAL_CID_LEN: usize = 8;

/// Where the number of the worker stands in a connection ID, in bytes: what steers datagrams to workers reads this byte of
/// the destination connection ID modulo the number of workers, for IDs of either side.
pub const CID_WORKER_OFFSET: usize = 3;

/// How many generations connection IDs tell apart where there are `workers`; zero counts as one. At least 1.
pub const fn cid_generations(workers: u8) -> u16 {
    256 / if workers == 0 { 1 } else { workers as u16 }
}

/// Bytes of a server ID.
const SERVER_ID_LEN: usize = 2;
/// The config rotation that says "not by a balancer's configuration". Source: QUIC-LB, configuration failover.
const UNROUTABLE: u8 = 0b111;
/// The length that the first octet tells: of the rest.
const SELF_LEN: u8 = LOCAL_CID_LEN as u8 - 1;

/// What the connection IDs of one endpoint have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CidLayout {
    /// Number of the worker.
    pub worker: u8,
    /// How many workers there are; zero counts as one.
    pub workers: u8,
    /// Number of the process, below [`cid_generations`].
    pub generation: u8,
    /// The server among those behind a balancer, and the config rotation that its balancer knows it by.
    pub server: Option<(u8, [u8; SERVER_ID_LEN])>,
}

impl CidLayout {
    /// One worker, no balancer.
    #[cfg(test)]
    pub(crate) const PLAIN: CidLayout = CidLayout { worker: 0, workers: 1, generation: 0, server: None };

    /// The worker that a connection ID names.
    #[inline]
    pub(crate) fn worker_of(&self, cid: [u8; LOCAL_CID_LEN]) -> u8 {
        cid[CID_WORKER_OFFSET] % self.workers.max(1)
    }

    /// The other worker that a connection ID names; `None` if it names this one.
    #[inline]
    pub(crate) fn elsewhere(&self, cid: [u8; LOCAL_CID_LEN]) -> Option<u8> {
        let named = self.worker_of(cid);
        (named != self.worker % self.workers.max(1)).then_some(named)
    }

    /// The generation that a connection ID names.
    pub(crate) fn generation_of(&self, cid: [u8; LOCAL_CID_LEN]) -> u8 {
        cid[CID_WORKER_OFFSET] / self.workers.max(1)
    }

    /// The other worker of this process that may have issued the ID, as far as the ID itself tells. Of IDs that clients make up at
    /// random, one in 65,536 looks like one of a given worker.
    pub(crate) fn issued_elsewhere(&self, cid: [u8; LOCAL_CID_LEN]) -> Option<u8> {
        let worker = self.elsewhere(cid)?;
        let mut stamped = cid;
        CidLayout { worker, ..*self }.stamp(&mut stamped);
        (stamped == cid).then_some(worker)
    }

    /// Whether this server may have issued the ID, as far as the ID itself tells.
    pub(crate) fn names_this_server(&self, cid: [u8; LOCAL_CID_LEN]) -> bool {
        self.server.is_none_or(|(_, id)| cid[1..=SERVER_ID_LEN] == id)
    }

    fn stamp(&self, bytes: &mut [u8; LOCAL_CID_LEN]) {
        let rotation = self.server.map_or(UNROUTABLE, |(rotation, _)| rotation & UNROUTABLE);
        bytes[0] = rotation << 5 | SELF_LEN;
        if let Some((_, id)) = self.server {
            bytes[1..=SERVER_ID_LEN].copy_from_slice(&id);
        }
        // A generation that is too high would name another worker.
        let generation = u16::from(self.generation) % cid_generations(self.workers);
        let named = u16::from(self.worker) + generation * u16::from(self.workers.max(1));
        bytes[CID_WORKER_OFFSET] = u8::try_from(named).unwrap_or(self.worker);
    }
}

/// The source of our connection IDs; every connection has its own.
pub(crate) struct CidGenerator {
    layout: CidLayout,
    rng: SparseRng,
    reset_key: Arc<StatelessResetKey>,
}

impl CidGenerator {
    pub(crate) fn new(layout: CidLayout, mut rng: Rng, reset_key: Arc<StatelessResetKey>) -> CidGenerator {
        CidGenerator { layout, rng: SparseRng::of(&mut rng), reset_key }
    }

    /// Another generator, whose values tell nothing about this one's.
    pub(crate) fn fork(&mut self) -> CidGenerator {
        CidGenerator { layout: self.layout, rng: self.rng.fork(), reset_key: Arc::clone(&self.reset_key) }
    }

    /// What its IDs have in common.
    #[inline]
    pub(crate) fn layout(&self) -> &CidLayout {
        &self.layout
    }

    /// A connection ID, most likely one never issued before.
    pub(crate) fn next_cid(&mut self) -> ConnectionId {
        //= rfc9000/5.1#1
        let mut bytes: [u8; LOCAL_CID_LEN] = self.rng.bytes();
        self.layout.stamp(&mut bytes);
        ConnectionId::new(&bytes).unwrap_or(ConnectionId::EMPTY)
    }

    /// The stateless reset token of `cid`. A function of a secret and the ID, so that it is there after the state
    /// is lost, and cannot be guessed from the ID that everybody sees. Source: RFC 9000 §10.3.2.
    pub(crate) fn reset_token(&self, cid: &ConnectionId) -> [u8; 16] {
        //= rfc9000/10.3.2#1
        self.reset_key.token(cid.as_slice())
    }
}
