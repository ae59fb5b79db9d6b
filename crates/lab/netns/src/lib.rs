//! Network namespaces joined by veth, and a link emulator, that vanish with their owner.
//!
//! A [`Lab`] is two machines in one: a server's and a client's network namespace, each with one Ethernet interface,
//! one IPv4 and one IPv6 address. Threads ([`Namespace::run`]), sockets opened by them, and processes
//! ([`Namespace::spawn`]) live on either side.
//!
//! Nothing needs to be cleaned up: the namespaces have no names, only descriptors of this process hold them, so the
//! kernel removes them and all that is in them when the [`Lab`] is dropped, on a panic, and after `kill -9`. Processes
//! that were started in them are ended too (`guard.rs`). Named namespaces (`ip netns`) were rejected for the
//! opposite reason: they stay behind after every crash.
#![forbid(unsafe_code)]

pub mod emulator;
mod error;
mod guard;
mod host_namespace;
mod laboratory;
mod namespace;
mod second_link;

pub use error::LabError;
pub use laboratory::{Lab, LabOptions};
pub use namespace::Namespace;
pub use netlink::ethtool::Switch;
pub use second_link::SecondLink;
