//! Finds out that nobody listens at an address, long before a handshake times out.
//!
//! A closed UDP port answers with an ICMP message, which the kernel reports only to a connected socket. A data path's socket
//! is not connected, since it serves many peers. So when a server is silent, a second socket that is connected to it sends
//! one empty datagram, which every QUIC endpoint drops, and the kernel's answer to that tells.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// A question to the network about one address.
#[derive(Debug)]
pub(crate) struct Probe {
    socket: UdpSocket,
}

impl Probe {
    /// Asks.
    ///
    /// # Errors
    /// There is no way to the address, or the system lets us have no socket.
    pub(crate) fn send(address: SocketAddr) -> io::Result<Probe> {
        let local: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(local)?;
        socket.set_nonblocking(true)?;
        socket.connect(address)?;
        socket.send(&[])?;
        Ok(Probe { socket })
    }

    /// The bad news, once it is there. No news says nothing.
    pub(crate) fn verdict(&self) -> Option<io::Error> {
        match self.socket.recv(&mut [0; 64]) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_port_is_told_from_a_silent_one() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(silent) = UdpSocket::bind(local) else { continue };
            let address = silent.local_addr().unwrap();
            let probe = Probe::send(address).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(probe.verdict().is_none());
            drop(silent);
            let probe = Probe::send(address).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert_eq!(probe.verdict().map(|error| error.kind()), Some(io::ErrorKind::ConnectionRefused));
        }
    }
}
