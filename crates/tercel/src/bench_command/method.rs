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
