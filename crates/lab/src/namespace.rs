//! One side of a lab: a network namespace without a name, and its interface.

use crate::error::{LabError, while_doing};
use crate::guard::Guard;
use netlink::Mac;
use netlink::ethtool::{self, Switch};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// How the interface of a side is called and addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
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
    /// The only thing that holds the namespace.
    handle: File,
    plan: Plan,
    /// Ends the processes that were spawned here; started with the first of them.
    guard: Mutex<Option<Guard>>,
}

impl Namespace {
    /// Makes a namespace with nothing in it but a loopback interface, which is up.
    pub(crate) fn new(plan: Plan) -> Result<Namespace, LabError> {
        // the thread's only purpose is to be in the new namespace while its handle is opened
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            netlink::set_up(netlink::link_by_name("lo")?.index)?;
            File::open("/proc/thread-self/ns/net")
        });
        let made = made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let handle = while_doing(made, "cannot make a network namespace")?;
        Ok(Namespace { handle, plan, guard: Mutex::new(None) })
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
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.handle.as_raw_fd()))
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
        let handle = self.handle.try_clone()?;
        let (entered, has_entered) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new().name(format!("in {}", self.plan.interface)).spawn(move || {
            let result = enter(handle.as_fd());
            drop(handle);
            let is_inside = result.is_ok();
            if entered.send(result).is_err() || !is_inside {
                // the caller has the error and not the thread: end it without a word
                std::panic::resume_unwind(Box::new(()));
            }
            work()
        })?;
        match has_entered.recv() {
            Ok(Ok(())) => Ok(thread),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::other("the thread ended before it began")),
        }
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

    pub(crate) fn try_run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let thread = thread::Builder::new().name(format!("in {}", self.plan.interface));
            let thread = thread.spawn_scoped(scope, || {
                enter(self.handle.as_fd())?;
                work()
            })?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(setns(namespace, CloneFlags::CLONE_NEWNET)?)
}
