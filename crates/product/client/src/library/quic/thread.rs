//! The thread that drives a client's HTTP/3 connections, where the program does not.

use super::engine::{Engine, QuicEndpoint, Setup};
use ports::DataPath;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::thread::Builder;

/// Opens a port for both families, or for IPv4 where there is no IPv6, and starts the thread.
///
/// # Errors
/// The port cannot be opened, or the system has no thread left.
pub(crate) fn start(path: &DataPath, setup: Setup) -> io::Result<QuicEndpoint> {
    let port = path
        .open((Ipv6Addr::UNSPECIFIED, 0).into())
        .or_else(|refused| path.open((Ipv4Addr::UNSPECIFIED, 0).into()).map_err(|_| refused))?;
    let (engine, endpoint) = Engine::new(port, setup)?;
    Builder::new().name("tercel-client-3".to_owned()).spawn(move || run(engine))?;
    Ok(endpoint)
}

fn run(mut engine: Engine) {
    cpu::unpin();
    let alarm = std::sync::Arc::clone(engine.alarm());
    let _driving = alarm.drive();
    // An error means that the socket is broken: the worker ends, and with it all connections.
    while engine.obey() && engine.run_turn(None, &|| false).is_ok() {}
    let _ = engine.close();
}
