//! A network address translator that changes its mind: a relay between a client and a server whose port towards the server
//! changes every this many bytes.
//!
//! What comes back to an old port is still delivered, as translators do for a while: what is on its way is late, not lost.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};

/// A bulk transfer is bursty, and a relay slower than the kernel.
const BUFFER: usize = 8 << 20;
/// Datagrams of one socket between two looks at the others.
const BATCH: usize = 64;

/// A relay on a thread of its own, which ends with it.
pub(crate) struct Relay {
    /// Where the client finds it.
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Moves>>>,
}

/// What a relay has done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves {
    /// The ports that the server saw, in order.
    pub(crate) ports: Vec<u16>,
    /// Bytes that went to the client after the last change.
    pub(crate) since: u64,
}

/// The sockets, opened where the relay shall be.
pub(crate) struct Sockets {
    front: UdpSocket,
    upstream: Vec<UdpSocket>,
}

impl Sockets {
    /// A socket on `near` for the client and `ports` towards `server`.
    pub(crate) fn open(near: IpAddr, far: IpAddr, server: SocketAddr, ports: usize) -> io::Result<Sockets> {
        let upstream = (0..ports).map(|_| {
            let socket = open(far)?;
            socket.connect(server)?;
            Ok(socket)
        });
        Ok(Sockets { front: open(near)?, upstream: upstream.collect::<io::Result<_>>()? })
    }
}

fn open(address: IpAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, 0))?;
    socket.set_nonblocking(true)?;
    // Root's privilege; with less room more is lost, and the transfer is slower.
    let _ = set_socket_recv_buffer_size_force(&socket, BUFFER);
    let _ = set_socket_send_buffer_size_force(&socket, BUFFER);
    Ok(socket)
}

impl Relay {
    /// Relays, and takes the next port after every `every` bytes for the client until there is none left.
    pub(crate) fn start(sockets: Sockets, every: u64) -> io::Result<Relay> {
        let (address, stop) = (sockets.front.local_addr()?, Arc::new(AtomicBool::new(false)));
        let flag = Arc::clone(&stop);
        let thread = spawn(move || relay(&sockets, every, &flag));
        Ok(Relay { address, stop, thread: Some(thread) })
    }

    /// Ends it.
    pub(crate) fn finish(mut self) -> io::Result<Moves> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or_else(|| io::Error::other("it has ended before"))?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the relay panicked")))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn relay(sockets: &Sockets, every: u64, stop: &AtomicBool) -> io::Result<Moves> {
    let Sockets { front, upstream } = sockets;
    let mut buffer = vec![0; 65_536];
    let (mut client, mut current, mut carried) = (None, 0, 0);
    let mut moves = Moves::default();
    moves.ports.push(upstream.first().ok_or(ErrorKind::InvalidInput)?.local_addr()?.port());
    let span = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    while !stop.load(Ordering::Relaxed) {
        let mut events: Vec<PollFd<'_>> =
            [front].into_iter().chain(upstream).map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        poll(&mut events, Some(&span))?;
        for _ in 0..BATCH {
            let Some((len, from)) = receive(front, &mut buffer)? else { break };
            client = Some(from);
            forward(&upstream[current], &buffer[..len], None);
        }
        for socket in upstream {
            for _ in 0..BATCH {
                let Some((len, _)) = receive(socket, &mut buffer)? else { break };
                moves.since += len as u64;
                carried += len as u64;
                forward(front, &buffer[..len], client);
            }
        }
        // Counted from the beginning: a batch of large datagrams goes far beyond a share, and must not put the next change off.
        if carried >= every * moves.ports.len() as u64 && current + 1 < upstream.len() {
            current += 1;
            moves.since = 0;
            moves.ports.push(upstream[current].local_addr()?.port());
        }
    }
    Ok(moves)
}

fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
    match socket.recv_from(buffer) {
        Ok(received) => Ok(Some(received)),
        // One of the two has gone, which the other will notice.
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// As networks do: what does not fit is lost.
fn forward(socket: &UdpSocket, datagram: &[u8], to: Option<SocketAddr>) {
    let _ = match to {
        Some(address) => socket.send_to(datagram, address),
        None => socket.send(datagram),
    };
}
