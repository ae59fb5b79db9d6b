//! The kinds of data path: their names, and a port of any of them as the one type that workers are compiled for.
//!
//! A method of [`AnyPort`] asks which kind the port is and calls that kind's, so that a worker is compiled once for all data paths. For
//! kernel UDP a packet costs a few predictable branches, for the others a few calls. Middleware, which is for tests and diagnosis,
//! costs indirect calls.

use crate::queues_or_socket::QueuesOrSocket;
use base::net::Train;
use base::sink::{PacketSink, TrainPath};
use base::time::Instant;
use core::fmt;
use core::str::FromStr;
use datapath::{Counters, Port, Rx, Tx};
use std::io;
use std::os::fd::BorrowedFd;
use udp::{Sockets, UdpPort, Variant};

/// A data path, or the wish to have one chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataPathChoice {
    /// Whatever costs least on the interface, found by measuring.
    Auto,
    /// Trains of datagrams, segmented and merged by the kernel (GSO, GRO).
    #[default]
    Gso,
    /// The same, and long trains leave without a copy where interface and kernel can (io_uring).
    Uring,
    /// Many datagrams per system call (sendmmsg, recvmmsg).
    Mmsg,
    /// One datagram per system call.
    Plain,
    /// Past the kernel's network stack (AF_XDP), one queue of the interface for each worker.
    Xdp,
}

impl DataPathChoice {
    /// All of them.
    pub const ALL: [DataPathChoice; 6] = [
        DataPathChoice::Auto,
        DataPathChoice::Gso,
        DataPathChoice::Uring,
        DataPathChoice::Mmsg,
        DataPathChoice::Plain,
        DataPathChoice::Xdp,
    ];

    /// The name by which users choose it.
    pub const fn name(self) -> &'static str {
        match self {
            DataPathChoice::Auto => "auto",
            DataPathChoice::Gso => "gso",
            DataPathChoice::Uring => "uring",
            DataPathChoice::Mmsg => "mmsg",
            DataPathChoice::Plain => "plain",
            DataPathChoice::Xdp => "xdp",
        }
    }

    /// What it is, in one line.
    pub const fn about(self) -> &'static str {
        match self {
            DataPathChoice::Auto => "Measure which of the others costs least on the interface, and take that",
            DataPathChoice::Gso => "Trains of datagrams, segmented and merged by the kernel (GSO, GRO)",
            DataPathChoice::Uring => {
                "The same, long trains without a copy (io_uring, Linux 6.15); for interfaces that take them so, not for lo or veth"
            }
            DataPathChoice::Mmsg => "Many datagrams per system call (sendmmsg, recvmmsg)",
            DataPathChoice::Plain => "One datagram per system call",
            DataPathChoice::Xdp => {
                "Past the kernel's network stack (AF_XDP); needs privileges, a real interface, one queue for each worker"
            }
        }
    }

    /// The system calls of a path through kernel UDP; `None` for the others.
    pub const fn variant(self) -> Option<Variant> {
        match self {
            DataPathChoice::Gso => Some(Variant::Gso),
            DataPathChoice::Uring => Some(Variant::Uring),
            DataPathChoice::Mmsg => Some(Variant::Mmsg),
            DataPathChoice::Plain => Some(Variant::Plain),
            DataPathChoice::Auto | DataPathChoice::Xdp => None,
        }
    }
}

impl From<Variant> for DataPathChoice {
    fn from(variant: Variant) -> DataPathChoice {
        match variant {
            Variant::Gso => DataPathChoice::Gso,
            Variant::Uring => DataPathChoice::Uring,
            Variant::Mmsg => DataPathChoice::Mmsg,
            Variant::Plain => DataPathChoice::Plain,
        }
    }
}

impl fmt::Display for DataPathChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads what [`DataPathChoice::name`] writes; the error says what there is to choose from.
impl FromStr for DataPathChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<DataPathChoice, String> {
        let found = DataPathChoice::ALL.into_iter().find(|choice| choice.name() == name);
        found.ok_or_else(|| format!("there is no data path \"{name}\": auto, gso, uring, mmsg, plain or xdp"))
    }
}

/// A port of any kind.
#[expect(clippy::large_enum_variant, reason = "a worker has one")]
pub enum AnyPort {
    /// Through the kernel's UDP.
    Udp(UdpPort),
    /// The same, several sockets that are driven as one port.
    Sockets(Sockets),
    /// Past it. A worker that has several queues of the interface drives them as one port.
    Xdp(QueuesOrSocket),
    /// Middleware, or a port of the program's own.
    Other(Box<dyn Port + Send>),
}

impl AnyPort {
    /// A port through middleware, or of the program's own.
    pub fn other(port: impl Port + Send + 'static) -> AnyPort {
        AnyPort::Other(Box::new(port))
    }

    /// Both as one port; `None` unless both are of the kernel's UDP and a worker can drive one socket more.
    pub(crate) fn join(self, next: AnyPort) -> Option<AnyPort> {
        let next = next.into_udp()?;
        match self {
            AnyPort::Udp(port) => Sockets::new(vec![port, next]).map(AnyPort::Sockets),
            AnyPort::Sockets(sockets) => sockets.with(next).map(AnyPort::Sockets),
            AnyPort::Xdp(_) | AnyPort::Other(_) => None,
        }
    }

