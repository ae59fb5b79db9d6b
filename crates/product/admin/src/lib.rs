//! The admin address of a server: an HTTP/1.1 listener apart from those of clients, for its operator's programs.
//!
//! | path | answers |
//! |---|---|
//! | /metrics | what the server counts, in the text format of Prometheus or as OpenMetrics (metrics.rs, exposition.rs) |
//! | /healthz | 200 while all threads of the server answer, 503 otherwise |
//! | /readyz | 200 while requests are welcome, 503 before and while the server drains |
//! | /status | the state of the server as JSON (status.rs), which `tercel status` prints |
//! | /reload | to POST: the server reads its files again, and the outcome as JSON (reload.rs), which `tercel reload` prints |
//!
//! It has a thread of its own (service.rs). What it tells is asked of a [`Source`].
#![forbid(unsafe_code)]

mod address;
mod client;
mod exposition;
mod families;
mod listener;
mod metrics;
mod process;
mod reload;
mod service;
mod snapshot;
mod status;

pub use address::{Address, DEFAULT};
pub use client::{ask_for_reload, fetch};
pub use exposition::Format;
pub use listener::{Listener, Serving};
pub use metrics::exposition;
pub use reload::Reload;
pub use snapshot::{Expiry, Order, Orders, Reloads, Snapshot, Source, Stage, Upstream};
pub use status::{report, status};
