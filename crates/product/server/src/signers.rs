//! Threads that sign for the handshakes of HTTP/3 where a key takes long: an RSA key takes a millisecond or more, for which all other
//! connections of a worker would wait. docs/decisions/030 has the times.
//!
//! There are as many as cores, since signatures are work and no waiting, and they begin when the first such handshake comes. They do not give
//! way to other threads: on a machine that is busy otherwise, signatures of niceness 10 took seconds.

use crate::readers::{Readers, ThreadRule};
use std::sync::Arc;
use worker::HandshakeExecutor;

/// A thread's stack, in bytes: rustls reads a ClientHello on it.
const STACK: usize = 256 * 1024;

/// What takes the slow steps of all workers of a server on a machine of so many cores.
pub(crate) fn executor(cores: usize) -> HandshakeExecutor {
    let rule = ThreadRule { name: "signer", most: cores.max(1), stack: STACK, niceness: 0 };
    let threads = Readers::by(rule);
    Arc::new(move |task| {
        threads.run(move || {
            // The thread has inherited the core of the worker that asked first.
            cpu::unpin();
            task.run();
        });
    })
}
