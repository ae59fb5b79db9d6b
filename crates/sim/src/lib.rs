//! A virtual clock and virtual links as a data path, and scenarios over them.
//!
//! Everything below HTTP/3's user is the real thing: worker, endpoint, connection, TLS. Only the kernel, the network and
//! the clock are replaced, so that a second of bad network costs milliseconds and a failure can be looked at again:
//! whatever chance decides comes from the scenario's seed.
#![forbid(unsafe_code)]

pub mod digest;
mod events;
pub mod host;
mod link;
pub mod network;
pub mod node;
pub mod port;

pub use digest::Digest;
pub use network::{HostId, Network};
pub use node::{Burst, Node, Odds, Renewal};
pub use port::{PortOptions, VirtualPort};
