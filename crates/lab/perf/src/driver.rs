//! One thread of the client: its connections are made, time passes, and in the end there is a record.
//!
//! A connection that ends is not made again, unless handshakes are the task: what is measured is how an implementation
//! performs, and one that loses connections has lost.

use crate::client::{Client, News, Phase};
use crate::lane::ClientConnection;
use crate::plan::{Bound, PerfPlan, Task};
use crate::protocol::NO_ERROR;
use crate::record::Record;
use crate::thread_setup::ThreadSetup;
use base::slab::Handle;
use base::time::{Duration, Instant};
use client::usage::Usage;
use cpu::times::Times;
use datapath::Port;
use load::StartBarrier;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use transport::{Endpoint, EndpointConfig, IncomingPolicy};
use worker::Worker;

/// How often the clock, the other threads and the order to stop are looked at.
const TICK: Duration = Duration::from_millis(50);
/// The same while threads wait for each other to begin.
const START_TICK: Duration = Duration::from_micros(200);
/// How long the close may take.
const FAREWELL: Duration = Duration::from_millis(20);

/// The place of a connection, which several fill one after the other where handshakes are the task.
#[derive(Clone, Copy, Debug)]
struct ConnectionSlot {
    handle: Option<Handle>,
    /// Its handshake has succeeded, or failed.
    is_settled: bool,
    is_up: bool,
}

/// One thread's client.
pub(crate) struct Driver<P: Port> {
    worker: Worker<P, Client>,
    plan: PerfPlan,
    connection_slots: Vec<ConnectionSlot>,
    /// Berths that wait for a connection.
    empty: Vec<usize>,
    arrived: bool,
    next_tick: Instant,
    /// At the beginning of measuring.
    before: (Times, Usage),
}

impl<P: Port> Driver<P> {
    /// Thread `index` of `threads`. `plan` is that of all threads together.
    pub(crate) fn new(
        thread_setup: ThreadSetup<P>,
        plan: &PerfPlan,
        (index, threads): (usize, usize),
    ) -> Driver<P> {
        let plan = plan.share(index, threads);
        let mut config = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
        if thread_setup.member.is_some() {
            config.worker = u8::try_from(index).unwrap_or(u8::MAX);
            config.workers = u8::try_from(threads).unwrap_or(u8::MAX);
        }
        let endpoint = Endpoint::new(config, thread_setup.seed);
        let worker_config = worker::Config { spin: plan.spin };
        let mut worker = Worker::new(thread_setup.port, Client::new(&plan), endpoint, None, worker_config);
        if let Some(member) = thread_setup.member {
            worker = worker.with_hand_off(member);
        }
        let now = worker.now();
        Driver {
            connection_slots: vec![
                ConnectionSlot { handle: None, is_settled: false, is_up: false };
                plan.connections
            ],
            empty: (0..plan.connections).rev().collect(),
            worker,
            plan,
            arrived: false,
            next_tick: now,
            before: (Times::default(), Usage::default()),
        }
    }

    /// Carries out the plan, or as much of it as there is time for until `stop` is set.
    ///
    /// # Errors
    /// Only when the port itself has failed.
    pub(crate) fn run(mut self, gathering: &StartBarrier, stop: &AtomicBool) -> io::Result<Record> {
        let outcome = self.turns(gathering, stop);
        if !self.arrived {
            // The others must not wait for a thread that will never be ready.
            gathering.arrive(self.worker.now());
        }
        self.finish(gathering);
        outcome?;
        Ok(core::mem::take(&mut self.worker.app_mut().record))
    }

