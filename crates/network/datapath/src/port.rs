//! What a data path is to the worker that drives it.
//!
//! One call takes in or sends many trains, because system calls are what packets cost most. Receiving lends memory until
//! the next `poll`; sending lends memory between `begin` and `end` (see [`base::sink`]). Static dispatch everywhere: a
//! worker is compiled for its port.
//!
//! Faults are sorted by whom they concern: what one destination causes is counted and never returned, since a peer must
//! not be able to stop a worker that serves others; `io::Error` means that the port itself is broken.
//!
//! Rejected: a queue of owned packet buffers between path and protocol (an allocation or a reference count per packet),
//! and one trait object per port (an indirect call per packet).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::AddAssign;
use std::io;
use std::os::fd::BorrowedFd;

use base::net::Train;
use base::sink::PacketSink;
use base::time::Instant;

use crate::trains::MAX_TRAIN_BYTES;
use crate::waker::Waker;

/// The receiving half.
pub trait Rx {
    /// Takes in one batch and gives back the memory of the batch before. Returns how many trains are there now: 0 if
    /// nothing has arrived. Never blocks, and does a bounded amount of work even under a flood of worthless datagrams.
    ///
    /// # Errors
    /// Only when the port itself has failed.
    fn poll(&mut self) -> io::Result<usize>;

    /// Train `index` of the current batch, counted from 0, below what `poll` returned.
    fn train(&mut self, index: usize) -> Train<'_>;
}

/// The sending half.
pub trait Tx: PacketSink {
    /// Hands every queued train on, oldest first. Trains for which there is no room now stay queued for the next flush;
    /// trains that their destination refuses are counted and forgotten, as a network would.
    ///
    /// # Errors
    /// Only when the port itself has failed.
    fn flush(&mut self) -> io::Result<()>;
}

/// A data path as one worker owns it.
pub trait Port: Rx + Tx {
    /// The time. The only clock there is: a worker asks once per turn.
    fn now(&mut self) -> Instant;

    /// Blocks until a datagram has arrived, queued trains can leave, someone else asked for attention, or `deadline`
    /// has passed; `None` is no deadline. A deadline in the past returns at once. May return early for no reason.
    ///
    /// # Errors
    /// Only when the port itself has failed.
    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()>;

    /// Where the port is bound. The IP address may be unspecified, the port number is set.
    fn local_address(&self) -> SocketAddr;

    /// Where datagrams to `peer` leave from, as far as the path can tell before the first one: unspecified, and of the
    /// peer's family, when it cannot.
    fn local_address_towards(&self, peer: SocketAddr) -> SocketAddr {
        let mut local = self.local_address();
        if local.ip().is_unspecified() && local.is_ipv4() != peer.is_ipv4() {
            // A dual-stack socket reaches both families.
            let any =
                if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            local.set_ip(any);
        }
        local
    }

    /// Whether datagrams can leave from the local address `ip` as well: from any that the machine has, where the port is bound to
    /// all of them.
    fn sends_from(&self, _ip: IpAddr) -> bool {
        false
    }

    /// From now on what leaves from the local address `ip` leaves by the interface of this index, whatever the routes say. For
    /// connections that move there or open a path there; of the last eight addresses at least.
    fn pin(&mut self, _ip: IpAddr, _interface: u32) {}

    /// The longest UDP payload, in bytes, that leaves from the address `local` in one packet, as far as the path can tell: what
    /// the MTU of its interface holds. Not for every packet: it may ask the system.
    fn largest_payload(&mut self, _local: IpAddr) -> usize {
        MAX_TRAIN_BYTES
    }

    /// A datagram that our own interface has refused as longer than its MTU since the last call; `None` when all are told. Those
    /// that no call takes are forgotten.
    fn take_refused(&mut self) -> Option<Refused> {
        None
    }

    /// What to poll for readability in a foreign event loop, instead of calling `wait`: when any of these is readable, or
    /// the deadline has passed, a turn is due. Empty for paths without descriptors. Not for every packet: it allocates.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// How often [`Port::descriptors`] became others: a foreign event loop that keeps copies makes new ones then.
    fn descriptor_changes(&self) -> u32 {
        0
    }

    /// Whether ports of other workers read the same socket, so that a datagram comes to any of them.
    fn is_shared(&self) -> bool {
        false
    }

    /// What interrupts this port's wait from another thread; `None` for paths that do not sleep.
    fn waker(&self) -> Option<Waker> {
        None
    }

    /// Takes note that a descriptor was readable; for owners of their own event loop, as `wait` does it itself.
    fn on_woken(&mut self) {}

