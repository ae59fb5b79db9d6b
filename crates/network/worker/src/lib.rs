//! One thread: the turn loop, the timer wheel, connections in a slab.
//!
//! A worker knows no HTTP and no kernel: it is generic over the data path that brings packets and over the application
//! that lives on the connections. All state of a connection is in its slab entry, and nothing else holds any of it. It makes no
//! difference whether the worker ([`Worker::run_turn`]) or the caller's loop ([`Worker::turn`]) owns the thread.
#![forbid(unsafe_code)]

mod app;
mod call_list;
mod crowd;
pub mod hand_off;
mod handshakes;
mod receive_context;
#[cfg(feature = "tokio")]
pub mod task;
pub mod wheel;
mod wheel_entries;
mod worker;

pub use app::{App, Next};
pub use call_list::CallList;
pub use hand_off::{HandOff, HandOffCounters, HandOffMember, OtherProcesses};
pub use handshakes::{HandshakeExecutor, HandshakeTask, MOST_OUT};
pub use worker::{AddressNews, Config, Turn, Worker};
