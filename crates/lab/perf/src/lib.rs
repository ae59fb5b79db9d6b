//! The QUIC performance protocol (draft-banks-quic-performance-00): its server, and a client that measures.
//!
//! It is the least that can run on a transport: a stream says how many bytes it wants back, and gets them. So what is measured
//! is the transport, its data path and its worker, and the same client can measure other implementations' perf servers.
//!
//! ```text
//! PerfPlan ─▶ crew::run ─▶ Driver (a thread): Worker<P, Client> ─▶ Record ─┐
//!              │           ▲ next exchange     ClientConnection: Table             ├─▶ Report
//!              └▶ Gathering ┴ phases: gathering, warm-up, measuring ───┘
//! ```
//!
//! An *exchange* is one stream: so many bytes up, so many bytes back. Requests are small exchanges, a download is one with
//! many bytes back, an upload one with many bytes up; a handshake has none. The loop is closed: an answer makes room for the
//! next exchange. Beside it stands [`echo`], the same exchange in bare datagrams on the same port: the floor below which no
//! protocol gets.
//!
//! Nothing on an exchange's way allocates once tables and queues have grown (tests/allocations.rs counts), and all streams of a
//! connection are on one thread.
#![forbid(unsafe_code)]

pub mod client;
mod crew;
mod driver;
pub mod echo;
mod fault;
mod lane;
mod plan;
pub mod protocol;
mod record;
mod report;
pub mod server;
mod table;
mod thread_setup;

pub use crew::Run;
pub use plan::{Amount, Bound, PerfPlan, PlanError, Task};
pub use record::Record;
pub use report::{Cost, Report, ServerCost};
pub use thread_setup::ThreadSetup;
