//! The load generator: many requests over HTTP/3, each timed, none kept.
//!
//! Each thread has a worker, a port and connections of its own and shares nothing on a request's way. A connection is a
//! [`lane::Lane`]: what is outstanding on it stands in a small table, an answer's content is counted where it lies in the
//! packet, and its end becomes an entry of a histogram in the turn it arrived in. Threads meet three times: to begin asking
//! together, to begin measuring together, and at the end, when their [`record::Record`]s are merged.
//!
//! ```text
//! Plan ─▶ crew::run ─▶ Generator (a thread): Worker<P, Asker> ─▶ Record ─┐
//!              │           ▲ next request        Lane: Slots, Inbox      ├─▶ Report
//!              └──▶ Stage ─┴─ phases: gathering, warm-up, measuring, over┘
//! ```
//!
//! Closed loop: an answer makes room for the next request, so a slow server is asked less. Open loop: requests have a time
//! at which they are meant to begin, and latency counts from then, whether a lane had room or not.
//!
//! Rejected: a task or a callback per request (an allocation each); requests handed out by a counter that threads share
//! (its cache line travels with every request); waiting for stragglers when a span of time has passed (a stalled server
//! would hide behind the wait: they are reported as unfinished instead).

mod address;
mod asker;
mod budget;
mod crew;
mod failure;
mod generator;
mod lane;
mod plan;
mod record;
mod report;
mod slots;
mod stage;
pub mod times;

pub use address::choose_address;
pub use crew::{Crew, Watcher};
pub use failure::{Failure, PerFailure};
pub use generator::Generator;
pub use plan::{Bound, Pace, Plan, PlanError};
pub use record::{Record, Slice, Spans};
pub use report::{Generated, Latency, Limit, Report, ServerShare};
pub use stage::Stage;
