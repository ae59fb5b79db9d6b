//! What the shared state asks of the transport: a connection in its turn, or a model of one.

use super::send::Reset;
use crate::arrivals::Arrivals;
use crate::varint::VarInt;
use bytes::Bytes;
use std::net::IpAddr;
use transport::{DatagramRoom, Dir, Event, MigrateError, OpenPathError, Priority, StreamId};

/// What the shared state asks of the transport.
pub(crate) trait Verbs {
    /// What happened since the last call.
    fn next_event(&mut self) -> Option<Event>;
    /// Whether what arrives may be the copy of an earlier connection.
    fn is_early(&self) -> bool;
    /// Opens the next stream, if the peer permits it; else the peer hears that one is wanted.
    fn open(&mut self, dir: Dir);
    /// Streams that the peer permits since the beginning.
    fn permitted(&self, dir: Dir) -> u64;
    /// Takes bytes to be sent.
    fn write(&mut self, id: StreamId, bytes: Bytes);
    /// No more follow.
    fn finish(&mut self, id: StreamId);
    /// Gives up sending.
    fn reset(&mut self, id: StreamId, reset: Reset);
    /// Asks the peer to give up sending.
    fn stop(&mut self, id: StreamId, code: VarInt);
    /// How the stream shares the connection with others.
    fn set_priority(&mut self, id: StreamId, priority: Priority);
    /// Bytes that the stream takes; 0 asks for [`Event::Writable`].
    fn room(&mut self, id: StreamId) -> usize;
    /// Lends a paused stream's bytes again.
    fn deliver(&mut self, id: StreamId, arrivals: &mut Arrivals);
    /// A stream of the peer's is done with.
    fn release(&mut self, dir: Dir);
    /// Sends a datagram.
    fn send_datagram(&mut self, datagram: Bytes);
    /// What [`Verbs::send_datagram`] takes before older datagrams give way.
    fn datagram_room(&self) -> DatagramRoom;
    /// So many bytes of keying material, if there are any.
    fn export(&self, len: usize, label: &[u8], context: &[u8]) -> Option<Vec<u8>>;
    /// Starts a key update, if one may start.
    fn update_keys(&mut self);
    /// Moves to another local address, when the server has answered there.
    fn migrate(&mut self, ip: IpAddr) -> Result<(), MigrateError>;
    /// Opens a path from another local address beside those in use.
    fn open_path(&mut self, ip: IpAddr) -> Result<(), OpenPathError>;
}
