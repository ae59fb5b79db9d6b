//! The ports of several workers at one address.
//!
//! The first is bound as if it were alone and opened to others only then, so that an address which another program uses
//! is an error, as it is for one worker: bound with SO_REUSEPORT from the start, two servers of one user would share an
//! address without noticing. The order of the ports is the order of the workers; classic steering counts on that, so
//! the ports of a group should live equally long.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};

use datapath::Port as _;

use crate::options::{BindError, BindOptions};
use crate::port::UdpPort;
use crate::steering::{Members, Steering, SteeringChoice, steer_by_classic, steer_by_ebpf};

/// Where a group without sockets is.
const UNKNOWN: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

/// Ports at one address, one for each worker.
#[derive(Debug)]
pub struct Group {
    /// Worker 0's, worker 1's, and so on.
    pub ports: Vec<UdpPort>,
    /// How datagrams find their worker.
    pub steering: Steering,
    /// Why better steerings are not in use, one line each, best first. Empty when the best is, or when it was not asked for.
    pub declined: Vec<String>,
}

/// Binds a port for each of `workers` (0 counts as 1) to the address that `options` name, and steers as `choice` says.
/// Port 0 is any free one, the same for all.
///
/// `options.reuse_port` lets other sockets of the same user share the address; then the eBPF program counts for all of
/// them, and classic steering is not possible.
///
/// # Errors
/// As [`UdpPort::bind`], and when the steering that was chosen is not permitted.
pub fn bind_group(options: &BindOptions, workers: u8, choice: SteeringChoice) -> Result<Group, BindError> {
    let first = UdpPort::bind(options)?;
    if workers <= 1 {
        return Ok(Group { ports: vec![first], steering: Steering::Single, declined: Vec::new() });
    }
    let address = first.local_address();
    let fail = |step| move |source| BindError { address, step, source };
    first.share().map_err(fail("set SO_REUSEPORT on"))?;
    let shared = BindOptions { address, reuse_port: true, ..options.clone() };
    let mut ports = vec![first];
    for _ in 1..workers {
        ports.push(UdpPort::bind(&shared)?);
    }
    let members = if options.reuse_port { Members::Perhaps } else { Members::Ours };
    steer(ports, choice, members)
}

/// What is known of a group that another process has bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steered {
    /// It steers already.
    By(Steering),
    /// It is to be steered as chosen.
    AsChosen(SteeringChoice),
}

/// Takes the sockets of a group that another process has bound, in the order of the workers; none is an error. Their address is their own
/// affair; of `options` the rest counts.
///
/// # Errors
/// As [`UdpPort::adopt`], and when the steering that was chosen is not permitted.
pub fn adopt_group(
    options: &BindOptions,
    sockets: Vec<OwnedFd>,
    steered: Steered,
) -> Result<Group, BindError> {
    let adopt = |socket| UdpPort::adopt(socket, options);
    let ports: Vec<UdpPort> = sockets.into_iter().map(adopt).collect::<Result<_, _>>()?;
    match steered {
        _ if ports.len() == 1 => Ok(Group { ports, steering: Steering::Single, declined: Vec::new() }),
        Steered::By(steering) => Ok(Group { ports, steering, declined: Vec::new() }),
        Steered::AsChosen(choice) => steer(ports, choice, Members::Ours),
    }
}

/// Has the datagrams of a group find their worker.
fn steer(ports: Vec<UdpPort>, choice: SteeringChoice, members: Members) -> Result<Group, BindError> {
    let address = ports.first().map_or(UNKNOWN, UdpPort::local_address);
    let fail = |step| move |source| BindError { address, step, source };
    let sockets: Vec<BorrowedFd<'_>> = ports.iter().map(UdpPort::socket).collect();
    let ebpf = || steer_by_ebpf(&sockets);
    let classic = || steer_by_classic(&sockets, members);
    let mut declined = Vec::new();
    let steering = match choice {
        SteeringChoice::Ebpf => {
            ebpf().map(|()| Steering::Ebpf).map_err(fail("steer by eBPF the sockets of"))?
        }
        SteeringChoice::Classic => {
            classic().map(|()| Steering::Classic).map_err(fail("steer by classic BPF the sockets of"))?
        }
        SteeringChoice::HandOff => Steering::HandOff,
        SteeringChoice::Auto => first_permitted(
            [(Steering::Ebpf, &ebpf as &dyn Fn() -> io::Result<()>), (Steering::Classic, &classic)],
            &mut declined,
        ),
    };
    Ok(Group { ports, steering, declined })
}

/// The first of `steerings` that succeeds; why others did not is added to `declined`.
fn first_permitted<const N: usize>(
    steerings: [(Steering, &dyn Fn() -> io::Result<()>); N],
    declined: &mut Vec<String>,
) -> Steering {
    for (steering, attempt) in steerings {
        match attempt() {
            Ok(()) => return steering,
            Err(error) => declined.push(format!("no steering by {steering}: {error}")),
        }
    }
    Steering::HandOff
}

#[cfg(test)]
mod tests;
