//! Finds out that no server listens at an address, long before a handshake times out.
//!
//! A closed UDP port answers with an ICMP message, which the kernel reports only to a connected socket. A data path's socket
//! is not connected, since it serves many peers. So when a server is silent, a second socket that is connected to it sends
//! one empty datagram, which every QUIC endpoint drops, and the kernel's answer to that tells.
//!
//! A question for versions is a datagram of a version that does not exist: a server answers with those that it speaks, and keeps
//! nothing of it (RFC 9000 §6.1).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// A question to the network about one address.
#[derive(Debug)]
pub struct Probe {
    socket: UdpSocket,
}

/// What came back of a question.
#[derive(Debug)]
pub enum ProbeResult {
    /// Nothing, or nothing that is to the point.
    None,
    /// A QUIC server's versions.
    Versions,
    /// What the network says against the address.
    Bad(io::Error),
}

impl Probe {
    /// Asks.
    ///
    /// # Errors
    /// There is no way to the address, or the system lets us have no socket.
    pub fn send(address: SocketAddr) -> io::Result<Probe> {
        Probe::ask(address, &[])
    }

    fn ask(address: SocketAddr, question: &[u8]) -> io::Result<Probe> {
        let local: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(local)?;
        socket.set_nonblocking(true)?;
        socket.connect(address)?;
        socket.send(question)?;
        Ok(Probe { socket })
    }

    /// Asks for the versions of QUIC that are spoken at `address`.
    ///
    /// # Errors
    /// The same.
    pub fn for_versions(address: SocketAddr) -> io::Result<Probe> {
        Probe::ask(address, &question())
    }

    /// What has come back.
    pub fn news(&self) -> ProbeResult {
        let mut answer = [0; 64];
        match self.socket.recv(&mut answer) {
            // A packet with a long header of version 0. RFC 8999 §6.
            Ok(7..) if answer[0] & 0x80 != 0 && answer[1..5] == [0; 4] => ProbeResult::Versions,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => ProbeResult::Bad(error),
            _ => ProbeResult::None,
        }
    }

    /// The bad news, once it is there. No news says nothing.
    pub fn verdict(&self) -> Option<io::Error> {
        match self.news() {
            ProbeResult::Bad(error) => Some(error),
            ProbeResult::None | ProbeResult::Versions => None,
        }
    }
}

/// Whether an error is about the address rather than about the socket of this side.
pub fn is_about_address(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, PermissionDenied};
    matches!(kind, ConnectionRefused | HostUnreachable | NetworkUnreachable | PermissionDenied)
}

/// A packet of a version that is reserved for this (RFC 9000 §15), as long as servers demand (§6.1, §14.1).
fn question() -> [u8; 1_200] {
    const VERSION: [u8; 4] = [0x1a, 0x2a, 0x3a, 0x4a];
    let mut packet = [0; 1_200];
    packet[0] = 0xc0;
    packet[1..5].copy_from_slice(&VERSION);
    // Two connection IDs of eight bytes each.
    packet[5] = 8;
    packet[6..14].copy_from_slice(b"versions");
    packet[14] = 8;
    packet[15..23].copy_from_slice(b"of QUIC?");
    packet
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