    fn turns(&mut self, gathering: &StartBarrier, stop: &AtomicBool) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.worker.run_turn(Some(self.next_tick))?;
            let now = self.worker.now();
            self.hear_news(now);
            if now >= self.next_tick {
                self.tick(now, gathering);
            }
            if self.is_over(now) {
                break;
            }
        }
        Ok(())
    }

    fn is_handshaking(&self) -> bool {
        self.plan.task == Task::Handshakes
    }

    #[inline]
    fn hear_news(&mut self, now: Instant) {
        if self.worker.app_mut().news.is_empty() {
            return;
        }
        let mut news = core::mem::take(&mut self.worker.app_mut().news);
        let is_handshaking = self.is_handshaking();
        for news in news.drain(..) {
            let (News::Up(number) | News::Down(number)) = news;
            let Some(berth) = self.connection_slots.get_mut(number) else { continue };
            berth.is_settled = true;
            berth.is_up = matches!(news, News::Up(_));
            if matches!(news, News::Down(_)) {
                berth.handle = None;
                if is_handshaking {
                    self.empty.push(number);
                }
            }
        }
        self.worker.app_mut().news = news;
        if is_handshaking {
            self.dial(now);
        } else {
            // A thread that waits for the others to be ready looks at once.
            self.next_tick = now;
        }
    }

    fn tick(&mut self, now: Instant, gathering: &StartBarrier) {
        self.next_tick = now + TICK;
        self.dial(now);
        if self.worker.app_mut().phase == Phase::Gathering {
            let is_ready =
                self.is_handshaking() || self.connection_slots.iter().all(|berth| berth.is_settled);
            if is_ready && !self.arrived {
                self.arrived = true;
                gathering.arrive(now);
            }
            if self.arrived {
                self.next_tick = now + START_TICK;
            }
        }
        self.advance(now, gathering);
    }

    /// Into the next phase, if its time has come.
    fn advance(&mut self, now: Instant, gathering: &StartBarrier) {
        let Some(start) = gathering.start() else { return };
        let measure = start + self.plan.warm_up;
        let app = self.worker.app_mut();
        if app.phase == Phase::Gathering && now < measure {
            (app.phase, app.budget) = (Phase::WarmUp, u64::MAX);
            self.worker.activate_all();
            self.dial(now);
        }
        if matches!(self.worker.app_mut().phase, Phase::Gathering | Phase::WarmUp) {
            if now >= measure {
                self.begin_measuring(now, gathering);
            } else {
                self.next_tick = self.next_tick.min(measure);
            }
        }
        if let Some(end) = self.end() {
            self.next_tick = self.next_tick.min(end);
        }
    }

    fn begin_measuring(&mut self, now: Instant, gathering: &StartBarrier) {
        gathering.on_measuring();
        self.before = (Times::of_this_thread(), Usage::now(&self.worker.counters()));
        let budget = match self.plan.bound {
            Bound::Count(count) => count,
            Bound::Span(_) => u64::MAX,
        };
        let app = self.worker.app_mut();
        (app.phase, app.budget) = (Phase::Measuring, budget);
        (app.record.began, app.record.ended, app.last_answer) = (now, now, now);
        self.worker.activate_all();
        self.dial(now);
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
        let is_handshaking = self.is_handshaking();
        let app = self.worker.app_mut();
        let has_begun = !matches!(app.phase, Phase::Gathering);
        if app.phase == Phase::Measuring {
            let is_done = match self.plan.bound {
                Bound::Count(_) => app.budget == 0 && app.outstanding == 0,
                Bound::Span(span) => now >= app.record.began + span,
            };
            if is_done {
                return true;
            }
        }
        // Handshakes that never succeed are not tried for ever, and exchanges need a connection.
        let is_hopeless = match is_handshaking {
            true => app.record.unconnected > 0 && app.record.completed == 0,
            false => self.arrived && self.connection_slots.iter().all(|berth| !berth.is_up),
        };
        has_begun && is_hopeless
    }

    /// Makes the connections that are missing.
    #[inline]
    fn dial(&mut self, now: Instant) {
        let is_handshaking = self.is_handshaking();
        while let Some(&number) = self.empty.last() {
            if is_handshaking && self.worker.app_mut().budget == 0 {
                return;
            }
            self.empty.pop();
            let mut lane = ClientConnection::new(number, self.plan.outstanding, now);
            lane.is_counted = self.worker.app_mut().phase == Phase::Measuring;
            let made = self.worker.connect(&self.plan.quic, &self.plan.server_name, self.plan.address, lane);
            let Some(berth) = self.connection_slots.get_mut(number) else { continue };
            let app = self.worker.app_mut();
            match made {
                Ok(handle) => {
                    berth.handle = Some(handle);
                    if is_handshaking {
                        app.budget -= 1;
                        app.outstanding += 1;
                    }
                }
                Err(error) => {
                    berth.is_settled = true;
                    app.record.unconnected += 1;
                    app.record.first_fault.get_or_insert_with(|| error.to_string());
                }
            }
        }
    }

    /// The last entries of the record, and the close of connections.
    fn finish(&mut self, gathering: &StartBarrier) {
        let now = self.worker.now();
        if self.worker.app_mut().phase == Phase::Measuring {
            gathering.on_done();
            let (times, usage) = (Times::of_this_thread(), Usage::now(&self.worker.counters()));
            let record = &mut self.worker.app_mut().record;
            (record.times, record.usage) = (times.since(&self.before.0), usage.since(&self.before.1));
        }
        let app = self.worker.app_mut();
        app.phase = Phase::Over;
        app.record.unfinished = app.outstanding as u64;
        app.record.ended = match self.plan.bound {
            Bound::Count(_) => app.last_answer,
            Bound::Span(_) => now,
        };
        let elapsed = app.record.elapsed().as_secs_f64();
        if elapsed > 0.0 {
            app.record.busiest = [app.record.times.cpu_s / elapsed, app.record.times.waited_s / elapsed];
        }
        for handle in self.connection_slots.iter().filter_map(|berth| berth.handle) {
            let Some((connection, _)) = self.worker.connection(handle) else { continue };
            connection.close(now, NO_ERROR, b"");
            let (lost, size, rtt) =
                (connection.counters().lost_packets, connection.packet_size(), connection.rtt());
            let record = &mut self.worker.app_mut().record;
            record.lost_packets += lost;
            record.packet_size = record.packet_size.max(size);
            record.rtt = record.rtt.max(rtt);
        }
        // Unsent closes do no harm: the server's idle timeout ends those connections.
        let _ = self.worker.run_turn(Some(now + FAREWELL));
    }
}
