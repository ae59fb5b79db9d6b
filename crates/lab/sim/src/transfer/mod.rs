//! Raw transfers: a small application protocol over bare QUIC streams, for scenarios below HTTP/3.
//!
//! On every stream of its own the client sends a header (see [`Header`]) and `up` bytes of the pattern; on a bidirectional
//! stream the server answers with `down` bytes of the pattern, and ends its answer only after it has seen all of the
//! client's bytes. Every byte is compared at its receiver. Receivers are moody: now and then one takes only some of what
//! it is lent and wants the rest later.

mod client;
mod draw;
mod header;
mod run;
mod server;
mod travels;

pub use client::{Client, Transfer, TransferPlan};
pub use draw::plan;
pub use header::Header;
pub use run::{Report, TransferSimulation, Workload, build, drive, run, verify};
pub(crate) use server::PAUSE;
pub use server::{Server, ServerConnection};
