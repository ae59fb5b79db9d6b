//! The turn: the only loop there is.
//!
//! ```text
//! poll a batch in → route each train to its connection → expire timers → let applications act → transmit → flush → wait
//! ```
//!
//! The clock is read once per turn. Connections that something happened to are on the *active* list until they have acted
//! and sent everything; all other connections cost nothing.

use crate::alarm::Alarm;
use crate::wheel::Wheel;
use base::net::{Addresses, Ecn};
use base::sink::TrainPath;
use base::slab::{Handle, Slab};
use base::time::{Duration, Instant};
use core::net::SocketAddr;
use datapath::{Counters, Port};
use std::io;
use transport::{
    ClientConfig, Connection, Endpoint, Fin, IncomingPolicy, Route, ServerConfig, StreamId, StreamSink,
    TlsError, Transmitted, split_run,
};

#[cfg(test)]
mod tests;

/// What lives on the connections of a worker.
pub trait App {
    /// What it keeps for each connection; receives the connection's in-order bytes.
    type State: StreamSink;

    /// A peer has connected; the handshake is under way.
    fn on_accept(&mut self, now: Instant, connection: &mut Connection) -> Self::State;

    /// Something happened on a connection: data, events, or time. Called at most once per turn and connection.
    /// Must take all of the connection's events: a connection that has some is called again in the next turn.
    fn on_turn(&mut self, now: Instant, connection: &mut Connection, state: &mut Self::State) -> Next;

    /// The connection's state has gone; nothing follows.
    fn on_gone(&mut self, now: Instant, connection: &Connection, state: Self::State);
}

/// Longest wait for room in the data path, after which sending is tried again.
const HELD_UP: Duration = Duration::from_millis(1);

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

/// How a worker behaves.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How long a worker polls before it sleeps: zero sleeps at once, [`Duration::MAX`] never does. Default: zero.
    pub spin: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config { spin: Duration::ZERO }
    }
}

/// What a turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Trains taken in.
    pub trains: usize,
    /// Connections that acted.
    pub active: usize,
}

struct Entry<S> {
    connection: Connection,
    state: S,
    /// On the active list.
    is_active: bool,
    /// When the wheel will bring this entry up.
    alarm: Alarm,
    /// When the application asked to act.
    app_deadline: Option<Instant>,
}

impl<S> Entry<S> {
    fn new(connection: Connection, state: S) -> Entry<S> {
        Entry { connection, state, is_active: true, alarm: Alarm::UNSET, app_deadline: None }
    }
}

/// What a client's first datagrams are received into: they carry no stream data.
struct NoStreams;

impl StreamSink for NoStreams {
    fn on_stream_data(&mut self, _id: StreamId, _bytes: &[u8], _fin: Fin) -> usize {
        debug_assert!(false, "1-RTT packets are not opened before the handshake is complete");
        0
    }
}

/// A thread's worth of connections.
pub struct Worker<P, A: App> {
    port: P,
    app: A,
    endpoint: Endpoint,
    server: Option<ServerConfig>,
    config: Config,
    slab: Slab<Entry<A::State>>,
    active: Vec<Handle>,
    /// How many of the active ones only wait for the data path to have room.
    held_up: usize,
    /// The list that a turn works on, kept for its memory.
    round: Vec<Handle>,
    wheel: Wheel<Handle>,
    now: Instant,
    busy_at: Instant,
}

impl<P: Port, A: App> Worker<P, A> {
    /// A worker on `port`. Without `server` nobody can connect to it, only from it.
    pub fn new(
        mut port: P,
        app: A,
        endpoint: Endpoint,
        server: Option<ServerConfig>,
        config: Config,
    ) -> Self {
        let now = port.now();
        Worker {
            port,
            app,
            endpoint,
            server,
            config,
            slab: Slab::new(),
            active: Vec::new(),
            held_up: 0,
            round: Vec::new(),
            wheel: Wheel::new(now),
            now,
            busy_at: now,
        }
    }

    /// Opens a connection to `peer`.
    ///
    /// # Errors
    /// The name or the address cannot be used.
    pub fn connect(
        &mut self,
        client: &ClientConfig,
        server_name: &str,
        peer: SocketAddr,
        state: A::State,
    ) -> Result<Handle, TlsError> {
        self.now = self.port.now();
        let handle = self.slab.next_handle();
        let addresses = Addresses { local: self.port.local_address_towards(peer), peer };
        let connection = self.endpoint.connect(self.now, handle, client, (server_name, addresses))?;
        self.active.push(self.slab.insert(Entry::new(connection, state)));
        Ok(handle)
    }

