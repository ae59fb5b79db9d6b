//! HTTP/3 in scenarios: requests whose path says what is sent and wanted, and both ends that compare every byte.
//!
//! ```text
//! POST /UP/DOWN/OFFSET/SHAPE   and UP bytes of the pattern from OFFSET on; the answer is DOWN bytes from there
//! ```
//!
//! The server answers while the request still comes in, and ends its answer when it has seen the request's end. SHAPE says
//! whether lengths are announced, whether there are trailers, and whether interim responses come first.

mod ask;
mod client;
mod draw;
mod run;
mod server;

pub use ask::{Ask, Shape};
pub use client::{Client, RequestPlan};
pub use draw::plan;
pub use run::{Report, Workload, run};
pub use server::{Server, ServerConnection};
