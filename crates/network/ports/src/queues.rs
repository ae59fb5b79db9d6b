//! Several ports as one: a worker that serves several queues of an interface.
//!
//! What arrives on a queue without a socket is lost, and which queue a packet takes is the interface's choice. So a worker
//! takes all queues that have no worker of their own. With one port, the usual case, every call goes straight through.
//!
//! Data structure: the ports; for the batch at hand, how many trains each has brought; and a table by a hash of the peer,
//! which port its last train came by. An answer leaves by the queue that the question took: that port knows the way back.
//!
//! Rejected: a thread for each queue (a client's connections live in one slab), and one socket for all queues (the kernel
//! binds a socket to one).

use base::net::Train;
use base::sink::{PacketSink, TrainPath};
use base::time::{Duration, Instant};
use core::net::{IpAddr, SocketAddr};
use datapath::{Capabilities, Counters, Frames, Port, Refused, Rx, Tx, Waker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::BorrowedFd;
use xdp::XdpPort;

/// Entries of the table of peers; two that share one cost a look-up, nothing else.
const PEERS: usize = 256;
/// Longest sleep on several ports. A port that holds packets for a neighbour's address does not say when it tries again, so
/// it is asked in every turn.
const NAP: Duration = Duration::from_millis(20);

/// Ports that one worker drives as one. There is at least one.
pub struct Queues<P> {
    ports: Vec<P>,
    /// Trains of the batch at hand, summed up to and including each port.
    ends: Vec<usize>,
    /// The port by which the peer's last train came.
    routes: Box<[u8; PEERS]>,
    /// The port whose train is open.
    open: usize,
    waits: u64,
}

impl Queues<XdpPort> {
    /// The kernel's socket at the same address.
    pub(crate) fn reservation(&self) -> BorrowedFd<'_> {
        self.ports[0].reservation()
    }

    /// From now on `waker` interrupts the wait, and no other does.
    pub(crate) fn use_waker(&mut self, waker: Waker) {
        self.ports[0].use_waker(waker);
    }
}

impl<P: Port> Queues<P> {
    /// These ports as one; `None` without any. More than 256 are not used.
    pub fn new(mut ports: Vec<P>) -> Option<Queues<P>> {
        ports.truncate(PEERS);
        let ends = vec![0; ports.len()];
        let queues = Queues { ports, ends, routes: Box::new([0; PEERS]), open: 0, waits: 0 };
        (!queues.ports.is_empty()).then_some(queues)
    }

    fn wait_for_several(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let now = self.now();
        let latest = now + NAP;
        let span = deadline.map_or(latest, |deadline| deadline.min(latest)).saturating_since(now);
        if span.is_zero() {
            return Ok(());
        }
        self.waits += 1;
        let timeout = Timespec::try_from(core::time::Duration::from(span)).ok();
        let descriptors = self.descriptors();
        let mut events: Vec<PollFd<'_>> =
            descriptors.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        match poll(&mut events, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.on_woken();
        Ok(())
    }
}

/// A place in the table of peers.
fn place(peer: SocketAddr) -> usize {
    let ip = match peer.ip() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64 ^ ip.to_bits() as u64,
    };
    let mixed = (ip ^ u64::from(peer.port()) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as usize
}

impl<P: Port> Rx for Queues<P> {
    #[inline]
    fn poll(&mut self) -> io::Result<usize> {
        let mut end = 0;
        for (port, place) in self.ports.iter_mut().zip(&mut self.ends) {
            end += port.poll()?;
            *place = end;
        }
        Ok(end)
    }

    #[inline]
    fn train(&mut self, index: usize) -> Train<'_> {
        if self.ports.len() == 1 {
            return self.ports[0].train(index);
        }
        let which = self.ends.iter().position(|end| index < *end).unwrap_or(0);
        let first = which.checked_sub(1).map_or(0, |before| self.ends[before]);
        let train = self.ports[which].train(index - first);
        self.routes[place(train.addresses.peer)] = which as u8;
        train
    }
}

impl<P: Port> PacketSink for Queues<P> {
    #[inline]
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        if self.ports.len() > 1 {
            self.open = usize::from(self.routes[place(path.addresses.peer)]);
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

impl<P: Port> Tx for Queues<P> {
    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        self.ports.iter_mut().try_for_each(Tx::flush)
    }
}

impl<P: Port> Port for Queues<P> {
    #[inline]
    fn now(&mut self) -> Instant {
        // Each port is told the time by being asked for it; they all read the same clock.
        self.ports.iter_mut().map(Port::now).max().unwrap_or(Instant::ZERO)
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

    fn local_address_towards(&self, peer: SocketAddr) -> SocketAddr {
        self.ports[0].local_address_towards(peer)
    }

    fn largest_payload(&mut self, local: IpAddr) -> usize {
        self.ports[0].largest_payload(local)
    }

    fn take_refused(&mut self) -> Option<Refused> {
        self.ports.iter_mut().find_map(Port::take_refused)
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.ports.iter().flat_map(Port::descriptors).collect()
    }

    /// The first port's: its event is among the descriptors.
    fn waker(&self) -> Option<Waker> {
        self.ports[0].waker()
    }

    fn on_woken(&mut self) {
        self.ports[0].on_woken();
    }

    fn next_timeout(&mut self) -> io::Result<Option<Instant>> {
        self.ports.iter_mut().try_fold(None, |next: Option<Instant>, port| {
            Ok(next.into_iter().chain(port.next_timeout()?).min())
        })
    }

    fn counters(&self) -> Counters {
        let mut sum = Counters { waits: self.waits, ..Counters::default() };
        self.ports.iter().for_each(|port| sum += port.counters());
        sum
    }

    fn capabilities(&self) -> Capabilities {
        self.ports[0].capabilities()
    }

    fn xdp_mode(&self) -> Option<&'static str> {
        self.ports[0].xdp_mode()
    }

