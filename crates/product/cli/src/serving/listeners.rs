//! Where a server listens: UDP for HTTP/3 and TCP for the others, on one port number.

use super::versions::Versions;
use crate::listen::{self, Place};
use core::net::SocketAddr;
use std::io;
use std::net::{TcpListener, UdpSocket};

/// How often a free port is looked for that both have.
const TRIES: usize = 32;

/// What is open.
pub(crate) struct Listeners {
    pub(crate) udp: Option<ports::OpenOutcome>,
    /// One for each thread.
    pub(crate) tcp: Vec<TcpListener>,
    /// Where both are bound.
    pub(crate) address: SocketAddr,
    /// The place that was asked for.
    pub(crate) place: Place,
}

/// Opens UDP as `options` say and `threads` listeners on TCP, as far as the versions need them, at the first of `places`
/// that the system grants.
///
/// # Errors
/// One line: which port is not to be had, and what to do.
pub(crate) fn open(
    places: &[Place],
    options: &ports::OpenOptions,
    versions: Versions,
    threads: usize,
) -> Result<Listeners, String> {
    let (_, listeners) = listen::first(places, |place| {
        let (address, device) = (place.address, place.device.map(str::to_owned));
        open_at(place, &ports::OpenOptions { address, device, ..options.clone() }, versions, threads)
    })?;
    Ok(listeners)
}

fn open_at(
    place: Place,
    options: &ports::OpenOptions,
    versions: Versions,
    threads: usize,
) -> Result<Listeners, String> {
    if !versions.over_tcp() {
        let udp = ports::open(options)?;
        return Ok(Listeners { address: udp.address, udp: Some(udp), tcp: Vec::new(), place });
    }
    let tcp = listen(place, versions, threads)?;
    let address = tcp.first().and_then(|first| first.local_addr().ok()).unwrap_or(options.address);
    if !versions.http3 {
        return Ok(Listeners { udp: None, tcp, address, place });
    }
    let udp = ports::open(&ports::OpenOptions { address, ..options.clone() })?;
    Ok(Listeners { address: udp.address, udp: Some(udp), tcp, place })
}

/// Listens on TCP. If the system may choose the port, it is one that is free for UDP too.
fn listen(place: Place, versions: Versions, threads: usize) -> Result<Vec<TcpListener>, String> {
    let Place { address, device } = place;
    let mut tries = 0;
    loop {
        let tcp = server::tcp::listen(address, device, threads)
            .map_err(|error| refusal(address, versions, &error))?;
        let bound = tcp.first().and_then(|first| first.local_addr().ok()).unwrap_or(address);
        tries += 1;
        // Another program may still come in between; then opening UDP says so.
        if address.port() > 0 || !versions.http3 || tries == TRIES || UdpSocket::bind(bound).is_ok() {
            return Ok(tcp);
        }
    }
}

fn refusal(address: SocketAddr, versions: Versions, error: &io::Error) -> String {
    let (ip, port) = (address.ip(), address.port());
    let alone = if versions.http3 { ", or serve HTTP/3 alone with --http 3" } else { "" };
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "TCP port {port} on {ip} is in use by another program: end that one, choose another port with --listen{alone}"
        ),
        io::ErrorKind::PermissionDenied => format!(
            "TCP port {port} may not be bound by this user: choose a port above 1023 with --listen, or grant CAP_NET_BIND_SERVICE"
        ),
        _ => format!("cannot listen on TCP {address}: {error}"),
    }
}
