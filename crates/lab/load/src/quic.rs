//! Requests over HTTP/3, on tercel's own stack.
//!
//! A thread has a worker and a port of its own, and its connections are those of [`client::app`]. An answer's content is counted
//! where it lies in the packet, and its end becomes an entry of a histogram in the turn it arrived in.

mod address;
mod connection;
mod generator;
mod request_app;

pub use address::choose_address;

use super::plan::{LoadPlan, Quic};
use super::record::Record;
use super::run_phase::ThreadContext;
use generator::Generator;
use ports::AnyPort;
use std::io;

/// What a thread over QUIC is given.
pub struct Member {
    /// Its data path.
    pub port: AnyPort,
    /// Where its randomness comes from; must be secret.
    pub seed: [u8; 32],
}

/// Carries out a thread's part of `plan`.
pub(super) fn run(
    member: Member,
    plan: &LoadPlan,
    quic: &Quic,
    thread_context: ThreadContext<'_>,
) -> io::Result<Record> {
    let share = plan.share(thread_context.index, thread_context.threads);
    Generator::new(member.port, share, quic.clone(), thread_context, member.seed).run()
}
