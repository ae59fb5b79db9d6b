//! The names of data paths in measurements.

use bench::method::Method;
use clap::ValueEnum;

/// A path and, where it has several, its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MethodArg {
    /// One datagram per call.
    Plain,
    /// sendmmsg, recvmmsg.
    Mmsg,
    /// GSO, GRO.
    Gso,
    /// AF_XDP in generic mode.
    XdpGeneric,
    /// AF_XDP in the driver, copying.
    XdpDriver,
}

impl MethodArg {
    /// What it names.
    pub(super) fn method(self) -> Method {
        match self {
            MethodArg::Plain => Method::Plain,
            MethodArg::Mmsg => Method::Mmsg,
            MethodArg::Gso => Method::Gso,
            MethodArg::XdpGeneric => Method::XdpGeneric,
            MethodArg::XdpDriver => Method::XdpDriver,
        }
    }
}

/// The paths through the kernel's UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum KernelPath {
    /// Trains of datagrams, segmented and merged by the kernel (GSO, GRO).
    Gso,
    /// Many datagrams per system call (sendmmsg, recvmmsg).
    Mmsg,
    /// One datagram per system call.
    Plain,
}

impl KernelPath {
    pub(super) fn variant(self) -> udp::Variant {
        match self {
            KernelPath::Gso => udp::Variant::Gso,
            KernelPath::Mmsg => udp::Variant::Mmsg,
            KernelPath::Plain => udp::Variant::Plain,
        }
    }
}
