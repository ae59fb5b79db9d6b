//! One thread of HTTP/1.1 and 2.

use crate::records::TcpRecord;
use crate::tcp::{Setup, ThreadCounters};
use cpu::thread_seconds;
use std::io;
use std::net::TcpListener;

/// What one thread of HTTP/1.1 and 2 is given for itself.
pub(crate) struct TcpSetup {
    pub(crate) number: usize,
    /// The core to keep, if any.
    pub(crate) core: Option<usize>,
    /// One for each address of the server.
    pub(crate) listeners: Vec<TcpListener>,
    pub(crate) setup: Setup,
}

/// Serves by `serve`, which goes on until the order to stop.
///
/// # Errors
/// The core cannot be kept, or those of `serve`.
pub(crate) fn run(
    number: usize,
    core: Option<usize>,
    serve: impl FnOnce() -> io::Result<ThreadCounters>,
) -> io::Result<TcpRecord> {
    let began = thread_seconds();
    if let Some(core) = core {
        cpu::pin(core)?;
    }
    let counters = serve()?;
    Ok(TcpRecord { number, core, cpu_s: thread_seconds() - began, counters })
}
