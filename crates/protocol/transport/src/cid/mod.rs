//! Connection IDs: those that we gave the peer, and those that the peer gave us. Source: RFC 9000 §5.1.
//!
//! Both sets are small and bounded, whatever the peer does: at most [`MAX_ACTIVE`] of either kind are active, and at most
//! three times as many wait to be retired.

mod generator;
mod local;
mod peer;
#[cfg(test)]
mod tests;

pub use generator::{CID_WORKER_OFFSET, cid_generations};
pub(crate) use generator::{CidGenerator, CidLayout, LOCAL_CID_LEN};
pub(crate) use local::{CidChange, LocalCids, MAX_EXCHANGES, Registration};
pub(crate) use peer::{Beside, PeerCids, ResetToken};

/// How many connection IDs of the peer we keep: the value of our active_connection_id_limit. Source: RFC 9000 §18.2.
pub(crate) const MAX_ACTIVE: usize = peer::MAX_ACTIVE;
