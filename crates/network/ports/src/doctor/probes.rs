//! Things that are tried out on sockets and programs of our own, and are gone again when the answer is there.

use crate::open_error::explain;
use base::net::{Addresses, Ecn};
use base::sink::{PacketSink as _, TrainPath};
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use datapath::{Port as _, Rx as _, Tx as _};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use udp::{BindOptions, UdpPort, Variant};
use xdp::{Mode, Options};

/// The kernel's number of AF_XDP sockets.
const AF_XDP: u16 = 44;
/// Datagrams of the train that is sent.
const TRAIN: usize = 8;
const SIZE: usize = 1_200;

/// How trains travel through this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offloads {
    /// A train leaves in one piece.
    pub(crate) gso: bool,
    /// It arrives in one piece.
    pub(crate) gro: bool,
    /// Bytes of packets that the kernel's buffers hold: received, sent.
    pub(crate) buffers: (usize, usize),
}

/// Sends a train to a socket of our own.
pub(crate) fn offloads() -> Result<Offloads, String> {
    let ours = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))];
    let bind = |address| UdpPort::bind(&BindOptions::new(address, Variant::Gso));
    let (mut receiver, mut sender) = ours
        .into_iter()
        .find_map(|address| Some((bind(address).ok()?, bind(address).ok()?)))
        .ok_or("no UDP socket can be had on lo")?;
    let (receive, send) = sender.buffer_sizes().map_err(|error| error.to_string())?;
    let arrived = train(&mut sender, &mut receiver).map_err(|error| error.to_string())?;
    Ok(Offloads {
        gso: sender.capabilities().segments_offloaded && sender.counters().tx.trains == 1,
        gro: arrived == 1,
        // Half of what the kernel tells is for its own books.
        buffers: (receive / 2, send / 2),
    })
}

/// Sends a train and returns in how many it arrived.
fn train(sender: &mut UdpPort, receiver: &mut UdpPort) -> io::Result<u64> {
    let addresses = Addresses { local: sender.local_address(), peer: receiver.local_address() };
    if sender.begin(TrainPath::new(addresses, Ecn::NotEct), SIZE).is_some() {
        for _ in 0..TRAIN {
            sender.room().fill(0);
            sender.push(SIZE);
        }
        sender.end();
    }
    sender.flush()?;
    while receiver.poll()? > 0 {}
    Ok(receiver.counters().rx.trains)
}

/// Whether trains can be lent to the kernel, by binding a port that does.
pub(crate) fn lending() -> Result<(), String> {
    let options = BindOptions::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Variant::Uring);
    let port = UdpPort::bind(&options).map_err(|error| error.to_string())?;
    match port.variant() {
        Variant::Uring => Ok(()),
        _ => Err(port.advice().unwrap_or_default()),
    }
}

/// Whether an AF_XDP socket can be had.
pub(crate) fn xdp_socket() -> io::Result<()> {
    let family = AddressFamily::from_raw(AF_XDP);
    socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None).map(|_| ()).map_err(io::Error::from)
}

/// Whether the kernel takes an eBPF program of ours. It is attached to nothing.
pub(crate) fn ebpf() -> Result<(), String> {
    ebpf::steer::ReuseportProgram::load(2).map(|_| ()).map_err(|error| error.to_string())
}

/// Whether workers can share an address with this way of finding the right one, by binding two.
pub(crate) fn steering(choice: udp::SteeringChoice) -> Result<(), String> {
    let options = BindOptions::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Variant::Plain);
    udp::bind_group(&options, 2, choice).map(|_| ()).map_err(|error| error.to_string())
}

/// The check of the mode that needs nothing of a driver.
pub(crate) const GENERIC: &str = "xdp generic";

/// Which AF_XDP modes the interface takes on its first queue: the check's name for each, and why not.
pub(crate) fn xdp_modes(interface: &str) -> Vec<(&'static str, Result<(), String>)> {
    let modes = [("xdp zero-copy", Mode::ZeroCopy), ("xdp driver", Mode::Driver), (GENERIC, Mode::Generic)];
    let attempt = |mode| {
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let options = Options { mode, queues: Some(0..1), ..Options::new(interface, address) };
        xdp::open(&options).map(|_| ()).map_err(|error| explain(&error, 1))
    };
    modes.into_iter().map(|(check, mode)| (check, attempt(mode))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_to_ourselves_tells_of_both_offloads() {
        let offloads = offloads().unwrap();
        // Every kernel since 5.0 merges what it could segment.
        assert_eq!(offloads.gso, offloads.gro);
        assert!(offloads.buffers.0 > 0 && offloads.buffers.1 > 0);
    }
}
