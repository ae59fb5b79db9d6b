//! One thread of the load generator: its connections are made, kept and replaced, time passes, and in the end there is a
//! record.
//!
//! Connections that fail are tried again, each after a pause that doubles, as long as any has ever worked; after
//! [`PATIENCE`] without a single one the thread gives up. A server that is gone is noticed by asking the network (see
//! [`crate::probe`]) once nothing has arrived for [`SILENCE`].

use super::asker::{Asker, News, Phase};
use super::budget::Budget;
use super::failure::Failure;
use super::lane::{Lane, Standing};
use super::plan::{Bound, Plan};
use super::record::Record;
use super::stage::Stage;
use super::times::Times;
use crate::dial::{Fault, speaks_of_the_way};
use crate::probe::Probe;
use crate::usage::Usage;
use base::slab::Handle;
use base::time::{Duration, Instant};
use datapath::Port;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use transport::{Endpoint, EndpointConfig, IncomingPolicy};
use worker::Worker;

/// How often deadlines, progress and the other threads are looked at.
const TICK: Duration = Duration::from_millis(50);
/// The same while threads wait for each other to begin.
const START_TICK: Duration = Duration::from_micros(200);
/// The network is asked about a server that was silent for so long while something was asked of it.
const SILENCE: Duration = Duration::from_millis(200);
/// So long without any connection, the thread gives up.
const PATIENCE: Duration = Duration::from_secs(3);
/// The pause before a failed connection is made again, at first and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// How long the good-bye may take.
const FAREWELL: Duration = Duration::from_millis(20);
/// How often progress is shown.
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// The place of a connection, which several may fill one after the other.
#[derive(Clone, Copy, Debug)]
struct Berth {
    handle: Option<Handle>,
    is_up: bool,
    /// Failed once, or worked once.
    is_settled: bool,
    retry_at: Option<Instant>,
    pause: Duration,
}

/// One thread's generator.
pub struct Generator<P: Port> {
    worker: Worker<P, Asker>,
    plan: Plan,
    index: usize,
    http: Arc<http3::Config>,
    berths: Vec<Berth>,
    /// Which connection an overdue request is offered to first.
    turn_of: usize,
    has_worked: bool,
    /// When a connection last was up.
    up_at: Instant,
    arrived: bool,
    next_tick: Instant,
    next_show: Instant,
    probe: Option<Probe>,
    /// Datagrams that had arrived when their number last changed, and when that was.
    heard: (u64, Instant),
    /// At the beginning of measuring.
    before: (Times, Usage),
}

impl<P: Port> Generator<P> {
    /// Thread `index` of `threads`, on `port`. `plan` is that of all threads together. `seed` must be secret.
    pub fn new(port: P, plan: &Plan, (index, threads): (usize, usize), seed: [u8; 32]) -> Generator<P> {
        let plan = plan.share(index, threads);
        let config = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
        let worker_config = worker::Config { spin: plan.spin };
        let worker = Worker::new(port, Asker::new(&plan), Endpoint::new(config, seed), None, worker_config);
        let now = worker.now();
        let berth =
            Berth { handle: None, is_up: false, is_settled: false, retry_at: Some(now), pause: PAUSES[0] };
        Generator {
            berths: vec![berth; plan.connections],
            worker,
            plan,
            index,
            http: Arc::new(http3::Config::client()),
            turn_of: 0,
            has_worked: false,
            up_at: now,
            arrived: false,
            next_tick: now,
            next_show: now,
            probe: None,
            heard: (0, now),
            before: (Times::default(), Usage::default()),
        }
    }

    /// Carries out the plan, or as much of it as there is time for until `stop` is set.
    ///
    /// # Errors
    /// Only when the port itself has failed.
    pub fn run(mut self, stage: &Stage, stop: &AtomicBool) -> io::Result<Record> {
        let outcome = self.turns(stage, stop);
        if !self.arrived {
            // The others must not wait for a thread that will never be ready.
            stage.arrive(self.worker.now());
        }
        self.finish(stage);
        outcome?;
        Ok(core::mem::replace(&mut self.worker.app_mut().record, Record::new()))
    }

