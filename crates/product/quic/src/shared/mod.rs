//! What the handles of a connection and the worker's thread share.
//!
//! Data structure: [`State`] behind a mutex. The worker takes the mutex once for each turn in which the connection acts: it
//! hands over what arrived, applies what handles asked for, and publishes room and limits (exchange.rs). A handle takes it
//! for each verb (verbs.rs), changes the state and calls the worker when the worker has to look.
//!
//! Invariants: wakers are woken after the mutex is free. A part of a stream (send.rs, recv.rs) exists as long as its handle
//! or the worker needs it; when both parts of a stream of the peer's are gone, the peer may open another, so a peer holds no
//! more streams here than its limit. A connection is in the worker's list of calls at most once.
//!
//! Rejected: a queue of commands (its length would need a bound of its own; owed changes are state of a stream here).

mod datagrams;
mod exchange;
mod migration;
mod recv;
mod send;
#[cfg(test)]
mod tests;
mod transport_verbs;
mod verbs;

use crate::arrivals::Arrived;
use crate::calls::Calls;
use crate::error::ConnectionError;
use crate::facts::Facts;
use crate::varint::VarInt;
use crate::wakers::Wakers;
use base::slab::Handle;
use bytes::Bytes;
use core::task::Waker;
use datagrams::Datagrams;
pub(crate) use datagrams::{Export, ExportRequest};
use recv::RecvHalf;
pub(crate) use send::Reset;
use send::SendHalf;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transport::{Dir, StreamId};
pub(crate) use transport_verbs::Verbs;
use wire::Side;

/// How a handle wants the connection to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With the application's code and reason.
    Close { code: VarInt, reason: Bytes },
    /// With CONNECTION_REFUSED.
    Refuse,
}

/// Streams of one direction.
#[derive(Debug, Default)]
struct Kind {
    /// Streams that handles opened.
    opened: u64,
    /// Those of them that the transport has opened.
    applied: u64,
    /// What the peer permits.
    permitted: u64,
    /// A handle waits for more.
    is_wanted: bool,
    /// Streams of the peer's that no handle has accepted.
    accepts: VecDeque<StreamId>,
    /// Streams of the peer's that are over since the worker looked.
    released: u64,
    opening: Wakers,
    accepting: Wakers,
}

/// All that is shared.
#[derive(Debug)]
pub(crate) struct State {
    side: Side,
    /// Where the worker keeps the connection.
    slot: Option<Handle>,
    /// In the worker's list of calls.
    is_called: bool,
    /// The worker has to look.
    wants_call: bool,
    is_connected: bool,
    /// What arrives may be the copy of an earlier connection.
    is_early: bool,
    error: Option<ConnectionError>,
    ending: Option<Ending>,
    kinds: [Kind; 2],
    sends: HashMap<StreamId, SendHalf>,
    recvs: HashMap<StreamId, RecvHalf>,
    dirty_sends: Vec<StreamId>,
    dirty_recvs: Vec<StreamId>,
    /// Bytes that were not read, of all streams.
    unread: usize,
    connecting: Wakers,
    closing: Wakers,
    watching: Wakers,
    datagrams: Datagrams,
    /// The local address that a handle wants the connection to move to.
    destination: Option<IpAddr>,
    /// The local addresses from which a handle wants paths to be opened.
    wanted_paths: Vec<IpAddr>,
    /// What to wake once the mutex is free.
    woken: Vec<Waker>,
    /// The worker's memory for a turn.
    scratch: Vec<Arrived>,
    pub(crate) facts: Facts,
}

impl State {
    fn new(side: Side, facts: Facts) -> State {
        State {
            side,
            slot: None,
            is_called: false,
            wants_call: false,
            is_connected: false,
            is_early: false,
            error: None,
            ending: None,
            kinds: [Kind::default(), Kind::default()],
            sends: HashMap::new(),
            recvs: HashMap::new(),
            dirty_sends: Vec::new(),
            dirty_recvs: Vec::new(),
            unread: 0,
            connecting: Wakers::default(),
            closing: Wakers::default(),
            watching: Wakers::default(),
            datagrams: Datagrams::default(),
            destination: None,
            wanted_paths: Vec::new(),
            woken: Vec::new(),
            scratch: Vec::new(),
            facts,
        }
    }

