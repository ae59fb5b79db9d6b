//! One thread of the load generator over QUIC: its connections are made, kept and replaced, time passes, and in the end there
//! is a record.
//!
//! Connections that fail are tried again, each after a pause that doubles, as long as any has ever worked. A server that is
//! gone is noticed by asking the network (see [`client::probe`]) once nothing has arrived for [`SILENCE`]. Where each request
//! has a connection of its own, a connection is made when its request is due, not before.

use super::connection::{self, LoadConnection};
use super::connection_slots::{ConnectionSlots, Due};
use super::request_app::{RequestApp, SlotEvent};
use crate::accounts::Phase;
use crate::failure::Failure;
use crate::plan::{LoadPlan, Quic, Reuse};
use crate::record::Record;
use crate::run_phase::{CLOSE, EAGER, PhaseChange, RunPhase, TICK, ThreadContext};
use crate::traffic::Traffic;
use base::time::{Duration, Instant};
use client::app::{ClientApp, ClientConnection};
use client::fault::Fault;
use client::probe::{Probe, is_about_address};
use ports::AnyPort;
use std::io;
use std::sync::Arc;
use transport::{Endpoint, EndpointConfig, IncomingPolicy};
use worker::Worker;

/// The network is asked about a server that was silent for so long while something was asked of it.
const SILENCE: Duration = Duration::from_millis(200);

/// One thread's generator.
pub(super) struct Generator<'a> {
    worker: Worker<AnyPort, ClientApp<RequestApp>>,
    plan: LoadPlan,
    quic: Quic,
    run_phase: RunPhase<'a>,
    http: Arc<http3::Config>,
    connection_slots: ConnectionSlots,
    /// Connections that are being made.
    handshakes: usize,
    /// Others wait until fewer are.
    has_waiting: bool,
    /// Which connection an overdue request is offered to first.
    turn_of: usize,
    next_tick: Instant,
    /// When to look at the course again.
    next_look: Instant,
    probe: Option<Probe>,
    /// Datagrams that had arrived when their number last changed, and when that was.
    heard: (u64, Instant),
}

