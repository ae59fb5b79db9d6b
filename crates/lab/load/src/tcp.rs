//! Requests over HTTP/1.1 and HTTP/2, by hyper and h2, over TCP and rustls.
//!
//! A thread has a runtime of its own (tokio's, for one thread), so nothing is shared on a request's way and no lock is taken
//! by us. Each connection is kept by a task ([`berth`]); each request that may be outstanding on it is a [`lane`], a task that
//! asks, reads the answer, books it, and asks again. Open loops are paced by a [`pacer`] with a clock of nanoseconds: the
//! runtime's own timers know milliseconds only, so they are used for timeouts and pauses.
//!
//! ```text
//! conduct ── Course: phases, the other threads
//!   ├─ pacer: wakes lanes when requests are due
//!   └─ berth (one for each connection) ─ connect ─▶ Stream ─▶ Sender (hyper, h2)
//!        └─ lane (one for each request at a time): Desk::next ─▶ Sender::exchange ─▶ Desk::book
//! ```
//!
//! Rejected: hyper's HTTP/2 client (a task for each request, and a reset is told from an end only by way of error sources; h2
//! is what it is made of).

mod berth;
mod clock;
mod conduct;
mod connect;
mod content;
mod desk;
mod lane;
mod meter;
mod pacer;
mod reach;
mod records;
mod sender;
mod stream;
mod tls;
mod trouble;

pub use reach::choose_tcp_address;

use super::course::Post;
use super::plan::Plan;
use super::record::Record;
use std::io;

/// Carries out a thread's part of `plan`.
pub(super) fn run(plan: &Plan, post: Post<'_>) -> io::Result<Record> {
    conduct::run(plan.share(post.index, post.threads), post)
}
