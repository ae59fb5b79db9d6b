//! The thread that drives a client's HTTP/3 connections, where the program does not.

use super::engine::{Engine, QuicEndpoint, Setup};
use crate::library::data_path::DataPath;
use datapath::Port;
use datapath::pcap::{Capture, PcapWriter};
use ports::{OpenPorts, PortsVisitor};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread::Builder;

/// How long the close of connections may take at the end.
pub(super) const CLOSE: base::time::Duration = base::time::Duration::from_millis(20);

/// Opens a port for both families, or for IPv4 where there is no IPv6, and starts the thread.
///
/// # Errors
/// The port cannot be opened, or the system has no thread left.
pub(crate) fn start(path: &DataPath, setup: Setup) -> io::Result<QuicEndpoint> {
    let open = |address: SocketAddr| {
        ports::open(&path.options(address)).map(|outcome| outcome.opened).map_err(io::Error::other)
    };
    let ports: OpenPorts = open((Ipv6Addr::UNSPECIFIED, 0).into())
        .or_else(|refused| open((Ipv4Addr::UNSPECIFIED, 0).into()).map_err(|_| refused))?;
    ports.run(Start { setup, capture: path.open_capture()? })
}

/// Starts a thread on the first port; there is no other.
struct Start {
    setup: Setup,
    capture: Option<(PcapWriter<std::fs::File>, base::time::Duration)>,
}

impl PortsVisitor for Start {
    type Output = io::Result<QuicEndpoint>;

    fn visit<P: Port + Send + 'static>(self, ports: Vec<P>) -> Self::Output {
        let port = ports.into_iter().next().ok_or_else(|| io::Error::other("the data path has no port"))?;
        match self.capture {
            Some((writer, origin)) => spawn(Capture::new(port, writer, origin), self.setup),
            None => spawn(port, self.setup),
        }
    }
}

fn spawn<P: Port + Send + 'static>(port: P, setup: Setup) -> io::Result<QuicEndpoint> {
    let (engine, endpoint) = Engine::new(port, setup)?;
    Builder::new().name("tercel-client-3".to_owned()).spawn(move || run(engine))?;
    Ok(endpoint)
}

fn run<P: Port>(mut engine: Engine<P>) {
    let alarm = std::sync::Arc::clone(engine.alarm());
    let _driving = alarm.drive();
    // An error means that the socket is broken: the worker ends, and with it all connections.
    while engine.obey() && engine.run_turn(None, || false).is_ok() {}
    let until = engine.now() + CLOSE;
    let _ = engine.run_turn(Some(until), || false);
}
