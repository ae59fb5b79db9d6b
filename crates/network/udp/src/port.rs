//! A UDP socket as a port: the two halves, the clock, and the wait.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use base::net::Train;
use base::sink::{PacketSink, TrainPath};
use base::time::Instant;
use datapath::trains::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS};
use datapath::{Capabilities, Counters, Intake, Port, Refused, Rx, Tx, Waker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use socket2::Socket;

use crate::departures;
use crate::interfaces::Interfaces;
use crate::options::{BindError, BindOptions, Variant};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::socket::{self, Bound, SocketFeatures};

/// A bound UDP socket, owned by one worker.
///
/// A worker that has its own event loop calls `poll`, the sink and `flush` when [`UdpPort::descriptors`] are readable,
/// and never `wait`.
pub struct UdpPort {
    socket: Socket,
    local: SocketAddr,
    variant: Variant,
    granted: SocketFeatures,
    /// The buffers that were asked for, in bytes: to receive and to send.
    asked: (usize, usize),
    /// Why trains are not lent to the kernel, where that was asked for.
    not_lent: Option<io::Error>,
    receiver: Receiver,
    sender: Sender,
    interfaces: Interfaces,
    waker: Waker,
    waits: u64,
    intake: Intake,
}

impl UdpPort {
    /// Binds a socket.
    ///
    /// # Errors
    /// When the address is taken, not ours or not allowed, or when the system has no sockets left.
    pub fn bind(options: &BindOptions) -> Result<UdpPort, BindError> {
        UdpPort::of(socket::bind(options)?, options)
    }

    /// Takes a socket that another process has bound, or has in use still. Where it is bound is its own affair; of `options` the rest
    /// counts.
    ///
    /// # Errors
    /// When it is no socket of UDP that is bound, or the system has no descriptors left.
    pub fn adopt(socket: OwnedFd, options: &BindOptions) -> Result<UdpPort, BindError> {
        UdpPort::of(socket::adopt(socket, options)?, options)
    }

    fn of(bound: Bound, options: &BindOptions) -> Result<UdpPort, BindError> {
        let waker = Waker::new().map_err(|source| BindError {
            address: options.address,
            step: "make a waker for",
            source,
        })?;
        // A kernel that does not segment gets the datagrams of a train in one call all the same.
        let (variant, batch) = match options.variant {
            Variant::Gso | Variant::Uring if !bound.granted.gso => {
                (Variant::Mmsg, options.receive_batch.max(64))
            }
            variant @ (Variant::Gso | Variant::Uring) if !bound.granted.gro => {
                (variant, options.receive_batch.max(64))
            }
            variant => (variant, options.receive_batch),
        };
        let batch = if options.without.batches { 1 } else { batch };
        let mut sender = Sender::new(variant, options.send_memory, bound.family, bound.local);
        let not_lent = if variant == Variant::Uring { sender.lend().err() } else { None };
        let variant = if not_lent.is_some() { Variant::Gso } else { variant };
        if options.without.sendmmsg {
            sender.send_singly();
        }
        if options.departure_times && departures::are_kept(bound.local.ip()) {
            sender.hold_back(bound.socket.as_fd());
        }
        Ok(UdpPort {
            receiver: Receiver::new(
                if options.without.recvmmsg { Variant::Plain } else { variant },
                batch,
                bound.local,
                bound.socket.recv_buffer_size().unwrap_or(usize::MAX),
            ),
            sender,
            interfaces: Interfaces::default(),
            socket: bound.socket,
            asked: (options.receive_buffer, options.send_buffer),
            local: bound.local,
            not_lent,
            variant,
            granted: bound.granted,
            waker,
            waits: 0,
            intake: Intake::Open,
        })
    }

    /// From now on `waker` interrupts the wait, and no other does.
    pub fn use_waker(&mut self, waker: Waker) {
        self.waker = waker;
    }

    /// The variant in use: the one asked for, unless the kernel turned it down.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// The kernel's receive and send buffers in bytes, as granted. The kernel counts its own books in: half of it holds
    /// packets.
    ///
    /// # Errors
    /// When the system refuses to say.
    pub fn buffer_sizes(&self) -> io::Result<(usize, usize)> {
        Ok((self.socket.recv_buffer_size()?, self.socket.send_buffer_size()?))
    }

    /// Lets other sockets of this user share the address from now on.
    pub(crate) fn share(&self) -> io::Result<()> {
        self.socket.set_reuse_port(true)
    }

    /// The socket.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What a wait watches the socket for.
    pub(crate) fn awaited(&self) -> PollFlags {
        let arrivals = if self.intake == Intake::Open { PollFlags::IN } else { PollFlags::empty() };
        if self.has_queued() { arrivals | PollFlags::OUT } else { arrivals }
    }

    pub(crate) fn waker_ref(&self) -> &Waker {
        &self.waker
    }

    /// Whether trains wait for room in the socket.
    pub(crate) fn has_queued(&self) -> bool {
        self.sender.has_queued()
    }
}

/// What to do about buffers when `asked` bytes (to receive, to send) became `granted`, as the kernel counts them.
fn advice(asked: (usize, usize), granted: (usize, usize)) -> Option<String> {
    let pairs = [("receive", "rmem_max", asked.0, granted.0), ("send", "wmem_max", asked.1, granted.1)];
    let small = pairs.into_iter().filter(|(.., asked, granted)| granted / 2 < *asked);
    let (mut sizes, mut commands) = (Vec::new(), Vec::new());
    for (direction, limit, asked, granted) in small {
        sizes.push(format!("{direction} buffer {} KiB instead of {}", granted / 2048, asked / 1024));
        commands.push(format!("net.core.{limit}={asked}"));
    }
    if sizes.is_empty() {
        return None;
    }
    Some(format!(
        "the system grants small socket buffers ({}), which loses packets at high rates; to allow more: sysctl -w {}",
        sizes.join(", "),
        commands.join(" ")
    ))
}

impl fmt::Debug for UdpPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpPort")
            .field("local", &self.local)
            .field("variant", &self.variant)
            .field("granted", &self.granted)
            .finish_non_exhaustive()
    }
}

