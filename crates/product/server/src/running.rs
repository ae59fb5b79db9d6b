//! A server that runs: its address, its counters, its end.

use crate::access_log::Reopener;
use crate::budget::Budget;
use crate::counters::Counters;
use crate::low::Shared;
use crate::metrics::Metrics;
use crate::metrics::board::Board;
use crate::records::{Summary, ThreadRecord};
use crate::stop::{Phase, Stop};
use crate::threads::{Reports, ThreadError};
use crate::upgrade::{Estate, Handshake, UpgradeError, Upgrades};
use crate::warnings::Warnings;
use crypto::SharedIdentities;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::RecvError;

/// A thread of the server has failed; the others have ended in good order.
#[derive(Debug)]
pub struct ServeError(Option<ThreadError>);

impl fmt::Display for ServeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(error) => error.fmt(out),
            None => out.write_str("the server ended without a report"),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.as_ref().and_then(std::error::Error::source)
    }
}

/// Ends a server and reads its counters, from any thread. Clones are the same.
#[derive(Clone, Debug)]
pub struct Handle {
    stop: Stop,
    board: Board,
    reopener: Reopener,
    shared: Shared,
    identities: SharedIdentities,
    upgrades: Option<Arc<Upgrades>>,
}

impl Handle {
    pub(crate) fn new(
        (stop, board): (Stop, Board),
        (reopener, shared): (Reopener, Shared),
        identities: SharedIdentities,
        upgrades: Option<Arc<Upgrades>>,
    ) -> Handle {
        Handle { stop, board, reopener, shared, identities, upgrades }
    }

    /// The certificates in use.
    pub(crate) fn identities(&self) -> &SharedIdentities {
        &self.identities
    }

    /// Takes no more requests, answers those that were asked, and ends.
    pub fn stop(&self) {
        self.upgrades.iter().for_each(|upgrades| upgrades.end());
        self.stop.drain();
    }

    /// What a process gets that takes the place of this one, with `others`, whose names have no spaces. Outside semver.
    ///
    /// # Errors
    /// There is no upgrade of this server, or the system refuses.
    #[doc(hidden)]
    pub fn estate(&self, others: &[(&str, BorrowedFd<'_>)]) -> Result<Estate, UpgradeError> {
        match &self.upgrades {
            Some(upgrades) => upgrades.estate(others),
            None => Err(UpgradeError::Refused("this server was not made for upgrades".to_owned())),
        }
    }

    /// Has the workers take nothing in. Returns what the process that takes the place of this one must know. Outside semver.
    #[doc(hidden)]
    pub fn pause(&self) -> Vec<Handshake> {
        let Some(upgrades) = &self.upgrades else { return Vec::new() };
        upgrades.handshakes(self.stop.pause(upgrades.paused_workers()))
    }

    /// The other process has failed: goes on as before [`Handle::pause`]. Outside semver.
    #[doc(hidden)]
    pub fn resume(&self) {
        self.stop.resume();
    }

    /// Opens AF_XDP sockets, if that is the data path and the workers have the kernel's UDP in their place because of an upgrade: after the
    /// start in the place of another process, and after [`Handle::resume`]. Returns whether it has opened some. Blocks for seconds.
    /// Outside semver.
    ///
    /// # Errors
    /// One line for users: why the workers go on by the kernel's UDP.
    #[doc(hidden)]
    pub fn open_xdp(&self) -> Result<bool, String> {
        self.upgrades.as_ref().map_or(Ok(false), |upgrades| upgrades.open_xdp())
    }

    /// The other process serves: answers what was asked, and ends. Outside semver.
    #[doc(hidden)]
    pub fn retire(&self) {
        self.upgrades.iter().for_each(|upgrades| upgrades.end());
        self.stop.retire();
    }

    /// Closes all connections now, of every version of HTTP, and ends. Requests under way are not answered, and the futures of their
    /// handlers are dropped.
    pub fn abort(&self) {
        self.stop.order(Phase::Over);
    }

    /// What the server did so far, summed over its threads. Each thread says it at most once a second and within a second of
    /// its last turn, so that counting costs nothing on the path of a request.
    pub fn counters(&self) -> Counters {
        self.board.counters()
    }

    /// Where the program notes warnings of its own. Outside semver.
    #[doc(hidden)]
    pub fn warnings(&self) -> &Warnings {
        &self.shared.warnings
    }

    /// The memory that connections may hold. Outside semver.
    #[doc(hidden)]
    pub fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    /// Whether it was told to end. Outside semver.
    #[doc(hidden)]
    pub fn is_ending(&self) -> bool {
        self.stop.is_ordered()
    }

    /// Asks all threads for a sign of life and what they count. Returns the number of the ask. Outside semver.
    #[doc(hidden)]
    pub fn ask(&self) -> u64 {
        let ask = self.board.ask();
        self.stop.wake();
        ask
    }

    /// How many threads serve. Outside semver.
    #[doc(hidden)]
    pub fn threads(&self) -> usize {
        self.board.threads()
    }

    /// How many threads have not answered an ask. Outside semver.
    #[doc(hidden)]
    pub fn silent(&self, ask: u64) -> usize {
        self.board.silent(ask)
    }

    /// What the threads count, summed up, as they last said. Outside semver.
    #[doc(hidden)]
    pub fn metrics(&self) -> Metrics {
        self.board.sum()
    }

    /// Lines of the access log that were lost. Outside semver.
    #[doc(hidden)]
    pub fn lost_log_lines(&self) -> u64 {
        self.reopener.lost()
    }

    /// Opens the access log anew, after a rotation.
    pub fn reopen_access_log(&self) {
        self.reopener.reopen();
    }
}

/// A server that runs. Awaited, it is served until it ends; dropped, it ends as by [`Handle::abort`].
#[derive(Debug)]
#[must_use = "a server that is dropped ends"]
pub struct Running {
    address: SocketAddr,
    addresses: Vec<SocketAddr>,
    handle: Handle,
    ended: Option<Receiver<Reports<Vec<ThreadRecord>>>>,
}

impl Running {
    pub(crate) fn new(
        (address, addresses): (SocketAddr, Vec<SocketAddr>),
        handle: Handle,
        ended: Receiver<Reports<Vec<ThreadRecord>>>,
    ) -> Running {
        Running { address, addresses, handle, ended: Some(ended) }
    }

    /// Where it listens, with the port that the system chose: the first of [`Running::local_addrs`].
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// All addresses at which it listens, as [`crate::Bound::local_addrs`].
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What ends it, and its counters.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Blocks until the server has ended: for programs without a runtime.
    ///
    /// # Errors
    /// A thread has failed.
    ///
    /// # Panics
    /// In an async function, which must await the server instead.
    pub fn wait(mut self) -> Result<Summary, ServeError> {
        self.ended.take().map_or_else(|| Err(ServeError(None)), |ended| summary(ended.blocking_recv()))
    }
}

fn summary(ended: Result<Reports<Vec<ThreadRecord>>, RecvError>) -> Result<Summary, ServeError> {
    match ended {
        Ok(Ok(records)) => Ok(Summary::new(records.into_iter().flatten())),
        Ok(Err(error)) => Err(ServeError(Some(error))),
        Err(_) => Err(ServeError(None)),
    }
}

impl IntoFuture for Running {
    type Output = Result<Summary, ServeError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Summary, ServeError>> + Send>>;

    fn into_future(mut self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.ended.take() {
                Some(ended) => summary(ended.await),
                None => Err(ServeError(None)),
            }
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.abort();
    }
}
