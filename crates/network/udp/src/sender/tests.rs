//! A kernel that refuses, and what becomes of the trains.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use base::net::{Addresses, Ecn};
use base::time::Instant;

use super::*;

/// What a [`FakeKernel`] says to a batch: how many messages it takes, or an error code.
type Verdict = dyn FnMut(&[Message]) -> Result<usize, i32> + Send;

/// Stands between a sender and the kernel: it may shorten a batch or refuse it.
pub(crate) struct FakeKernel(Box<Verdict>);

impl FakeKernel {
    pub(crate) fn admit(&mut self, messages: &[Message]) -> io::Result<usize> {
        (self.0)(messages).map_err(io::Error::from_raw_os_error)
    }
}

fn is_segmented(message: &Message) -> bool {
    let kind = [libc::SOL_UDP.to_ne_bytes(), libc::UDP_SEGMENT.to_ne_bytes()].concat();
    message.control.bytes[..message.control.len].windows(8).any(|bytes| bytes == kind)
}

/// Takes everything before the first message that `refused` names, and reports `code` when that comes first.
fn refuse(
    code: i32,
    mut refused: impl FnMut(&Message) -> bool,
) -> impl FnMut(&[Message]) -> Result<usize, i32> {
    move |messages| match messages.iter().position(&mut refused) {
        Some(0) => Err(code),
        Some(before) => Ok(before),
        None => Ok(messages.len()),
    }
}

struct Bench {
    sender: Sender,
    socket: UdpSocket,
    peers: Vec<UdpSocket>,
}

impl Bench {
    fn new(variant: Variant) -> Bench {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let peers = ["127.0.0.1:0", "127.0.0.2:0"].map(|address| UdpSocket::bind(address).unwrap());
        for peer in &peers {
            peer.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        }
        let bound = socket.local_addr().unwrap();
        let mut sender = Sender::new(variant, 0, Family::V4, bound);
        if let (Variant::Uring, Err(error)) = (variant, sender.lend()) {
            requirements::missing(format_args!("memory cannot be lent: {error}"));
        }
        Bench { sender, socket, peers: peers.into() }
    }

    fn refusing(verdict: impl FnMut(&[Message]) -> Result<usize, i32> + Send + 'static) -> Bench {
        let mut bench = Bench::new(Variant::Gso);
        bench.sender.kernel = Some(FakeKernel(Box::new(verdict)));
        bench
    }

    fn queue(&mut self, peer: usize, count: u8, len: usize) {
        self.queue_until(None, peer, count, len);
    }

    fn queue_until(&mut self, departs: Option<Instant>, peer: usize, count: u8, len: usize) {
        let peer = self.peers[peer].local_addr().unwrap();
        let addresses = Addresses { local: self.socket.local_addr().unwrap(), peer };
        let path = TrainPath { departs, ..TrainPath::new(addresses, Ecn::Ect0) };
        let room = self.sender.begin(path, len).unwrap();
        assert!(room >= usize::from(count));
        for n in 0..count {
            self.sender.room().fill(n);
            // The last is shorter.
            self.sender.push(if n + 1 == count { len.div_ceil(2) } else { len });
        }
        assert_eq!(self.sender.packet(0)[0], 0);
        assert_eq!(self.sender.packet(usize::from(count) - 1).len(), len.div_ceil(2));
        self.sender.end();
    }

    fn flush(&mut self) {
        self.sender.flush(self.socket.as_fd()).unwrap();
    }

    /// Asserts that `peer` gets exactly the train that `queue` made.
    fn expect(&self, peer: usize, count: u8, len: usize) {
        let mut buffer = [0; 65_536];
        for n in 0..count {
            let size = self.peers[peer].recv(&mut buffer).unwrap();
            assert_eq!(size, if n + 1 == count { len.div_ceil(2) } else { len });
            assert!(buffer[..size].iter().all(|&byte| byte == n), "datagram {n}");
        }
    }

