//! The QUIC performance protocol (draft-banks-quic-performance-00): its server, and a client that measures.
//!
//! It is the least that can run on a transport: a stream says how many bytes it wants back, and gets them. So what is measured
//! is the transport, its data path and its worker, and the same client can measure other implementations' perf servers.
//!
//! The client is the generator with another application: threads, phases, accounts and records are those of requests over HTTP.
//! A handshake is a request that has a connection of its own.
//!
//! An *exchange* is one stream: this many bytes up, this many bytes back. Requests are small exchanges, a download is one with
//! many bytes back, an upload one with many bytes up; a handshake has none. The loop is closed: an answer makes room for the
//! next exchange. Beside it stands [`echo`], the same exchange in bare datagrams on the same port: the floor below which no
//! protocol gets.
//!
//! Nothing on an exchange's way allocates once tables and queues have grown (tests/perf_allocations.rs counts), and all streams of a
//! connection are on one thread.

mod app;
mod close_words;
mod connection;
mod driver;
pub mod echo;
mod plan;
pub mod protocol;
mod report;
mod serve;
pub mod server;
mod thread_setup;
mod threads;

pub use plan::{Amount, PerfPlan, Task};
pub use report::{Cost, Report, ServerCost};
pub use serve::{ServePlan, serve};
pub use thread_setup::ThreadSetup;
pub use threads::Run;
