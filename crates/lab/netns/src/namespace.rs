//! One side of a lab: a network namespace, its interface, and the processes in it.

use crate::error::LabError;
use crate::guard::Guard;
use crate::host_namespace::HostNamespace;
use netlink::Mac;
use netlink::ethtool::{self, Switch};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// How the interface of a side is called and addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InterfacePlan {
    pub(crate) interface: &'static str,
    pub(crate) mac: Mac,
    pub(crate) ipv4: Ipv4Addr,
    pub(crate) ipv6: Ipv6Addr,
}

/// Length of the network's part of the addresses.
pub(crate) const PREFIX: (u8, u8) = (24, 64);

/// A network namespace. It lives as long as this value, and as long as processes or sockets are in it.
#[derive(Debug)]
pub struct Namespace {
    room: HostNamespace,
    plan: InterfacePlan,
    /// Ends the processes that were spawned here; started with the first of them.
    guard: Mutex<Option<Guard>>,
}

impl Namespace {
    /// Makes a namespace that knows its plan; nothing of it is done.
    pub(crate) fn new(plan: InterfacePlan) -> Result<Namespace, LabError> {
        Ok(Namespace { room: HostNamespace::new(plan.interface)?, plan, guard: Mutex::new(None) })
    }

    /// The name of this side's interface.
    #[must_use]
    pub fn interface(&self) -> &'static str {
        self.plan.interface
    }

    /// The Ethernet address of this side's interface.
    #[must_use]
    pub fn mac(&self) -> Mac {
        self.plan.mac
    }

    /// This side's IPv4 address; its network has 24 bits.
    #[must_use]
    pub fn ipv4(&self) -> Ipv4Addr {
        self.plan.ipv4
    }

    /// This side's IPv6 address; its network has 64 bits.
    #[must_use]
    pub fn ipv6(&self) -> Ipv6Addr {
        self.plan.ipv6
    }

    /// The addresses of this side, IPv4 first.
    #[must_use]
    pub fn addresses(&self) -> [IpAddr; 2] {
        [self.plan.ipv4.into(), self.plan.ipv6.into()]
    }

    /// A path by which other processes enter the namespace while this one lives: `nsenter --net=PATH`.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.room.path()
    }

    /// Calls `work` on a thread of its own inside the namespace and waits for it. Sockets that it opens stay in the
    /// namespace wherever they are used afterwards. Panics of `work` are passed on.
    ///
    /// # Panics
    /// If the kernel does not let this process back into its own namespace, because it has given up CAP_SYS_ADMIN.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let result = self.try_run(|| Ok(work()));
        #[expect(clippy::expect_used, reason = "the lab was built with the capability that entering needs")]
        result.expect("cannot enter the lab's namespace")
    }

    /// Starts a thread inside the namespace, for work that goes on beside the caller's.
    ///
    /// # Errors
    /// The kernel's, if it has no thread to give or does not let this process back into the namespace.
    pub fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        self.room.start(work)
    }

    /// Starts a process inside the namespace. It is killed, with all that it started, when the lab is dropped and when
    /// this process ends in whatever way.
    ///
    /// # Errors
    /// The kernel's: `NotFound` if there is no such program.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        self.try_run(|| {
            let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
            if guard.is_none() {
                *guard = Some(Guard::start()?);
            }
            command.spawn()
        })
    }

    /// Switches an offload of this side's interface, by its name in ethtool: "tx-udp-segmentation" off makes GSO cut
    /// trains into packets before they enter the wire, "tx-checksum-ip-generic" off makes checksums real.
    ///
    /// # Errors
    /// As [`ethtool::set_feature`].
    pub fn set_offload(&self, name: &str, switch: Switch) -> io::Result<()> {
        self.try_run(|| ethtool::set_feature(self.plan.interface, name, switch))
    }

    /// Chooses the congestion control of TCP connections that are made over this side's interface from now on, by the kernel's name
    /// of it: "cubic", "reno". A new namespace has that of the machine, which may be any.
    ///
    /// It becomes the namespace's default where the machine lets namespaces choose it (`net.ipv4.tcp_allowed_congestion_control`), and
    /// is named by the routes of the interface in any case: those take whatever the kernel has.
    ///
    /// # Errors
    /// The kernel's, if neither works: `InvalidInput` if it has no such congestion control.
    pub fn set_tcp_congestion_control(&self, name: &str) -> io::Result<()> {
        self.try_run(|| {
            // A thread sees its own namespace's values under /proc/sys.
            let as_default = std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", name);
            // A route's choice counts for more than the default, so one that was made before must not stay.
            let index = netlink::link_by_name(self.plan.interface)?.index;
            let by_routes = netlink::set_tcp_congestion_control(index, name);
            match by_routes {
                Ok(0) | Err(_) if as_default.is_ok() => Ok(()),
                Ok(0) => as_default,
                other => other.map(drop),
            }
        })
    }

    /// As `run`, for work that can fail as entering can.
    pub(crate) fn try_run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        self.room.run(work)
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }
}
