//! A server and a client of HTTP/0.9 over QUIC, for the cases of the public interoperability tests.
//!
//! The public runner asks for files by HTTP/0.9 (`hq-interop`) in all cases but one: `GET /path` on a stream of its own, and the stream's
//! other direction is the file. A case has a name, which says what else an end does: `retry`, `resumption`, `keyupdate`. The
//! runner in `tests/interop` calls every implementation with the same arguments; this is tercel's, on handles of the crate `quic`.
//!
//! | file | holds |
//! |---|---|
//! | case.rs | the names of the cases, and what they ask of an end |
//! | client.rs | downloads, one connection or many |
//! | server.rs | files below a folder |
#![forbid(unsafe_code)]

mod case;
pub mod client;
pub mod server;

pub use case::{Case, UnknownCase};

/// What went wrong, in words.
pub type Error = Box<dyn core::error::Error + Send + Sync>;

/// The application protocol.
const PROTOCOL: &[u8] = b"hq-interop";

/// A handshake may take so long: on a link that loses a third of all datagrams.
const HANDSHAKE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(120);

#[cfg(test)]
mod tests;
