//! Certificates that a server orders by itself: ACME (RFC 8555), by the library instant-acme.
//!
//! ```text
//! Manager (manager.rs): a thread; when is which certificate due (schedule.rs)?
//!     ──▶ exchange.rs: account, order, challenges, certificate ──▶ http.rs: requests by our own client
//!                 │                        ▲
//!                 ▼                        │ what authorities ask the server for
//!     store.rs: files in the state folder  server::challenges
//! ```
//!
//! | file | holds |
//! |---|---|
//! | settings.rs | what an operator says |
//! | store.rs | accounts, certificates and failures in the state folder, and its lock |
//! | schedule.rs | when a certificate is renewed, and when an attempt is repeated |
//! | exchange.rs | one order |
//! | renewal.rs | when the authority wants a certificate renewed (RFC 9773) |
//! | http.rs | the library's requests |
//! | failure.rs | why there is no certificate |
//! | manager.rs | all orders of a server |
//! | placeholder.rs | what clients are shown until there is a certificate |
//!
//! A certificate is a file. A server loads it like any other: at the start, with a reload, and when the file changes, whichever server
//! has written it. An authority that cannot be reached costs a line in the log and a later attempt, and nothing else.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::indexing_slicing))]

mod exchange;
mod failure;
mod http;
mod manager;
mod placeholder;
mod renewal;
mod schedule;
mod settings;
mod store;

pub use manager::{Again, Hooks, Manager, Status, Totals};
pub use placeholder::placeholder;
pub use schedule::Pace;
pub use settings::{Authority, Challenge, ExternalAccount, KeyKind, LETS_ENCRYPT, Order};
pub use store::Store;
