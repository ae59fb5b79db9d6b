//! The turn: the only loop there is.
//!
//! ```text
//! poll a batch in → route each train to its connection → expire timers → let applications act → transmit → flush → wait
//! ```
//!
//! [`Worker::run_turn`] does all of it and owns the thread for as long as it waits. [`Worker::turn`] does all but the waiting,
//! for a program with a loop of its own: that waits until one of [`Worker::descriptors`] is readable or
//! [`Worker::next_deadline`] has passed, says so by [`Worker::on_woken`], and lets the worker turn.
//!
//! The clock is read once per turn. Connections that something happened to are on the *active* list until they have acted
//! and sent everything; all other connections cost nothing.

use crate::app::{App, ConnectionEntry, Next};
use crate::crowd::Crowd;
use crate::hand_off::{HandOffCounters, HandOffMember};
use crate::handshakes::{Handshakes, Line};
use crate::receive_context::{Origin, ReceiveContext};
use crate::wheel::Wheel;
use base::net::{Addresses, Ecn};
use base::sink::TrainPath;
use base::slab::{Handle, Slab};
use base::time::{Duration, Instant};
use core::net::{IpAddr, SocketAddr};
use datapath::{Intake, Port, Refused};
use std::io;
use transport::{ClientConfig, Connection, Endpoint, IncomingPolicy, ServerConfig, TlsError, Transmitted};

mod addresses;
mod queries;
mod slow_steps;
#[cfg(test)]
mod tests;

pub use addresses::AddressNews;

/// Longest wait for room in the data path, after which sending is tried again.
const HELD_UP: Duration = Duration::from_millis(1);

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
    /// Trains taken in, from the data path and from other workers.
    pub trains: usize,
    /// Connections that acted.
    pub active: usize,
}

/// A thread's worth of connections.
pub struct Worker<P, A: App> {
    port: P,
    app: A,
    endpoint: Endpoint,
    server: Option<ServerConfig>,
    config: Config,
    /// Boxed, because a place outlives its connection: after a peak the places stay and the memory goes.
    slab: Slab<Box<ConnectionEntry<A::State>>>,
    active: Vec<Handle>,
    /// How many of the active ones only wait for the data path to have room.
    held_up: usize,
    /// The list that a turn works on, kept for its memory.
    round: Vec<Handle>,
    /// Connections that the application wants to act, for the duration of a call.
    called: Vec<Handle>,
    wheel: Wheel<Handle>,
    crowd: Crowd,
    now: Instant,
    busy_at: Instant,
    /// The port holds trains back until they depart. As of the beginning: should a port stop doing so, trains leave up to
    /// two milliseconds early from then on.
    holds_trains: bool,
    /// The local addresses that connections were told to use.
    pinned: Vec<IpAddr>,
    /// The other workers of the address, if there are any.
    hand_off_group: Option<HandOffMember>,
    hand_off: HandOffCounters,
    /// Steps of handshakes that other threads take, if the program has some for that.
    handshakes: Option<Box<Handshakes>>,
}

