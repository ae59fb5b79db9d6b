//! Requests over HTTP/3, on tercel's own stack.
//!
//! A thread has a worker and a port of its own, and its connections are those of [`client::app`]. An answer's content is counted
//! where it lies in the packet, and its end becomes an entry of a histogram in the turn it arrived in.

mod address;
mod asking;
mod connection;
mod connection_slots;
mod generator;
mod request_app;

pub use address::choose_address;

use super::plan::{Handshakes, LoadPlan, Quic};
use super::record::Record;
use super::run_phase::ThreadContext;
use crypto::MemorySessions;
use generator::Generator;
use ports::AnyPort;
use std::io;
use std::sync::Arc;

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
    let quic = with_sessions(quic);
    let share = plan.share(thread_context.index, thread_context.threads);
    Generator::new(member.port, share, quic, thread_context, member.seed).run()
}

/// A thread keeps tickets of its own.
fn with_sessions(quic: &Quic) -> Quic {
    let mut quic = quic.clone();
    if quic.handshakes != Handshakes::Full {
        quic.config.tls = quic.config.tls.with_sessions(Arc::new(MemorySessions::new(1)));
    }
    if quic.handshakes == Handshakes::Early {
        quic.config.tls = quic.config.tls.with_early_data();
    }
    quic
}
