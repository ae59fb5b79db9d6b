//! What can be asked of a worker between turns.

use super::Worker;
use crate::app::App;
use crate::hand_off::HandOffCounters;
use base::time::Instant;
use datapath::{Counters, Port, Waker};
use std::os::fd::BorrowedFd;
use transport::{Connection, Endpoint};

impl<P: Port, A: App> Worker<P, A> {
    /// Connections that have state.
    pub fn connections(&self) -> usize {
        self.slab.len()
    }

    /// Connections that are not closed. Closed ones still wait for late packets.
    pub fn open_connections(&mut self) -> usize {
        self.slab.iter_mut().filter(|(_, entry)| !entry.connection.is_closed()).count()
    }

    /// The application.
    pub fn app_mut(&mut self) -> &mut A {
        &mut self.app
    }

    /// The same, to look at.
    pub fn app(&self) -> &A {
        &self.app
    }

    /// All connections that have state, closed ones among them.
    pub fn entries(&self) -> impl Iterator<Item = (&Connection, &A::State)> {
        let entries = self.slab.handles().filter_map(|handle| self.slab.entry(handle));
        entries.map(|entry| (&entry.connection, &entry.state))
    }

    /// The data path.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// What the data path counted.
    pub fn counters(&self) -> Counters {
        self.port.counters()
    }

    /// The endpoint, with its counters of dropped datagrams.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Datagrams that came to the wrong worker.
    pub fn hand_off_counters(&self) -> HandOffCounters {
        self.hand_off
    }

    /// What a loop of its own polls for readability. See [`Port::descriptors`].
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.port.descriptors()
    }

    /// What interrupts the wait from another thread, be it the worker's own or that of a loop on [`Worker::descriptors`].
    pub fn waker(&self) -> Option<Waker> {
        self.port.waker()
    }

    /// The time of the last turn.
    pub fn now(&self) -> Instant {
        self.now
    }
}
