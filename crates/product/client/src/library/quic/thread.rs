//! The thread that drives a client's HTTP/3 connections, where the program does not.

use super::engine::{Engine, QuicEndpoint, Setup};
use crate::library::data_path::DataPath;
use datapath::pcap::Capture;
use ports::AnyPort;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread::Builder;

/// Opens a port for both families, or for IPv4 where there is no IPv6, and starts the thread.
///
/// # Errors
/// The port cannot be opened, or the system has no thread left.
pub(crate) fn start(path: &DataPath, setup: Setup) -> io::Result<QuicEndpoint> {
    let open = |address: SocketAddr| {
        ports::open(&path.options(address)).map(|outcome| outcome.ports).map_err(io::Error::other)
    };
    let ports = open((Ipv6Addr::UNSPECIFIED, 0).into())
        .or_else(|refused| open((Ipv4Addr::UNSPECIFIED, 0).into()).map_err(|_| refused))?;
    // There is one.
    let port = ports.into_iter().next().ok_or_else(|| io::Error::other("the data path has no port"))?;
    let port = match path.open_capture()? {
        Some((writer, origin)) => AnyPort::other(Capture::new(port, writer, origin)),
        None => port,
    };
    let (engine, endpoint) = Engine::new(port, setup)?;
    Builder::new().name("tercel-client-3".to_owned()).spawn(move || run(engine))?;
    Ok(endpoint)
}

fn run(mut engine: Engine) {
    let alarm = std::sync::Arc::clone(engine.alarm());
    let _driving = alarm.drive();
    // An error means that the socket is broken: the worker ends, and with it all connections.
    while engine.obey() && engine.run_turn(None, &|| false).is_ok() {}
    let _ = engine.close();
}
