//! Threads that sign for handshakes where a key takes long: an RSA key takes a millisecond or more, for which all other connections of a
//! thread that serves would wait. docs/decisions/030 has the times.
//!
//! There are as many as cores, since signatures are work and no waiting, and they begin when the first such handshake comes. They do not give
//! way to other threads: on a machine that is busy otherwise, signatures of niceness 10 took seconds.

use crate::readers::{Readers, ThreadRule};
use std::sync::Arc;
use worker::HandshakeExecutor;

/// A thread's stack, in bytes: rustls reads a ClientHello on it.
const STACK: usize = 256 * 1024;

/// The threads that sign. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Signers(Readers);

impl Signers {
    /// Those of a server on a machine of so many cores.
    pub(crate) fn new(cores: usize) -> Signers {
        Signers(Readers::by(ThreadRule { name: "signer", most: cores.max(1), stack: STACK, niceness: 0 }))
    }

    /// Has one of them take `step`.
    pub(crate) fn run(&self, step: impl FnOnce() + Send + 'static) {
        self.0.run(move || {
            // The thread has inherited the core of the one that asked first.
            cpu::unpin();
            step();
        });
    }

    /// What takes the slow steps of all workers.
    pub(crate) fn executor(&self) -> HandshakeExecutor {
        let threads = self.clone();
        Arc::new(move |task| threads.run(move || task.run()))
    }
}