    /// The connection and its state, to act on between turns; it takes part in the next turn.
    pub fn connection(&mut self, handle: Handle) -> Option<(&mut Connection, &mut A::State)> {
        self.activate(handle);
        self.slab.entry_mut(handle).map(|entry| (&mut entry.connection, &mut entry.state))
    }

    /// Lets all connections take part in the next turn: for news that concerns them all.
    pub fn activate_all(&mut self) {
        let handles: Vec<Handle> = self.slab.handles().collect();
        handles.into_iter().for_each(|handle| self.activate(handle));
    }

    /// Connections that have state.
    pub fn connections(&self) -> usize {
        self.slab.len()
    }

    /// Connections that have not been closed yet; the others only wait for stragglers.
    pub fn open_connections(&mut self) -> usize {
        self.slab.iter_mut().filter(|(_, entry)| !entry.connection.is_closed()).count()
    }

    /// From now on strangers are turned away.
    pub fn refuse_incoming(&mut self) {
        self.endpoint.set_incoming(IncomingPolicy::Refuse);
    }

    /// The application.
    pub fn app_mut(&mut self) -> &mut A {
        &mut self.app
    }

    /// The data path.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// What the data path counted.
    pub fn counters(&self) -> Counters {
        self.port.counters()
    }

    /// What strangers sent and why it was dropped.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The time of the last turn.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// One turn, then sleep until something happens or `until` has passed.
    ///
    /// # Errors
    /// Only when the data path itself has failed.
    pub fn run_turn(&mut self, until: Option<Instant>) -> io::Result<Turn> {
        let turn = self.turn()?;
        if self.is_idle(&turn) {
            let deadline = match (self.next_deadline(), until) {
                (Some(next), Some(until)) => Some(next.min(until)),
                (next, until) => next.or(until),
            };
            self.port.wait(deadline)?;
        }
        Ok(turn)
    }

    /// One turn, without sleeping: for an application that owns the thread.
    ///
    /// # Errors
    /// Only when the data path itself has failed.
    pub fn turn(&mut self) -> io::Result<Turn> {
        let trains = self.port.poll()?;
        self.now = self.port.now();
        for index in 0..trains {
            self.receive(index);
        }
        self.expire();
        let active = self.active.len();
        self.act();
        self.transmit()?;
        self.port.flush()?;
        Ok(Turn { trains, active })
    }

    /// When the next turn is due if nothing arrives.
    pub fn next_deadline(&self) -> Option<Instant> {
        let expiry = self.wheel.next_expiry();
        match self.active.len().saturating_sub(self.held_up) {
            0 if self.held_up == 0 => expiry,
            // The port wakes us when it has room. Should it not know, we look by ourselves, but do not spin.
            0 => Some(expiry.map_or(self.now + HELD_UP, |expiry| expiry.min(self.now + HELD_UP))),
            _ => Some(self.now),
        }
    }

    fn is_idle(&mut self, turn: &Turn) -> bool {
        if turn.trains > 0 || self.active.len() > self.held_up {
            self.busy_at = self.now;
            return false;
        }
        self.now.saturating_since(self.busy_at) >= self.config.spin
    }

    /// One train: runs of datagrams to their connections, or to the endpoint's judgement.
    fn receive(&mut self, index: usize) {
        let Worker { port, app, endpoint, server, slab, active, now, .. } = self;
        let mut rest = Some(port.train(index));
        let mut answered = None;
        while let Some(train) = rest {
            let (run, others) = split_run(train);
            rest = others;
            let addresses = run.addresses;
            match endpoint.route(*now, &run) {
                Route::Connection(handle) => {
                    let Some(entry) = slab.entry_mut(handle) else { continue };
                    entry.connection.receive(*now, run, &mut entry.state);
                    if !core::mem::replace(&mut entry.is_active, true) {
                        active.push(handle);
                    }
                }
                Route::Incoming(incoming) => {
                    let Some(server) = server else { continue };
                    let handle = slab.next_handle();
                    let Ok(mut connection) = endpoint.accept(*now, handle, incoming, server) else {
                        continue;
                    };
                    connection.receive(*now, run, &mut NoStreams);
                    if connection.counters().received_packets == 0 && !connection.is_closed() {
                        // Damaged or forged: it must not stand in the way of the real one (or take up memory).
                        endpoint.forget(handle);
                        continue;
                    }
                    let state = app.on_accept(*now, &mut connection);
                    active.push(slab.insert(Entry::new(connection, state)));
                }
                Route::Reply => answered = Some(addresses),
                Route::Drop(_) => {}
            }
        }
        // A stranger's train gets one answer at most, whatever it holds.
        if let Some(addresses) = answered {
            self.send_reply(addresses);
        }
    }

