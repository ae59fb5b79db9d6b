//! Paths: where packets go, what is known of the way there, and whether the peer is really at its end.
//!
//! | file | one |
//! |---|---|
//! | credit.rs | limit on what may go to an address that is not validated |
//! | validation.rs | exchange of PATH_CHALLENGE and PATH_RESPONSE |
//! | mtu.rs | search for the largest packet that a path carries |
//! | probe.rs | probe of a larger size, and the window that it waits for |
//! | path.rs | path: what the above are parts of, and what recovery keeps for it |
//! | set.rs | set of a connection's paths, and the rules of migration |
//! | own_move.rs, own_paths.rs | move of a client: what it waits for, and what becomes of the paths |
//!
//! Source: RFC 9000 §8, §9, §14.

mod amplification;
mod mtu;
mod own_move;
mod own_paths;
#[expect(clippy::module_inception, reason = "a path is the noun of this folder, the folder holds its parts")]
mod path;
mod probe;
mod set;
#[cfg(test)]
mod tests;
mod validation;

pub(crate) use amplification::AddressState;
pub(crate) use own_move::MoveCause;
pub(crate) use path::PathId;
pub(crate) use probe::{Blocked, MtuProbe};
pub(crate) use set::{Expiry, Paths};