impl<P: Port, A: App> Worker<P, A> {
    /// A worker on `port`. Without `server` it accepts no connections.
    pub fn new(
        mut port: P,
        app: A,
        endpoint: Endpoint,
        server: Option<ServerConfig>,
        config: Config,
    ) -> Self {
        let now = port.now();
        let holds_trains = port.capabilities().departure_times;
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
            called: Vec::new(),
            wheel: Wheel::new(now),
            crowd: Crowd::new(now),
            now,
            busy_at: now,
            holds_trains,
            pinned: Vec::new(),
            hand_off_group: None,
            hand_off: HandOffCounters::default(),
            handshakes: None,
        }
    }

    /// Makes it one of several workers that share an address: datagrams of a connection that another one has go there. The
    /// endpoint must know its number and how many there are.
    #[must_use]
    pub fn with_hand_off(mut self, member: HandOffMember) -> Self {
        self.hand_off_group = Some(member);
        self
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
        let addresses = Addresses { local: self.port.local_address_towards(peer), peer };
        self.connect_between(client, server_name, addresses, state)
    }

    /// The same from a local address of the caller's choice: with the port of the data path, and one that it sends from.
    ///
    /// # Errors
    /// The name or the address cannot be used.
    pub fn connect_between(
        &mut self,
        client: &ClientConfig,
        server_name: &str,
        addresses: Addresses,
        state: A::State,
    ) -> Result<Handle, TlsError> {
        self.now = self.clock();
        let handle = self.slab.next_handle();
        let mut connection = self.endpoint.connect(self.now, handle, client, (server_name, addresses))?;
        if self.holds_trains {
            connection.use_departure_times();
        }
        self.active.push(self.slab.insert(Box::new(ConnectionEntry::new(connection, state))));
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

    /// Closed connections send their CONNECTION_CLOSE once more in the next turn: see [`Connection::repeat_close`].
    pub fn repeat_closes(&mut self) {
        self.slab.iter_mut().for_each(|(_, entry)| entry.connection.repeat_close());
        self.activate_all();
    }

    /// From now on the worker refuses new connections.
    pub fn refuse_incoming(&mut self) {
        self.endpoint.set_incoming(IncomingPolicy::Refuse);
    }

    /// From now on the worker takes in nothing but what is handed to it, and no new connections: another process has the sockets too
    /// and takes the place of this one. [`Intake::Open`] undoes it.
    pub fn set_intake(&mut self, intake: Intake) {
        self.port.set_intake(intake);
        self.endpoint.set_incoming(match intake {
            Intake::Open => IncomingPolicy::Accept,
            Intake::Closed => IncomingPolicy::Ignore,
        });
    }

    /// The present on the data path's clock: what a loop of its own gives to [`Worker::turn`], read once per turn.
    pub fn clock(&mut self) -> Instant {
        self.port.now()
    }

    /// One of the descriptors was readable: to be called before the turn that follows.
    pub fn on_woken(&mut self) {
        self.port.on_woken();
    }

    /// When a turn is due for the data path's own sake, for a loop of its own. See [`Port::next_timeout`].
    ///
    /// # Errors
    /// The data path has failed.
    pub fn port_timeout(&mut self) -> io::Result<Option<Instant>> {
        self.port.next_timeout()
    }

    /// One turn, then sleep until something happens or `until` has passed.
    ///
    /// # Errors
    /// Only when the data path itself has failed.
    pub fn run_turn(&mut self, until: Option<Instant>) -> io::Result<Turn> {
        let now = self.clock();
        let turn = self.turn(now)?;
        self.sleep(&turn, until)?;
        Ok(turn)
    }

    /// One turn, without sleep. Returns the time, and when the next turn is due if nothing arrives: at that time or earlier when
    /// there is more to do at once, or when [`Config::spin`] has not passed since there was something to do. Before it sleeps, the
    /// caller asks the port for [`Port::awaits_room`], or heeds [`Worker::retry_at`].
    ///
    /// # Errors
    /// Only when the data path itself has failed.
    pub fn turn_once(&mut self) -> io::Result<(Instant, Option<Instant>)> {
        let now = self.clock();
        let turn = self.turn(now)?;
        let deadline = if self.is_idle(&turn) { self.next_event() } else { Some(self.now) };
        Ok((self.now, deadline))
    }

    /// Sleeps after `turn` until something happens or `until` has passed; returns at once where there is more to do. The second
    /// part of [`Worker::run_turn`], for an owner of the thread that looks at something else between the two.
    ///
    /// # Errors
    /// Only when the data path itself has failed.
    pub fn sleep(&mut self, turn: &Turn, until: Option<Instant>) -> io::Result<()> {
        if !self.is_idle(turn) {
            return Ok(());
        }
        let deadline = match (self.next_event(), until) {
            (Some(next), Some(until)) => Some(next.min(until)),
            (next, until) => next.or(until),
        };
        self.port.wait(deadline)
    }

    /// One turn at `now` (see [`Worker::clock`]), without sleeping: for an application that owns the thread. Time that steps
    /// back stands still.
    ///
    /// # Errors
    /// Only when the data path itself has failed.
    pub fn turn(&mut self, now: Instant) -> io::Result<Turn> {
        let last = self.now;
        self.now = last.max(now);
        // A turn that did something is followed by the next one at once.
        let took = if self.busy_at == last { self.now.saturating_since(last) } else { Duration::ZERO };
        self.endpoint.on_turn(self.now, took);
        self.crowd.on_turn(self.now);
        let mut trains = self.port.poll()?;
        self.endpoint.set_shared(self.port.is_shared());
        self.receive(trains);
        if self.has_handed_over() {
            trains += self.receive_handed_over();
        }
        if self.has_finished_steps() {
            self.finish_steps();
        }
        self.expire();
        self.hear_calls();
        let active = self.active.len();
        self.act();
        self.transmit()?;
        self.port.flush()?;
        if let Some(refused) = self.port.take_refused() {
            self.hear_refusals(refused);
        }
        self.round.clear();
        Ok(Turn { trains, active })
    }

    /// When the next turn is due if nothing arrives; `None` when nothing is due ever. For loops that poll for readability only.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.next_event().into_iter().chain(self.retry_at()).min()
    }

    /// When to try again to send what waits for room in the data path, for loops that do not poll its descriptors for writability.
    pub fn retry_at(&self) -> Option<Instant> {
        (self.port.awaits_room() > 0).then(|| self.now + HELD_UP)
    }

    /// When the next turn is due if nothing arrives and the data path gets no room.
    fn next_event(&self) -> Option<Instant> {
        if self.has_handed_over() || self.has_finished_steps() || self.active.len() > self.held_up {
            return Some(self.now);
        }
        let expiry = self.wheel.next_expiry();
        if self.held_up == 0 || self.port.awaits_room() > 0 {
            // The port wakes us when it has room.
            return expiry;
        }
        // It does not know when. We look by ourselves, but do not spin.
        let retry = self.now + HELD_UP;
        Some(expiry.map_or(retry, |expiry| expiry.min(retry)))
    }

    fn is_idle(&mut self, turn: &Turn) -> bool {
        if turn.trains > 0 || self.active.len() > self.held_up {
            self.busy_at = self.now;
            return false;
        }
        self.now.saturating_since(self.busy_at) >= self.config.spin
    }

    #[inline]
    fn has_handed_over(&self) -> bool {
        self.hand_off_group.as_ref().is_some_and(HandOffMember::has_handed_over)
    }

    /// The port, and what a train out of its memory may meet.
    #[inline]
    fn receive_context(&mut self) -> (&mut P, ReceiveContext<'_, A>) {
        let Worker {
            port,
            app,
            endpoint,
            server,
            slab,
            active,
            hand_off_group,
            hand_off,
            now,
            holds_trains,
            ..
        } = self;
        let receive_context = ReceiveContext {
            app,
            endpoint,
            server: server.as_ref(),
            slab,
            active,
            hand_off_group: hand_off_group.as_ref(),
            counters: hand_off,
            now: *now,
            holds_trains: *holds_trains,
        };
        (port, receive_context)
    }

    /// The trains that came in.
    #[inline]
    fn receive(&mut self, trains: usize) {
        let (port, mut context) = self.receive_context();
        for index in 0..trains {
            if let Some(addresses) = context.receive(port.train(index), Origin::Port) {
                send_reply(port, context.endpoint.reply(), addresses);
            }
        }
    }

    /// What other workers have handed over. Returns how many trains.
    #[cold]
    fn receive_handed_over(&mut self) -> usize {
        let Some(mut handed_over) = self.hand_off_group.as_mut().map(HandOffMember::take_handed_over) else {
            return 0;
        };
        let trains = handed_over.len();
        let (port, mut context) = self.receive_context();
        for index in 0..trains {
            let train = handed_over.train(index);
            context.counters.handed_in += train.bytes.len().div_ceil(train.segment_size.max(1)) as u64;
            if let Some(addresses) = context.receive(train, Origin::Worker) {
                send_reply(port, context.endpoint.reply(), addresses);
            }
        }
        if let Some(hand_off_group) = &mut self.hand_off_group {
            hand_off_group.put_back(handed_over);
        }
        trains
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
            if !entry.wheel_entries.on_expired(now) {
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

    /// Activates the connections that the application names.
    #[inline]
    fn hear_calls(&mut self) {
        self.app.take_called(self.now, &mut self.called);
        while let Some(handle) = self.called.pop() {
            self.activate(handle);
        }
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

    /// Lets this turn's connections send, sets their timers and removes closed connections.
    fn transmit(&mut self) -> io::Result<()> {
        let round = core::mem::take(&mut self.round);
        self.held_up = 0;
        for &handle in &round {
            let Some(entry) = self.slab.entry_mut(handle) else { continue };
            if !core::mem::replace(&mut entry.is_limited, true) {
                let local = entry.connection.addresses().local.ip();
                entry.connection.limit_packet_size(self.port.largest_payload(local));
            }
            if let Some(span) = self.crowd.count(&mut entry.counted) {
                entry.connection.set_train_span(span);
            }
            // Before the peer hears of new connection IDs: datagrams to an ID that leads nowhere are answered by a reset.
            self.endpoint.update(handle, &mut entry.connection);
            let mut outcome = entry.connection.transmit(self.now, &mut self.port);
            if outcome == Transmitted::SinkFull {
                outcome = go_on_after_flush(self.now, &mut entry.connection, &mut self.port)?;
            }
            match outcome {
                Transmitted::All => self.settle(handle, Instant::ZERO),
                // It goes on in the next turn, after the others and with what has arrived by then.
                Transmitted::Paused => {
                    self.activate(handle);
                    self.settle(handle, Instant::ZERO);
                }
                // The kernel takes no more now; the others wait as well, in order.
                Transmitted::SinkFull => {
                    self.held_up += usize::from(!entry.is_active);
                    self.activate(handle);
                    // Its timers go on. What is overdue because nothing can be sent is no reason to spin.
                    self.settle(handle, self.now + HELD_UP);
                }
            }
        }
        self.round = round;
        Ok(())
    }

    /// Datagrams were longer than the MTU of the interface: tells the connections of this turn that send to those peers. What
    /// leaves in a later turn, because the kernel had no room, is found out by its loss.
    #[cold]
    fn hear_refusals(&mut self, first: Refused) {
        let mut next = Some(first);
        while let Some(refused) = next {
            for place in 0..self.round.len() {
                let Some(&handle) = self.round.get(place) else { continue };
                let Some(entry) = self.slab.entry_mut(handle) else { continue };
                if entry.connection.addresses().peer == refused.peer {
                    entry.connection.on_too_large(self.now, refused.size);
                    self.activate(handle);
                }
            }
            next = self.port.take_refused();
        }
    }

    /// After a connection has acted and sent: its timer, which comes up at `earliest` at the earliest, and its end.
    fn settle(&mut self, handle: Handle, earliest: Instant) {
        let Some(entry) = self.slab.entry_mut(handle) else { return };
        if entry.connection.has_handshake_work()
            && let Some(handshakes) = &mut self.handshakes
            && handshakes.on_work(handle, entry) == Line::Long
        {
            self.endpoint.on_delayed_handshakes(self.now);
        }
        if entry.connection.is_gone() {
            if let Some(entry) = self.slab.remove(handle) {
                self.endpoint.forget(handle);
                if entry.is_in_line
                    && let Some(handshakes) = &mut self.handshakes
                {
                    handshakes.forget(handle);
                }
                self.app.on_gone(self.now, &entry.connection, entry.state);
            }
            return;
        }
        if entry.connection.has_events() && !core::mem::replace(&mut entry.is_active, true) {
            // Sending has made room for a writer, who would else hear of it with the next acknowledgement only.
            self.active.push(handle);
        }
        let deadline = [entry.connection.next_timeout(), entry.app_deadline].into_iter().flatten().min();
        if let Some(at) =
            deadline.and_then(|deadline| entry.wheel_entries.set(self.now, deadline.max(earliest)))
        {
            self.wheel.schedule(at, handle);
        }
    }
}

/// The port's memory is full: goes on when it has been flushed. [`Transmitted::SinkFull`] if that made no room.
#[cold]
fn go_on_after_flush(
    now: Instant,
    connection: &mut Connection,
    port: &mut impl Port,
) -> io::Result<Transmitted> {
    port.flush()?;
    let before = connection.counters().sent_bytes;
    let outcome = connection.transmit(now, port);
    let has_sent = connection.counters().sent_bytes > before;
    // The flush made room, and the next one may as well.
    Ok(if outcome == Transmitted::SinkFull && has_sent { Transmitted::Paused } else { outcome })
}

/// The endpoint's stateless reply: a train of one datagram.
fn send_reply(port: &mut impl Port, reply: &[u8], addresses: Addresses) {
    let path = TrainPath::new(addresses, Ecn::NotEct);
    if reply.is_empty() || port.begin(path, reply.len()).is_none() {
        return;
    }
    port.room().copy_from_slice(reply);
    port.push(reply.len());
    port.end();
}
