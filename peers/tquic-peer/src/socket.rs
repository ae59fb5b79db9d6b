//! A socket between an endpoint and the network, one datagram a call.

use crate::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tquic::{Endpoint, PacketInfo, PacketSendHandler};

/// The longest time in which nothing else is looked at.
const LONGEST: Duration = Duration::from_millis(100);

pub(crate) struct Socket {
    socket: UdpSocket,
    pub(crate) local: SocketAddr,
}

impl Socket {
    pub(crate) fn bind(at: SocketAddr) -> Result<Rc<Socket>, Error> {
        Socket::of(UdpSocket::bind(at)?)
    }

    /// Connected, so that the local address is known.
    pub(crate) fn towards(peer: SocketAddr) -> Result<Rc<Socket>, Error> {
        let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any)?;
        socket.connect(peer)?;
        Socket::of(socket)
    }

    fn of(socket: UdpSocket) -> Result<Rc<Socket>, Error> {
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        Ok(Rc::new(Socket { socket, local }))
    }

    /// Lets the endpoint send, waits for datagrams or its timer, and feeds it.
    pub(crate) fn turn(&self, endpoint: &mut Endpoint, buffer: &mut [u8]) -> Result<(), Error> {
        endpoint.process_connections()?;
        let wait = endpoint.timeout().unwrap_or(LONGEST).min(LONGEST);
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&Timespec::try_from(wait)?))?;
        loop {
            match self.socket.recv_from(buffer) {
                Ok((length, src)) => {
                    let info = PacketInfo { src, dst: self.local, time: Instant::now() };
                    // What is no good is dropped.
                    let _ = endpoint.recv(&mut buffer[..length], &info);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
        }
        endpoint.on_timeout(Instant::now());
        Ok(())
    }
}

impl PacketSendHandler for Socket {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> Result<usize, tquic::Error> {
        for (sent, (bytes, info)) in packets.iter().enumerate() {
            let outcome = if self.socket.peer_addr().is_ok() {
                self.socket.send(bytes)
            } else {
                self.socket.send_to(bytes, info.dst)
            };
            if outcome.is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
                return Ok(sent);
            }
        }
        Ok(packets.len())
    }
}
