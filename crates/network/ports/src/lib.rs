//! Data paths by name: opening, measuring which is best, explaining what this machine allows.
//!
//! | file | holds |
//! |---|---|
//! | data_path.rs | a data path as programs choose it: one type for servers, clients and QUIC endpoints |
//! | kinds.rs | the names, and a port of any kind as one type |
//! | open.rs | a name and an address become ports, one for each worker |
//! | open_error.rs | what a refusal by AF_XDP means to users |
//! | capabilities.rs | the privileges of a process, by name |
//! | queues.rs | several ports as one, for a worker that has several queues |
//! | queues_or_socket.rs | those of AF_XDP, or the kernel's socket in their place during an upgrade |
//! | bind_address.rs | which interface an address means |
//! | auto.rs, selection.rs, measure.rs | `auto`: where to send, who takes part and who wins, what a datagram costs |
//! | memory.rs | how much memory this process may take |
//! | doctor/ | what this machine allows, and what to do about the rest |
#![forbid(unsafe_code)]

mod auto;
mod bind_address;
mod capabilities;
mod data_path;
pub mod doctor;
mod kinds;
mod measure;
mod memory;
mod open;
mod open_error;
mod queues;
mod queues_or_socket;
mod selection;

pub use data_path::DataPath;
pub use kinds::{AnyPort, DataPathChoice};
pub use memory::Memory;
pub use open::{OpenOptions, OpenOutcome, Workers, adopt, open};
pub use queues::Queues;
pub use queues_or_socket::{QueuesOrSocket, XdpOpener};
pub use selection::{PathCost, Selection};
