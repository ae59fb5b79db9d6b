//! The receiving half: packets lie in frames, are lent as trains of one, decrypted where they lie, and their frames go back
//! to the fill ring with the next poll. Packets of several frames are put together in memory beside them (see
//! [`crate::joiner`]), and their frames go back at once.
//!
//! Invariant: a frame is either with the kernel (fill ring, device, RX ring) or lent. What is not a datagram for us goes
//! back at once.

use core::net::{IpAddr, SocketAddr};
use core::ops::Range;

use base::net::{Addresses, Ecn, Train};
use datapath::RxCounters;
use wire::ip::Datagram;

use crate::header_cache::HeaderCache;
use crate::joiner::Joiner;
use crate::neighbours::NextHop;
use crate::sys::ring::Wakeup;
use crate::sys::socket::{Arrival, Socket};
use crate::sys::umem::Frame;
use crate::uncut;

/// Most packets taken in by one poll; one in several frames counts as many.
pub(crate) const BATCH: usize = 64;

/// Longer payloads in bytes, which Ethernet has no room for, may be trains.
const ORDINARY: usize = 1_472;

/// A packet that is lent.
#[derive(Debug)]
struct Lent {
    /// `None` if the packet was put together.
    frame: Option<Frame>,
    payload: Range<usize>,
    /// The length of its packets; that of the payload unless it is a train that was not cut.
    segment: usize,
    addresses: Addresses,
    ecn: Ecn,
}

/// A packet for us.
struct LocalPacket {
    payload: Range<usize>,
    segment: usize,
    addresses: Addresses,
    ecn: Ecn,
}

pub(crate) struct Receiver {
    frames: usize,
    lent: Vec<Lent>,
    joiner: Joiner,
    /// Frames that the kernel has: given, less received.
    with_kernel: usize,
    port: u16,
    polls_device: bool,
    /// Longer payloads are looked at, since they may be trains that were not cut.
    ordinary: usize,
    pub(crate) counters: RxCounters,
}

impl Receiver {
    /// A receiver for `port` that gives `frames` to the kernel. With `polls_device`, an empty ring makes it ask the kernel
    /// to poll the device.
    pub(crate) fn new(socket: &mut Socket, frames: Vec<Frame>, port: u16, polls_device: bool) -> Receiver {
        let count = frames.len();
        frames.into_iter().for_each(|frame| socket.give(frame));
        // The socket is not bound yet: binding makes the driver look.
        let _ = socket.publish_fill();
        Receiver {
            frames: count,
            lent: Vec::with_capacity(BATCH),
            joiner: Joiner::new(),
            with_kernel: count,
            port,
            polls_device,
            ordinary: usize::MAX,
            counters: RxCounters::default(),
        }
    }

    /// Trains may arrive uncut, as they do in generic mode: drivers that run the program themselves make the sender cut them.
    pub(crate) fn expect_trains(&mut self) {
        self.ordinary = ORDINARY;
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
        self.lent.iter().filter(|lent| lent.frame.is_some()).count()
    }

    pub(crate) fn poll(&mut self, socket: &mut Socket, paths: &mut HeaderCache) -> usize {
        let mut given = 0;
        for frame in self.lent.drain(..).filter_map(|lent| lent.frame) {
            socket.give(frame);
            given += 1;
        }
        self.joiner.begin_batch();
        self.counters.calls += 1;
        let arrived = socket.arrived(BATCH as u32) as usize;
        if arrived == 0 {
            let wakeup = self.publish(socket, core::mem::take(&mut given));
            if self.polls_device || wakeup == Wakeup::Needed {
                // Its errors say that nothing has arrived.
                let _ = socket.poke();
            }
        }
        let mut taken = 0;
        while taken < BATCH || self.joiner.is_open() {
            let Some(arrival) = socket.receive() else { break };
            taken += 1;
            self.with_kernel -= 1;
            let back = if arrival.continues || self.joiner.is_open() {
                Some(self.on_part(socket, paths, arrival))
            } else {
                self.on_packet(socket, paths, arrival)
            };
            if let Some(frame) = back {
                socket.give(frame);
                given += 1;
            }
        }
        socket.release_received();
        if given > 0 && self.publish(socket, given) == Wakeup::Needed {
            // Or else a port that spins and never sleeps would wait for packets that have no frame to arrive in.
            let _ = socket.poke();
        }
        self.lent.len()
    }

    /// Shows the kernel the `given` frames, and says whether the driver waits to be told.
    fn publish(&mut self, socket: &mut Socket, given: usize) -> Wakeup {
        self.with_kernel += given;
        if given > 0 { socket.publish_fill() } else { socket.fill_wakeup() }
    }

    /// Lends a packet; gives the frame back if it is not for us.
    #[inline]
    fn on_packet(&mut self, socket: &mut Socket, paths: &mut HeaderCache, arrival: Arrival) -> Option<Frame> {
        let Arrival { mut frame, range, .. } = arrival;
        let start = range.start;
        let Some(ours) = self.look(paths, socket.bytes(&mut frame, range)) else { return Some(frame) };
        self.lend(Some(frame), start, ours);
        None
    }