impl<'a> Generator<'a> {
    /// A thread on `port`. `plan` is its share. `seed` must be secret.
    pub(super) fn new(
        port: AnyPort,
        plan: LoadPlan,
        quic: Quic,
        thread_context: ThreadContext<'a>,
        seed: [u8; 32],
    ) -> Generator<'a> {
        let config = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
        let worker_config = worker::Config { spin: quic.spin };
        let handshake_s = quic.config.transport.handshake_timeout.as_millis() / 1_000;
        let request_app = ClientApp(RequestApp::new(&plan, handshake_s));
        let worker = Worker::new(port, request_app, Endpoint::new(config, seed), None, worker_config);
        let now = worker.now();
        Generator {
            connection_slots: ConnectionSlots::new(plan.connections, now),
            worker,
            run_phase: RunPhase::new(plan.rules(), thread_context, now),
            plan,
            quic,
            http: Arc::new(http3::Config::client()),
            handshakes: 0,
            has_waiting: false,
            turn_of: 0,
            next_tick: now,
            next_look: now,
            probe: None,
            heard: (0, now),
        }
    }

    /// Carries out the plan, or as much of it as there is time for.
    ///
    /// # Errors
    /// Only when the port itself has failed.
    pub(super) fn run(mut self) -> io::Result<Record> {
        let outcome = self.turns();
        self.finish();
        outcome?;
        Ok(RunPhase::take_record(&mut self.worker.app_mut().accounts))
    }

    fn turns(&mut self) -> io::Result<()> {
        loop {
            let before = self.worker.now();
            let due = self.worker.app_mut().accounts.budget.next_due_after(before);
            let look = self.next_tick.min(self.next_look);
            self.worker.run_turn(Some(due.map_or(look, |due| due.min(look))))?;
            let now = self.worker.now();
            let has_news = self.hear_news(now);
            if self.plan.reuse == Reuse::Never {
                if has_news || due.is_some() {
                    self.dial(now);
                }
            } else {
                // Not for each that is done: all places are looked at.
                if self.has_waiting && self.handshakes <= self.plan.handshakes / 2 {
                    self.dial(now);
                }
                if due.is_some() {
                    self.offer(now);
                }
            }
            if now >= self.next_tick {
                self.tick(now);
            }
            if has_news || now >= self.next_look {
                let (connection_summary, traffic) =
                    (self.connection_slots.summary(), Traffic::of_port(&self.worker.counters()));
                let accounts = &mut self.worker.app_mut().accounts;
                let turn = self.run_phase.look(now, accounts, connection_summary, traffic);
                self.next_look = self.run_phase.next_look(now, accounts, EAGER);
                if turn == PhaseChange::Begin {
                    self.worker.activate_all();
                    self.dial(now);
                }
            }
            let accounts = &self.worker.app_mut().accounts;
            if self.run_phase.is_over(now, accounts, self.connection_slots.summary()) {
                return Ok(());
            }
        }
    }

    /// An open loop's requests that are due wake connections that have room, in turn.
    fn offer(&mut self, now: Instant) {
        let mut overdue = self.worker.app_mut().accounts.budget.overdue(now);
        for step in 0..self.connection_slots.len() {
            if overdue == 0 {
                return;
            }
            let number = (self.turn_of + step) % self.connection_slots.len();
            let handle = self.connection_slots.handle_if_up(number);
            if let Some((quic, connection)) = handle.and_then(|handle| self.worker.connection(handle))
                && connection.active(quic, now).outstanding() < self.plan.streams
            {
                self.turn_of = number + 1;
                overdue -= 1;
            }
        }
    }

    /// Returns whether there was any.
    #[inline]
    fn hear_news(&mut self, now: Instant) -> bool {
        if self.worker.app_mut().news.is_empty() {
            return false;
        }
        for news in core::mem::take(&mut self.worker.app_mut().news) {
            match news {
                SlotEvent::Up(number) => {
                    self.handshakes -= 1;
                    self.run_phase.on_up(now);
                    self.connection_slots.on_up(number);
                }
                SlotEvent::Down(number, was_up) => {
                    self.handshakes -= usize::from(!was_up);
                    if was_up {
                        self.run_phase.on_down(now);
                    }
                    // A connection for one request is expected to end.
                    let is_usual = was_up && self.plan.reuse == Reuse::Never;
                    let next = if is_usual { Due::At(now) } else { Due::AfterPause(now) };
                    self.connection_slots.on_down(number, was_up, next);
                }
            }
        }
        true
    }

    fn tick(&mut self, now: Instant) {
        self.next_tick = now + TICK;
        self.dial(now);
        self.listen(now);
        self.expire(now);
    }

    /// Makes the connections that are due, as many at a time as the plan permits.
    fn dial(&mut self, now: Instant) {
        self.has_waiting = false;
        for number in 0..self.connection_slots.len() {
            if !self.connection_slots.is_due(number, now, self.run_phase.has_worked()) {
                continue;
            }
            if self.plan.reuse == Reuse::Always && self.handshakes >= self.plan.handshakes {
                self.has_waiting = true;
                return;
            }
            let mut state = LoadConnection::new(number, now);
            state.next_request = self.plan.first_request(number);
            if self.plan.reuse == Reuse::Never {
                let accounts = &mut self.worker.app_mut().accounts;
                let Some(intended) = accounts.peek(now) else { return };
                state.booked = Some(accounts.begin(now, intended));
                state.is_single = true;
                self.worker.app_mut().asking.note(number);
                // Each connection is a new one, so it is the place that takes the requests in turn.
                state.next_request = self.turn_of;
                self.turn_of = self.turn_of.wrapping_add(1);
            }
            let booked = state.booked;
            let state = ClientConnection::new(Arc::clone(&self.http), state, self.plan.streams, now);
            let (config, name) = (&self.quic.config, &self.plan.server_name);
            match self.worker.connect(config, name, self.plan.address, state) {
                Ok(handle) => {
                    self.connection_slots.on_begun(number, handle);
                    self.handshakes += 1;
                }
                Err(error) => {
                    self.connection_slots.on_refused(number);
                    let app = self.worker.app_mut();
                    app.accounts.on_connection_failure(Failure::Tls);
                    app.accounts.on_fault(|| error.to_string());
                    if let Some(times) = booked {
                        app.accounts.on_failure(now, &times, Failure::Tls);
                    }
                }
            }
        }
    }

    /// When something should have arrived and did not, asks the network whether a server is there.
    fn listen(&mut self, now: Instant) {
        let received = self.worker.counters().rx.datagrams;
        let is_asking =
            self.worker.app_mut().accounts.outstanding > 0 || self.connection_slots.is_connecting();
        if received != self.heard.0 || !is_asking {
            (self.heard, self.probe) = ((received, now), None);
            return;
        }
        if now.saturating_since(self.heard.1) < SILENCE {
            return;
        }
        let verdict = match &self.probe {
            Some(probe) => probe.verdict(),
            None => match Probe::send(self.plan.address) {
                Ok(probe) => {
                    self.probe = Some(probe);
                    None
                }
                Err(error) => Some(error),
            },
        };
        if let Some(error) = verdict.filter(|error| is_about_address(error.kind())) {
            let address = self.plan.address;
            let words = || Fault::of_network(address, error.kind()).to_string();
            self.worker.app_mut().accounts.on_fault(words);
            (self.heard, self.probe) = ((received, now), None);
            for handle in self.connection_slots.handles() {
                if let Some((quic, connection)) = self.worker.connection(handle) {
                    connection::give_up(&mut connection.active(quic, now), Failure::Refused);
                }
            }
        }
    }

    /// Fails what is too old.
    fn expire(&mut self, now: Instant) {
        let Generator { worker, connection_slots, plan, .. } = self;
        let mut asking = core::mem::take(&mut worker.app_mut().asking);
        asking.retain(|number| {
            let handle = connection_slots.handle(number);
            let Some((quic, connection)) = handle.and_then(|handle| worker.connection(handle)) else {
                return false;
            };
            connection::on_tick(&mut connection.active(quic, now), plan.timeout)
        });
        worker.app_mut().asking = asking;
    }

    /// The last entries of the record, and the close of connections.
    fn finish(&mut self) {
        let now = self.worker.now();
        let traffic = Traffic::of_port(&self.worker.counters());
        let (mut oldest, mut lost) = (Duration::ZERO, 0);
        for handle in self.connection_slots.handles() {
            let Some((quic, connection)) = self.worker.connection(handle) else { continue };
            let mut active = connection.active(quic, now);
            oldest = oldest.max(connection::oldest(&mut active));
            if !active.is_closed() {
                lost += active.quic.counters().lost_packets;
            }
        }
        let accounts = &mut self.worker.app_mut().accounts;
        accounts.record.lost_packets += lost;
        self.run_phase.finish(now, accounts, oldest, traffic);
        debug_assert_eq!(accounts.phase, Phase::Over);
        for handle in self.connection_slots.handles() {
            if let Some((quic, connection)) = self.worker.connection(handle) {
                connection.active(quic, now).close();
            }
        }
        // Unsent closes do no harm: the server's idle timeout ends those connections.
        let _ = self.worker.run_turn(Some(now + CLOSE));
    }
}
