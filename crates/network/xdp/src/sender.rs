//! The sending half: packets are built in frames, behind room for their headers, and leave by the TX ring.
//!
//! A train's frames are taken as its packets ask for room and go into the TX ring when it ends, which has a place for
//! every frame of this half at any time, so there is no queue beside it. Frames come back through the completion ring and
//! are used last in, first out, while they are in the core's cache.
//!
//! Invariant: a frame is in exactly one of `free`, the open train, `parked`, or with the kernel (TX ring, device, completion
//! ring). `on_their_way` counts the latter; the four add up to [`Sender::frames`] at any time.
//!
//! Trains to a peer whose Ethernet address is not known are *parked* for a bounded time while the kernel asks for it. What
//! cannot be sent (too large, no way) is taken all the same and counted when it ends, as a network would lose it.

use core::ops::Range;
use std::io;

use base::sink::TrainPath;
use base::time::{Duration, Instant};
use datapath::trains::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS};
use datapath::{SendFault, TxCounters};
use wire::ip::{CHECKSUM_OFFSET, Headers};

use crate::header_cache::{HeaderCache, Reachability};
use crate::layout::PAYLOAD_AT;
use crate::sys::socket::{COMPLETE_CHECKSUM, Lead, Socket};
use crate::sys::umem::{Frame, METADATA_SIZE};

/// Packets that may wait for a flush; then `begin` refuses. As many as stay in a core's own cache.
const MAX_UNFLUSHED: usize = 256;

/// Packets that may wait for a neighbour.
const MAX_PARKED: usize = 64;
/// How long they wait at most.
const PARKED_FOR: Duration = Duration::from_secs(2);
/// How long after the first question to the kernel the next follows; it doubles up to the second figure.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(64));

/// A packet in its frame.
#[derive(Debug)]
struct Packet {
    frame: Frame,
    len: usize,
}

/// The train that is being built.
#[derive(Debug)]
struct Open {
    path: TrainPath,
    segment_size: usize,
    way: Reachability,
    /// The frame whose room is lent and not pushed yet.
    next: Option<Frame>,
}

/// Packets for a peer whose Ethernet address is being asked for.
#[derive(Debug)]
struct WaitingPackets {
    path: TrainPath,
    packet: Packet,
    until: Instant,
}

pub(crate) struct Sender {
    frames: usize,
    /// The longest payload that a frame holds.
    most: usize,
    free: Vec<Frame>,
    open: Option<Open>,
    /// The packets of the open train.
    packets: Vec<Packet>,
    /// Memory for packets that no frame holds.
    oversize: Vec<u8>,
    oversize_len: usize,
    parked: Vec<WaitingPackets>,
    ask_at: Instant,
    ask_after: Duration,
    /// Packets in the TX ring that the kernel has not been shown.
    unflushed: usize,
    /// Packets in the TX ring that the kernel had not taken after the last flush.
    left: u32,
    /// Whether `begin` has turned someone away who has not been told of room since.
    refused: bool,
    /// Packets handed over whose frames have not come back.
    on_their_way: usize,
    offload: bool,
    pub(crate) counters: TxCounters,
}

impl Sender {
    /// A sender from these frames, which hold payloads of up to `most` bytes; `offload` leaves checksums to the kernel.
    pub(crate) fn new(free: Vec<Frame>, most: usize, offload: bool) -> Sender {
        Sender {
            frames: free.len(),
            most,
            free,
            open: None,
            packets: Vec::with_capacity(MAX_TRAIN_SEGMENTS),
            oversize: Vec::new(),
            oversize_len: 0,
            parked: Vec::with_capacity(MAX_PARKED),
            ask_at: Instant::ZERO,
            ask_after: ASK_AGAIN.0,
            unflushed: 0,
            left: 0,
            refused: false,
            on_their_way: 0,
            offload,
            counters: TxCounters::default(),
        }
    }

    /// Frames that this half has.
    pub(crate) fn frames(&self) -> usize {
        self.frames
    }

    /// The longest payload that a frame holds, in bytes.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Whether checksums are left to the kernel.
    pub(crate) fn offloads(&self) -> bool {
        self.offload
    }

    /// Frames that nothing is in.
    pub(crate) fn free_frames(&self) -> usize {
        self.free.len()
    }

    /// Until when the port may sleep, if something is to be done here that no descriptor tells of.
    pub(crate) fn next_attempt(&self, now: Instant) -> Option<Instant> {
        let again = (self.left > 0 || self.refused).then_some(now + Duration::from_millis(1));
        let ask = (!self.parked.is_empty()).then_some(self.ask_at);
        again.into_iter().chain(ask).min()
    }

