//! An AF_XDP socket of one queue as a port: the two halves, the clock, and the wait.

use core::net::{IpAddr, SocketAddr};
use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use base::net::Train;
use base::sink::{PacketSink, TrainPath};
use base::time::{Duration, Instant};
use datapath::trains::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS};
use datapath::{Capabilities, Counters, Frames, Port, Rx, Tx, Waker};
use ebpf::redirect::XdpProgram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::header_cache::HeaderCache;
use crate::options::Mode;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::sys::socket::Socket;

/// Longest sleep. The kernel does not wake us when the interface is removed, so we look.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// What the ports of an interface have in common, kept for as long as one of them lives.
pub(crate) struct Shared {
    /// The program that sends packets our way; dropped, it is detached.
    pub(crate) _program: Mutex<XdpProgram>,
    /// Keeps the UDP port ours, so that no other program binds it and the kernel answers no stray datagram with an ICMP error.
    pub(crate) reservation: UdpSocket,
    pub(crate) local: SocketAddr,
    /// Not [`Mode::Auto`].
    pub(crate) mode: Mode,
}

/// A port on one queue of an interface, owned by one worker.
///
/// A worker that has its own event loop calls `poll`, the sink and `flush` when its `descriptors` are readable, and never
/// `wait`.
pub struct XdpPort {
    socket: Socket,
    receiver: Receiver,
    sender: Sender,
    header_cache: HeaderCache,
    queue: u32,
    waker: Waker,
    waits: u64,
    /// When a loop that is not ours last looked whether the interface is still there.
    looked_at: Instant,
    shared: Arc<Shared>,
}

/// The parts of a port, as `open` makes them.
pub(crate) struct Parts {
    pub(crate) socket: Socket,
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
    pub(crate) header_cache: HeaderCache,
    pub(crate) queue: u32,
    pub(crate) waker: Waker,
    pub(crate) shared: Arc<Shared>,
}

impl XdpPort {
    pub(crate) fn new(parts: Parts) -> XdpPort {
        let Parts { socket, receiver, sender, header_cache, queue, waker, shared } = parts;
        let looked_at = Instant::ZERO;
        let mut port =
            XdpPort { socket, receiver, sender, header_cache, queue, waker, waits: 0, looked_at, shared };
        port.looked_at = port.now();
        port
    }

    /// The mode in use; never [`Mode::Auto`].
    pub fn mode(&self) -> Mode {
        self.shared.mode
    }

    /// The queue that this port receives from and sends to.
    pub fn queue(&self) -> u32 {
        self.queue
    }

    /// The socket of the kernel's UDP that keeps the port ours, and gets what no AF_XDP socket takes.
    pub fn reservation(&self) -> BorrowedFd<'_> {
        self.shared.reservation.as_fd()
    }

    /// From now on `waker` interrupts the wait, and no other does.
    pub fn use_waker(&mut self, waker: Waker) {
        self.waker = waker;
    }

    /// The name of the interface, and its MTU in bytes when the port was opened.
    pub fn interface(&self) -> (&str, usize) {
        (&self.header_cache.interface.name, self.header_cache.interface.mtu)
    }

    /// The longest payload in bytes that this port sends and receives, whatever the MTU: 3,770 where kernel, driver or mode
    /// take no packets of several frames.
    pub fn most_payload(&self) -> usize {
        self.sender.most()
    }

    /// Whether the kernel or the device completes checksums.
    pub fn offloads_checksums(&self) -> bool {
        self.sender.offloads()
    }

    /// Frames that this port has.
    fn all_frames(&self) -> usize {
        self.receiver.frames() + self.sender.frames()
    }

    /// Frames without a user: those to send from that are empty, and those that wait for a packet. As many as there are
    /// when nothing is on its way and the last `poll` found nothing.
    fn free_frames(&self) -> usize {
        let returned = self.socket.completions() as usize;
        self.receiver.free_frames() + self.sender.free_frames() + returned
    }

    /// Where the frames are, for tests of the invariants: for sending free, in the open train, parked and with the kernel;
    /// for receiving with the kernel and lent.
    #[cfg(test)]
    pub(crate) fn whereabouts(&self) -> ([usize; 4], [usize; 2]) {
        (self.sender.whereabouts(), [self.receiver.free_frames(), self.receiver.lent()])
    }
}

impl fmt::Debug for XdpPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XdpPort")
            .field("interface", &self.header_cache.interface.name)
            .field("queue", &self.queue)
            .field("mode", &self.shared.mode)
            .field("local", &self.shared.local)
            .finish_non_exhaustive()
    }
}

impl Rx for XdpPort {
    #[inline]
    fn poll(&mut self) -> io::Result<usize> {
        Ok(self.receiver.poll(&mut self.socket, &mut self.header_cache))
    }

    #[inline]
    fn train(&mut self, index: usize) -> Train<'_> {
        self.receiver.train(&mut self.socket, index)
    }
}