    /// The endpoint's stateless reply: a train of one datagram.
    fn send_reply(&mut self, addresses: Addresses) {
        let reply = self.endpoint.reply();
        let path = TrainPath::new(addresses, Ecn::NotEct);
        if reply.is_empty() || self.port.begin(path, reply.len()).is_none() {
            return;
        }
        self.port.room().copy_from_slice(reply);
        self.port.push(reply.len());
        self.port.end();
    }

    fn activate(&mut self, handle: Handle) {
        if let Some(entry) = self.slab.entry_mut(handle)
            && !core::mem::replace(&mut entry.is_active, true)
        {
            self.active.push(handle);
        }
    }

    fn expire(&mut self) {
        let (now, slab, active) = (self.now, &mut self.slab, &mut self.active);
        self.wheel.expire(now, |handle| {
            let Some(entry) = slab.entry_mut(handle) else { return };
            if !entry.alarm.on_expired(now) {
                return; // from a deadline that has been overtaken
            }
            if entry.connection.next_timeout().is_some_and(|deadline| deadline <= now) {
                entry.connection.on_timeout(now);
            }
            // Also when the deadline has moved away meanwhile: the end of the turn sets the wheel again.
            if !core::mem::replace(&mut entry.is_active, true) {
                active.push(handle);
            }
        });
    }

    /// Lets the applications of active connections act.
    fn act(&mut self) {
        core::mem::swap(&mut self.active, &mut self.round);
        for &handle in &self.round {
            let Some(entry) = self.slab.entry_mut(handle) else { continue };
            entry.is_active = false;
            let next = self.app.on_turn(self.now, &mut entry.connection, &mut entry.state);
            entry.app_deadline = match next {
                Next::At(deadline) => Some(deadline),
                Next::Wait => None,
                Next::Again => {
                    entry.is_active = true;
                    self.active.push(handle);
                    None
                }
            };
        }
    }

    /// Lets the connections of this turn's round send, arms their timers and buries those that are gone.
    fn transmit(&mut self) -> io::Result<()> {
        let mut round = core::mem::take(&mut self.round);
        self.held_up = 0;
        for handle in round.drain(..) {
            let Some(entry) = self.slab.entry_mut(handle) else { continue };
            // Before the peer hears of new connection IDs: datagrams to an ID that leads nowhere are answered by a reset.
            self.endpoint.update(handle, &mut entry.connection);
            if entry.connection.transmit(self.now, &mut self.port) == Transmitted::SinkFull {
                self.port.flush()?;
                if entry.connection.transmit(self.now, &mut self.port) == Transmitted::SinkFull {
                    // The kernel takes no more now; the others wait as well, in order.
                    self.held_up += usize::from(!entry.is_active);
                    self.activate(handle);
                    continue;
                }
            }
            self.settle(handle);
        }
        self.round = round;
        Ok(())
    }

    /// After a connection has acted and sent: its timer, its end.
    fn settle(&mut self, handle: Handle) {
        let Some(entry) = self.slab.entry_mut(handle) else { return };
        if entry.connection.is_gone() {
            if let Some(entry) = self.slab.remove(handle) {
                self.endpoint.forget(handle);
                self.app.on_gone(self.now, &entry.connection, entry.state);
            }
            return;
        }
        if entry.connection.has_events() && !core::mem::replace(&mut entry.is_active, true) {
            // Sending has made room for a writer, who would else hear of it with the next acknowledgement only.
            self.active.push(handle);
        }
        let deadline = [entry.connection.next_timeout(), entry.app_deadline].into_iter().flatten().min();
        if let Some(at) = deadline.and_then(|deadline| entry.alarm.set(self.now, deadline)) {
            self.wheel.schedule(at, handle);
        }
    }
}
