//! The worker's side of a connection's shared state: one exchange for each turn.

use super::recv::{RecvHalf, RecvState};
use super::send::{SendHalf, SendState};
use super::transport_verbs::Verbs;
use super::{Ending, State};
use crate::arrivals::{Arrivals, Arrived, limit};
use crate::error::ConnectionError;
use crate::facts::PathEvent;
use crate::varint::VarInt;
use base::net::Addresses;
use transport::{Connection, Dir, Event, Fin, StreamId};

impl State {
    /// Hands over what arrived, hears the transport's events, applies what handles asked for and publishes room.
    pub(crate) fn exchange(&mut self, verbs: &mut impl Verbs, arrivals: &mut Arrivals) {
        if !self.is_connected {
            self.is_early = verbs.is_early();
        }
        // What arrived first: an event may end the stream that it belongs to.
        self.take_in(arrivals);
        while let Some(event) = verbs.next_event() {
            self.on_event(event, arrivals);
        }
        self.apply_opens(verbs);
        self.apply_sends(verbs);
        self.apply_recvs(verbs, arrivals);
        self.resume(verbs, arrivals);
        arrivals.end_turn();
        self.datagrams.exchange(verbs, arrivals, &mut self.woken);
        self.exchange_migration(verbs);
        self.exchange_paths(verbs);
        for dir in Dir::ALL {
            for _ in 0..core::mem::take(&mut self.kind(dir).released) {
                verbs.release(dir);
            }
        }
    }

    /// Publishes what the connection is, and tells what has changed of its path.
    pub(crate) fn publish(&mut self, connection: &Connection) {
        self.facts.publish(connection);
        if self.facts.has_path_event() {
            self.watching.hand_to(&mut self.woken);
        }
    }

    /// What a handle wants to be done about the connection.
    pub(crate) fn take_ending(&mut self) -> Option<Ending> {
        self.ending.take()
    }

    /// Moves what arrived to its readers.
    fn take_in(&mut self, arrivals: &mut Arrivals) {
        let mut arrived = core::mem::take(&mut self.scratch);
        arrivals.take_arrived(&mut arrived);
        for Arrived { id, bytes, fin } in arrived.drain(..) {
            self.admit(id);
            let Some(half) = self.recvs.get_mut(&id) else { continue };
            if half.state != RecvState::Open {
                continue;
            }
            self.unread += bytes.len();
            half.push(bytes);
            half.wake(&mut self.woken);
            if fin == Fin::End {
                half.state = RecvState::Ended;
                arrivals.forget(id);
            } else {
                arrivals.set_unread(id, half.queued(), self.unread);
            }
        }
        self.scratch = arrived;
    }

    /// Makes a stream of the peer's, unless it is known. A part that is gone hears of nothing any more, so a stream without
    /// any part is a new one.
    fn admit(&mut self, id: StreamId) {
        if id.initiator() == self.side || self.recvs.contains_key(&id) || self.sends.contains_key(&id) {
            return;
        }
        self.recvs.insert(id, RecvHalf::new(self.is_early));
        if id.dir() == Dir::Bidi {
            self.sends.insert(id, SendHalf::new());
        }
        let kind = match id.dir() {
            Dir::Bidi => &mut self.kinds[0],
            Dir::Uni => &mut self.kinds[1],
        };
        kind.accepts.push_back(id);
        kind.accepting.hand_to(&mut self.woken);
    }

    fn on_event(&mut self, event: Event, arrivals: &mut Arrivals) {
        match event {
            Event::Connected => {
                self.is_connected = true;
                self.connecting.hand_to(&mut self.woken);
            }
            Event::StreamReset { id, code } => {
                self.admit(id);
                arrivals.forget(id);
                if let Some(half) = self.recvs.get_mut(&id) {
                    // What arrived is still read: it may be what RESET_STREAM_AT has promised.
                    half.state = RecvState::Reset(VarInt::saturating(code));
                    half.wake(&mut self.woken);
                    self.settle(id);
                }
            }
            Event::StopSending { id, code } => {
                self.admit(id);
                self.end_send(id, SendState::Stopped(VarInt::saturating(code)));
            }
            Event::Writable { id } => self.mark_send(id),
            Event::Finished { id } => self.end_send(id, SendState::Acknowledged),
            Event::StreamsAvailable { .. } | Event::NewToken { .. } | Event::Migrated { .. } => {}
            Event::PathOpened { id, addresses: Addresses { local, peer: remote } } => {
                self.facts.paths.on_event(PathEvent::Opened { id: id.0, local, remote });
            }
            Event::PathClosed { id, addresses: Addresses { local, peer: remote }, code } => {
                let (id, code) = (id.0, VarInt::saturating(code.0));
                self.facts.paths.on_event(PathEvent::Closed { id, local, remote, code });
            }
            Event::MigrationFailed { addresses } => self.facts.failed = Some(addresses.local.ip()),
            Event::Closed(reason) => self.end(ConnectionError::of(reason)),
        }
    }