    fn kind(&mut self, dir: Dir) -> &mut Kind {
        let [bidi, uni] = &mut self.kinds;
        match dir {
            Dir::Bidi => bidi,
            Dir::Uni => uni,
        }
    }

    fn mark_send(&mut self, id: StreamId) {
        if let Some(half) = self.sends.get_mut(&id)
            && !core::mem::replace(&mut half.is_dirty, true)
        {
            self.dirty_sends.push(id);
        }
    }

    fn mark_recv(&mut self, id: StreamId) {
        if let Some(half) = self.recvs.get_mut(&id)
            && !core::mem::replace(&mut half.is_dirty, true)
        {
            self.dirty_recvs.push(id);
        }
    }

    /// Removes the parts of a stream that are over. The peer may open another stream when both parts of its own are.
    fn settle(&mut self, id: StreamId) {
        let before = (self.sends.len(), self.recvs.len());
        if self.sends.get(&id).is_some_and(SendHalf::is_over) {
            self.sends.remove(&id);
        }
        if self.recvs.get(&id).is_some_and(RecvHalf::is_over) {
            self.recvs.remove(&id);
        }
        let is_gone = !self.sends.contains_key(&id) && !self.recvs.contains_key(&id);
        if is_gone && before != (self.sends.len(), self.recvs.len()) && id.initiator() != self.side {
            self.kind(id.dir()).released += 1;
            self.wants_call = true;
        }
    }

    /// The connection is over: all that wait hear of it.
    fn end(&mut self, error: ConnectionError) {
        if self.error.is_some() {
            return;
        }
        self.error = Some(error);
        let woken = &mut self.woken;
        self.sends.values_mut().for_each(|half| half.wake_all(woken));
        self.recvs.values_mut().for_each(|half| half.wake(woken));
        for kind in &mut self.kinds {
            kind.opening.hand_to(woken);
            kind.accepting.hand_to(woken);
        }
        self.connecting.hand_to(woken);
        self.closing.hand_to(woken);
        self.watching.hand_to(woken);
        self.datagrams.wake_all(woken);
    }
}

/// A connection as its handles and the worker see it.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    calls: Arc<Calls>,
}

impl Shared {
    pub(crate) fn new(side: Side, facts: Facts, calls: Arc<Calls>) -> Shared {
        Shared { state: Mutex::new(State::new(side, facts)), calls }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state for a handle, then wakes what the change concerns: other handles, the worker.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let outcome = change(&mut state);
        let called = match (state.wants_call && !state.is_called, state.slot) {
            (true, Some(slot)) => {
                state.is_called = true;
                Some(slot)
            }
            _ => None,
        };
        let woken = if state.woken.is_empty() { Vec::new() } else { core::mem::take(&mut state.woken) };
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        if let Some(slot) = called {
            self.calls.push(slot);
        }
        outcome
    }

    /// Changes the state for the worker, in a turn of the connection: until it ends no call is needed. `woken` is memory for
    /// the wakers that are woken afterwards.
    pub(crate) fn change_in_turn<R>(
        &self,
        woken: &mut Vec<Waker>,
        change: impl FnOnce(&mut State) -> R,
    ) -> R {
        let mut state = self.lock();
        state.is_called = false;
        let outcome = change(&mut state);
        state.wants_call = false;
        core::mem::swap(&mut state.woken, woken);
        drop(state);
        woken.drain(..).for_each(Waker::wake);
        outcome
    }

    /// The worker keeps the connection here.
    pub(crate) fn set_slot(&self, slot: Handle) {
        self.lock().slot = Some(slot);
    }

    /// The connection is over, whatever the transport thinks of it.
    pub(crate) fn fail(&self, error: ConnectionError) {
        self.change(|state| state.end(error));
    }

    /// Ends the connection from this side. Returns whether it was open.
    pub(crate) fn end_by(&self, ending: Ending) -> bool {
        self.change(|state| {
            let was_open = state.error.is_none();
            if was_open {
                state.ending = Some(ending);
                state.wants_call = true;
                state.end(ConnectionError::LocallyClosed);
            }
            was_open
        })
    }
}

/// What every handle of a connection holds: when the last one is dropped, the connection is closed with code 0.
#[derive(Debug)]
pub(crate) struct Guard(pub(crate) Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.end_by(Ending::Close { code: VarInt::default(), reason: Bytes::new() });
    }
}
