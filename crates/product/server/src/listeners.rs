//! The ports of a server: UDP for HTTP/3 and TCP for the others, on one port number for each address.

use crate::bind_error::BindError;
use crate::listen::{self, Listen, ListenAddress};
use crate::tcp;
use crate::upgrade::{Kind, PassedSocket, PassedSockets};
use crate::versions::Versions;
use core::net::SocketAddr;
use ports::{AnyPort, DataPathChoice, OpenOptions, OpenOutcome};
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsFd as _;
use udp::{Steered, Steering};

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
    /// Copies of all sockets, if they were asked for.
    pub(crate) copies: Vec<PassedSocket>,
}

/// What is opened, and how.
pub(crate) struct Opening<'a> {
    pub(crate) options: &'a OpenOptions,
    pub(crate) versions: Versions,
    /// Of TCP.
    pub(crate) threads: usize,
    /// Sockets that are open already, and how they are steered.
    pub(crate) passed: &'a mut PassedSockets,
    pub(crate) steered: Option<Steering>,
    pub(crate) copies: Copies,
}

/// Whether copies of sockets are made, for a process that takes the place of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    Made,
    None,
}

/// Opens UDP and listeners on TCP, as far as the versions need them, at each address of `at`; at the default one if there are none.
pub(crate) fn open(at: &[Listen], opening: &mut Opening<'_>) -> Result<Listeners, BindError> {
    let at = listen::distinct(at);
    let Some((&first, more)) = at.split_first() else {
        return open_one((Listen::default(), 0), opening.options, opening);
    };
    let mut listeners = open_one((first, 0), opening.options, opening)?;
    for (number, &at) in (1..).zip(more) {
        // What was chosen by measurement for the first address holds for all.
        let choice = listeners.udp.as_ref().map_or(opening.options.choice, |udp| udp.choice);
        let options = OpenOptions { choice, ..opening.options.clone() };
        listeners.add(open_one((at, number), &options, opening)?)?;
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
        self.copies.extend(next.copies);
        Ok(())
    }
}

/// Opens at one address, of this number: the way in which it is open already, or the first that the system grants.
fn open_one(
    (at, number): (Listen, usize),
    options: &OpenOptions,
    opening: &mut Opening<'_>,
) -> Result<Listeners, BindError> {
    let mut addresses = at.addresses();
    if options.choice == DataPathChoice::Xdp {
        // AF_XDP has an interface already.
        addresses.retain(|address| address.device.is_none());
    }
    if let Some(&open) = addresses.iter().find(|address| opening.passed.has(address)) {
        addresses = vec![open];
    }
    let opened = listen::first(&addresses, |place| {
        let (address, device) = (place.address, place.device.map(str::to_owned));
        open_at((place, number), &OpenOptions { address, device, ..options.clone() }, opening)
    });
    match opened {
        Some(opened) => opened.map(|(_, listeners)| listeners),
        None => Err(BindError::Setting("there is no address to listen on".to_owned())),
    }
}

fn open_at(
    (place, number): (ListenAddress, usize),
    options: &OpenOptions,
    opening: &mut Opening<'_>,
) -> Result<Listeners, BindError> {
    let versions = opening.versions;
    let tcp = if versions.over_tcp() { listen_on(place, opening)? } else { Vec::new() };
    let bound = tcp.first().and_then(|first| first.local_addr().ok());
    let address = bound.unwrap_or(options.address);
    let udp = match versions.contains(Versions::HTTP3) {
        true => Some(open_udp(place, &OpenOptions { address, ..options.clone() }, opening)?),
        false => None,
    };
    let copies = match opening.copies {
        Copies::Made => copies((place, number), &tcp, udp.as_ref()).map_err(BindError::System)?,
        Copies::None => Vec::new(),
    };
    let address = udp.as_ref().filter(|_| bound.is_none()).map_or(address, |udp| udp.address);
    Ok(Listeners {
        udp,
        tcp: tcp.into_iter().map(|listener| vec![listener]).collect(),
        address,
        addresses: vec![address],
        places: vec![place.describe(address)],
        copies,
    })
}

fn open_udp(
    place: ListenAddress,
    options: &OpenOptions,
    opening: &mut Opening<'_>,
) -> Result<OpenOutcome, BindError> {
    let passed = match options.choice {
        // A service manager has opened them for the kernel's UDP.
        DataPathChoice::Xdp if opening.steered.is_none() => Vec::new(),
        _ => opening.passed.take(Kind::Udp, &place),
    };
    let opened = if passed.is_empty() {
        ports::open(options)
    } else {
        let steered = opening.steered.map_or(Steered::AsChosen(options.steering), Steered::By);
        ports::adopt(options, passed, steered)
    };
    opened.map_err(BindError::DataPath)
}

fn copies(
    at: (ListenAddress, usize),
    tcp: &[TcpListener],
    udp: Option<&OpenOutcome>,
) -> io::Result<Vec<PassedSocket>> {
    let udp = udp.into_iter().flat_map(|udp| udp.ports.iter().flat_map(AnyPort::sockets));
    let udp = udp.map(|socket| PassedSocket::copy(Kind::Udp, at, socket));
    udp.chain(tcp.iter().map(|listener| PassedSocket::copy(Kind::Tcp, at, listener.as_fd()))).collect()
}

/// Listens on TCP. If the system may choose the port, it is one that is free for UDP too.
fn listen_on(place: ListenAddress, opening: &mut Opening<'_>) -> Result<Vec<TcpListener>, BindError> {
    let ListenAddress { address, device } = place;
    let (versions, threads) = (opening.versions, opening.threads);
    let passed = opening.passed.take_listeners(&place, threads);
    let passed = passed.map_err(|error| BindError::Listen(address, error))?;
    if !passed.is_empty() {
        return Ok(passed);
    }
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