    fn frames(&self) -> Option<Frames> {
        let add = |sum: Frames, next: Frames| Frames { free: sum.free + next.free, all: sum.all + next.all };
        self.ports.iter().filter_map(Port::frames).reduce(add)
    }

    fn advice(&self) -> Option<String> {
        self.ports[0].advice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::net::{Addresses, Ecn};
    use udp::{BindOptions, UdpPort, Variant};

    fn bind() -> UdpPort {
        UdpPort::bind(&BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso)).unwrap()
    }

    fn send(from: &mut impl Port, local: SocketAddr, peer: SocketAddr, byte: u8) {
        let path = TrainPath::new(Addresses { local, peer }, Ecn::NotEct);
        from.begin(path, 100).unwrap();
        from.room().fill(byte);
        from.push(100);
        from.end();
        from.flush().unwrap();
    }

    #[test]
    fn trains_of_all_ports_are_one_batch_and_answers_leave_where_questions_came() {
        let ports: Vec<_> = (0..3).map(|_| bind()).collect();
        // The kernel chooses their ports: one whose entry in the table is taken would hide which port answers.
        let mut clients: Vec<UdpPort> = Vec::new();
        while clients.len() < ports.len() {
            let client = bind();
            let own = place(client.local_address());
            if clients.iter().all(|other| place(other.local_address()) != own) {
                clients.push(client);
            }
        }
        let locals: Vec<SocketAddr> = ports.iter().map(Port::local_address).collect();
        let mut queues = Queues::new(ports).unwrap();
        for (number, client) in (0..).zip(&mut clients) {
            let local = client.local_address();
            send(client, local, locals[usize::from(number)], number);
        }
        let batch = queues.poll().unwrap();
        assert_eq!(batch, 3);
        let mut seen = Vec::new();
        for index in 0..batch {
            let train = queues.train(index);
            seen.push((train.bytes[0], train.addresses));
        }
        for (byte, addresses) in &seen {
            send(&mut queues, addresses.local, addresses.peer, *byte);
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let patience = client.now() + Duration::from_secs(5);
            client.wait(Some(patience)).unwrap();
            assert_eq!(client.poll().unwrap(), 1, "client {number} is answered");
            let train = client.train(0);
            // The kernel chooses the source by the socket: it tells which port has sent.
            assert_eq!((usize::from(train.bytes[0]), train.addresses.peer), (number, locals[number]));
        }
        let counters = queues.counters();
        assert_eq!((counters.rx.datagrams, counters.tx.datagrams), (3, 3));
    }

    #[test]
    fn a_wait_on_several_ports_ends_for_each_of_them_and_for_the_waker() {
        let (mut client, ports) = (bind(), vec![bind(), bind()]);
        let last = ports[1].local_address();
        let mut queues = Queues::new(ports).unwrap();
        let local = client.local_address();
        send(&mut client, local, last, 1);
        let began = queues.now();
        queues.wait(None).unwrap();
        assert_eq!(queues.poll().unwrap(), 1);
        queues.waker().unwrap().wake();
        queues.wait(None).unwrap();
        queues.wait(Some(began)).unwrap();
        assert_eq!(queues.counters().waits, 2);
        assert!(Queues::<UdpPort>::new(Vec::new()).is_none());
    }

    /// A port that needs a turn at a time of its own, as one of AF_XDP does.
    struct Timed(UdpPort, Option<Instant>);

    impl Rx for Timed {
        fn poll(&mut self) -> io::Result<usize> {
            self.0.poll()
        }
        fn train(&mut self, index: usize) -> Train<'_> {
            self.0.train(index)
        }
    }

    impl PacketSink for Timed {
        fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
            self.0.begin(path, segment_size)
        }
        fn room(&mut self) -> &mut [u8] {
            self.0.room()
        }
        fn push(&mut self, len: usize) {
            self.0.push(len);
        }
        fn packet(&mut self, index: usize) -> &mut [u8] {
            self.0.packet(index)
        }
        fn end(&mut self) {
            self.0.end();
        }
    }

    impl Tx for Timed {
        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    impl Port for Timed {
        fn now(&mut self) -> Instant {
            self.0.now()
        }
        fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
            self.0.wait(deadline)
        }
        fn local_address(&self) -> SocketAddr {
            self.0.local_address()
        }
        fn next_timeout(&mut self) -> io::Result<Option<Instant>> {
            Ok(self.1)
        }
        fn counters(&self) -> Counters {
            self.0.counters()
        }
        fn capabilities(&self) -> Capabilities {
            self.0.capabilities()
        }
    }

    /// Deleted, packets of AF_XDP that wait for a neighbour's address could wait on while the worker is a task.
    #[test]
    fn a_turn_is_due_when_the_first_of_the_ports_needs_one() {
        let timed =
            |seconds: Option<u64>| Timed(bind(), seconds.map(|s| Instant::ZERO + Duration::from_secs(s)));
        for (each, first) in
            [([None, Some(7), Some(5)], Some(5)), ([Some(3), None, None], Some(3)), ([None; 3], None)]
        {
            let mut queues = Queues::new(each.map(timed).into()).unwrap();
            assert_eq!(queues.next_timeout().unwrap(), timed(first).1);
        }
    }
}
