//! The bare system calls: the same few every time, with nothing of ours around them.
//!
//! Each sender walks through as much memory as a port has, so that both find it equally in the cache.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, recvmsg, sendmmsg, setsockopt,
    sockopt,
};
use rustix::net::{RecvFlags, SendFlags, recvfrom, sendto};

use super::child::{BatchReceiver, BatchSender, wait_readable};

/// What a port has for outgoing trains.
const MEMORY: usize = 256 << 10;
/// Most messages of one call.
const BATCH: usize = 64;
/// Most payload of one train.
const TRAIN: usize = 65_507;
/// Most datagrams of one train.
const TRAIN_SEGMENTS: usize = 64;
/// What makes a datagram look like QUIC to programs that take nothing else.
const FIXED_BIT: u8 = 0x40;
/// Socket buffers, as a port asks for them.
const RECEIVE_BUFFER: usize = 8 << 20;
const SEND_BUFFER: usize = 4 << 20;

/// How a raw sender or receiver goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    One,
    Many,
    Trains,
}

fn socket(local: IpAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((local, 0))?;
    socket.set_nonblocking(true)?;
    // As far as the system allows.
    let _ = setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER);
    let _ = setsockopt(&socket, sockopt::SndBufForce, &SEND_BUFFER);
    Ok(socket)
}

pub(super) struct RawSender {
    socket: UdpSocket,
    peer: SocketAddr,
    how: Calls,
    memory: Vec<u8>,
    next: usize,
    size: usize,
    headers: MultiHeaders<SockaddrStorage>,
    peers: Vec<Option<SockaddrStorage>>,
    calls: u64,
}

impl RawSender {
    pub(super) fn new(local: IpAddr, peer: SocketAddr, how: Calls, size: usize) -> io::Result<RawSender> {
        let socket = socket(local)?;
        if how == Calls::Trains {
            let size = i32::try_from(size).map_err(io::Error::other)?;
            setsockopt(&socket, sockopt::UdpGsoSegment, &size)?;
        }
        // Memory that was never written is one page of zeros, which no other sender has the luck to send.
        let memory = (0..MEMORY + TRAIN).map(|index| index as u8 | FIXED_BIT).collect();
        let headers = MultiHeaders::preallocate(BATCH, None);
        let peers = vec![Some(SockaddrStorage::from(peer)); BATCH];
        Ok(RawSender { socket, peer, how, memory, next: 0, size, headers, peers, calls: 0 })
    }

    /// The next `len` bytes of the memory.
    fn advance(&mut self, len: usize) -> std::ops::Range<usize> {
        if self.next + len > self.memory.len() {
            self.next = 0;
        }
        let start = self.next;
        self.next += len;
        start..start + len
    }

    fn send_one(&mut self, len: usize) -> io::Result<u64> {
        let range = self.advance(len);
        match sendto(self.socket.as_fd(), &self.memory[range], SendFlags::empty(), &self.peer) {
            Ok(sent) => Ok(sent.div_ceil(self.size) as u64),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::NOBUFS) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    fn send_many(&mut self, count: usize) -> io::Result<u64> {
        let range = self.advance(count * self.size);
        let slices: Vec<[IoSlice<'_>; 1]> =
            self.memory[range].chunks(self.size).map(|datagram| [IoSlice::new(datagram)]).collect();
        let socket = self.socket.as_raw_fd();
        let sent = sendmmsg(socket, &mut self.headers, &slices, &self.peers, [], MsgFlags::empty());
        match sent {
            Ok(sent) => Ok(sent.count() as u64),
            Err(Errno::EAGAIN | Errno::ENOBUFS) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

impl BatchSender for RawSender {
    fn push(&mut self, most: u64) -> io::Result<u64> {
        self.calls += 1;
        match self.how {
            Calls::One => self.send_one(self.size),
            Calls::Many => self.send_many(most.min(BATCH as u64) as usize),
            Calls::Trains => {
                let fit = (TRAIN / self.size).clamp(1, TRAIN_SEGMENTS) as u64;
                self.send_one(most.min(fit) as usize * self.size)
            }
        }
    }

    fn calls(&self) -> u64 {
        self.calls
    }
}

pub(super) struct RawReceiver {
    socket: UdpSocket,
    local: SocketAddr,
    how: Calls,
    memory: Vec<u8>,
    size: usize,
    headers: MultiHeaders<SockaddrStorage>,
    control: Vec<u8>,
    calls: u64,
}

impl RawReceiver {
    pub(super) fn new(local: IpAddr, how: Calls, size: usize) -> io::Result<RawReceiver> {
        let socket = socket(local)?;
        if how == Calls::Trains {
            setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
        }
        let local = socket.local_addr()?;
        let memory = vec![1; BATCH * size.max(1 << 10)];
        let memory = if how == Calls::Trains { vec![1; 1 << 16] } else { memory };
        let headers = MultiHeaders::preallocate(BATCH, None);
        Ok(RawReceiver { socket, local, how, memory, size, headers, control: cmsg_space!(i32), calls: 0 })
    }

    fn take_many(&mut self) -> io::Result<u64> {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            self.memory.chunks_mut(self.size).take(BATCH).map(|room| [IoSliceMut::new(room)]).collect();
        let socket = self.socket.as_raw_fd();
        match recvmmsg(socket, &mut self.headers, &mut slices, MsgFlags::MSG_DONTWAIT, None) {
            Ok(received) => Ok(received.count() as u64),
            Err(Errno::EAGAIN) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    fn take_train(&mut self) -> io::Result<u64> {
        let mut slices = [IoSliceMut::new(&mut self.memory)];
        let socket = self.socket.as_raw_fd();
        let received =
            recvmsg::<SockaddrStorage>(socket, &mut slices, Some(&mut self.control), MsgFlags::MSG_DONTWAIT);
        let message = match received {
            Ok(message) => message,
            Err(Errno::EAGAIN) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let size = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::UdpGroSegments(size) => usize::try_from(size).ok(),
            _ => None,
        });
        Ok(message.bytes.div_ceil(size.unwrap_or(message.bytes).max(1)) as u64)
    }
}

impl BatchReceiver for RawReceiver {
    fn address(&self) -> SocketAddr {
        self.local
    }

    fn take(&mut self) -> io::Result<u64> {
        self.calls += 1;
        match self.how {
            Calls::One => {
                match recvfrom(self.socket.as_fd(), self.memory.as_mut_slice(), RecvFlags::DONTWAIT) {
                    Ok(_) => Ok(1),
                    Err(rustix::io::Errno::AGAIN) => Ok(0),
                    Err(error) => Err(error.into()),
                }
            }
            Calls::Many => self.take_many(),
            Calls::Trains => self.take_train(),
        }
    }

    fn wait(&mut self, span: Duration) -> io::Result<()> {
        wait_readable(self.socket.as_fd(), span)
    }

    fn calls(&self) -> u64 {
        self.calls
    }
}