    fn turns(&mut self, stage: &Stage, stop: &AtomicBool) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let due = self.worker.app_mut().budget.next_due();
            let until = due.map_or(self.next_tick, |due| due.min(self.next_tick));
            self.worker.run_turn(Some(until))?;
            let now = self.worker.now();
            self.hear_news(now);
            if due.is_some() {
                self.offer(now);
            }
            if now >= self.next_tick {
                self.tick(now, stage);
            }
            if self.is_over(now) {
                break;
            }
        }
        Ok(())
    }

    /// An open loop's requests that are due wake connections that have room, in turn.
    fn offer(&mut self, now: Instant) {
        let mut overdue = self.worker.app_mut().budget.overdue(now);
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

    #[inline]
    fn hear_news(&mut self, now: Instant) {
        if self.worker.app_mut().news.is_empty() {
            return;
        }
        for news in core::mem::take(&mut self.worker.app_mut().news) {
            match news {
                News::Up(number) => {
                    self.has_worked = true;
                    if let Some(berth) = self.berths.get_mut(number) {
                        (berth.is_up, berth.is_settled, berth.pause) = (true, true, PAUSES[0]);
                    }
                }
                News::Down(number, was_up) => {
                    if was_up {
                        self.up_at = now;
                    }
                    if let Some(berth) = self.berths.get_mut(number) {
                        (berth.is_up, berth.is_settled, berth.handle) = (false, true, None);
                        berth.retry_at = Some(now + berth.pause);
                        berth.pause = (berth.pause * 2).min(PAUSES[1]);
                    }
                }
            }
        }
        // Whoever waits for the others to be ready looks at once.
        self.next_tick = now;
    }

    fn tick(&mut self, now: Instant, stage: &Stage) {
        if self.berths.iter().any(|berth| berth.is_up) {
            self.up_at = now;
        }
        self.dial(now);
        self.listen(now);
        self.expire(now);
        self.next_tick = now + TICK;
        match self.worker.app_mut().phase {
            Phase::Gathering => self.gather(now, stage),
            Phase::WarmUp => {}
            Phase::Measuring if now >= self.next_show => {
                self.next_show = now + SHOW_EVERY;
                stage.show(self.index, &self.worker.app_mut().record);
            }
            Phase::Measuring | Phase::Over => {}
        }
        self.advance(now, stage);
    }

    fn gather(&mut self, now: Instant, stage: &Stage) {
        if !self.arrived && self.berths.iter().all(|berth| berth.is_settled) {
            self.arrived = true;
            stage.arrive(now);
        }
        if self.arrived {
            self.next_tick = now + START_TICK;
        }
    }

    /// Into the next phase, if its time has come.
    fn advance(&mut self, now: Instant, stage: &Stage) {
        let Some(start) = stage.start() else { return };
        let measure = start + self.plan.warm_up;
        let phase = self.worker.app_mut().phase;
        if phase == Phase::Gathering && now < measure {
            let app = self.worker.app_mut();
            (app.phase, app.budget) = (Phase::WarmUp, Budget::new(u64::MAX, self.plan.pace, now));
            self.worker.activate_all();
        }
        if matches!(phase, Phase::Gathering | Phase::WarmUp) {
            if now >= measure {
                self.begin_measuring(now, stage);
            } else {
                self.next_tick = self.next_tick.min(measure);
            }
        }
        if let Some(end) = self.end() {
            self.next_tick = self.next_tick.min(end);
        }
    }

    fn begin_measuring(&mut self, now: Instant, stage: &Stage) {
        stage.on_measuring();
        self.before = (Times::of_this_thread(), Usage::now(&self.worker.counters()));
        let count = match self.plan.bound {
            Bound::Requests(count) => count,
            Bound::Span(_) => u64::MAX,
        };
        let app = self.worker.app_mut();
        app.phase = Phase::Measuring;
        app.budget = Budget::new(count, self.plan.pace, now);
        (app.record.began, app.record.ended, app.last_answer) = (now, now, now);
        self.worker.activate_all();
    }

    /// When a span of time is over.
    fn end(&mut self) -> Option<Instant> {
        let app = self.worker.app_mut();
        match self.plan.bound {
            Bound::Span(span) if app.phase == Phase::Measuring => Some(app.record.began + span),
            _ => None,
        }
    }

    fn is_over(&mut self, now: Instant) -> bool {
        let app = self.worker.app_mut();
        if app.phase == Phase::Measuring {
            let is_done = match self.plan.bound {
                Bound::Requests(_) => app.budget.left() == 0 && app.outstanding == 0,
                Bound::Span(span) => now >= app.record.began + span,
            };
            if is_done {
                return true;
            }
        }
        // Not before the others are ready too: they may have a connection.
        let is_hopeless = !self.has_worked && app.phase != Phase::Gathering;
        is_hopeless || now.saturating_since(self.up_at) >= PATIENCE && self.has_worked
    }

    /// Makes the connections that are due.
    fn dial(&mut self, now: Instant) {
        let has_worked = self.has_worked;
        for number in 0..self.berths.len() {
            // What never worked is tried once.
            let is_due = |berth: &&mut Berth| {
                (has_worked || !berth.is_settled) && berth.retry_at.is_some_and(|at| at <= now)
            };
            let Some(berth) = self.berths.get_mut(number).filter(is_due) else { continue };
            berth.retry_at = None;
            let lane = Lane::new(number, self.plan.streams, Arc::clone(&self.http), now);
            match self.worker.connect(&self.plan.quic, &self.plan.server_name, self.plan.address, lane) {
                Ok(handle) => berth.handle = Some(handle),
                Err(error) => {
                    berth.is_settled = true;
                    let record = &mut self.worker.app_mut().record;
                    record.connection_failures.add(Failure::Tls, 1);
                    record.first_fault.get_or_insert_with(|| error.to_string());
                }
            }
        }
    }

    /// When something should have arrived and did not, asks the network whether anybody is there.
    fn listen(&mut self, now: Instant) {
        let received = self.worker.counters().rx.datagrams;
        let is_asking = self.worker.app_mut().outstanding > 0
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
            let words = Fault::of_network(self.plan.address, error.kind()).to_string();
            self.worker.app_mut().record.first_fault.get_or_insert(words);
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
        if self.worker.app_mut().outstanding == 0 {
            return;
        }
        for handle in self.berths.iter().filter_map(|berth| berth.handle) {
            if let Some((connection, lane)) = self.worker.connection(handle) {
                lane.on_tick(connection, now, self.plan.timeout);
            }
        }
    }

    /// The last entries of the record, and the good-bye.
    fn finish(&mut self, stage: &Stage) {
        let now = self.worker.now();
        let measured = self.worker.app_mut().phase == Phase::Measuring;
        if measured {
            stage.on_done();
            let (times, usage) = (Times::of_this_thread(), Usage::now(&self.worker.counters()));
            let record = &mut self.worker.app_mut().record;
            (record.times, record.usage) = (times.since(&self.before.0), usage.since(&self.before.1));
        }
        self.worker.app_mut().phase = Phase::Over;
        let mut oldest = Duration::ZERO;
        for handle in self.berths.iter().filter_map(|berth| berth.handle) {
            let Some((connection, lane)) = self.worker.connection(handle) else { continue };
            let waited = lane.session.messages.slots.iter().map(|slot| now.saturating_since(slot.intended));
            oldest = waited.max().unwrap_or(Duration::ZERO).max(oldest);
            let lost = if lane.standing == Standing::Down { 0 } else { connection.counters().lost_packets };
            lane.session.connection.close(connection, now);
            self.worker.app_mut().record.lost_packets += lost;
        }
        let bound = self.plan.bound;
        let app = self.worker.app_mut();
        let overdue = app.budget.overdue(now);
        if overdue > 0 {
            oldest = app.budget.next_due().map_or(oldest, |due| now.saturating_since(due).max(oldest));
        }
        app.record.oldest_unfinished = oldest;
        app.record.unfinished = app.outstanding as u64;
        match bound {
            Bound::Requests(count) => {
                app.record.not_begun = if measured { app.budget.left() } else { count };
                app.record.ended = app.last_answer;
            }
            Bound::Span(_) => {
                app.record.unfinished += overdue;
                app.record.ended = now;
            }
        }
        let elapsed = app.record.elapsed().as_secs_f64();
        if elapsed > 0.0 {
            app.record.busiest = [app.record.times.cpu_s / elapsed, app.record.times.waited_s / elapsed];
        }
        stage.show(self.index, &app.record);
        // What is left unsaid hurts nobody: the server's timers end it.
        let _ = self.worker.run_turn(Some(now + FAREWELL));
    }
}
