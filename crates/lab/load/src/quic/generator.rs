//! One thread of the load generator over QUIC: its connections are made, kept and replaced, time passes, and in the end there
//! is a record.
//!
//! Connections that fail are tried again, each after a pause that doubles, as long as any has ever worked. A server that is
//! gone is noticed by asking the network (see [`client::probe`]) once nothing has arrived for [`SILENCE`]. Where each request
//! has a connection of its own, a connection is made when its request is due, not before.

use super::asker::{Asker, News};
use super::lane::{Lane, Standing};
use crate::books::Phase;
use crate::course::{Course, Crowd, PAUSES, Post, TICK, Turn};
use crate::failure::Failure;
use crate::plan::{Plan, Quic, Reuse};
use crate::record::Record;
use crate::traffic::Traffic;
use base::slab::Handle;
use base::time::{Duration, Instant};
use client::dial::{Fault, speaks_of_the_way};
use client::probe::Probe;
use datapath::Port;
use std::io;
use std::sync::Arc;
use transport::{Endpoint, EndpointConfig, IncomingPolicy};
use worker::Worker;

/// How often threads look that wait for each other to begin.
const EAGER: Duration = Duration::from_micros(200);
/// The network is asked about a server that was silent for so long while something was asked of it.
const SILENCE: Duration = Duration::from_millis(200);
/// How long the good-bye may take.
const FAREWELL: Duration = Duration::from_millis(20);

/// The place of a connection, which several may fill one after the other.
#[derive(Clone, Copy, Debug)]
struct Berth {
    handle: Option<Handle>,
    is_up: bool,
    /// Failed once, or worked once.
    is_settled: bool,
    /// Failed when it was last made.
    has_failed: bool,
    retry_at: Option<Instant>,
    pause: Duration,
}

/// One thread's generator.
pub(super) struct Generator<'a, P: Port> {
    worker: Worker<P, Asker>,
    plan: Plan,
    quic: Quic,
    course: Course<'a>,
    http: Arc<http3::Config>,
    berths: Vec<Berth>,
    /// Which connection an overdue request is offered to first.
    turn_of: usize,
    next_tick: Instant,
    /// When to look at the course again.
    next_look: Instant,
    probe: Option<Probe>,
    /// Datagrams that had arrived when their number last changed, and when that was.
    heard: (u64, Instant),
}

