//! Queues of AF_XDP, or a socket of the kernel's UDP in their place: the port of a server whose place another process takes.
//!
//! A queue of an interface has one AF_XDP socket. A process whose intake closes closes those that it has, and sends by the kernel.
//! What arrives from then on goes to the kernel's socket at the same address, which the next process has too. That one reads it until
//! AF_XDP sockets of its own are open and nothing is left there (docs/decisions/019).
//!
//! Data structure: what is open; and a slot, in which another thread puts queues that it has opened. The waker is one, whatever is open.

use crate::open_error::explain;
use crate::queues::Queues;
use base::net::Train;
use base::sink::{PacketSink, TrainPath};
use base::time::Instant;
use core::fmt;
use datapath::{Counters, Intake, Port, Rx, Tx, Waker};
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;
use udp::{BindOptions, UdpPort};
use xdp::XdpPort;

/// How often queues are opened that another process is about to leave, and how long it has in between.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// Where queues wait for the worker that will drive them.
#[derive(Default)]
struct Slot {
    is_full: AtomicBool,
    content: Mutex<Content>,
}

#[derive(Default)]
enum Content {
    /// The worker has queues.
    #[default]
    InUse,
    /// It has none, and wants none.
    Closed,
    /// It wants some.
    Wanted,
    Full(Queues<XdpPort>),
}

impl Slot {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what it was.
    fn set(&self, content: Content) -> Content {
        let mut place = self.content();
        self.is_full.store(matches!(content, Content::Full(_)), Ordering::Release);
        core::mem::replace(&mut *place, content)
    }
}

/// Opens AF_XDP sockets for workers that have none because of an upgrade.
pub struct XdpOpener {
    options: xdp::Options,
    /// Of the interface.
    queues: u32,
    /// The kernel's socket at the same address.
    socket: OwnedFd,
    workers: Vec<(Arc<Slot>, Waker)>,
}

impl fmt::Debug for XdpOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XdpOpener").field("interface", &self.options.interface).finish_non_exhaustive()
    }
}

impl XdpOpener {
    /// For `ports`, the workers' in their order; `None` without any, or without a descriptor left.
    pub(crate) fn new(options: xdp::Options, queues: u32, ports: &[QueuesOrSocket]) -> Option<XdpOpener> {
        let socket = ports.first()?.socket.try_clone().ok()?;
        let workers = ports.iter().map(|port| (Arc::clone(&port.slot), port.waker.clone())).collect();
        Some(XdpOpener { options, queues, socket, workers })
    }

    /// Opens them and hands them to the workers. Returns false if the workers have what they need. Blocks, for two seconds at most
    /// and what the card needs.
    ///
    /// # Errors
    /// One line for users: why the workers stay with the kernel's UDP.
    pub fn open(&self) -> Result<bool, String> {
        for _ in 1..TRIES {
            match self.attempt() {
                Err(_) => sleep(PAUSE),
                opened => return opened,
            }
        }
        self.attempt()
    }

    fn attempt(&self) -> Result<bool, String> {
        if self.workers.iter().all(|(slot, _)| matches!(*slot.content(), Content::InUse)) {
            return Ok(false);
        }
        if !self.workers.iter().all(|(slot, _)| matches!(*slot.content(), Content::Wanted)) {
            return Err("the workers take nothing in".to_owned());
        }
        let socket = self.socket.try_clone().map_err(|error| error.to_string())?;
        let ports = xdp::open_at(&self.options, UdpSocket::from(socket));
        let ports = ports.map_err(|error| explain(&error, self.queues))?;
        for ((slot, waker), queues) in self.workers.iter().zip(share(ports, self.workers.len())) {
            let mut content = slot.content();
            // It may have closed meanwhile.
            if matches!(*content, Content::Wanted) {
                *content = Content::Full(queues);
                slot.is_full.store(true, Ordering::Release);
            }
            drop(content);
            waker.wake();
        }
        Ok(true)
    }
}

/// The ports of an interface's queues, shared by this many workers.
pub(crate) fn share(ports: Vec<XdpPort>, workers: usize) -> Vec<Queues<XdpPort>> {
    let mut shares: Vec<Vec<XdpPort>> = (0..workers).map(|_| Vec::new()).collect();
    for (place, port) in ports.into_iter().enumerate() {
        shares[place % workers].push(port);
    }
    shares.into_iter().filter_map(Queues::new).collect()
}

