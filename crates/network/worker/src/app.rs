//! What lives on the connections of a worker, and what a worker keeps for each connection.

use crate::wheel_entries::WheelEntries;
use base::slab::Handle;
use base::time::Instant;
use transport::{Connection, StreamSink};

/// What lives on the connections of a worker.
pub trait App {
    /// What it keeps for each connection; receives the connection's in-order bytes.
    type State: StreamSink;

    /// A peer has connected; the handshake is under way.
    fn on_accept(&mut self, now: Instant, connection: &mut Connection) -> Self::State;

    /// The state of a connection that was accepted is kept under `handle` from now on.
    fn on_slot(&mut self, _state: &mut Self::State, _handle: Handle) {}

    /// Puts into `handles` the connections that shall act for reasons of the application's own, such as what another thread
    /// has done for them. Called once per turn; that thread ends the worker's sleep by [`crate::Worker::waker`].
    fn take_called(&mut self, _now: Instant, _handles: &mut Vec<Handle>) {}

    /// Whether a new connection is taken. A peer that is not taken hears nothing and tries again.
    fn admits(&self) -> bool {
        true
    }

    /// Something happened on a connection: data, events, or time. Called at most once per turn and connection.
    /// Must take all of the connection's events: a connection that has some is called again in the next turn.
    fn on_turn(&mut self, now: Instant, connection: &mut Connection, state: &mut Self::State) -> Next;

    /// The connection's state has gone; nothing follows.
    fn on_gone(&mut self, now: Instant, connection: &Connection, state: Self::State);
}

/// When a connection's application wants to act again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When something happens.
    Wait,
    /// In the next turn: it left work undone so that others get theirs.
    Again,
    /// At this time, if nothing happens before.
    At(Instant),
}

/// A connection in a worker's slab.
pub(crate) struct ConnectionEntry<S> {
    pub(crate) connection: Connection,
    pub(crate) state: S,
    /// On the active list.
    pub(crate) is_active: bool,
    /// The connection knows what the interface takes.
    pub(crate) is_limited: bool,
    /// A step of its handshake waits until others are back.
    pub(crate) is_in_line: bool,
    /// The span in which [`crate::crowd::Crowd`] counted it last.
    pub(crate) counted: u32,
    /// When the wheel will bring this entry up.
    pub(crate) wheel_entries: WheelEntries,
    /// When the application asked to act.
    pub(crate) app_deadline: Option<Instant>,
}

impl<S> ConnectionEntry<S> {
    pub(crate) fn new(connection: Connection, state: S) -> ConnectionEntry<S> {
        ConnectionEntry {
            connection,
            state,
            is_active: true,
            is_limited: false,
            is_in_line: false,
            counted: 0,
            wheel_entries: WheelEntries::UNSET,
            app_deadline: None,
        }
    }
}
