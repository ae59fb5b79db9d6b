//! Two workers under one virtual clock: the scheduler.
//!
//! At each moment every worker that has something to do takes turns until none has; then time moves to the next event or
//! deadline. A turn takes no time. A worker that keeps turning while time stands still would burn a real CPU: that ends
//! the run, as does a run in which nothing can ever happen again.

use crate::network::{HostId, Network};
use crate::port::VirtualPort;
use crate::tls::SERVER_NAME;
use base::slab::Handle;
use base::time::{Duration, Instant};
use std::cell::RefCell;
use std::rc::Rc;
use transport::ClientConfig;
use worker::{App, Worker};

/// Turns of both workers at one moment before the run counts as stuck. A batch in takes a turn, and an application that
/// asks for `Again` another.
const MAX_TURNS_AT_ONCE: u32 = 10_000;

/// Why a run stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The condition holds.
    Done,
    /// The virtual time is up.
    OutOfTime,
    /// Nothing is under way and no host has a deadline.
    Asleep,
    /// A worker turned and turned, and time stood still.
    BusyLoop(&'static str),
    /// A data path failed.
    Broken(String),
}

/// A worker and the host it works on.
struct SimulatedHost<A: App> {
    host: HostId,
    worker: Worker<VirtualPort, A>,
}

impl<A: App> SimulatedHost<A> {
    fn is_due(&self, network: &RefCell<Network>) -> bool {
        let network = network.borrow();
        network.has_arrivals(self.host) || self.worker.next_deadline().is_some_and(|due| due <= network.now())
    }
}

/// A server, a client and the network between.
pub struct Simulation<S: App, C: App> {
    network: Rc<RefCell<Network>>,
    server: SimulatedHost<S>,
    client: SimulatedHost<C>,
    client_config: ClientConfig,
    turns: u64,
}

impl<S: App, C: App> Simulation<S, C> {
    pub(crate) fn new(
        network: Rc<RefCell<Network>>,
        (server_host, server): (HostId, Worker<VirtualPort, S>),
        (client_host, client): (HostId, Worker<VirtualPort, C>),
        client_config: ClientConfig,
    ) -> Simulation<S, C> {
        Simulation {
            network,
            server: SimulatedHost { host: server_host, worker: server },
            client: SimulatedHost { host: client_host, worker: client },
            client_config,
            turns: 0,
        }
    }

    /// The client opens a connection to the server.
    ///
    /// # Errors
    /// When TLS does not work as configured.
    pub fn connect(&mut self, state: C::State) -> Result<Handle, String> {
        let server = self.network.borrow().address(self.server.host);
        let connection = self.client.worker.connect(&self.client_config, SERVER_NAME, server, state);
        connection.map_err(|error| format!("{error:?}"))
    }

    /// Another server takes the place of this one, which is gone without a word.
    pub(crate) fn replace_server(
        &mut self,
        make: impl FnOnce(&Rc<RefCell<Network>>, HostId) -> Result<Worker<VirtualPort, S>, String>,
    ) -> Result<(), String> {
        self.server.worker = make(&self.network, self.server.host)?;
        Ok(())
    }

    /// The network, to look at or to change.
    pub fn network(&self) -> &RefCell<Network> {
        &self.network
    }

    /// The server's and the client's host.
    pub fn hosts(&self) -> (HostId, HostId) {
        (self.server.host, self.client.host)
    }

    /// The server.
    pub fn server(&mut self) -> &mut Worker<VirtualPort, S> {
        &mut self.server.worker
    }

    /// The client.
    pub fn client(&mut self) -> &mut Worker<VirtualPort, C> {
        &mut self.client.worker
    }

    /// The configuration of the connections to come.
    pub fn client_config_mut(&mut self) -> &mut ClientConfig {
        &mut self.client_config
    }

    /// The server alone: the client is gone without a word.
    pub fn into_server(self) -> Worker<VirtualPort, S> {
        self.server.worker
    }

    /// Turns of both workers so far.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Time since the beginning.
    pub fn age(&self) -> Duration {
        self.network.borrow().age()
    }

    /// Runs until `done` says so, for at most `limit` of virtual time from now. `done` is asked whenever both workers
    /// have nothing to do at present.
    pub fn run(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) -> StopReason {
        let end = self.network.borrow().now() + limit;
        loop {
            if let Err(halt) = self.settle() {
                return halt;
            }
            if done(self) {
                return StopReason::Done;
            }
            // `done` may have given a host work.
            if self.server.is_due(&self.network) || self.client.is_due(&self.network) {
                continue;
            }
            let now = self.network.borrow().now();
            let Some(next) = self.next_at() else { return StopReason::Asleep };
            if now >= end {
                return StopReason::OutOfTime;
            }
            self.network.borrow_mut().advance(next.min(end));
        }
    }

    /// All hosts act until none has anything to do at this moment.
    fn settle(&mut self) -> Result<(), StopReason> {
        for _ in 0..MAX_TURNS_AT_ONCE {
            let due = (self.server.is_due(&self.network), self.client.is_due(&self.network));
            if due == (false, false) {
                return Ok(());
            }
            if due.0 {
                let now = self.network.borrow().now();
                self.server.worker.turn(now).map_err(|error| StopReason::Broken(error.to_string()))?;
                self.turns += 1;
            }
            if due.1 {
                let now = self.network.borrow().now();
                self.client.worker.turn(now).map_err(|error| StopReason::Broken(error.to_string()))?;
                self.turns += 1;
            }
        }
        Err(StopReason::BusyLoop(if self.server.is_due(&self.network) { "server" } else { "client" }))
    }

    fn next_at(&self) -> Option<Instant> {
        let deadlines = [
            self.network.borrow().next_event_at(),
            self.server.worker.next_deadline(),
            self.client.worker.next_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }
}