    /// When a turn is due for the port's own sake; for owners of their own event loop, to be asked before each sleep, as `wait`
    /// heeds it itself. `None` for ports whose descriptors tell everything.
    ///
    /// # Errors
    /// Only when the port itself has failed.
    fn next_timeout(&mut self) -> io::Result<Option<Instant>> {
        Ok(None)
    }

    /// The descriptors that have no room for trains which are queued, as bits by their places in [`Port::descriptors`]: a turn is due
    /// when one of them is writable, too. For owners of their own event loop, to be asked before each sleep, as `wait` heeds it itself.
    /// Zero where nothing is queued, and for ports that cannot tell or do so by [`Port::next_timeout`].
    fn awaits_room(&self) -> u32 {
        0
    }

    /// Whether the port takes in what arrives. Where it does not, the kernel keeps it for another process that has the socket too, and
    /// no wait ends because of it. Ports that are no sockets of the kernel's UDP stay open.
    fn set_intake(&mut self, _intake: Intake) {}

    /// What was set.
    fn intake(&self) -> Intake {
        Intake::Open
    }

    /// What has happened so far.
    fn counters(&self) -> Counters;

    /// What the path can do now; it may become less while running, when the kernel turns something down.
    fn capabilities(&self) -> Capabilities;

    /// How an AF_XDP socket shares packets with the driver: "zero-copy", "driver", "generic"; `None` for every other path.
    fn xdp_mode(&self) -> Option<&'static str> {
        None
    }

    /// The packet memory of an AF_XDP port; `None` for every other path.
    fn frames(&self) -> Option<Frames> {
        None
    }

    /// A line for the user when the system grants less than the port asked for: what, and what to type.
    fn advice(&self) -> Option<String> {
        None
    }
}

/// Whether a port takes in what arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Intake {
    /// It does.
    #[default]
    Open,
    /// It sends only.
    Closed,
}

/// Packet memory of an AF_XDP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    /// Frames that neither the kernel nor the port holds for a packet.
    pub free: usize,
    /// All of them.
    pub all: usize,
}

/// The methods of [`Port`] in which what wraps a port is that port: the field `inner` answers, or `methods` that lend the port, the
/// first shared, the second exclusively. Left to the wrapper are the clock, the wait and the counters.
#[macro_export]
macro_rules! ask_inner {
    () => {
        $crate::ask_inner!([inner][inner]);
    };
    (methods $shared:ident $exclusive:ident) => {
        $crate::ask_inner!([$shared()][$exclusive()]);
    };
    ([$($shared:tt)*] [$($exclusive:tt)*]) => {
        fn local_address(&self) -> ::core::net::SocketAddr {
            self.$($shared)*.local_address()
        }

        fn local_address_towards(&self, peer: ::core::net::SocketAddr) -> ::core::net::SocketAddr {
            self.$($shared)*.local_address_towards(peer)
        }

        fn sends_from(&self, ip: ::core::net::IpAddr) -> bool {
            self.$($shared)*.sends_from(ip)
        }

        fn pin(&mut self, ip: ::core::net::IpAddr, interface: u32) {
            self.$($exclusive)*.pin(ip, interface);
        }

        fn largest_payload(&mut self, local: ::core::net::IpAddr) -> usize {
            self.$($exclusive)*.largest_payload(local)
        }

        fn take_refused(&mut self) -> Option<$crate::port::Refused> {
            self.$($exclusive)*.take_refused()
        }

        fn descriptors(&self) -> Vec<::std::os::fd::BorrowedFd<'_>> {
            self.$($shared)*.descriptors()
        }

        fn descriptor_changes(&self) -> u32 {
            self.$($shared)*.descriptor_changes()
        }

        #[inline]
        fn is_shared(&self) -> bool {
            self.$($shared)*.is_shared()
        }

        fn waker(&self) -> Option<$crate::Waker> {
            self.$($shared)*.waker()
        }

        fn on_woken(&mut self) {
            self.$($exclusive)*.on_woken();
        }

        fn next_timeout(&mut self) -> ::std::io::Result<Option<::base::time::Instant>> {
            self.$($exclusive)*.next_timeout()
        }

        fn awaits_room(&self) -> u32 {
            self.$($shared)*.awaits_room()
        }

        fn set_intake(&mut self, intake: $crate::Intake) {
            self.$($exclusive)*.set_intake(intake);
        }

        fn intake(&self) -> $crate::Intake {
            self.$($shared)*.intake()
        }

        fn capabilities(&self) -> $crate::port::Capabilities {
            self.$($shared)*.capabilities()
        }

        fn xdp_mode(&self) -> Option<&'static str> {
            self.$($shared)*.xdp_mode()
        }

        fn frames(&self) -> Option<$crate::port::Frames> {
            self.$($shared)*.frames()
        }

        fn advice(&self) -> Option<String> {
            self.$($shared)*.advice()
        }
    };
}