    /// The sockets of the kernel's UDP that it drives, or that get what AF_XDP does not take; none of middleware.
    pub fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            AnyPort::Udp(port) => vec![port.socket()],
            AnyPort::Sockets(sockets) => sockets.sockets(),
            AnyPort::Xdp(port) => vec![port.socket()],
            AnyPort::Other(_) => Vec::new(),
        }
    }

    /// The port, if it is one of the kernel's UDP.
    pub fn into_udp(self) -> Option<UdpPort> {
        match self {
            AnyPort::Udp(port) => Some(port),
            AnyPort::Sockets(_) | AnyPort::Xdp(_) | AnyPort::Other(_) => None,
        }
    }
}

/// For what no packet asks.
impl AnyPort {
    fn port(&self) -> &dyn Port {
        match self {
            AnyPort::Udp(port) => port,
            AnyPort::Sockets(port) => port,
            AnyPort::Xdp(port) => port,
            AnyPort::Other(port) => &**port,
        }
    }

    fn port_mut(&mut self) -> &mut dyn Port {
        match self {
            AnyPort::Udp(port) => port,
            AnyPort::Sockets(port) => port,
            AnyPort::Xdp(port) => port,
            AnyPort::Other(port) => &mut **port,
        }
    }
}

impl From<UdpPort> for AnyPort {
    fn from(port: UdpPort) -> AnyPort {
        AnyPort::Udp(port)
    }
}

/// Calls the same method of each kind.
macro_rules! ask {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match $self {
            AnyPort::Udp(port) => port.$method($($argument),*),
            AnyPort::Sockets(port) => port.$method($($argument),*),
            AnyPort::Xdp(port) => port.$method($($argument),*),
            AnyPort::Other(port) => port.$method($($argument),*),
        }
    };
}

/// The same for what each packet needs: kernel UDP's is compiled in, the others' are called.
macro_rules! ask_for_packet {
    ($self:ident.$method:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?) => {{
        #[inline(never)]
        fn of_others(port: &mut AnyPort $(, $argument: $kind)*) $(-> $result)? {
            ask!(port.$method($($argument),*))
        }
        match $self {
            AnyPort::Udp(port) => port.$method($($argument),*),
            others => of_others(others $(, $argument)*),
        }
    }};
}

impl Rx for AnyPort {
    #[inline]
    fn poll(&mut self) -> io::Result<usize> {
        ask!(self.poll())
    }

    #[inline]
    fn train(&mut self, index: usize) -> Train<'_> {
        ask_for_packet!(self.train(index: usize) -> Train<'_>)
    }
}

impl PacketSink for AnyPort {
    #[inline]
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        ask!(self.begin(path, segment_size))
    }

    #[inline]
    fn room(&mut self) -> &mut [u8] {
        ask_for_packet!(self.room() -> &mut [u8])
    }

    #[inline]
    fn push(&mut self, len: usize) {
        ask_for_packet!(self.push(len: usize))
    }

    #[inline]
    fn packet(&mut self, index: usize) -> &mut [u8] {
        ask_for_packet!(self.packet(index: usize) -> &mut [u8])
    }

    #[inline]
    fn end(&mut self) {
        ask!(self.end());
    }
}

impl Tx for AnyPort {
    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        ask!(self.flush())
    }
}

impl Port for AnyPort {
    #[inline]
    fn now(&mut self) -> Instant {
        ask!(self.now())
    }

    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        ask!(self.wait(deadline))
    }

    fn counters(&self) -> Counters {
        ask!(self.counters())
    }

    datapath::ask_inner!(methods port port_mut);
}

#[cfg(test)]
mod tests {
    use super::*;
    use udp::BindOptions;

    fn bind() -> UdpPort {
        UdpPort::bind(&BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Plain)).unwrap()
    }

    /// Deleted, a port in a box could answer with the defaults of the trait instead of its own.
    #[test]
    fn a_port_in_a_box_answers_as_the_port_does() {
        let mut plain = AnyPort::from(bind());
        let mut boxed = AnyPort::other(bind());
        assert_eq!(plain.capabilities(), boxed.capabilities());
        let peer = boxed.local_address();
        assert_eq!(plain.local_address_towards(peer).ip(), boxed.local_address_towards(peer).ip());
        assert_eq!(plain.descriptors().len(), boxed.descriptors().len());
        assert!(plain.waker().is_some() && boxed.waker().is_some());
        let local = "127.0.0.1".parse().unwrap();
        assert_eq!(plain.largest_payload(local), boxed.largest_payload(local));
        assert!(plain.sends_from(local) && boxed.sends_from(local), "or no client would move");
        assert!(boxed.into_udp().is_none() && plain.into_udp().is_some());
    }

    #[test]
    fn every_name_reads_back_and_others_say_what_there_is() {
        for choice in DataPathChoice::ALL {
            assert_eq!(choice.name().parse(), Ok(choice));
        }
        let refused = "dpdk".parse::<DataPathChoice>().unwrap_err();
        assert!(refused.contains("\"dpdk\"") && refused.contains("xdp"), "{refused}");
    }
}
