//! Requests over HTTP/1.1 and HTTP/2, by hyper and h2, over TCP and rustls.
//!
//! A thread has a runtime of its own (tokio's, for one thread), so nothing is shared on a request's way and no lock is taken
//! by us. Each connection is kept by a task ([`connection_slot`]). Each request that may be outstanding on it has a task
//! ([`request_slot`]) that asks, reads the answer, records it, and asks again. Open loops are paced by a [`pacer`] with a clock
//! of nanoseconds: the runtime's own timers know milliseconds only, so they are used for timeouts and pauses.
//!
//! ```text
//! conduct ── RunPhase: phases, the other threads
//!   ├─ pacer: wakes request slots when requests are due
//!   └─ connection slot (one for each connection) ─ connect ─▶ Stream ─▶ Sender (hyper, h2)
//!        └─ request slot (one for each request at a time): ThreadState::next ─▶ Sender::exchange ─▶ ThreadState::book
//! ```
//!
//! Rejected: hyper's HTTP/2 client (a task for each request, and a reset is told from an end only by way of error sources; h2
//! is what it is made of).

mod clock;
mod connect;
mod connection_slot;
mod content;
mod meter;
mod pacer;
mod reach;
mod records;
mod request_failure;
mod request_slot;
mod run_thread;
mod sender;
mod stream;
mod thread_state;
mod tls;

pub use reach::choose_tcp_address;

use super::plan::LoadPlan;
use super::record::Record;
use super::run_phase::ThreadContext;
use std::io;

/// Carries out a thread's part of `plan`.
pub(super) fn run(plan: &LoadPlan, thread_context: ThreadContext<'_>) -> io::Result<Record> {
    run_thread::run(plan.share(thread_context.index, thread_context.threads), thread_context)
}
