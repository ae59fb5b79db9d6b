//! A choice and an address become ports, one for each worker.
//!
//! The two kinds of ports are two types, so that a worker is compiled for its port and no packet passes an indirect call:
//! the caller matches on [`Opened`] once and calls the same generic code in both arms.

use crate::auto;
use crate::choice::Choice;
use crate::contest::Verdict;
use crate::place::{self, Place};
use core::net::SocketAddr;
use datapath::Port;
use udp::{BindOptions, Group, Steering, SteeringChoice, Variant};

/// What is to be opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data path.
    pub choice: Choice,
    /// Where; port 0 is any free one, an unspecified IP address all of its family.
    pub address: SocketAddr,
    /// The interface, for `auto` and `xdp`. Default: the one that has the address, or the default route.
    pub interface: Option<String>,
    /// How many ports.
    pub workers: Workers,
    /// How datagrams find the port of their worker. With AF_XDP the interface's queues decide, and workers hand over.
    pub steering: SteeringChoice,
}

/// How many ports are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workers {
    /// One; with AF_XDP one for each queue of the interface, since what arrives on others would be lost.
    #[default]
    Few,
    /// So many; 0 is taken as 1.
    Exactly(u8),
    /// One for each of so many cores; with AF_XDP one for each queue of the interface.
    OnePerCore(u8),
}

impl Options {
    /// As few ports as possible at `address`.
    pub fn new(choice: Choice, address: SocketAddr) -> Options {
        Options {
            choice,
            address,
            interface: None,
            workers: Workers::default(),
            steering: SteeringChoice::default(),
        }
    }
}

/// Ports that are open.
pub enum Opened {
    /// Through the kernel's UDP.
    Udp(Group),
}

/// What [`open`] did.
pub struct Paths {
    /// The ports.
    pub opened: Opened,
    /// Where they are bound.
    pub address: SocketAddr,
    /// How many there are.
    pub workers: usize,
    /// The path in use; never [`Choice::Auto`].
    pub choice: Choice,
    /// What was measured for [`Choice::Auto`].
    pub verdict: Option<Verdict>,
    /// The interface that the ports are tied to, if they are.
    pub interface: Option<String>,
    /// How datagrams find their worker.
    pub steering: Steering,
    /// Why a better steering is not in use, one line each.
    pub declined: Vec<String>,
}

/// Opens ports as `options` say.
///
/// # Errors
/// One line for users: what is wrong and what to do.
pub fn open(options: &Options) -> Result<Paths, String> {
    let verdict = match options.choice {
        Choice::Auto => Some(measure(options)?),
        _ => None,
    };
    let choice = verdict.as_ref().map_or(options.choice, |verdict| verdict.choice);
    let opened = match choice.variant() {
        Some(variant) => open_udp(options, variant)?,
        None => return Err("AF_XDP is not built yet: use --datapath gso".to_owned()),
    };
    let Opened::Udp(group) = &opened;
    Ok(Paths {
        address: group.ports.first().map_or(options.address, Port::local_address),
        workers: group.ports.len(),
        choice,
        verdict,
        interface: None,
        steering: group.steering,
        declined: group.declined.clone(),
        opened,
    })
}

/// Finds the path that costs least.
fn measure(options: &Options) -> Result<Verdict, String> {
    // A name that was given must be right; a place that cannot be told otherwise is no reason not to run.
    let place = match &options.interface {
        Some(name) => place::named(name)?,
        None => match place_of(options) {
            Ok(place) => place,
            Err(why) => return Ok(Verdict::unmeasured(why)),
        },
    };
    Ok(auto::among(&place, Vec::new()))
}

fn place_of(options: &Options) -> Result<Place, String> {
    place::of(options.address.ip())
}

fn open_udp(options: &Options, variant: Variant) -> Result<Opened, String> {
    let count = match options.workers {
        Workers::Few => 1,
        Workers::Exactly(count) | Workers::OnePerCore(count) => count,
    };
    let bind = BindOptions { departure_times: true, ..BindOptions::new(options.address, variant) };
    udp::bind_group(&bind, count, options.steering).map(Opened::Udp).map_err(|error| error.to_string())
}
