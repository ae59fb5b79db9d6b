//! A thread that serves the protocol.

use super::server::Server;
use super::thread_setup::ThreadSetup;
use base::time::Duration;
use datapath::Counters;
use std::io;
use transport::{Endpoint, EndpointConfig, ServerConfig};
use worker::Worker;

/// How long the close of connections may take.
const GRACE: Duration = Duration::from_millis(200);

/// What a worker serves with.
#[derive(Clone)]
pub struct ServePlan {
    /// How it treats unknown peers, and its number.
    pub endpoint: EndpointConfig,
    /// TLS and QUIC.
    pub server: ServerConfig,
    /// How long it polls before it sleeps.
    pub spin: Duration,
}

/// Serves until `is_over`, which is asked when the port's waker has fired; then closes all connections.
///
/// # Errors
/// The port has failed.
pub fn serve(setup: ThreadSetup, plan: ServePlan, is_over: &dyn Fn() -> bool) -> io::Result<Counters> {
    let endpoint = Endpoint::new(plan.endpoint, setup.seed);
    let config = worker::Config { spin: plan.spin };
    let mut worker = Worker::new(setup.port, Server::default(), endpoint, Some(plan.server), config);
    if let Some(member) = setup.member {
        worker = worker.with_hand_off(member);
    }
    while !is_over() {
        worker.run_turn(None)?;
    }
    worker.app_mut().stop();
    worker.refuse_incoming();
    worker.activate_all();
    let deadline = worker.now() + GRACE;
    while worker.open_connections() > 0 && worker.now() < deadline {
        worker.run_turn(Some(deadline))?;
    }
    Ok(worker.counters())
}
