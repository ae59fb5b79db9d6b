//! A worker and what handles order from it: the same for every driver.

use crate::app::Application;
use crate::error::ConnectionError;
use crate::hub::{Connect, EndpointPhase, Hub};
use crate::presence::Presence;
use datapath::Port;
use std::io;
use std::sync::Arc;
use worker::{Turn, Worker};

/// What drives the connections of an endpoint.
pub(crate) struct Engine<P: Port> {
    pub(crate) worker: Worker<P, Application>,
    hub: Arc<Hub>,
    phase: EndpointPhase,
}

impl<P: Port> Engine<P> {
    pub(crate) fn new(worker: Worker<P, Application>, hub: Arc<Hub>) -> Engine<P> {
        Engine { worker, hub, phase: EndpointPhase::Open }
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Carries out what handles have ordered. To be called before each turn. Returns whether the driver goes on: it does not
    /// once there is no handle of the endpoint and no connection.
    pub(crate) fn obey(&mut self) -> bool {
        if let Some(orders) = self.hub.take_orders() {
            orders.connects.into_iter().for_each(|connect| self.begin(connect));
            if orders.phase != self.phase {
                self.phase = orders.phase;
                self.worker.refuse_incoming();
                if let EndpointPhase::Closed { code, reason } = &self.phase {
                    self.worker.app_mut().close_all(*code, reason.clone());
                    self.worker.activate_all();
                }
            }
        }
        self.phase == EndpointPhase::Open || self.worker.connections() > 0
    }

    /// One turn, and sleep.
    ///
    /// # Errors
    /// Only when the data path itself has failed.
    pub(crate) fn run_turn(&mut self) -> io::Result<Turn> {
        self.worker.run_turn(None)
    }

    fn begin(&mut self, connect: Connect) {
        let Connect { config, peer, server_name, shared } = connect;
        let presence = Presence::new(shared, Arc::clone(&self.hub));
        // The name was checked before. Should TLS refuse all the same, the end of `presence` ends the connection.
        let Ok(handle) = self.worker.connect(&config.to_transport(), &server_name, peer, presence) else {
            return;
        };
        if let Some((connection, presence)) = self.worker.connection(handle) {
            connection.hold_peer_streams();
            presence.shared.set_slot(handle);
        }
    }
}

impl<P: Port> Drop for Engine<P> {
    fn drop(&mut self) {
        for connect in self.hub.on_driver_gone() {
            connect.shared.fail(ConnectionError::LocallyClosed);
        }
    }
}
