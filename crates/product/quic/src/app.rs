//! The application on the worker: one exchange with the handles for each turn of a connection.

use crate::arrivals::Arrivals;
use crate::calls::Calls;
use crate::facts::Facts;
use crate::hub::Hub;
use crate::presence::Presence;
use crate::shared::{Ending, Guard, Reset, Shared, Verbs};
use crate::varint::VarInt;
use base::slab::Handle;
use base::time::Instant;
use bytes::Bytes;
use core::task::Waker;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use transport::{Connection, DatagramRoom, Dir, Event, MigrateError, OpenPathError, Priority, StreamId};
use wire::Side;
use worker::{App, Next};

/// What all connections of an endpoint have in common.
pub(crate) struct Application {
    hub: Arc<Hub>,
    calls: Arc<Calls>,
    /// All connections are to be closed.
    closing: Option<(VarInt, Bytes)>,
    /// Memory for the wakers of a turn.
    woken: Vec<Waker>,
}

impl Application {
    pub(crate) fn new(hub: Arc<Hub>) -> Application {
        Application { calls: Arc::clone(&hub.calls), hub, closing: None, woken: Vec::new() }
    }

    /// Each connection is closed at its next turn.
    pub(crate) fn close_all(&mut self, code: VarInt, reason: Bytes) {
        self.closing = Some((code, reason));
    }
}

impl App for Application {
    type State = Presence;

    fn on_accept(&mut self, _: Instant, connection: &mut Connection) -> Presence {
        connection.hold_peer_streams();
        let addresses = connection.addresses();
        let facts = Facts::new(addresses.peer, addresses.local);
        let shared = Arc::new(Shared::new(Side::Server, facts, Arc::clone(&self.calls)));
        let presence = Presence::new(Arc::clone(&shared), Arc::clone(&self.hub));
        self.hub.on_incoming(Arc::new(Guard(shared)));
        presence
    }

    fn on_slot(&mut self, presence: &mut Presence, handle: Handle) {
        presence.shared.set_slot(handle);
    }

    fn take_called(&mut self, _: Instant, handles: &mut Vec<Handle>) {
        self.calls.take(handles);
    }

    fn admits(&self) -> bool {
        self.hub.has_room()
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection, presence: &mut Presence) -> Next {
        let Presence { shared, arrivals, .. } = presence;
        let ending = shared.change_in_turn(&mut self.woken, |state| {
            state.exchange(&mut Live { connection, now }, arrivals);
            state.publish(connection);
            state.take_ending()
        });
        match ending {
            Some(Ending::Close { code, reason }) => connection.close(now, code.into_inner(), &reason),
            Some(Ending::Refuse) => {
                connection.refuse(now);
                self.hub.on_refused();
            }
            None => {}
        }
        if let Some((code, reason)) = &self.closing {
            connection.close(now, code.into_inner(), reason);
        }
        Next::Wait
    }

    fn on_gone(&mut self, _: Instant, _: &Connection, presence: Presence) {
        drop(presence);
    }
}

/// A connection in its turn.
struct Live<'a> {
    connection: &'a mut Connection,
    now: Instant,
}

impl Verbs for Live<'_> {
    fn next_event(&mut self) -> Option<Event> {
        self.connection.next_event()
    }

    fn is_early(&self) -> bool {
        self.connection.is_early()
    }

    fn open(&mut self, dir: Dir) {
        // A refusal asks for `Event::StreamsAvailable`. A stream that a handle has opened was permitted.
        let _ = self.connection.open(dir);
    }

    fn permitted(&self, dir: Dir) -> u64 {
        self.connection.permitted_streams(dir)
    }

    // An error of the next two says that the peer has stopped the stream, of which an event tells.
    fn write(&mut self, id: StreamId, bytes: Bytes) {
        let _ = self.connection.write(id, bytes);
    }

    fn finish(&mut self, id: StreamId) {
        let _ = self.connection.finish_stream(id);
    }

    fn reset(&mut self, id: StreamId, Reset { code, reliable_size }: Reset) {
        if reliable_size == 0 {
            self.connection.reset(id, code.into_inner());
        } else {
            // The handle has checked what could be wrong; a stream that is over meanwhile needs no reset.
            let _ = self.connection.reset_at(id, code.into_inner(), reliable_size);
        }
    }

    fn stop(&mut self, id: StreamId, code: VarInt) {
        self.connection.stop_sending(id, code.into_inner());
    }

    fn set_priority(&mut self, id: StreamId, priority: Priority) {
        self.connection.set_priority(id, priority);
    }

    fn room(&mut self, id: StreamId) -> usize {
        self.connection.send_capacity(id)
    }

    fn deliver(&mut self, id: StreamId, arrivals: &mut Arrivals) {
        self.connection.deliver(self.now, id, arrivals);
    }

    fn release(&mut self, dir: Dir) {
        self.connection.release_stream(dir);
    }

    fn send_datagram(&mut self, datagram: Bytes) {
        // Its size was checked against what the peer takes.
        let _ = self.connection.send_datagram(datagram);
    }

    fn datagram_room(&self) -> DatagramRoom {
        self.connection.datagram_room()
    }

    fn export(&self, len: usize, label: &[u8], context: &[u8]) -> Option<Vec<u8>> {
        let mut material = vec![0; len];
        self.connection.export_keying_material(&mut material, label, context).ok().map(|()| material)
    }

    fn update_keys(&mut self) {
        self.connection.update_keys(self.now);
    }

    fn open_path(&mut self, ip: IpAddr) -> Result<(), OpenPathError> {
        let local = SocketAddr::new(ip, self.connection.addresses().local.port());
        self.connection.open_path(self.now, local).map(drop)
    }

    fn migrate(&mut self, ip: IpAddr) -> Result<(), MigrateError> {
        let local = SocketAddr::new(ip, self.connection.addresses().local.port());
        self.connection.migrate(self.now, local)
    }
}