impl PacketSink for XdpPort {
    #[inline]
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        self.sender.begin(&mut self.socket, &mut self.header_cache, path, segment_size)
    }

    #[inline]
    fn room(&mut self) -> &mut [u8] {
        self.sender.room(&mut self.socket)
    }

    #[inline]
    fn push(&mut self, len: usize) {
        self.sender.push(len);
    }

    #[inline]
    fn packet(&mut self, index: usize) -> &mut [u8] {
        self.sender.packet(&mut self.socket, index)
    }

    #[inline]
    fn end(&mut self) {
        self.sender.end(&mut self.socket, &self.header_cache);
    }
}

impl Tx for XdpPort {
    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        self.sender.flush(&mut self.socket, &mut self.header_cache)
    }
}

impl Port for XdpPort {
    #[inline]
    fn now(&mut self) -> Instant {
        let now = clock_gettime(ClockId::Monotonic);
        let (seconds, nanos) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
        let now = Instant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos));
        self.header_cache.set_now(now);
        now
    }

    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        if self.sender.has_room_again(&mut self.socket) {
            return Ok(());
        }
        let now = self.now();
        let until = self.sender.next_attempt(now).into_iter().chain(deadline).min();
        let span = until.map_or(LOOK_AFTER, |until| until.saturating_since(now).min(LOOK_AFTER));
        if span.is_zero() {
            return Ok(());
        }
        let timeout = Timespec::try_from(core::time::Duration::from(span)).ok();
        self.waits += 1;
        // In copy mode the call also sends what is left in the TX ring.
        let mut events = [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(&self.waker, PollFlags::IN)];
        match poll(&mut events, timeout.as_ref()) {
            Ok(0) if span == LOOK_AFTER => self.socket.check()?,
            // Interrupted by a signal: an early return, which the caller allows for.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [_, woken] = events.map(|event| event.revents());
        // Packets that wait for a neighbour go by this clock.
        self.now();
        if woken.intersects(PollFlags::IN) {
            self.waker.clear();
        }
        Ok(())
    }

    fn local_address(&self) -> SocketAddr {
        self.shared.local
    }

    fn local_address_towards(&self, peer: SocketAddr) -> SocketAddr {
        let local = self.shared.local;
        if !local.ip().is_unspecified() {
            return local;
        }
        match self.header_cache.source_towards(peer.ip()) {
            Some(ip) => self.header_cache.interface.scoped(ip, local.port()),
            None if peer.is_ipv4() => SocketAddr::from(([0; 4], local.port())),
            None => SocketAddr::from(([0u16; 8], local.port())),
        }
    }

    fn largest_payload(&mut self, local: IpAddr) -> usize {
        self.header_cache.largest_payload(local)
    }

    /// The socket and the waker's event.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.socket.as_fd(), self.waker.as_fd()]
    }

    fn waker(&self) -> Option<Waker> {
        Some(self.waker.clone())
    }

    fn on_woken(&mut self) {
        self.waker.clear();
    }

    fn next_timeout(&mut self) -> io::Result<Option<Instant>> {
        let now = self.now();
        if self.sender.has_room_again(&mut self.socket) {
            return Ok(Some(now));
        }
        if now.saturating_since(self.looked_at) >= LOOK_AFTER {
            self.socket.check()?;
            self.looked_at = now;
        }
        let look = self.looked_at + LOOK_AFTER;
        Ok(self.sender.next_attempt(now).into_iter().chain([look]).min())
    }

    fn counters(&self) -> Counters {
        let mut counters =
            Counters { rx: self.receiver.counters, tx: self.sender.counters, waits: self.waits };
        let losses = self.socket.losses();
        counters.rx.overflowed = losses.received;
        counters.rx.errors += losses.invalid;
        counters
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: match self.shared.mode {
                Mode::ZeroCopy => "xdp-zero-copy",
                Mode::Driver => "xdp-driver",
                Mode::Generic | Mode::Auto => "xdp-generic",
            },
            train_segments: MAX_TRAIN_SEGMENTS,
            train_bytes: MAX_TRAIN_SEGMENTS * self.sender.most(),
            segments_offloaded: false,
            coalesces: false,
            ecn: true,
            departure_times: false,
        }
    }

    fn xdp_mode(&self) -> Option<&'static str> {
        Some(self.shared.mode.name())
    }

    fn frames(&self) -> Option<Frames> {
        Some(Frames { free: self.free_frames(), all: self.all_frames() })
    }

    /// Says what keeps packets shorter than the MTU allows.
    fn advice(&self) -> Option<String> {
        let ((name, mtu), most) = (self.interface(), self.most_payload());
        // IP and UDP take 28 bytes at least.
        (mtu > most + 28 && most < MAX_TRAIN_BYTES).then(|| {
            format!(
                "{name} carries packets of {mtu} bytes, but AF_XDP in {} mode here no payload beyond {most}: a packet has one frame \
                 there; for longer ones try --xdp-mode driver or generic (Linux 6.6), or --datapath gso",
                self.mode()
            )
        })
    }
}

#[cfg(test)]
mod tests;
