//! AF_XDP: the raw rings of the `xdp` room, and its ports.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::Duration;

use base::net::{Addresses, Ecn};
use base::sink::TrainPath;
use xdp::raw::{RawReceiver, RawSender};
use xdp::{Mode, Options, XdpPort};

use super::child::{BatchReceiver, BatchSender, wait_readable};

/// Sends by the TX ring alone.
pub(super) struct RingSender {
    sender: RawSender,
    /// Holds the port.
    _reserved: UdpSocket,
}

impl RingSender {
    pub(super) fn new(
        local: IpAddr,
        interface: &str,
        peer: SocketAddr,
        size: usize,
    ) -> io::Result<RingSender> {
        let reserved = UdpSocket::bind((local, 0))?;
        let path = TrainPath::new(Addresses { local: reserved.local_addr()?, peer }, Ecn::NotEct);
        let sender = RawSender::open(interface, &path, size).map_err(io::Error::other)?;
        Ok(RingSender { sender, _reserved: reserved })
    }
}

impl BatchSender for RingSender {
    fn push(&mut self, most: u64) -> io::Result<u64> {
        Ok(self.sender.send(usize::try_from(most).unwrap_or(usize::MAX))? as u64)
    }

    fn calls(&self) -> u64 {
        self.sender.calls
    }
}

/// Receives from the RX ring alone.
pub(super) struct RingReceiver {
    receiver: RawReceiver,
    reserved: UdpSocket,
    local: SocketAddr,
}

impl RingReceiver {
    pub(super) fn new(local: IpAddr, interface: &str, mode: Mode) -> io::Result<RingReceiver> {
        let reserved = UdpSocket::bind((local, 0))?;
        let local = reserved.local_addr()?;
        let receiver = RawReceiver::open(interface, local, mode).map_err(io::Error::other)?;
        Ok(RingReceiver { receiver, reserved, local })
    }
}

impl BatchReceiver for RingReceiver {
    fn address(&self) -> SocketAddr {
        self.local
    }

    fn take(&mut self) -> io::Result<u64> {
        let taken = self.receiver.take();
        if taken == 0 {
            // What the program does not take (it looks for QUIC) would end up here: no call waits for it in vain.
            let mut one = [0; 1];
            self.reserved.set_nonblocking(true)?;
            if self.reserved.recv(&mut one).is_ok() {
                return Err(io::Error::other("datagrams went past AF_XDP"));
            }
        }
        Ok(taken as u64)
    }

    fn wait(&mut self, span: Duration) -> io::Result<()> {
        wait_readable(self.receiver.as_fd(), span)
    }

    fn calls(&self) -> u64 {
        self.receiver.calls
    }
}

/// A port of the `xdp` room on queue 0.
pub(super) fn port(local: IpAddr, interface: &str, mode: Mode) -> io::Result<XdpPort> {
    let options = Options { mode, queues: Some(0..1), ..Options::new(interface, SocketAddr::new(local, 0)) };
    let mut ports = xdp::open(&options).map_err(io::Error::other)?;
    ports.pop().ok_or_else(|| io::Error::other("no port was opened"))
}
