//! The load generator: many requests over HTTP/1.1, HTTP/2, HTTP/3 or the perf protocol, each timed, none kept.
//!
//! Each thread has connections of its own and shares nothing on a request's way. What they speak differs (quic.rs, tcp.rs, perf.rs);
//! what may begin, what counts and when a run is over does not: the [`accounts`], their [`budget`] and the [`run_phase`] are the
//! same for all. Threads meet three times: to begin asking together, to begin measuring together, and at the end, when their
//! [`record::Record`]s are merged.
//!
//! ```text
//! LoadPlan ─▶ Run ─▶ a thread: quic (Worker<P, RequestApp>) or tcp (tokio, hyper, h2) ─▶ Record ─┐
//!           │              ▲ next request          RequestAccounts, Budget                       ├─▶ Report ─▶ Trials, Expectation
//!           └──▶ RunState ────┴─ RunPhase: connecting, warm-up, measuring, over ─────────────┘
//! ```
//!
//! Closed loop: an answer makes room for the next request, so a slow server is asked less. Open loop: requests have a time
//! at which they are meant to begin, and latency counts from then, whether a connection had room or not.
//!
//! Rejected: requests handed out by a counter that threads share (its cache line travels with every request); waiting for
//! stragglers when a span of time has passed (a stalled server would hide behind the wait: they are reported as unfinished
//! instead).
#![forbid(unsafe_code)]

mod accounts;
mod budget;
mod cost;
mod csv;
mod expect;
mod failure;
mod kinds;
mod latency;
mod limit;
pub mod perf;
mod plan;
#[cfg(test)]
mod proof;
mod quic;
mod record;
mod report;
mod run_phase;
mod run_state;
#[cfg(test)]
mod sample;
mod series;
mod spans;
mod start_barrier;
mod tcp;
mod text;
mod threads;
mod traffic;
mod trials;

pub use cost::{GeneratorCost, ServerShare};
pub use csv::write_csv;
pub use expect::{Expectation, ExpectationResult, GRAMMAR};
pub use failure::{Failure, PerFailure};
pub use kinds::HandshakeKinds;
pub use latency::{Latency, span};
pub use limit::Limit;
pub use plan::{
    Bound, HANDSHAKES_AT_A_TIME, Handshakes, LoadPlan, Pace, PlanError, Protocol, Quic, Reuse, Tcp,
};
pub use quic::{Member, choose_address};
pub use record::Record;
pub use report::{Report, SliceReport};
pub use series::{Series, Slice};
pub use spans::Spans;
pub use tcp::choose_tcp_address;
pub use threads::{Run, Watcher};
pub use traffic::{Datagrams, Traffic};
pub use trials::Trials;