    /// Whether someone who was refused would find room now.
    pub(crate) fn has_room_again(&mut self, socket: &mut Socket) -> bool {
        if !self.refused {
            return false;
        }
        self.reap(socket);
        let has_room = self.unflushed == 0 && !self.free.is_empty();
        self.refused = !has_room;
        has_room
    }

    pub(crate) fn begin(
        &mut self,
        socket: &mut Socket,
        header_cache: &mut HeaderCache,
        path: TrainPath,
        segment_size: usize,
    ) -> Option<usize> {
        debug_assert!(self.open.is_none(), "one train is open at a time");
        let open = |way| Some(Open { path, segment_size, way, next: None });
        if segment_size > self.most {
            self.oversize.resize(segment_size.min(MAX_TRAIN_BYTES), 0);
            self.oversize_len = 0;
            self.open = open(Reachability::None(SendFault::TooLarge));
            return Some(1);
        }
        if self.free.len() < MAX_TRAIN_SEGMENTS {
            self.reap(socket);
        }
        if self.free.is_empty() || self.unflushed >= MAX_UNFLUSHED {
            self.refused = true;
            return None;
        }
        self.open = open(header_cache.way(&path));
        Some(self.free.len().min(MAX_TRAIN_SEGMENTS))
    }

    #[inline]
    pub(crate) fn room<'a>(&'a mut self, socket: &'a mut Socket) -> &'a mut [u8] {
        let Some(open) = &mut self.open else { return &mut [] };
        if open.segment_size > self.most {
            return &mut self.oversize[..open.segment_size];
        }
        if open.next.is_none() {
            open.next = self.free.pop();
        }
        let Some(frame) = &mut open.next else { return &mut [] };
        socket.bytes(frame, PAYLOAD_AT..PAYLOAD_AT + open.segment_size)
    }

    #[inline]
    pub(crate) fn push(&mut self, len: usize) {
        let Some(open) = &mut self.open else { return };
        debug_assert!(len >= 1 && len <= open.segment_size);
        match open.next.take() {
            Some(frame) => self.packets.push(Packet { frame, len }),
            None => self.oversize_len = len,
        }
    }

    #[inline]
    pub(crate) fn packet<'a>(&'a mut self, socket: &'a mut Socket, index: usize) -> &'a mut [u8] {
        match self.packets.get_mut(index) {
            Some(packet) => socket.bytes(&mut packet.frame, PAYLOAD_AT..PAYLOAD_AT + packet.len),
            None => &mut self.oversize[..self.oversize_len],
        }
    }

    pub(crate) fn end(&mut self, socket: &mut Socket, header_cache: &HeaderCache) {
        let Some(open) = self.open.take() else { return };
        self.free.extend(open.next);
        let mut packets = core::mem::take(&mut self.packets);
        match open.way {
            Reachability::Known => {
                for packet in packets.drain(..) {
                    self.launch(socket, header_cache.headers(), packet, header_cache.max_payload());
                }
            }
            Reachability::Asked => self.park(&open.path, &mut packets, header_cache.now()),
            Reachability::None(fault) => {
                let oversize = core::mem::take(&mut self.oversize_len).min(1);
                self.counters.on_fault(fault, (packets.len() + oversize) as u64);
                self.free.extend(packets.drain(..).map(|packet| packet.frame));
            }
        }
        self.packets = packets;
    }

    /// Writes a packet's headers and puts it into the TX ring.
    #[inline]
    fn launch(&mut self, socket: &mut Socket, headers: &Headers, packet: Packet, most: usize) {
        let Packet { mut frame, len } = packet;
        if len > most {
            self.counters.on_fault(SendFault::TooLarge, 1);
            self.free.push(frame);
            return;
        }
        let start = PAYLOAD_AT - headers.size();
        let lead = if self.offload {
            let bytes = socket.bytes(&mut frame, start - METADATA_SIZE..PAYLOAD_AT);
            let (metadata, out) = bytes.split_at_mut(METADATA_SIZE);
            metadata[..8].copy_from_slice(&COMPLETE_CHECKSUM.to_ne_bytes());
            metadata[8..10].copy_from_slice(&(headers.udp_start() as u16).to_ne_bytes());
            metadata[10..12].copy_from_slice(&(CHECKSUM_OFFSET as u16).to_ne_bytes());
            metadata[12..].fill(0);
            headers.write_partial(out, len);
            Lead::Metadata
        } else {
            let bytes = socket.bytes(&mut frame, start..PAYLOAD_AT + len);
            let (out, payload) = bytes.split_at_mut(headers.size());
            headers.write_complete(out, payload);
            Lead::None
        };
        let range: Range<usize> = start..PAYLOAD_AT + len;
        socket.send(frame, range, lead);
        self.unflushed += 1;
        self.on_their_way += 1;
        self.counters.datagrams += 1;
        self.counters.trains += 1;
        self.counters.bytes += len as u64;
    }