    /// The peer has decided the fate of a sending part.
    fn end_send(&mut self, id: StreamId, state: SendState) {
        let Some(half) = self.sends.get_mut(&id) else { return };
        half.state = state;
        half.pending = Vec::new();
        half.wake_all(&mut self.woken);
        self.settle(id);
    }

    fn apply_opens(&mut self, verbs: &mut impl Verbs) {
        for dir in Dir::ALL {
            let kind = match dir {
                Dir::Bidi => &mut self.kinds[0],
                Dir::Uni => &mut self.kinds[1],
            };
            while kind.applied < kind.opened {
                verbs.open(dir);
                kind.applied += 1;
            }
            kind.permitted = verbs.permitted(dir);
            if kind.permitted > kind.opened {
                kind.is_wanted = false;
                kind.opening.hand_to(&mut self.woken);
            } else if core::mem::take(&mut kind.is_wanted) {
                verbs.open(dir);
            }
        }
    }

    fn apply_sends(&mut self, verbs: &mut impl Verbs) {
        let mut dirty = core::mem::take(&mut self.dirty_sends);
        for id in dirty.drain(..) {
            let Some(half) = self.sends.get_mut(&id) else { continue };
            half.is_dirty = false;
            if core::mem::take(&mut half.has_new_priority) {
                verbs.set_priority(id, half.priority);
            }
            half.pending.drain(..).for_each(|bytes| verbs.write(id, bytes));
            match half.state {
                SendState::Open => {
                    half.room = verbs.room(id);
                    if half.room > 0 {
                        self.woken.extend(half.writer.take());
                    }
                }
                SendState::Finishing => {
                    verbs.finish(id);
                    half.state = SendState::Finished;
                }
                SendState::Resetting(reset) => {
                    verbs.reset(id, reset);
                    half.state = SendState::Reset;
                    self.settle(id);
                }
                SendState::Finished | SendState::Acknowledged | SendState::Reset | SendState::Stopped(_) => {}
            }
        }
        self.dirty_sends = dirty;
    }

    fn apply_recvs(&mut self, verbs: &mut impl Verbs, arrivals: &mut Arrivals) {
        let mut dirty = core::mem::take(&mut self.dirty_recvs);
        for id in dirty.drain(..) {
            let Some(half) = self.recvs.get_mut(&id) else { continue };
            half.is_dirty = false;
            if let RecvState::Stopping(code) = half.state {
                verbs.stop(id, code);
                half.state = RecvState::Stopped;
                arrivals.forget(id);
                self.settle(id);
            } else if core::mem::take(&mut half.is_paused) {
                arrivals.set_unread(id, half.queued(), self.unread);
                verbs.deliver(id, arrivals);
            }
        }
        self.dirty_recvs = dirty;
    }

    /// Streams that were paused go on if their reader has caught up meanwhile; else the reader will say when. Each round takes
    /// at least one slice of a stream, and stops at its limit.
    fn resume(&mut self, verbs: &mut impl Verbs, arrivals: &mut Arrivals) {
        self.take_in(arrivals);
        while let Some(id) = arrivals.next_paused() {
            let Some(half) = self.recvs.get_mut(&id) else { continue };
            if half.queued() > limit(self.unread) / 2 {
                half.is_paused = true;
            } else {
                arrivals.set_unread(id, half.queued(), self.unread);
                verbs.deliver(id, arrivals);
                self.take_in(arrivals);
            }
        }
    }
}
