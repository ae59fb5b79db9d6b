//! The end of a worker's server: what was asked is answered, then connections close.

use crate::http3::Server;
use crate::low::Handler;
use base::time::{Duration, Instant};
use datapath::Port;
use std::io;
use std::ops::ControlFlow;
use worker::Worker;

/// Takes no more connections, and calls `turn` until the last one has ended, for `timeout` at most or until `turn` breaks off;
/// then closes what is left. `turn` is one turn of the worker, which sleeps until the given time at most.
///
/// # Errors
/// The data path has failed.
pub fn drain<P: Port, H: Handler>(
    worker: &mut Worker<P, Server<H>>,
    timeout: Option<Duration>,
    mut turn: impl FnMut(&mut Worker<P, Server<H>>, Option<Instant>) -> io::Result<ControlFlow<()>>,
) -> io::Result<()> {
    worker.app_mut().stop();
    worker.refuse_incoming();
    worker.activate_all();
    let deadline = timeout.map(|timeout| worker.now() + timeout);
    while worker.app_mut().open_connections() > 0
        && deadline.is_none_or(|deadline| worker.now() < deadline)
        && turn(worker, deadline)?.is_continue()
    {}
    // Clients that are in the middle of something hear that it is over.
    worker.app_mut().abandon();
    worker.activate_all();
    let now = worker.clock();
    worker.turn(now).map(drop)
}