    /// Keeps packets until their peer's address is known; more than there is room for are lost.
    fn park(&mut self, path: &TrainPath, packets: &mut Vec<Packet>, now: Instant) {
        if self.parked.is_empty() {
            self.ask_after = ASK_AGAIN.0;
            self.ask_at = now + self.ask_after;
        }
        for packet in packets.drain(..) {
            if self.parked.len() < MAX_PARKED {
                self.parked.push(WaitingPackets { path: *path, packet, until: now + PARKED_FOR });
            } else {
                self.counters.on_fault(SendFault::Unreachable, 1);
                self.free.push(packet.frame);
            }
        }
    }

    /// Sends what was parked, as far as the way is known by now.
    fn retry_parked(&mut self, socket: &mut Socket, header_cache: &mut HeaderCache) {
        let now = header_cache.now();
        if self.parked.is_empty() || now < self.ask_at {
            return;
        }
        self.ask_after = (self.ask_after * 2).min(ASK_AGAIN.1);
        self.ask_at = now + self.ask_after;
        let mut unknown = None;
        for parked in core::mem::take(&mut self.parked) {
            let peer = parked.path.addresses.peer.ip();
            // One question for each peer, not for each packet.
            let way =
                if unknown == Some(peer) { Reachability::Asked } else { header_cache.way(&parked.path) };
            match way {
                Reachability::Known => {
                    self.launch(socket, header_cache.headers(), parked.packet, header_cache.max_payload())
                }
                Reachability::Asked if now < parked.until => {
                    unknown = Some(peer);
                    self.parked.push(parked);
                }
                Reachability::Asked | Reachability::None(_) => {
                    self.counters.on_fault(SendFault::Unreachable, 1);
                    self.free.push(parked.packet.frame);
                }
            }
        }
    }

    /// Shows the kernel what is in the TX ring and has it sent.
    pub(crate) fn flush(&mut self, socket: &mut Socket, header_cache: &mut HeaderCache) -> io::Result<()> {
        debug_assert!(self.open.is_none(), "a train is open");
        self.retry_parked(socket, header_cache);
        if self.unflushed > 0 {
            // `kick` looks at the ring again before each call.
            let _ = socket.publish_tx();
            self.unflushed = 0;
        } else if self.left == 0 {
            return Ok(());
        }
        self.kick(socket)?;
        self.reap(socket);
        Ok(())
    }

    /// Has the kernel send, again and again as long as it gets on: in copy mode a call sends a limited number.
    fn kick(&mut self, socket: &mut Socket) -> io::Result<()> {
        let mut waiting = socket.tx_waiting();
        while waiting > 0 && socket.tx_needs_wakeup() {
            self.counters.calls += 1;
            let result = socket.kick();
            let now_waiting = socket.tx_waiting();
            let moved = now_waiting < waiting;
            waiting = now_waiting;
            let Err(error) = result else { break };
            match error.raw_os_error().unwrap_or(0) {
                // One packet was taken and then dropped by the interface.
                libc::EBUSY => self.counters.on_fault(SendFault::Other, 1),
                libc::ENXIO | libc::EBADF | libc::ENODEV => {
                    return Err(io::Error::new(
                        error.kind(),
                        format!("sending on an AF_XDP socket: {error}; its interface has gone"),
                    ));
                }
                // The limit of a call (EAGAIN), no memory now (ENOBUFS), interface down (ENETDOWN): it shows in `moved`.
                _ => {}
            }
            if !moved {
                break;
            }
            self.reap(socket);
        }
        // A driver that needs no call takes the packets in its own time.
        self.left = if socket.tx_needs_wakeup() { waiting } else { 0 };
        self.counters.deferred += u64::from(self.left > 0);
        Ok(())
    }

    /// Takes back the frames of what has left.
    #[inline]
    pub(crate) fn reap(&mut self, socket: &mut Socket) {
        let before = self.free.len();
        while let Some(frame) = socket.completed() {
            self.free.push(frame);
        }
        let returned = self.free.len() - before;
        if returned > 0 {
            socket.release_completed();
            self.on_their_way -= returned;
        }
    }

    /// Frames by where they are: free, in the open train, parked, with the kernel. For tests of the invariant.
    #[cfg(test)]
    pub(crate) fn whereabouts(&self) -> [usize; 4] {
        let open =
            self.packets.len() + usize::from(self.open.as_ref().is_some_and(|open| open.next.is_some()));
        [self.free.len(), open, self.parked.len(), self.on_their_way]
    }
}
