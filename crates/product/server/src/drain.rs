//! The end of a worker's server: what was asked is answered, then connections close.

use crate::http3::Server;
use crate::low::Handler;
use datapath::{Intake, Port};
use std::io;
use worker::Worker;

/// Takes no more connections, which another process may take. Those that are open end when their requests are answered.
pub(crate) fn begin<P: Port, H: Handler>(worker: &mut Worker<P, Server<H>>) {
    worker.app_mut().stop();
    if worker.port().intake() == Intake::Open {
        worker.refuse_incoming();
    }
    worker.activate_all();
}

/// Closes the connections that are left, whose clients hear that it is over.
pub(crate) fn finish<P: Port, H: Handler>(worker: &mut Worker<P, Server<H>>) -> io::Result<()> {
    worker.app_mut().abandon();
    worker.activate_all();
    let now = worker.clock();
    worker.turn(now).map(drop)
}