    fn expect_nothing(&self) {
        for peer in &self.peers {
            peer.set_nonblocking(true).unwrap();
            assert_eq!(peer.recv(&mut [0; 9]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            peer.set_nonblocking(false).unwrap();
        }
    }
}

#[test]
fn refused_segmentation_loses_nothing_and_is_remembered_for_that_destination() {
    let mut bench = Bench::refusing(|messages| {
        let to_first = |message: &Message| message.name.bytes[7] == 1;
        refuse(libc::EIO, move |message| is_segmented(message) && to_first(message))(messages)
    });
    // The refused train is in the middle of a batch: those around it must pass once and once only.
    for (peer, count) in [(1, 5), (0, 7), (1, 6)] {
        bench.queue(peer, count, 300);
    }
    bench.flush();
    bench.expect(0, 7, 300);
    bench.expect(1, 5, 300);
    bench.expect(1, 6, 300);
    bench.queue(0, 9, 200);
    bench.queue(1, 9, 200);
    bench.flush();
    bench.expect(0, 9, 200);
    bench.expect(1, 9, 200);
    bench.expect_nothing();
    let counters = bench.sender.counters;
    assert_eq!(counters.split, 1, "the second train for the first peer was not even tried");
    assert_eq!((counters.datagrams, counters.lost()), (7 + 5 + 6 + 9 + 9, 0));
    // Trains of one message, and 16 single datagrams.
    assert_eq!(counters.trains, 3 + 16);
    assert!(bench.sender.segments());
}

#[test]
fn when_many_destinations_refuse_the_socket_stops_asking() {
    let mut bench = Bench::refusing(refuse(libc::EIO, is_segmented));
    let port = bench.peers[0].local_addr().unwrap().port();
    for host in 1..=20 {
        // Most of these ports are closed; that does not matter here.
        let peer = SocketAddr::new([127, 0, 1, host].into(), port);
        let addresses = Addresses { local: bench.socket.local_addr().unwrap(), peer };
        bench.sender.begin(TrainPath::new(addresses, Ecn::NotEct), 10).unwrap();
        bench.sender.push(10);
        bench.sender.push(10);
        bench.sender.end();
        bench.flush();
    }
    assert_eq!(bench.sender.counters.split, 9);
    assert!(!bench.sender.segments());
}

#[test]
fn datagrams_beyond_the_interfaces_mtu_are_lost_and_gso_is_not_blamed() {
    // A path MTU probe that is too long must not cost the path its segmentation, nor take the short tail with it.
    for code in [libc::EMSGSIZE, libc::EINVAL] {
        let mut bench = Bench::refusing(move |messages| {
            let long = |message: &Message| is_segmented(message) && message.len > 2000 || message.len == 900;
            refuse(if is_segmented(&messages[0]) { code } else { libc::EMSGSIZE }, long)(messages)
        });
        bench.queue(0, 4, 900);
        bench.queue(0, 4, 300);
        bench.flush();
        let mut buffer = [0; 1000];
        assert_eq!(bench.peers[0].recv(&mut buffer).unwrap(), 450);
        bench.expect(0, 4, 300);
        assert_eq!(bench.sender.counters.too_large, 3);
        let refused = bench.sender.take_refused().unwrap();
        assert!(refused.size <= 1_000 && bench.sender.too_large.len() == 2, "{refused:?}");
        assert!(!bench.sender.refusals.include([127, 0, 0, 1].into()));
    }
}

#[test]
fn a_train_with_more_segments_than_the_kernel_takes_is_resent_in_pieces() {
    // The real kernel's limit is 64 or 128.
    let mut bench = Bench::new(Variant::Gso);
    bench.sender.most_segments = 250;
    bench.queue(0, 250, 20);
    bench.flush();
    bench.expect(0, 250, 20);
    bench.expect_nothing();
    assert_eq!((bench.sender.counters.split, bench.sender.counters.lost()), (1, 0));
}

#[test]
fn a_full_socket_keeps_the_trains_for_the_next_flush() {
    let mut calls = 0;
    let mut bench = Bench::refusing(move |messages| {
        calls += 1;
        match calls {
            1 => Ok(1),
            2 => Err(libc::EAGAIN),
            _ => Ok(messages.len()),
        }
    });
    for count in [4, 5, 6] {
        bench.queue(0, count, 100);
    }
    bench.flush();
    assert!(bench.sender.has_queued());
    bench.expect(0, 4, 100);
    bench.expect_nothing();
    bench.queue(1, 3, 100);
    bench.flush();
    assert!(!bench.sender.has_queued());
    bench.expect(0, 5, 100);
    bench.expect(0, 6, 100);
    bench.expect(1, 3, 100);
    assert_eq!((bench.sender.counters.deferred, bench.sender.counters.lost()), (1, 0));
}

#[test]
fn memory_is_refused_while_it_is_full_and_free_again_after_a_flush() {
    let mut stuck = true;
    let mut bench = Bench::refusing(move |messages| {
        let verdict = if stuck { Err(libc::EAGAIN) } else { Ok(messages.len()) };
        stuck = false;
        verdict
    });
    let path = |bench: &Bench| {
        let local = bench.socket.local_addr().unwrap();
        TrainPath::new(Addresses { local, peer: bench.peers[0].local_addr().unwrap() }, Ecn::NotEct)
    };
    bench.queue(0, 40, 1472);
    bench.flush();
    assert!(bench.sender.begin(path(&bench), 1472).is_none());
    bench.flush();
    bench.expect(0, 40, 1472);
    assert_eq!(bench.sender.begin(path(&bench), 1472), Some(44));
    bench.sender.end();
    assert!(!bench.sender.has_queued(), "a train without packets is forgotten");
    assert_eq!(bench.sender.begin(path(&bench), 1), Some(64));
}

#[test]
fn whatever_part_of_a_batch_is_taken_each_datagram_goes_once_and_in_order() {
    for variant in Variant::ALL {
        let mut rng = base::rng::Rng::from_u64(5);
        let mut bench = Bench::new(variant);
        bench.sender.kernel = Some(FakeKernel(Box::new(move |messages| {
            if rng.below(4) == 0 {
                return Err([libc::EINTR, libc::EAGAIN][rng.below(2) as usize]);
            }
            Ok(1 + rng.below(messages.len() as u64) as usize)
        })));
        for _ in 0..20 {
            for count in [1, 30, 2] {
                bench.queue(0, count, 150);
            }
            while bench.sender.has_queued() {
                bench.flush();
            }
            for count in [1, 30, 2] {
                bench.expect(0, count, 150);
            }
        }
        bench.expect_nothing();
        assert_eq!((bench.sender.counters.datagrams, bench.sender.counters.lost()), (20 * 33, 0));
    }
}

#[test]
fn an_old_error_of_the_socket_is_counted_and_costs_no_datagram() {
    let mut reported = false;
    let mut bench = Bench::refusing(move |messages| {
        if !std::mem::replace(&mut reported, true) { Err(libc::ECONNREFUSED) } else { Ok(messages.len()) }
    });
    bench.queue(0, 5, 100);
    bench.flush();
    bench.expect(0, 5, 100);
    assert_eq!(bench.sender.counters.refused, 1);

    // A destination for which it is reported every time is given up, and only that one.
    let mut bench = Bench::refusing(refuse(libc::EHOSTUNREACH, |message| message.name.bytes[7] == 2));
    bench.queue(1, 5, 100);
    bench.queue(0, 5, 100);
    bench.flush();
    bench.expect(0, 5, 100);
    assert_eq!((bench.sender.counters.unreachable, bench.sender.counters.split), (5, 0));
}

/// Bytes of the first message's control data, for trains that depart in an hour.
fn control_of_late_trains(bench: &mut Bench) -> usize {
    let late = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_sec as u64 + 3600;
    for peer in [0, 1] {
        bench.queue_until(Some(Instant::from_nanos(late * 1_000_000_000)), peer, 12, 700);
    }
    bench.flush();
    // There is no fq on loopback, so they leave at once all the same.
    for peer in [0, 1] {
        bench.expect(peer, 12, 700);
    }
    assert_eq!(bench.sender.counters.lost(), 0);
    bench.sender.messages[0].control.len
}

#[test]
fn the_kernel_takes_departure_times_where_the_socket_announced_them() {
    for variant in Variant::ALL {
        let mut bench = Bench::new(variant);
        assert!(!bench.sender.holds_back());
        // To a socket that did not announce them they would be an error, for which all datagrams were lost.
        let without = control_of_late_trains(&mut bench);
        bench.sender.hold_back(bench.socket.as_fd());
        assert!(bench.sender.holds_back());
        let with = control_of_late_trains(&mut bench);
        assert!(with > without, "{with} bytes with, {without} without");
        bench.queue(0, 12, 700);
        bench.flush();
        assert_eq!(bench.sender.messages[0].control.len, without, "no time, no bytes");
    }
}

#[test]
fn a_broken_socket_is_an_error() {
    let mut bench = Bench::refusing(|_| Err(libc::EBADF));
    bench.queue(0, 1, 100);
    assert!(bench.sender.flush(bench.socket.as_fd()).is_err());
}
