//! Several sockets of one thread as one port: a client whose connections have several local ports, a server at several addresses.
//!
//! What looks at addresses and ports (a server's workers that share a port, a router with several ways, a card with several
//! queues) sees one flow where all connections of a thread share a socket. New connections take the sockets in turn; what a
//! connection sends leaves by the socket that its path's local address names.
//!
//! A poll takes a batch of one socket, and of the next one with the next poll, until none has any. So several sockets cost as
//! many system calls as one while there is much to receive, and some that find nothing before each wait.

use core::cell::Cell;
use core::net::{IpAddr, SocketAddr};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use base::net::Train;
use base::sink::{PacketSink, TrainPath};
use base::time::Instant;
use datapath::{Capabilities, Counters, Intake, Port, Refused, Rx, Tx, Waker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::port::UdpPort;

/// Most sockets of a thread.
pub const MAX_SOCKETS: usize = 16;

/// Sockets that one thread drives as one port. There is at least one.
#[derive(Debug)]
pub struct Sockets {
    ports: Vec<UdpPort>,
    /// The socket whose batch is at hand.
    batch: usize,
    /// The socket whose train is open.
    open: usize,
    /// The socket of the next connection.
    next: Cell<usize>,
    waits: u64,
}

impl Sockets {
    /// These sockets as one port; `None` without any. More than [`MAX_SOCKETS`] are not used.
    pub fn new(mut ports: Vec<UdpPort>) -> Option<Sockets> {
        ports.truncate(MAX_SOCKETS);
        let sockets = Sockets { ports, batch: 0, open: 0, next: Cell::new(0), waits: 0 };
        (!sockets.ports.is_empty()).then_some(sockets)
    }

    /// One more; `None` if there are [`MAX_SOCKETS`] already.
    pub fn with(mut self, port: UdpPort) -> Option<Sockets> {
        if self.ports.len() >= MAX_SOCKETS {
            return None;
        }
        self.ports.push(port);
        Some(self)
    }

    /// All of them.
    pub fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        self.ports.iter().map(UdpPort::socket).collect()
    }

    fn wait_for_several(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let span = deadline.map(|deadline| deadline.saturating_since(self.ports[0].now()));
        if span.is_some_and(|span| span.is_zero()) {
            return Ok(());
        }
        let timeout = span.and_then(|span| Timespec::try_from(core::time::Duration::from(span)).ok());
        self.waits += 1;
        let (ports, waker) = (&self.ports, self.ports[0].waker_ref());
        // One event for each socket and one for the waker; what is left over stays outside of the slice.
        let mut events: [PollFd<'_>; MAX_SOCKETS + 1] =
            core::array::from_fn(|place| match place.checked_sub(1).and_then(|place| ports.get(place)) {
                Some(port) => PollFd::from_borrowed_fd(port.socket(), port.awaited()),
                None => PollFd::from_borrowed_fd(waker.as_fd(), PollFlags::IN),
            });
        match poll(&mut events[..=ports.len()], timeout.as_ref()) {
            // Interrupted by a signal: an early return, which the caller allows for.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if events[0].revents().intersects(PollFlags::IN) {
            waker.clear();
        }
        Ok(())
    }
}

/// Whether what comes to `local` comes by this socket. Sockets that share a port number are bound to different IP addresses.
#[inline]
fn is_bound_to(port: &UdpPort, local: SocketAddr) -> bool {
    let bound = port.local_address();
    bound.port() == local.port()
        && (bound.ip() == local.ip() || local.ip().is_unspecified() || port.sends_from(local.ip()))
}

impl Rx for Sockets {
    #[inline]
    fn poll(&mut self) -> io::Result<usize> {
        for _ in 0..self.ports.len() {
            self.batch = if self.batch + 1 < self.ports.len() { self.batch + 1 } else { 0 };
            let trains = self.ports[self.batch].poll()?;
            if trains > 0 {
                return Ok(trains);
            }
        }
        Ok(0)
    }

    #[inline]
    fn train(&mut self, index: usize) -> Train<'_> {
        self.ports[self.batch].train(index)
    }
}

