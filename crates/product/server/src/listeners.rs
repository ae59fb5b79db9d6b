//! The ports of a server: UDP for HTTP/3 and TCP for the others, on one port number.

use crate::bind_error::BindError;
use crate::listen::{self, Listen, ListenAddress};
use crate::tcp;
use crate::versions::Versions;
use core::net::SocketAddr;
use ports::{DataPathChoice, OpenOptions, OpenOutcome};
use std::net::{TcpListener, UdpSocket};

/// How often a free port is looked for that both have.
const TRIES: usize = 32;

/// What is open.
pub(crate) struct Listeners {
    pub(crate) udp: Option<OpenOutcome>,
    /// One for each thread.
    pub(crate) tcp: Vec<TcpListener>,
    /// Where both are bound.
    pub(crate) address: SocketAddr,
    /// What was asked for.
    pub(crate) place: ListenAddress,
}

/// Opens UDP as `options` say and `threads` listeners on TCP, as far as the versions need them, at the first address of
/// `at` that the system grants.
pub(crate) fn open(
    at: Listen,
    options: &OpenOptions,
    versions: Versions,
    threads: usize,
) -> Result<Listeners, BindError> {
    let mut addresses = at.addresses();
    if options.choice == DataPathChoice::Xdp {
        // AF_XDP has an interface already.
        addresses.retain(|address| address.device.is_none());
    }
    let opened = listen::first(&addresses, |place| {
        let (address, device) = (place.address, place.device.map(str::to_owned));
        open_at(place, &OpenOptions { address, device, ..options.clone() }, versions, threads)
    });
    match opened {
        Some(opened) => opened.map(|(_, listeners)| listeners),
        None => Err(BindError::Setting("there is no address to listen on".to_owned())),
    }
}

fn open_at(
    place: ListenAddress,
    options: &OpenOptions,
    versions: Versions,
    threads: usize,
) -> Result<Listeners, BindError> {
    if !versions.over_tcp() {
        let udp = ports::open(options).map_err(BindError::DataPath)?;
        return Ok(Listeners { address: udp.address, udp: Some(udp), tcp: Vec::new(), place });
    }
    let tcp = listen_on(place, versions, threads)?;
    let address = tcp.first().and_then(|first| first.local_addr().ok()).unwrap_or(options.address);
    if !versions.contains(Versions::HTTP3) {
        return Ok(Listeners { udp: None, tcp, address, place });
    }
    let udp = ports::open(&OpenOptions { address, ..options.clone() }).map_err(BindError::DataPath)?;
    Ok(Listeners { address: udp.address, udp: Some(udp), tcp, place })
}

/// Listens on TCP. If the system may choose the port, it is one that is free for UDP too.
fn listen_on(
    place: ListenAddress,
    versions: Versions,
    threads: usize,
) -> Result<Vec<TcpListener>, BindError> {
    let ListenAddress { address, device } = place;
    let mut tries = 0;
    loop {
        let tcp = tcp::listen(address, device, threads).map_err(|error| BindError::Listen(address, error))?;
        let bound = tcp.first().and_then(|first| first.local_addr().ok()).unwrap_or(address);
        tries += 1;
        let needs_udp = versions.contains(Versions::HTTP3);
        // Another program may still come in between; then opening UDP says so.
        if address.port() > 0 || !needs_udp || tries == TRIES || UdpSocket::bind(bound).is_ok() {
            return Ok(tcp);
        }
    }
}