/// A datagram that was longer than the MTU of the interface by which it should have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Whom it was for.
    pub peer: SocketAddr,
    /// Its UDP payload, in bytes.
    pub size: usize,
}

/// What a path can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The name of the path and its variant, for reports.
    pub name: &'static str,
    /// Most datagrams in one outgoing train.
    pub train_segments: usize,
    /// Most bytes of UDP payload in one outgoing train.
    pub train_bytes: usize,
    /// Whether a train of many leaves as one unit rather than datagram by datagram.
    pub segments_offloaded: bool,
    /// Whether datagrams of one flow arrive merged into trains.
    pub coalesces: bool,
    /// Whether the ECN field is carried both ways.
    pub ecn: bool,
    /// Whether trains are held back until they depart (`TrainPath::departs`), by the kernel or by the interface.
    pub departure_times: bool,
}

/// Why a destination did not take a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendFault {
    /// No socket listens there (an ICMP error came back for an earlier datagram).
    Refused,
    /// No route, or the way is forbidden.
    Unreachable,
    /// Longer than the interface's MTU: see [`Port::take_refused`].
    TooLarge,
    /// Anything else, such as a full queue of the interface.
    Other,
}

/// What arrived, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxCounters {
    /// Datagrams handed up.
    pub datagrams: u64,
    /// Their UDP payload.
    pub bytes: u64,
    /// Trains they came in.
    pub trains: u64,
    /// System calls (or ring reads), including those that found nothing.
    pub calls: u64,
    /// Datagrams without payload: worthless to QUIC, but not free.
    pub empty: u64,
    /// Trains that did not fit their buffer or lost their control data, and were discarded.
    pub truncated: u64,
    /// Datagrams that the kernel discarded because the receive buffer was full, where it says so.
    pub overflowed: u64,
    /// Errors that were reported on the socket and do not concern it.
    pub errors: u64,
}

/// What was sent, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxCounters {
    /// Datagrams the kernel or ring took.
    pub datagrams: u64,
    /// Their UDP payload.
    pub bytes: u64,
    /// Units they left in: a train sent whole counts one, a train sent in pieces counts each piece.
    pub trains: u64,
    /// System calls (or ring kicks), including those that failed.
    pub calls: u64,
    /// Flushes that left trains queued because there was no room.
    pub deferred: u64,
    /// Trains that had to be resent in pieces because segmentation was turned down.
    pub split: u64,
    /// Datagrams lost to [`SendFault::Refused`].
    pub refused: u64,
    /// Datagrams lost to [`SendFault::Unreachable`].
    pub unreachable: u64,
    /// Datagrams lost to [`SendFault::TooLarge`].
    pub too_large: u64,
    /// Datagrams lost to [`SendFault::Other`].
    pub dropped: u64,
}

/// Both halves and the waits between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// What arrived.
    pub rx: RxCounters,
    /// What was sent.
    pub tx: TxCounters,
    /// Times the worker went to sleep.
    pub waits: u64,
}

impl TxCounters {
    /// Books `datagrams` as lost to `fault`.
    pub fn on_fault(&mut self, fault: SendFault, datagrams: u64) {
        let field = match fault {
            SendFault::Refused => &mut self.refused,
            SendFault::Unreachable => &mut self.unreachable,
            SendFault::TooLarge => &mut self.too_large,
            SendFault::Other => &mut self.dropped,
        };
        *field += datagrams;
    }

    /// Datagrams that no destination took, whatever the fault.
    pub fn lost(&self) -> u64 {
        self.refused + self.unreachable + self.too_large + self.dropped
    }
}

/// Sums the counters of several workers.
impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        let (rx, tx) = (&mut self.rx, &mut self.tx);
        rx.datagrams += other.rx.datagrams;
        rx.bytes += other.rx.bytes;
        rx.trains += other.rx.trains;
        rx.calls += other.rx.calls;
        rx.empty += other.rx.empty;
        rx.truncated += other.rx.truncated;
        rx.overflowed += other.rx.overflowed;
        rx.errors += other.rx.errors;
        tx.datagrams += other.tx.datagrams;
        tx.bytes += other.tx.bytes;
        tx.trains += other.tx.trains;
        tx.calls += other.tx.calls;
        tx.deferred += other.tx.deferred;
        tx.split += other.tx.split;
        tx.refused += other.tx.refused;
        tx.unreachable += other.tx.unreachable;
        tx.too_large += other.tx.too_large;
        tx.dropped += other.tx.dropped;
        self.waits += other.waits;
    }
}