#[expect(clippy::large_enum_variant, reason = "a worker has one")]
enum Open {
    Queues(Queues<XdpPort>),
    Socket(UdpPort),
}

/// A worker's port.
pub struct QueuesOrSocket {
    open: Open,
    /// The kernel's socket at the same address.
    socket: OwnedFd,
    /// What such a port is made with.
    options: BindOptions,
    slot: Arc<Slot>,
    waker: Waker,
    /// What ports counted that are closed.
    before: Counters,
    changes: u32,
    /// Why there is no socket in the place of the queues.
    failure: Option<io::Error>,
}

impl QueuesOrSocket {
    /// Queues, which have a waker and a reservation.
    pub(crate) fn of_queues(queues: Queues<XdpPort>, options: BindOptions) -> io::Result<QueuesOrSocket> {
        let socket = queues.reservation().try_clone_to_owned()?;
        let waker = queues.waker().map_or_else(Waker::new, Ok)?;
        Ok(QueuesOrSocket::new(Open::Queues(queues), socket, options, (waker, Content::InUse)))
    }

    /// A socket that another process has too, until there are queues.
    pub(crate) fn of_socket(socket: OwnedFd, options: BindOptions) -> Result<QueuesOrSocket, String> {
        let copy = socket.try_clone().map_err(|error| error.to_string())?;
        let port = UdpPort::adopt(copy, &options).map_err(|error| error.to_string())?;
        let waker = port.waker().map_or_else(Waker::new, Ok).map_err(|error| error.to_string())?;
        Ok(QueuesOrSocket::new(Open::Socket(port), socket, options, (waker, Content::Wanted)))
    }

    fn new(
        open: Open,
        socket: OwnedFd,
        options: BindOptions,
        (waker, content): (Waker, Content),
    ) -> QueuesOrSocket {
        let slot = Slot::default();
        slot.set(content);
        let (slot, before) = (Arc::new(slot), Counters::default());
        QueuesOrSocket { open, socket, options, slot, waker, before, changes: 0, failure: None }
    }

    /// The kernel's socket at the same address.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn port(&self) -> &dyn Port {
        match &self.open {
            Open::Queues(port) => port,
            Open::Socket(port) => port,
        }
    }

    fn port_mut(&mut self) -> &mut dyn Port {
        match &mut self.open {
            Open::Queues(port) => port,
            Open::Socket(port) => port,
        }
    }

    fn replace(&mut self, open: Open) {
        let closed = core::mem::replace(&mut self.open, open);
        self.before += match closed {
            Open::Queues(port) => port.counters(),
            Open::Socket(port) => port.counters(),
        };
        self.changes += 1;
    }

    /// Takes the queues in the slot. Everything that the socket had is taken in, and nothing waits to be sent by it.
    #[cold]
    fn take_queues(&mut self) {
        if let Content::Full(mut queues) = self.slot.set(Content::InUse) {
            queues.use_waker(self.waker.clone());
            self.replace(Open::Queues(queues));
        }
    }

    /// Closes the queues.
    fn leave_queues(&mut self) -> Result<(), io::Error> {
        let mut port = UdpPort::adopt(self.socket.try_clone()?, &self.options).map_err(io::Error::other)?;
        port.use_waker(self.waker.clone());
        self.replace(Open::Socket(port));
        Ok(())
    }
}

/// Calls the same method of what is open.
macro_rules! ask {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match &mut $self.open {
            Open::Queues(port) => port.$method($($argument),*),
            Open::Socket(port) => port.$method($($argument),*),
        }
    };
}

impl Rx for QueuesOrSocket {
    #[inline]
    fn poll(&mut self) -> io::Result<usize> {
        match &mut self.open {
            Open::Queues(port) if self.failure.is_none() => port.poll(),
            Open::Queues(_) => Err(self.failure.take().unwrap_or_else(|| io::ErrorKind::NotConnected.into())),
            Open::Socket(port) => {
                let trains = port.poll()?;
                if trains > 0 || port.awaits_room() > 0 || !self.slot.is_full.load(Ordering::Acquire) {
                    return Ok(trains);
                }
                self.take_queues();
                ask!(self.poll())
            }
        }
    }

