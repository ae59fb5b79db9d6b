//! One thread of HTTP/1.1 and 2: what it is given, what it did.

use super::threads::ThreadName;
use cpu::thread_seconds;
use server::tcp::{Setup, ThreadCounters, serve};
use std::io;
use std::net::TcpListener;

/// What one thread is given.
pub(crate) struct TcpSetup {
    pub(crate) number: usize,
    pub(crate) listener: TcpListener,
    pub(crate) setup: Setup,
    /// The core to keep, if any.
    pub(crate) core: Option<usize>,
}

impl ThreadName for TcpSetup {
    fn name(&self) -> String {
        format!("tcp {}", self.number)
    }
}

/// What a thread did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpRecord {
    pub(crate) number: usize,
    pub(crate) core: Option<usize>,
    /// CPU seconds of the thread.
    pub(crate) cpu_s: f64,
    pub(crate) tally: ThreadCounters,
}

/// Serves until the bell is rung.
///
/// # Errors
/// The core cannot be kept, or there are no descriptors to begin with.
pub(crate) fn work(worker_setup: TcpSetup) -> io::Result<TcpRecord> {
    let began = thread_seconds();
    if let Some(core) = worker_setup.core {
        cpu::pin(core)?;
    }
    let tally = serve(worker_setup.listener, worker_setup.setup)?;
    Ok(TcpRecord {
        number: worker_setup.number,
        core: worker_setup.core,
        cpu_s: thread_seconds() - began,
        tally,
    })
}

/// Tells the C library's allocator to keep what is freed: it learns from the largest block that was freed so far. Otherwise it
/// returns the memory of TLS records to the kernel after each write and gets it back by page faults, a tenth of the time.
pub(crate) fn keep_memory() {
    const LARGE: usize = 8 << 20;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE)));
}

/// Takes as many descriptors as the system lets us have: each connection costs one, and shells often give a thousand.
pub(crate) fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it is refused, what there was must do.
    let _ = setrlimit(Resource::Nofile, limit);
}
