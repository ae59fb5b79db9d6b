//! A lab, and ways to send and receive that every test uses.
#![allow(clippy::allow_attributes, dead_code, reason = "each user takes another part")]

use std::net::SocketAddr;
use std::time::Duration;

use base::net::{Addresses, Ecn};
use base::sink::TrainPath;
use datapath::Port;
use netns::{Lab, LabOptions, Switch};
use udp::{BindOptions, UdpPort, Variant};
use xdp::{Mode, Options, XdpError, XdpPort};

/// The port number of servers.
pub(crate) const SERVER: u16 = 4433;

/// Two namespaces joined by veth, without segmentation offload; `None`, and a line, where this may not be.
pub(crate) fn lab(queues: u32) -> Option<Lab> {
    lab_with(&LabOptions { queues, udp_segmentation: Switch::Off, ..LabOptions::default() })
}

pub(crate) fn lab_with(options: &LabOptions) -> Option<Lab> {
    if !requirements::root("AF_XDP in network namespaces") {
        return None;
    }
    Some(Lab::new(options).unwrap())
}

/// The frames are all where they were at first.
pub(crate) fn assert_no_leak(port: &XdpPort) {
    let frames = port.frames().unwrap();
    assert_eq!(frames.free, frames.all, "{:?}", port.counters());
}

/// One XDP port on `address` in the server's namespace.
pub(crate) fn server(lab: &Lab, address: &str, mode: Mode) -> XdpPort {
    let ports = lab.server().run(|| open(lab.server().interface(), address, mode)).unwrap();
    ports.into_iter().next().unwrap()
}

/// XDP ports on `address` of `interface` in the present namespace.
pub(crate) fn open(interface: &str, address: &str, mode: Mode) -> Result<Vec<XdpPort>, XdpError> {
    let mut options = Options::new(interface, address.parse().unwrap());
    options.mode = mode;
    xdp::open(&options)
}

/// A kernel UDP port in the client's namespace.
pub(crate) fn udp_client(lab: &Lab, address: SocketAddr) -> UdpPort {
    let options = BindOptions::new(address, Variant::Mmsg);
    lab.client().run(|| UdpPort::bind(&options)).unwrap()
}

/// A path from one address to another.
pub(crate) fn path(local: SocketAddr, peer: SocketAddr, ecn: Ecn) -> TrainPath {
    TrainPath::new(Addresses { local, peer }, ecn)
}

/// A datagram that looks like a QUIC packet and says which it is.
pub(crate) fn datagram(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0x40 | number as u8 & 0x3f; len];
    bytes[1..9].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Sends trains until all `datagrams` are on their way.
pub(crate) fn send(port: &mut impl Port, path: TrainPath, datagrams: &[Vec<u8>]) {
    let size = datagrams.iter().map(Vec::len).max().unwrap();
    let mut rest = datagrams;
    let mut tries = 0;
    while !rest.is_empty() {
        tries += 1;
        assert!(tries < 10_000, "the port does not take {} datagrams", rest.len());
        if let Some(room) = port.begin(path, size) {
            let (now, later) = rest.split_at(room.min(rest.len()));
            for bytes in now {
                port.room()[..bytes.len()].copy_from_slice(bytes);
                port.push(bytes.len());
            }
            for (index, bytes) in now.iter().enumerate() {
                assert_eq!(port.packet(index), bytes, "packets of the open train can be reached");
            }
            port.end();
            rest = later;
        }
        port.flush().unwrap();
    }
}

/// What arrived: payload, path, marking.
pub(crate) type Arrived = (Vec<u8>, Addresses, Ecn);

/// Receives until `count` datagrams are there, or nothing has come for a second.
pub(crate) fn receive(port: &mut impl Port, count: usize) -> Vec<Arrived> {
    let mut arrived = Vec::new();
    let mut idle = 0;
    while arrived.len() < count && idle < 10 {
        let trains = port.poll().unwrap();
        for index in 0..trains {
            let train = port.train(index);
            for bytes in train.bytes.chunks(train.segment_size) {
                arrived.push((bytes.to_vec(), train.addresses, train.ecn));
            }
        }
        if trains > 0 {
            idle = 0;
        } else {
            idle += 1;
            let deadline = port.now() + Duration::from_millis(100).into();
            port.wait(Some(deadline)).unwrap();
        }
        port.flush().unwrap();
    }
    // The last batch's memory goes back.
    assert_eq!(port.poll().unwrap(), 0, "more arrived than the {count} datagrams that were expected");
    arrived
}