impl Rx for UdpPort {
    #[inline]
    fn poll(&mut self) -> io::Result<usize> {
        if self.intake == Intake::Closed {
            return Ok(0);
        }
        self.receiver.poll(self.socket.as_fd())
    }

    #[inline]
    fn train(&mut self, index: usize) -> Train<'_> {
        self.receiver.train(index)
    }
}

impl PacketSink for UdpPort {
    #[inline]
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        self.sender.begin(path, segment_size)
    }

    #[inline]
    fn room(&mut self) -> &mut [u8] {
        self.sender.room()
    }

    #[inline]
    fn push(&mut self, len: usize) {
        self.sender.push(len);
    }

    #[inline]
    fn packet(&mut self, index: usize) -> &mut [u8] {
        self.sender.packet(index)
    }

    #[inline]
    fn end(&mut self) {
        self.sender.end();
    }
}

impl Tx for UdpPort {
    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        self.sender.flush(self.socket.as_fd())
    }
}

impl Port for UdpPort {
    #[inline]
    fn now(&mut self) -> Instant {
        let now = clock_gettime(ClockId::Monotonic);
        let (seconds, nanos) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
        Instant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let timeout = match deadline {
            None => None,
            Some(deadline) => {
                let span = deadline.saturating_since(self.now());
                if span.is_zero() {
                    return Ok(());
                }
                Timespec::try_from(core::time::Duration::from(span)).ok()
            }
        };
        self.waits += 1;
        let mut events = [PollFd::new(&self.socket, self.awaited()), PollFd::new(&self.waker, PollFlags::IN)];
        match poll(&mut events, timeout.as_ref()) {
            // Interrupted by a signal: an early return, which the caller allows for.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [_, woken] = events.map(|event| event.revents());
        if woken.intersects(PollFlags::IN) {
            self.waker.clear();
        }
        Ok(())
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn local_address_towards(&self, peer: SocketAddr) -> SocketAddr {
        if !self.local.ip().is_unspecified() {
            return self.local;
        }
        // Connecting a socket sends nothing: it asks the kernel for the route, and thereby for the source address.
        let any = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let routed = UdpSocket::bind(SocketAddr::new(any, 0)).and_then(|socket| {
            socket.connect(peer)?;
            socket.local_addr()
        });
        SocketAddr::new(routed.map_or(any, |address| address.ip()), self.local.port())
    }

    fn sends_from(&self, ip: IpAddr) -> bool {
        let is_reached = ip.is_ipv4() || self.local.is_ipv6();
        self.local.ip() == ip || (self.local.ip().is_unspecified() && is_reached)
    }

    fn pin(&mut self, ip: IpAddr, interface: u32) {
        self.sender.pin(ip, interface);
    }

    fn largest_payload(&mut self, local: IpAddr) -> usize {
        let now = self.now();
        self.interfaces.largest_payload(now, local).map_or(MAX_TRAIN_BYTES, |most| most.min(MAX_TRAIN_BYTES))
    }

    fn take_refused(&mut self) -> Option<Refused> {
        self.sender.take_refused()
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

    /// The socket, while it is full.
    fn awaits_room(&self) -> u32 {
        u32::from(self.has_queued())
    }

    fn set_intake(&mut self, intake: Intake) {
        self.intake = intake;
    }

    fn intake(&self) -> Intake {
        self.intake
    }

    fn counters(&self) -> Counters {
        Counters { rx: self.receiver.counters, tx: self.sender.counters, waits: self.waits }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: match self.variant {
                Variant::Gso => "udp-gso",
                Variant::Uring => "udp-uring",
                Variant::Mmsg => "udp-mmsg",
                Variant::Plain => "udp-plain",
            },
            train_segments: MAX_TRAIN_SEGMENTS,
            train_bytes: MAX_TRAIN_BYTES,
            segments_offloaded: self.sender.segments(),
            coalesces: self.granted.gro,
            ecn: self.granted.ecn,
            departure_times: self.sender.holds_back(),
        }
    }

    /// Says which buffers are smaller than was asked for, and why no train is lent to the kernel.
    fn advice(&self) -> Option<String> {
        let buffers = self.buffer_sizes().ok().and_then(|sizes| advice(self.asked, sizes));
        let lending = self
            .not_lent
            .as_ref()
            .map(|error| format!("gso instead of uring, which the system refuses: {error}"));
        let all: Vec<String> = [lending, buffers].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

#[cfg(test)]
mod tests;
