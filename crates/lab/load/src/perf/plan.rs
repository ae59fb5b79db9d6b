//! What is to be measured: whom to ask, for what, how much of it at a time, and until when.

use super::protocol::{ENDLESS, MAX_SIZE, PREFIX};
use crate::plan::{Bound, Pace, PlanError, Reuse, RunRules, check_threads};
use base::time::Duration;
use std::net::SocketAddr;
use transport::ClientConfig;

/// What each connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Exchanges, one after the other in each of its places.
    Exchanges {
        /// Bytes of the request, the eight that say how long the answer shall be among them.
        request: Amount,
        /// Bytes of the answer.
        response: Amount,
    },
    /// Nothing but its handshake; then it closes, and the next one begins.
    Handshakes,
}

/// How many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This many.
    Bytes(u64),
    /// As many as time allows.
    UntilOver,
}

impl Amount {
    /// How many; `None` for as many as time allows.
    pub(super) fn bytes(self) -> Option<u64> {
        match self {
            Amount::Bytes(bytes) => Some(bytes),
            Amount::UntilOver => None,
        }
    }

    pub(super) fn limit(self) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::UntilOver => MAX_SIZE,
        }
    }

    /// What a request says that it wants back.
    pub(super) fn wanted(self) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::UntilOver => ENDLESS,
        }
    }
}

/// A run.
#[derive(Clone)]
pub struct PerfPlan {
    /// Whom the certificate must be for.
    pub server_name: String,
    /// Whom to ask.
    pub address: SocketAddr,
    /// What for.
    pub task: Task,
    /// Connections in all; of handshakes, how many are under way at a time.
    pub connections: usize,
    /// At most this many of them are being made at a time, by all threads together and at least one by each. Not where handshakes are
    /// the task.
    pub handshakes: usize,
    /// Exchanges at a time on each connection, unless the server allows fewer.
    pub outstanding: usize,
    /// When it is over: after this many exchanges or handshakes, or so long.
    pub bound: Bound,
    /// How long before anything is counted.
    pub warm_up: Duration,
    /// TLS, with the application protocol [`super::protocol::ALPN`], and QUIC.
    pub quic: ClientConfig,
    /// How long a worker polls before it sleeps.
    pub spin: Duration,
}

impl PerfPlan {
    /// Whether it can be carried out by this many threads.
    ///
    /// # Errors
    /// The first thing that cannot.
    pub fn check(&self, threads: usize) -> Result<(), PlanError> {
        if self.connections == 0 || self.outstanding == 0 || threads == 0 {
            return Err(PlanError(
                "at least one thread, one connection and one exchange at a time are needed",
            ));
        }
        check_threads(threads, self.connections)?;
        if self.bound == Bound::Requests(0) {
            return Err(PlanError("there is nothing to do: the number of exchanges is 0"));
        }
        let Task::Exchanges { request, response } = self.task else { return Ok(()) };
        if request.limit() < PREFIX as u64 {
            return Err(PlanError("a request has 8 bytes at least: they say how long its answer shall be"));
        }
        if request.limit().max(response.limit()) > MAX_SIZE {
            return Err(PlanError("no stream carries 2^62 bytes and more"));
        }
        let never_ends = [request, response].contains(&Amount::UntilOver);
        if never_ends && matches!(self.bound, Bound::Requests(_)) {
            return Err(PlanError(
                "exchanges that last until time is over cannot be counted: give a size, or a time",
            ));
        }
        Ok(())
    }

    /// When a thread may begin an exchange or handshake, and when it is over.
    pub(super) fn rules(&self) -> RunRules {
        let reuse = match self.task {
            Task::Handshakes => Reuse::Never,
            Task::Exchanges { .. } => Reuse::Always,
        };
        RunRules { bound: self.bound, pace: Pace::Closed, reuse, warm_up: self.warm_up, series: None }
    }

    /// The part of thread `index` of `threads`: its connections and its count.
    pub(super) fn share(&self, index: usize, threads: usize) -> PerfPlan {
        let part = |all: u64| all / threads as u64 + u64::from((index as u64) < all % threads as u64);
        PerfPlan {
            connections: part(self.connections as u64) as usize,
            handshakes: part(self.handshakes as u64).max(1) as usize,
            bound: match self.bound {
                Bound::Requests(all) => Bound::Requests(part(all)),
                span @ Bound::Span(_) => span,
            },
            ..self.clone()
        }
    }
}
