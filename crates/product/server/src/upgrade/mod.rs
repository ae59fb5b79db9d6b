//! How a process takes the place of another, without a connection that is lost: upgrades of the program, and sockets that a service
//! manager has opened.
//!
//! The new process gets the same sockets, by descriptors, and is the only one that takes in what arrives. Datagrams of the old one's
//! connections go back to it through a socket between the two (docs/decisions/019). The old one sends by the sockets that it has still.
//!
//! | file | holds |
//! |---|---|
//! | sockets.rs | sockets with what was asked for when they were opened |
//! | estate.rs | all that one process leaves to the next, as text and descriptors |
//! | channel.rs | how both talk: the estate, then a few words |
//! | link.rs | datagrams from one process to another |
//! | succession.rs | the place of a process among others, before it serves |
//! | predecessor.rs | what the process that ends knows and does |

mod channel;
mod estate;
mod link;
mod predecessor;
mod sockets;
mod succession;

pub use channel::{Channel, Word};
pub use estate::{Estate, Inheritance};
pub(crate) use predecessor::Upgrades;
pub use predecessor::{Handshake, UpgradeError};
pub use sockets::PassedSockets;
pub(crate) use sockets::{Kind, PassedSocket};
pub(crate) use succession::Succession;