    #[inline]
    fn train(&mut self, index: usize) -> Train<'_> {
        ask!(self.train(index))
    }
}

impl PacketSink for QueuesOrSocket {
    #[inline]
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        ask!(self.begin(path, segment_size))
    }

    #[inline]
    fn room(&mut self) -> &mut [u8] {
        ask!(self.room())
    }

    #[inline]
    fn push(&mut self, len: usize) {
        ask!(self.push(len));
    }

    #[inline]
    fn packet(&mut self, index: usize) -> &mut [u8] {
        ask!(self.packet(index))
    }

    #[inline]
    fn end(&mut self) {
        ask!(self.end());
    }
}

impl Tx for QueuesOrSocket {
    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        ask!(self.flush())
    }
}

impl Port for QueuesOrSocket {
    #[inline]
    fn now(&mut self) -> Instant {
        ask!(self.now())
    }

    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        ask!(self.wait(deadline))
    }

    fn local_address(&self) -> core::net::SocketAddr {
        self.port().local_address()
    }

    fn local_address_towards(&self, peer: core::net::SocketAddr) -> core::net::SocketAddr {
        self.port().local_address_towards(peer)
    }

    fn sends_from(&self, ip: core::net::IpAddr) -> bool {
        self.port().sends_from(ip)
    }

    fn pin(&mut self, ip: core::net::IpAddr, interface: u32) {
        self.port_mut().pin(ip, interface);
    }

    fn largest_payload(&mut self, local: core::net::IpAddr) -> usize {
        self.port_mut().largest_payload(local)
    }

    fn take_refused(&mut self) -> Option<datapath::Refused> {
        self.port_mut().take_refused()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.port().descriptors()
    }

    fn descriptor_changes(&self) -> u32 {
        self.changes
    }

    #[inline]
    fn is_shared(&self) -> bool {
        matches!(self.open, Open::Socket(_))
    }

    fn waker(&self) -> Option<Waker> {
        Some(self.waker.clone())
    }

    fn on_woken(&mut self) {
        self.port_mut().on_woken();
    }

    fn next_timeout(&mut self) -> io::Result<Option<Instant>> {
        self.port_mut().next_timeout()
    }

    fn awaits_room(&self) -> u32 {
        self.port().awaits_room()
    }

    /// Closed, the queues are left to the next process, and with them what has arrived there and was not taken in.
    fn set_intake(&mut self, intake: Intake) {
        let is_closed = intake == Intake::Closed;
        if is_closed && matches!(self.open, Open::Queues(_)) {
            self.failure = self.leave_queues().err();
        }
        if let Open::Socket(port) = &mut self.open {
            port.set_intake(intake);
            self.slot.set(if is_closed { Content::Closed } else { Content::Wanted });
        }
    }

    fn intake(&self) -> Intake {
        self.port().intake()
    }

    fn counters(&self) -> Counters {
        let mut counters = self.before;
        counters += self.port().counters();
        counters
    }

    fn capabilities(&self) -> datapath::Capabilities {
        self.port().capabilities()
    }

    fn xdp_mode(&self) -> Option<&'static str> {
        self.port().xdp_mode()
    }

    fn frames(&self) -> Option<datapath::Frames> {
        self.port().frames()
    }

    fn advice(&self) -> Option<String> {
        self.port().advice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::AnyPort;
    use udp::Variant;

    /// Deleted, each worker of an upgraded server could begin a connection with a part of one ClientHello.
    #[test]
    fn workers_hear_that_a_socket_in_the_place_of_queues_is_shared() {
        let options = BindOptions::new(([127, 0, 0, 1], 0).into(), Variant::Plain);
        let socket = UdpSocket::bind(options.address).unwrap();
        let port = QueuesOrSocket::of_socket(socket.into(), options.clone()).unwrap();
        assert!(port.is_shared());
        assert!(AnyPort::other(port).is_shared(), "in a box, too");
        assert!(!UdpPort::bind(&options).unwrap().is_shared(), "its own");
    }
}