impl<'a, P: Port> Generator<'a, P> {
    /// A thread on `port`. `plan` is its share. `seed` must be secret.
    pub(super) fn new(port: P, plan: Plan, quic: Quic, post: Post<'a>, seed: [u8; 32]) -> Generator<'a, P> {
        let config = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
        let worker_config = worker::Config { spin: quic.spin };
        let asker = Asker::new(&plan, quic.config.transport.handshake_timeout.as_millis() / 1_000);
        let worker = Worker::new(port, asker, Endpoint::new(config, seed), None, worker_config);
        let now = worker.now();
        let berth = Berth {
            handle: None,
            is_up: false,
            is_settled: false,
            has_failed: false,
            retry_at: Some(now),
            pause: PAUSES[0],
        };
        Generator {
            berths: vec![berth; plan.connections],
            worker,
            course: Course::new(&plan, post, now),
            plan,
            quic,
            http: Arc::new(http3::Config::client()),
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
        Ok(Course::take_record(&mut self.worker.app_mut().books))
    }

    fn turns(&mut self) -> io::Result<()> {
        loop {
            let before = self.worker.now();
            let due = self.worker.app_mut().books.budget.next_due_after(before);
            let look = self.next_tick.min(self.next_look);
            self.worker.run_turn(Some(due.map_or(look, |due| due.min(look))))?;
            let now = self.worker.now();
            let has_news = self.hear_news(now);
            if self.plan.reuse == Reuse::Never {
                if has_news || due.is_some() {
                    self.dial(now);
                }
            } else if due.is_some() {
                self.offer(now);
            }
            if now >= self.next_tick {
                self.tick(now);
            }
            if has_news || now >= self.next_look {
                let (crowd, traffic) = (self.crowd(), Traffic::of_port(&self.worker.counters()));
                let books = &mut self.worker.app_mut().books;
                let turn = self.course.look(now, books, crowd, traffic);
                self.next_look = self.course.next_look(now, books, EAGER);
                if turn == Turn::Begin {
                    self.worker.activate_all();
                    self.dial(now);
                }
            }
            let is_settling = has_news || now >= self.next_tick || self.plan.reuse == Reuse::Never;
            let crowd = if is_settling { self.crowd() } else { Crowd::default() };
            if self.is_over(now, crowd) {
                return Ok(());
            }
        }
    }

    fn is_over(&mut self, now: Instant, crowd: Crowd) -> bool {
        self.course.is_over(now, &self.worker.app_mut().books, crowd)
    }

    fn crowd(&self) -> Crowd {
        Crowd {
            is_settled: self.berths.iter().all(|berth| berth.is_settled),
            has_up: self.berths.iter().any(|berth| berth.is_up),
            is_under_way: self.berths.iter().any(|berth| berth.handle.is_some()),
            has_failed: self.berths.iter().any(|berth| berth.has_failed),
        }
    }

    /// An open loop's requests that are due wake connections that have room, in turn.
    fn offer(&mut self, now: Instant) {
        let mut overdue = self.worker.app_mut().books.budget.overdue(now);
        for step in 0..self.berths.len() {
            if overdue == 0 {
                return;
            }
            let number = (self.turn_of + step) % self.berths.len();
            let handle = self.berths.get(number).filter(|berth| berth.is_up).and_then(|berth| berth.handle);
            if let Some((_, lane)) = handle.and_then(|handle| self.worker.connection(handle))
                && lane.session.messages.slots.has_room()
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
                News::Up(number) => {
                    self.course.on_up(now);
                    if let Some(berth) = self.berths.get_mut(number) {
                        (berth.is_up, berth.is_settled, berth.pause) = (true, true, PAUSES[0]);
                        berth.has_failed = false;
                    }
                }
                News::Down(number, was_up) => {
                    if was_up {
                        self.course.on_down(now);
                    }
                    if let Some(berth) = self.berths.get_mut(number) {
                        (berth.is_up, berth.is_settled, berth.handle) = (false, true, None);
                        berth.has_failed |= !was_up;
                        // A connection for one request is expected to end.
                        let is_usual = was_up && self.plan.reuse == Reuse::Never;
                        berth.retry_at = Some(if is_usual { now } else { now + berth.pause });
                        berth.pause = (berth.pause * 2).min(PAUSES[1]);
                    }
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

    /// Makes the connections that are due.
    fn dial(&mut self, now: Instant) {
        for number in 0..self.berths.len() {
            // What never worked is tried once.
            let has_hope = self.course.has_worked();
            let is_due = |berth: &&mut Berth| {
                (has_hope || !berth.is_settled) && berth.retry_at.is_some_and(|at| at <= now)
            };
            let Some(berth) = self.berths.get_mut(number).filter(is_due) else { continue };
            let mut lane = Lane::new(number, self.plan.streams, Arc::clone(&self.http), now);
            if self.plan.reuse == Reuse::Never {
                let books = &mut self.worker.app_mut().books;
                let Some(intended) = books.peek(now) else { return };
                lane.booked = Some(books.begin(now, intended));
                // Each connection is a new one, so it is the place that takes the requests in turn.
                lane.next_request = self.turn_of;
                self.turn_of = self.turn_of.wrapping_add(1);
            }
            let booked = lane.booked;
            berth.retry_at = None;
            match self.worker.connect(&self.quic.config, &self.plan.server_name, self.plan.address, lane) {
                Ok(handle) => berth.handle = Some(handle),
                Err(error) => {
                    (berth.is_settled, berth.has_failed) = (true, true);
                    let app = self.worker.app_mut();
                    app.books.on_connection_failure(Failure::Tls);
                    app.books.on_fault(|| error.to_string());
                    if let Some(asked) = booked {
                        app.books.on_failure(now, &asked, Failure::Tls);
                    }
                }
            }
        }
    }

    /// When something should have arrived and did not, asks the network whether anybody is there.
    fn listen(&mut self, now: Instant) {
        let received = self.worker.counters().rx.datagrams;
        let is_asking = self.worker.app_mut().books.outstanding > 0
            || self.berths.iter().any(|berth| berth.handle.is_some() && !berth.is_up);
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
        if let Some(error) = verdict.filter(|error| speaks_of_the_way(error.kind())) {
            let address = self.plan.address;
            let words = || Fault::of_network(address, error.kind()).to_string();
            self.worker.app_mut().books.on_fault(words);
            (self.heard, self.probe) = ((received, now), None);
            for handle in self.berths.iter().filter_map(|berth| berth.handle) {
                if let Some((connection, lane)) = self.worker.connection(handle) {
                    lane.give_up(connection, Failure::Refused, now);
                }
            }
        }
    }

    /// Fails what is too old.
    fn expire(&mut self, now: Instant) {
        if self.worker.app_mut().books.outstanding == 0 {
            return;
        }
        for handle in self.berths.iter().filter_map(|berth| berth.handle) {
            if let Some((connection, lane)) = self.worker.connection(handle) {
                lane.on_tick(connection, now, self.plan.timeout);
            }
        }
    }

    /// The last entries of the record, and the good-bye.
    fn finish(&mut self) {
        let now = self.worker.now();
        let traffic = Traffic::of_port(&self.worker.counters());
        let (mut oldest, mut lost) = (Duration::ZERO, 0);
        for handle in self.berths.iter().filter_map(|berth| berth.handle) {
            let Some((connection, lane)) = self.worker.connection(handle) else { continue };
            oldest = oldest.max(lane.oldest(now));
            if lane.standing != Standing::Down {
                lost += connection.counters().lost_packets;
            }
        }
        let books = &mut self.worker.app_mut().books;
        books.record.lost_packets += lost;
        self.course.finish(now, books, oldest, traffic);
        debug_assert_eq!(books.phase, Phase::Over);
        for handle in self.berths.iter().filter_map(|berth| berth.handle) {
            if let Some((connection, lane)) = self.worker.connection(handle) {
                lane.session.connection.close(connection, now);
            }
        }
        // What is left unsaid hurts nobody: the server's timers end it.
        let _ = self.worker.run_turn(Some(now + FAREWELL));
    }
}
