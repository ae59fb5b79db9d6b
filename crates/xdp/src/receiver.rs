//! The receiving half: packets lie in frames, are lent as trains of one, decrypted where they lie, and their frames go back
//! to the fill ring with the next poll.
//!
//! Invariant: a frame is either with the kernel (fill ring, device, RX ring) or lent. What is not a datagram for us goes
//! back at once.

use core::net::{IpAddr, SocketAddr};
use core::ops::Range;

use base::net::{Addresses, Ecn, Train};
use datapath::RxCounters;
use wire::ip::Datagram;

use crate::neighbours::Hop;
use crate::paths::Paths;
use crate::sys::socket::Socket;
use crate::sys::umem::Frame;

/// Most packets taken in by one poll.
pub(crate) const BATCH: usize = 64;

/// A packet that is lent.
#[derive(Debug)]
struct Lent {
    frame: Frame,
    payload: Range<usize>,
    addresses: Addresses,
    ecn: Ecn,
}

pub(crate) struct Receiver {
    frames: usize,
    lent: Vec<Lent>,
    /// Frames that the kernel has: given, less received.
    with_kernel: usize,
    port: u16,
    polls_device: bool,
    pub(crate) counters: RxCounters,
}

impl Receiver {
    /// A receiver for `port` that gives `frames` to the kernel. With `polls_device`, an empty ring makes it ask the kernel
    /// to poll the device.
    pub(crate) fn new(socket: &mut Socket, frames: Vec<Frame>, port: u16, polls_device: bool) -> Receiver {
        let count = frames.len();
        frames.into_iter().for_each(|frame| socket.give(frame));
        socket.publish_fill();
        Receiver {
            frames: count,
            lent: Vec::with_capacity(BATCH),
            with_kernel: count,
            port,
            polls_device,
            counters: RxCounters::default(),
        }
    }

    /// Frames that this half has.
    pub(crate) fn frames(&self) -> usize {
        self.frames
    }

    /// Frames that wait for a packet or hold one that was not polled yet.
    pub(crate) fn free_frames(&self) -> usize {
        self.with_kernel
    }

    /// Frames that are lent.
    #[cfg(test)]
    pub(crate) fn lent(&self) -> usize {
        self.lent.len()
    }

    pub(crate) fn poll(&mut self, socket: &mut Socket, paths: &mut Paths) -> usize {
        let mut given = self.lent.len();
        for lent in self.lent.drain(..) {
            socket.give(lent.frame);
        }
        self.counters.calls += 1;
        let arrived = socket.arrived(BATCH as u32) as usize;
        if arrived == 0 && (self.polls_device || given > 0 && socket.fill_needs_wakeup()) {
            if given > 0 {
                socket.publish_fill();
            }
            // Its errors say that nothing has arrived.
            let _ = socket.poke();
        }
        for _ in 0..BATCH {
            let Some((frame, range)) = socket.receive() else { break };
            self.with_kernel -= 1;
            if let Some(frame) = self.on_packet(socket, paths, frame, range) {
                socket.give(frame);
                given += 1;
            }
        }
        socket.release_received();
        if given > 0 {
            self.with_kernel += given;
            socket.publish_fill();
        }
        self.lent.len()
    }

    /// Lends a packet; gives the frame back if it is not for us.
    #[inline]
    fn on_packet(
        &mut self,
        socket: &mut Socket,
        paths: &mut Paths,
        mut frame: Frame,
        range: Range<usize>,
    ) -> Option<Frame> {
        let start = range.start;
        let Ok(datagram) = Datagram::read(socket.bytes(&mut frame, range)) else {
            self.counters.errors += 1;
            return Some(frame);
        };
        let Datagram { ethernet, source, destination, ecn, payload } = datagram;
        if ethernet.destination != paths.interface.mac || destination.port() != self.port {
            // On its way to someone else: a switch that floods, an interface that hears everything.
            self.counters.errors += 1;
            return Some(frame);
        }
        if payload.is_empty() {
            self.counters.empty += 1;
            return Some(frame);
        }
        paths.neighbours.learn(source.ip(), Hop { mac: ethernet.source, tags: ethernet.tags, source: None });
        let scoped = |address: SocketAddr| match address.ip() {
            IpAddr::V4(_) => address,
            ip => paths.interface.scoped(ip, address.port()),
        };
        let addresses = Addresses { local: scoped(destination), peer: scoped(source) };
        self.counters.datagrams += 1;
        self.counters.trains += 1;
        self.counters.bytes += payload.len() as u64;
        let payload = start + payload.start..start + payload.end;
        self.lent.push(Lent { frame, payload, addresses, ecn });
        None
    }

    #[inline]
    pub(crate) fn train<'a>(&'a mut self, socket: &'a mut Socket, index: usize) -> Train<'a> {
        let Lent { frame, payload, addresses, ecn } = &mut self.lent[index];
        let (segment_size, addresses, ecn) = (payload.len(), *addresses, *ecn);
        Train { bytes: socket.bytes(frame, payload.clone()), segment_size, addresses, ecn }
    }
}
