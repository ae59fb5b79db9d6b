//! The rings without a port around them: the floor that measurements compare [`crate::XdpPort`] with.
//!
//! The sender sends the same packet again and again, whose headers were written once into every frame; the receiver looks at
//! nothing that arrives. Neither counts, asks for neighbours, or knows a second peer. Not for anything but measurements.

use core::net::SocketAddr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use base::sink::TrainPath;
use base::time::Instant;
use ebpf::redirect::{AttachMode, AttachOptions, Buffers, XdpProgram};
use wire::ip::CHECKSUM_OFFSET;

use crate::error::XdpError;
use crate::header_cache::{HeaderCache, Reachability};
use crate::interface::Interface;
use crate::layout::{MAX_PAYLOAD, PAYLOAD_AT};
use crate::open::{BUSY_PAUSE, BUSY_TRIES};
use crate::options::Mode;
use crate::sys::ring::Wakeup;
use crate::sys::socket::{Copying, Lead, Metadata, New, Setup, Socket};
use crate::sys::umem::{FRAME_SIZE, Frame, Shape};

/// Frames for each direction, as a port has them.
const FRAMES: u32 = 2048;
/// Most packets of one batch.
const BATCH: usize = 64;

fn open(interface: &Interface) -> Result<New, XdpError> {
    let system = |doing| move |source| XdpError::System { doing, source };
    let shape = Shape { rx_frames: FRAMES, tx_frames: FRAMES, tx_pages: 1 };
    let setup = Setup { shape, metadata: Metadata::Never };
    let new = Socket::open(&setup)
        .map_err(|failed| XdpError::System { doing: "make an AF_XDP socket", source: failed.source })?;
    new.socket.raise_send_buffer(FRAMES * FRAME_SIZE as u32);
    bind(&new.socket, interface.index).map_err(system("bind an AF_XDP socket"))?;
    Ok(new)
}

/// Binds to queue 0; a socket that was just closed gives it back a moment later.
fn bind(socket: &Socket, interface: u32) -> io::Result<()> {
    for _ in 1..BUSY_TRIES {
        match socket.bind(interface, 0, Copying::Copies) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(BUSY_PAUSE),
            result => return result,
        }
    }
    socket.bind(interface, 0, Copying::Copies)
}

fn find(name: &str) -> Result<Interface, XdpError> {
    let found = netlink::link_by_name(name).and_then(|link| Interface::new(&link));
    found.map_err(|source| XdpError::System { doing: "look up the interface", source })
}

/// Sends one packet again and again from queue 0.
pub struct RawSender {
    socket: Socket,
    free: Vec<Frame>,
    packet: core::ops::Range<usize>,
    /// System calls so far.
    pub calls: u64,
}

impl RawSender {
    /// A sender of datagrams of `size` bytes on `path`, whose peer's Ethernet address the kernel must know already. UDP over
    /// IPv4 goes without a checksum.
    ///
    /// # Errors
    /// No privilege, no such interface, a queue in use, or a peer that is not known.
    pub fn open(name: &str, path: &TrainPath, size: usize) -> Result<RawSender, XdpError> {
        let no_way =
            || XdpError::System { doing: "find the peer", source: io::ErrorKind::HostUnreachable.into() };
        let interface = find(name)?;
        let New { mut socket, tx_frames: mut free, .. } = open(&interface)?;
        let mut paths = HeaderCache::new(interface, None, MAX_PAYLOAD).ok_or_else(no_way)?;
        paths.set_now(Instant::from_nanos(1));
        if size > MAX_PAYLOAD || paths.way(path) != Reachability::Known {
            return Err(no_way());
        }
        let headers = paths.headers();
        let start = PAYLOAD_AT - headers.size();
        let packet = start..PAYLOAD_AT + size;
        for (index, frame) in free.iter_mut().enumerate() {
            let (out, payload) = socket.bytes(frame, packet.clone()).split_at_mut(headers.size());
            payload.fill(index as u8 | 0x40);
            headers.write_complete(out, payload);
            let checksum = headers.udp_start() + CHECKSUM_OFFSET;
            if path.addresses.peer.is_ipv4() {
                out[checksum..checksum + 2].fill(0);
            }
        }
        Ok(RawSender { socket, free, packet, calls: 0 })
    }

    /// Sends up to `most` packets. Returns how many went into the ring; 0 when all frames are on their way.
    ///
    /// # Errors
    /// The interface has gone.
    pub fn send(&mut self, most: usize) -> io::Result<usize> {
        let count = most.min(BATCH).min(self.free.len());
        for frame in self.free.drain(self.free.len() - count..) {
            self.socket.send(frame, self.packet.clone(), Lead::None);
        }
        if self.socket.publish_tx() == Wakeup::Needed {
            self.calls += 1;
            match self.socket.kick().map_err(|error| (error.raw_os_error().unwrap_or(0), error)) {
                Ok(()) | Err((libc::EAGAIN | libc::EBUSY | libc::ENOBUFS, _)) => {}
                Err((_, error)) => return Err(error),
            }
        }
        let before = self.free.len();
        while let Some(frame) = self.socket.completed() {
            self.free.push(frame);
        }
        if self.free.len() > before {
            self.socket.release_completed();
        }
        Ok(count)
    }
}

/// Takes packets from queue 0 and forgets them.
pub struct RawReceiver {
    socket: Socket,
    _program: XdpProgram,
    /// Looks at the ring so far.
    pub calls: u64,
}

impl RawReceiver {
    /// A receiver of what comes to `address`. A port number of the caller's, reserved by a socket of its.
    ///
    /// # Errors
    /// No privilege, no such interface, no support for `mode`, or a queue in use.
    pub fn open(name: &str, address: SocketAddr, mode: Mode) -> Result<RawReceiver, XdpError> {
        let interface = find(name)?;
        let mode = if mode == Mode::Generic { AttachMode::Generic } else { AttachMode::Driver };
        let (ports, addresses) = ([address.port()], [address.ip()]);
        let (ifindex, buffers) = (interface.index, Buffers::One);
        let options = AttachOptions { ifindex, mode, buffers, ports: &ports, addresses: &addresses };
        let mut program = XdpProgram::attach(&options)?;
        let New { mut socket, rx_frames, .. } = open(&interface)?;
        program.insert(0, &socket)?;
        rx_frames.into_iter().for_each(|frame| socket.give(frame));
        let _ = socket.publish_fill();
        Ok(RawReceiver { socket, _program: program, calls: 0 })
    }

    /// Takes a batch and gives the frames back. Returns how many packets there were.
    pub fn take(&mut self) -> usize {
        self.calls += 1;
        let arrived = (self.socket.arrived(BATCH as u32) as usize).min(BATCH);
        for _ in 0..arrived {
            let Some(arrival) = self.socket.receive() else { break };
            self.socket.give(arrival.frame);
        }
        let wakeup = if arrived > 0 {
            self.socket.release_received();
            self.socket.publish_fill()
        } else {
            self.socket.fill_wakeup()
        };
        if wakeup == Wakeup::Needed {
            // Its errors say that nothing has arrived.
            let _ = self.socket.poke();
        }
        arrived
    }
}

/// Readable when packets have arrived.
impl AsFd for RawReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for RawSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawSender").field("free", &self.free.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for RawReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawReceiver").field("calls", &self.calls).finish_non_exhaustive()
    }
}