impl PacketSink for Sockets {
    #[inline]
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        let local = path.addresses.local;
        if !is_bound_to(&self.ports[self.open], local) {
            self.open = self.ports.iter().position(|port| is_bound_to(port, local)).unwrap_or(0);
        }
        self.ports[self.open].begin(path, segment_size)
    }

    #[inline]
    fn room(&mut self) -> &mut [u8] {
        self.ports[self.open].room()
    }

    #[inline]
    fn push(&mut self, len: usize) {
        self.ports[self.open].push(len);
    }

    #[inline]
    fn packet(&mut self, index: usize) -> &mut [u8] {
        self.ports[self.open].packet(index)
    }

    #[inline]
    fn end(&mut self) {
        self.ports[self.open].end();
    }
}

impl Tx for Sockets {
    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        self.ports.iter_mut().try_for_each(Tx::flush)
    }
}

impl Port for Sockets {
    #[inline]
    fn now(&mut self) -> Instant {
        self.ports[0].now()
    }

    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        match self.ports.as_mut_slice() {
            [port] => port.wait(deadline),
            _ => self.wait_for_several(deadline),
        }
    }

    fn local_address(&self) -> SocketAddr {
        self.ports[0].local_address()
    }

    /// That of the next socket in turn: each call stands for a new connection.
    fn local_address_towards(&self, peer: SocketAddr) -> SocketAddr {
        let place = self.next.get() % self.ports.len();
        self.next.set(place + 1);
        self.ports[place].local_address_towards(peer)
    }

    fn sends_from(&self, ip: IpAddr) -> bool {
        self.ports.iter().any(|port| port.sends_from(ip))
    }

    fn pin(&mut self, ip: IpAddr, interface: u32) {
        self.ports.iter_mut().for_each(|port| port.pin(ip, interface));
    }

    fn largest_payload(&mut self, local: IpAddr) -> usize {
        self.ports[0].largest_payload(local)
    }

    fn take_refused(&mut self) -> Option<Refused> {
        self.ports.iter_mut().find_map(Port::take_refused)
    }

    /// The sockets and the waker's event.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let sockets = self.ports.iter().map(UdpPort::socket);
        sockets.chain([self.ports[0].waker_ref().as_fd()]).collect()
    }

    /// The first socket's: its event is among the descriptors.
    fn waker(&self) -> Option<Waker> {
        self.ports[0].waker()
    }

    fn on_woken(&mut self) {
        self.ports[0].on_woken();
    }

    fn awaits_room(&self) -> u32 {
        let bit = |(place, port): (usize, &UdpPort)| u32::from(port.has_queued()) << place;
        self.ports.iter().enumerate().map(bit).sum()
    }

    fn set_intake(&mut self, intake: Intake) {
        self.ports.iter_mut().for_each(|port| port.set_intake(intake));
    }

    fn intake(&self) -> Intake {
        self.ports[0].intake()
    }

    fn counters(&self) -> Counters {
        let mut sum = Counters { waits: self.waits, ..Counters::default() };
        self.ports.iter().for_each(|port| sum += port.counters());
        sum
    }

    fn capabilities(&self) -> Capabilities {
        self.ports[0].capabilities()
    }

    fn advice(&self) -> Option<String> {
        self.ports[0].advice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{BindOptions, Variant};
    use base::net::{Addresses, Ecn};
    use base::time::Duration;

    fn bind() -> UdpPort {
        UdpPort::bind(&BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso)).unwrap()
    }

    fn send(from: &mut impl Port, addresses: Addresses, byte: u8) {
        from.begin(TrainPath::new(addresses, Ecn::NotEct), 100).unwrap();
        from.room().fill(byte);
        from.push(100);
        from.end();
        from.flush().unwrap();
    }

    /// Deleted, all connections of a thread could share one port again, or answers be lost on all sockets but one.
    #[test]
    fn connections_take_the_sockets_in_turn_and_each_hears_its_answer() {
        let mut server = bind();
        let peer = server.local_address();
        let mut client = Sockets::new((0..3).map(|_| bind()).collect()).unwrap();
        let locals: Vec<SocketAddr> = (0..6).map(|_| client.local_address_towards(peer)).collect();
        let mut ports: Vec<u16> = locals.iter().map(SocketAddr::port).collect();
        assert_eq!(ports[..3], ports[3..]);
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 3);
        for (number, local) in (0..).zip(&locals[..3]) {
            send(&mut client, Addresses { local: *local, peer }, number);
        }
        let patience = server.now() + Duration::from_secs(5);
        let mut heard = 0;
        while heard < 3 {
            server.wait(Some(patience)).unwrap();
            let questions: Vec<(u8, Addresses)> = (0..server.poll().unwrap())
                .map(|index| {
                    let train = server.train(index);
                    (train.bytes[0], train.addresses)
                })
                .collect();
            for (byte, addresses) in questions {
                assert_eq!(addresses.peer, locals[usize::from(byte)], "it left by the socket of its path");
                send(&mut server, addresses, byte);
                heard += 1;
            }
        }
        let mut answers = Vec::new();
        while answers.len() < 3 {
            client.wait(Some(patience)).unwrap();
            for index in 0..client.poll().unwrap() {
                let train = client.train(index);
                assert_eq!(train.addresses.local, locals[usize::from(train.bytes[0])]);
                answers.push(train.bytes[0]);
            }
        }
        answers.sort_unstable();
        assert_eq!(answers, [0, 1, 2]);
        client.waker().unwrap().wake();
        client.wait(None).unwrap();
        assert!(Sockets::new(Vec::new()).is_none());
    }

    /// Deleted, a server at two addresses with one port number could answer from the wrong one.
    #[test]
    fn sockets_that_share_a_port_number_are_told_apart_by_their_addresses() {
        let bind_at = |at: String| UdpPort::bind(&BindOptions::new(at.parse().unwrap(), Variant::Gso));
        // Another program may have the number at one of the addresses.
        let (first, number) = (0..20)
            .find_map(|_| {
                let first = bind();
                let number = first.local_address().port();
                let second = bind_at(format!("127.0.0.2:{number}")).ok()?;
                let third = bind_at(format!("[::1]:{number}")).ok()?;
                Some((vec![first, second, third], number))
            })
            .unwrap();
        let mut server = Sockets::new(first).unwrap();
        let patience = server.now() + Duration::from_secs(5);
        for (place, ip) in ["127.0.0.1", "127.0.0.2", "::1"].iter().cycle().take(6).enumerate() {
            let local = SocketAddr::new(ip.parse().unwrap(), number);
            let any = if local.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
            let mut client = bind_at(any.to_owned()).unwrap();
            let peer = client.local_address();
            send(&mut server, Addresses { local, peer }, place as u8);
            client.wait(Some(patience)).unwrap();
            assert_eq!(client.poll().unwrap(), 1, "{local}");
            assert_eq!(client.train(0).addresses.peer, local);
        }
        assert!(
            server.sends_from("127.0.0.2".parse().unwrap())
                && !server.sends_from("127.0.0.3".parse().unwrap())
        );
    }

    /// Deleted, a task could wait for room in a socket that has some, which is always, or not in the one that is full.
    #[test]
    fn room_is_awaited_in_the_sockets_with_trains_alone() {
        let (peer, patience) = (bind().local_address(), Duration::from_secs(5));
        let mut sockets = Sockets::new((0..3).map(|_| bind()).collect()).unwrap();
        let local = sockets.ports[2].local_address();
        assert_eq!(sockets.awaits_room(), 0);
        sockets.begin(TrainPath::new(Addresses { local, peer }, Ecn::NotEct), 100).unwrap();
        sockets.push(100);
        sockets.end();
        assert_eq!((sockets.awaits_room(), sockets.ports[2].awaits_room()), (0b100, 1));
        // The loopback interface has room: the sleep ends at once.
        let deadline = sockets.now() + patience;
        sockets.wait(Some(deadline)).unwrap();
        assert!(sockets.now() < deadline);
        sockets.flush().unwrap();
        assert_eq!(sockets.awaits_room(), 0);
    }
}
