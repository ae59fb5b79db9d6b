//! How a server's datagrams reach the interface, and how they find their worker.

use base::time::Duration as Span;
use core::net::{Ipv4Addr, SocketAddr};
use ports::{DataPathChoice, OpenOptions};
use std::time::Duration;
pub use udp::SteeringChoice as Steering;

/// Stands for the address until one is bound.
const UNBOUND: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// How datagrams reach the interface.
///
/// ```
/// use server::DataPath;
/// let path = DataPath::gso().receive_buffer(1 << 20);
/// # drop(path);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct DataPath {
    pub(crate) options: OpenOptions,
    pub(crate) spin: Span,
}

impl Default for DataPath {
    fn default() -> DataPath {
        DataPath::gso()
    }
}

impl DataPath {
    /// Trains of datagrams, segmented and merged by the kernel (GSO, GRO), as far as the kernel does that. The default.
    pub fn gso() -> DataPath {
        DataPath::of(OpenOptions::new(DataPathChoice::Gso, UNBOUND))
    }

    /// Many datagrams in a system call (sendmmsg, recvmmsg).
    pub fn mmsg() -> DataPath {
        DataPath::of(OpenOptions::new(DataPathChoice::Mmsg, UNBOUND))
    }

    /// One datagram in a system call.
    pub fn plain() -> DataPath {
        DataPath::of(OpenOptions::new(DataPathChoice::Plain, UNBOUND))
    }

    /// The one of the others that costs least, by a measurement of some hundred datagrams. AF_XDP takes part where
    /// [`DataPath::interface`] is named.
    pub fn auto() -> DataPath {
        DataPath::of(OpenOptions::new(DataPathChoice::Auto, UNBOUND))
    }

    /// AF_XDP on an interface such as `eth0`, past the kernel's network stack. Needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF; reaches
    /// that interface only; each worker needs a queue of it.
    pub fn xdp(interface: &str) -> DataPath {
        DataPath::of(OpenOptions::new(DataPathChoice::Xdp, UNBOUND)).interface(interface)
    }

    /// What `options` say; address, device and workers are those of the server. Outside semver.
    #[doc(hidden)]
    pub fn of(options: OpenOptions) -> DataPath {
        DataPath { options, spin: Span::ZERO }
    }

    /// The interface, for AF_XDP and [`DataPath::auto`]. Default: the one that has the address or the default route.
    pub fn interface(mut self, name: &str) -> DataPath {
        self.options.interface = Some(name.to_owned());
        self
    }

    /// Bytes of each socket's receive buffer that the system is asked for. Default: 8 MiB. For kernel UDP.
    pub fn receive_buffer(mut self, bytes: usize) -> DataPath {
        self.options.receive_buffer = Some(bytes);
        self
    }

    /// How a datagram finds the worker that has its connection. Default: the first way that this machine permits. For kernel UDP.
    pub fn steering(mut self, how: Steering) -> DataPath {
        self.options.steering = how;
        self
    }

    /// How long a worker polls before it sleeps, which costs CPU time and saves delay: zero, the default, sleeps at once,
    /// [`Duration::MAX`] never does. For [`crate::Bound::serve_handler`] and files.
    pub fn spin(mut self, span: Duration) -> DataPath {
        self.spin = span.into();
        self
    }
}
