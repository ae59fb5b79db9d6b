//! A network namespace without a name, held by a descriptor and nothing else.

use crate::error::{LabError, while_doing};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

/// A network namespace. It lives as long as this value, and as long as processes or sockets are in it.
#[derive(Debug)]
pub(crate) struct HostNamespace {
    name: &'static str,
    handle: File,
}

impl HostNamespace {
    /// Makes a namespace with nothing in it but a loopback interface, which is up. Threads that enter it are named
    /// after it.
    pub(crate) fn new(name: &'static str) -> Result<HostNamespace, LabError> {
        // the thread's only purpose is to be in the new namespace while its handle is opened
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            netlink::set_up(netlink::link_by_name("lo")?.index)?;
            File::open("/proc/thread-self/ns/net")
        });
        let made = made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(HostNamespace { name, handle: while_doing(made, "cannot make a network namespace")? })
    }

    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.handle.as_raw_fd()))
    }

    /// Calls `work` on a thread of its own inside the namespace and waits for it.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let thread =
                thread::Builder::new().name(format!("in {}", self.name)).spawn_scoped(scope, || {
                    enter(self.handle.as_fd())?;
                    work()
                })?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts a thread inside the namespace.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let handle = self.handle.try_clone()?;
        let (entered, has_entered) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new().name(format!("in {}", self.name)).spawn(move || {
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
}

impl AsFd for HostNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(setns(namespace, CloneFlags::CLONE_NEWNET)?)
}
