//! The load generator: many requests over HTTP/1.1, HTTP/2 or HTTP/3, each timed, none kept.
//!
//! Each thread has connections of its own and shares nothing on a request's way. What they speak differs (quic.rs, tcp.rs);
//! what may begin, what counts and when a run is over does not: the [`books`], their [`budget`] and the [`course`] are the
//! same for all. Threads meet three times: to begin asking together, to begin measuring together, and at the end, when their
//! [`record::Record`]s are merged.
//!
//! ```text
//! Plan ─▶ Run ─▶ a thread: quic (Worker<P, Asker>) or tcp (tokio, hyper, h2) ─▶ Record ─┐
//!           │              ▲ next request          Books, Budget                       ├─▶ Report ─▶ Trials, Expectation
//!           └──▶ Stage ────┴─ Course: gathering, warm-up, measuring, over ─────────────┘
//! ```
//!
//! Closed loop: an answer makes room for the next request, so a slow server is asked less. Open loop: requests have a time
//! at which they are meant to begin, and latency counts from then, whether a connection had room or not.
//!
//! Rejected: requests handed out by a counter that threads share (its cache line travels with every request); waiting for
//! stragglers when a span of time has passed (a stalled server would hide behind the wait: they are reported as unfinished
//! instead).
#![forbid(unsafe_code)]

mod books;
mod budget;
mod cost;
mod course;
mod crew;
mod csv;
mod expect;
mod failure;
mod gathering;
mod latency;
mod limit;
mod plan;
#[cfg(test)]
mod proof;
mod quic;
mod record;
mod report;
#[cfg(test)]
mod sample;
mod series;
mod spans;
mod stage;
mod tcp;
mod text;
mod traffic;
mod trials;

pub use cost::{Generated, ServerShare};
pub use crew::{Run, Watcher};
pub use csv::write_csv;
pub use expect::{Expectation, GRAMMAR, Verdict};
pub use failure::{Failure, PerFailure};
pub use gathering::Gathering;
pub use latency::{Latency, span};
pub use limit::Limit;
pub use plan::{Bound, Pace, Plan, PlanError, Protocol, Quic, Reuse, Tcp};
pub use quic::{Member, choose_address};
pub use record::Record;
pub use report::{Report, SliceReport};
pub use series::{Series, Slice};
pub use spans::Spans;
pub use tcp::choose_tcp_address;
pub use traffic::{Datagrams, Traffic};
pub use trials::Trials;
