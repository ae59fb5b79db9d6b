//! Received trains: each run of datagrams goes to its connection, to the endpoint, or to the worker that
//! owns the connection.
//!
//! Invariant: a datagram is handed over at most once, so no datagram circulates, whatever
//! two workers think of a connection ID.

use crate::app::{App, ConnectionEntry};
use crate::hand_off::{HandOffCounters, HandOffMember};
use base::net::{Addresses, Train};
use base::slab::{Handle, Slab};
use base::time::Instant;
use transport::{Endpoint, Fin, Incoming, Predecessor, Route, ServerConfig, StreamId, StreamSink, split_run};

/// How a train has come to this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From its own port.
    Port,
    /// From another worker, or another process.
    Worker,
}

/// All of a worker that a train may meet, but for the port, in whose memory it lies.
pub(crate) struct ReceiveContext<'a, A: App> {
    pub(crate) app: &'a mut A,
    pub(crate) endpoint: &'a mut Endpoint,
    pub(crate) server: Option<&'a ServerConfig>,
    pub(crate) slab: &'a mut Slab<Box<ConnectionEntry<A::State>>>,
    pub(crate) active: &'a mut Vec<Handle>,
    pub(crate) hand_off_group: Option<&'a HandOffMember>,
    pub(crate) counters: &'a mut HandOffCounters,
    pub(crate) now: Instant,
    /// The port holds trains back until they depart.
    pub(crate) holds_trains: bool,
}

/// What a client's first datagrams are received into: they carry no stream data but early data, which waits.
struct NoStreams;

impl StreamSink for NoStreams {
    fn on_stream_data(&mut self, _id: StreamId, _bytes: &[u8], _fin: Fin) -> usize {
        debug_assert!(
            false,
            "1-RTT packets are not opened before the handshake is complete, and early data waits"
        );
        0
    }
}

impl<A: App> ReceiveContext<'_, A> {
    /// Routes the runs of one train. Returns the addresses of a reply, if one is due. A train of an unknown peer gets
    /// at most one reply.
    #[inline]
    pub(crate) fn receive(&mut self, train: Train<'_>, origin: Origin) -> Option<Addresses> {
        let mut rest = Some(train);
        let mut answered = None;
        while let Some(train) = rest {
            let (run, others) = split_run(train);
            rest = others;
            let addresses = run.addresses;
            let route = match origin {
                Origin::Port => self.endpoint.route(self.now, &run),
                Origin::Worker => self.endpoint.route_handed_over(self.now, &run),
            };
            let route = match route {
                Route::Predecessor(process) => match self.hand_to_process(process, &run) {
                    Some(()) => continue,
                    None => self.endpoint.route_handed_over(self.now, &run),
                },
                route => route,
            };
            match route {
                Route::Connection(handle) => {
                    let Some(entry) = self.slab.entry_mut(handle) else { continue };
                    entry.connection.receive(self.now, run, &mut entry.state);
                    if !core::mem::replace(&mut entry.is_active, true) {
                        self.active.push(handle);
                    }
                }
                Route::Incoming(incoming) => self.accept(incoming, run),
                Route::Elsewhere(worker) => self.hand_over(worker, &run, origin),
                Route::Reply => answered = Some(addresses),
                Route::Drop(_) | Route::Predecessor(_) => {}
            }
        }
        answered
    }

    /// A client wants to connect.
    #[cold]
    fn accept(&mut self, incoming: Incoming, run: Train<'_>) {
        let Some(server) = self.server.filter(|_| self.app.admits()) else { return };
        let handle = self.slab.next_handle();
        let Ok(mut connection) = self.endpoint.accept(self.now, handle, incoming, server) else { return };
        if self.holds_trains {
            connection.use_departure_times();
        }
        connection.hold_early_data();
        connection.receive(self.now, run, &mut NoStreams);
        if connection.counters().received_packets == 0 && !connection.is_closed() {
            // Damaged or forged: it must not stand in the way of the real one (or take up memory).
            self.endpoint.forget(handle);
            return;
        }
        let mut state = self.app.on_accept(self.now, &mut connection);
        self.app.on_slot(&mut state, handle);
        connection.release_early_data(self.now, &mut state);
        self.active.push(self.slab.insert(Box::new(ConnectionEntry::new(connection, state))));
    }

    /// A connection of another process; `None` if that has ended, so that the datagram is this one's.
    #[cold]
    fn hand_to_process(&mut self, process: Predecessor, run: &Train<'_>) -> Option<()> {
        let sent = self.hand_off_group?.send_to_process(process, run)?;
        let datagrams = run.bytes.len().div_ceil(run.segment_size.max(1)) as u64;
        self.counters.handed_out += sent;
        self.counters.hand_off_dropped += datagrams.saturating_sub(sent);
        Some(())
    }

    /// Another worker's connection.
    #[cold]
    fn hand_over(&mut self, worker: u8, run: &Train<'_>, origin: Origin) {
        let datagrams = run.bytes.len().div_ceil(run.segment_size.max(1)) as u64;
        let sent = match (origin, self.hand_off_group) {
            (Origin::Port, Some(hand_off_group)) => hand_off_group.send(worker, run),
            (Origin::Worker, _) | (_, None) => 0,
        };
        self.counters.handed_out += sent;
        self.counters.hand_off_dropped += datagrams.saturating_sub(sent);
    }
}
