//! What a network does to datagrams: one model for the simulator, the link emulator and middleware over a port.
//!
//! | file | holds |
//! |---|---|
//! | node.rs | what may happen on the way: a link is a list of nodes |
//! | link.rs | one direction: what becomes of a datagram, without sockets and clocks |
//! | codel.rs, pie.rs | queues that drop early |
//! | waits.rs | how long datagrams waited in a queue |
//! | events.rs | what will happen when |
//! | injector.rs | the model as middleware over a port |
//! | hold.rs | middleware that delays what arrives, train by train |
//!
//! Rates are millionths of all datagrams. All randomness comes from a seed, and the order of draws is part of the model: a change of
//! it changes what every recorded seed means.
#![forbid(unsafe_code)]

mod codel;
mod early;
mod events;
pub mod hold;
pub mod injector;
mod link;
pub mod node;
mod pie;
pub mod waits;

#[cfg(test)]
#[path = "../../../network/datapath/src/test_port.rs"]
mod test_port;

pub use codel::CoDel;
pub use events::EventQueue;
pub use hold::Hold;
pub use injector::FaultInjector;
pub use link::{Datagram, Link, LinkCounters, NodeOutcome};
pub use node::{Burst, Discipline, EventRate, Node, Queue, Renewal};
pub use pie::Pie;
pub use waits::Waits;
