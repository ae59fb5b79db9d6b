//! The ports of a server: UDP for HTTP/3 and TCP for the others, on one port number for each address.

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
    /// Of each thread, one for each address; no threads without HTTP/1.1 and 2.
    pub(crate) tcp: Vec<Vec<TcpListener>>,
    /// The first of the addresses at which both are bound.
    pub(crate) address: SocketAddr,
    /// All of them.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The same for people.
    pub(crate) places: Vec<String>,
}

/// Opens UDP as `options` say and listeners on TCP for `threads` threads, as far as the versions need them, at each address of
/// `at`; at the default one if there are none.
pub(crate) fn open(
    at: &[Listen],
    options: &OpenOptions,
    versions: Versions,
    threads: usize,
) -> Result<Listeners, BindError> {
    let at = listen::distinct(at);
    let Some((&first, more)) = at.split_first() else {
        return open_one(Listen::default(), options, versions, threads);
    };
    let mut listeners = open_one(first, options, versions, threads)?;
    for &at in more {
        // What was chosen by measurement for the first address holds for all.
        let choice = listeners.udp.as_ref().map_or(options.choice, |udp| udp.choice);
        listeners.add(open_one(at, &OpenOptions { choice, ..options.clone() }, versions, threads)?)?;
    }
    Ok(listeners)
}

impl Listeners {
    /// Those of one more address.
    fn add(&mut self, next: Listeners) -> Result<(), BindError> {
        if let (Some(udp), Some(next)) = (&mut self.udp, next.udp) {
            udp.add_address(next).map_err(BindError::Setting)?;
        }
        self.tcp.iter_mut().zip(next.tcp).for_each(|(thread, next)| thread.extend(next));
        self.addresses.extend(next.addresses);
        self.places.extend(next.places);
        Ok(())
    }
}

/// Opens at one address, the first way to bind it that the system grants.
fn open_one(
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
    let at = |address| Listeners {
        udp: None,
        tcp: Vec::new(),
        address,
        addresses: vec![address],
        places: vec![place.describe(address)],
    };
    if !versions.over_tcp() {
        let udp = ports::open(options).map_err(BindError::DataPath)?;
        let address = udp.address;
        return Ok(Listeners { udp: Some(udp), ..at(address) });
    }
    let tcp = listen_on(place, versions, threads)?;
    let address = tcp.first().and_then(|first| first.local_addr().ok()).unwrap_or(options.address);
    let tcp = tcp.into_iter().map(|listener| vec![listener]).collect();
    if !versions.contains(Versions::HTTP3) {
        return Ok(Listeners { tcp, ..at(address) });
    }
    let udp = ports::open(&OpenOptions { address, ..options.clone() }).map_err(BindError::DataPath)?;
    Ok(Listeners { udp: Some(udp), tcp, ..at(address) })
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