    /// Adds a part of a packet to those before it; lends the packet if that was its last. The frame goes back.
    #[cold]
    fn on_part(&mut self, socket: &mut Socket, paths: &mut HeaderCache, arrival: Arrival) -> Frame {
        let Arrival { mut frame, range, continues } = arrival;
        let Some(range) = self.joiner.add(socket.bytes(&mut frame, range), continues) else { return frame };
        let start = range.start;
        // Out of `self` while it is looked at.
        let mut joiner = core::mem::take(&mut self.joiner);
        if let Some(ours) = self.look(paths, joiner.bytes(range)) {
            self.lend(None, start, ours);
        }
        self.joiner = joiner;
        frame
    }

    /// What a packet is, if it is for us.
    #[inline]
    fn look(&mut self, paths: &mut HeaderCache, bytes: &[u8]) -> Option<LocalPacket> {
        let Ok(datagram) = Datagram::read(bytes) else {
            self.counters.errors += 1;
            return None;
        };
        let Datagram { ethernet, source, destination, ecn, payload } = datagram;
        if ethernet.destination != paths.interface.mac || destination.port() != self.port {
            // On its way to someone else: a switch that floods, an interface that hears everything.
            self.counters.errors += 1;
            return None;
        }
        if payload.is_empty() {
            self.counters.empty += 1;
            return None;
        }
        paths
            .neighbours
            .learn(source.ip(), NextHop { mac: ethernet.source, tags: ethernet.tags, source: None });
        let scoped = |address: SocketAddr| match address.ip() {
            IpAddr::V4(_) => address,
            ip => paths.interface.scoped(ip, address.port()),
        };
        let addresses = Addresses { local: scoped(destination), peer: scoped(source) };
        let mut segment = payload.len();
        if segment > self.ordinary.min(paths.interface.mtu) {
            let most = paths.largest_payload(addresses.local.ip());
            segment = self.segment_of(bytes.get(payload.clone()).unwrap_or_default(), most)?;
        }
        Some(LocalPacket { payload, segment, addresses, ecn })
    }

    /// How long the packets are in a payload that may be a train; `None` where it is one, and not where its packets begin.
    #[cold]
    fn segment_of(&mut self, payload: &[u8], most: usize) -> Option<usize> {
        let train = if self.ordinary < usize::MAX { uncut::packet_size(payload) } else { None };
        let segment = train.unwrap_or(payload.len());
        if segment > most {
            self.counters.truncated += 1;
            return None;
        }
        Some(segment)
    }

    /// Lends what lies in `frame`, or in the joiner, from `start`.
    #[inline]
    fn lend(&mut self, frame: Option<Frame>, start: usize, ours: LocalPacket) {
        let LocalPacket { payload, segment, addresses, ecn } = ours;
        self.counters.datagrams += payload.len().div_ceil(segment.max(1)) as u64;
        self.counters.trains += 1;
        self.counters.bytes += payload.len() as u64;
        let payload = start + payload.start..start + payload.end;
        self.lent.push(Lent { frame, payload, segment, addresses, ecn });
    }

    #[inline]
    pub(crate) fn train<'a>(&'a mut self, socket: &'a mut Socket, index: usize) -> Train<'a> {
        let Lent { frame, payload, segment, addresses, ecn } = &mut self.lent[index];
        let (segment_size, addresses, ecn) = (*segment, *addresses, *ecn);
        let bytes = match frame {
            Some(frame) => socket.bytes(frame, payload.clone()),
            None => self.joiner.bytes(payload.clone()),
        };
        Train { bytes, segment_size, addresses, ecn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Interface;
    use crate::sys::socket::in_memory;

    /// System calls of a port that spins: three polls in vain, with one packet for another socket before them if `arrives`.
    fn calls(wakeup: Wakeup, arrives: bool) -> usize {
        let (mut socket, frames, mut kernel) = in_memory::socket();
        let interface = Interface {
            index: 1,
            name: "test0".to_owned(),
            mac: [2, 0, 0, 0, 0, 1],
            mtu: 1_500,
            is_loopback: false,
            completes_checksums: true,
            addresses: Vec::new(),
        };
        let mut paths = HeaderCache::new(interface, None, 1_472).unwrap();
        let mut receiver = Receiver::new(&mut socket, frames, 4_433, false);
        socket.set_fill_wakeup(wakeup);
        if arrives {
            kernel.deliver(3, 100);
            assert_eq!(receiver.poll(&mut socket, &mut paths), 0);
            // The driver has taken the frame and sleeps no more.
            socket.set_fill_wakeup(Wakeup::NotNeeded);
        }
        for _ in 0..3 {
            assert_eq!(receiver.poll(&mut socket, &mut paths), 0);
        }
        assert_eq!(receiver.free_frames(), 8);
        kernel.calls()
    }

    /// Deleted, a zero-copy driver that ran out of frames would sleep for ever below a port that spins.
    #[test]
    fn a_driver_that_waits_for_frames_is_told_of_them() {
        assert_eq!(calls(Wakeup::NotNeeded, true), 0);
        assert_eq!(calls(Wakeup::Needed, true), 1, "once they are published");
    }

    /// Deleted, a flag that the driver sets just after the frames were published would be lost.
    #[test]
    fn a_poll_in_vain_looks_at_the_flag_again() {
        assert_eq!(calls(Wakeup::NotNeeded, false), 0);
        assert_eq!(calls(Wakeup::Needed, false), 3);
    }
}
