//! One thread of the perf client: its connections are made, time passes, and in the end there is a record.
//!
//! A connection that ends is not made again, unless handshakes are the task: what is measured is how an implementation
//! performs, and one that loses connections has lost.

use super::app::{News, PerfApp};
use super::connection::ClientConnection;
use super::plan::{PerfPlan, Task};
use super::protocol::NO_ERROR;
use super::thread_setup::ThreadSetup;
use crate::accounts::Phase;
use crate::failure::Failure;
use crate::record::Record;
use crate::run_phase::{CLOSE, ConnectionSummary, EAGER, PhaseChange, RunPhase, ThreadContext};
use crate::traffic::Traffic;
use base::slab::Handle;
use base::time::{Duration, Instant};
use ports::AnyPort;
use std::io;
use transport::{Endpoint, EndpointConfig, IncomingPolicy};
use worker::Worker;

/// The place of a connection, which several fill one after the other where handshakes are the task.
#[derive(Clone, Copy, Debug)]
struct ConnectionSlot {
    handle: Option<Handle>,
    /// Its handshake has succeeded, or failed.
    is_settled: bool,
    is_up: bool,
}

/// One thread's client.
pub(super) struct Driver<'a> {
    worker: Worker<AnyPort, PerfApp>,
    plan: PerfPlan,
    run_phase: RunPhase<'a>,
    connection_slots: Vec<ConnectionSlot>,
    /// Slots that wait for a connection.
    empty: Vec<usize>,
    /// Connections that are being made for the first time in their slot.
    unsettled: usize,
    next_look: Instant,
}

impl<'a> Driver<'a> {
    /// A thread's driver. `plan` is that of all threads together.
    pub(super) fn new(
        thread_setup: ThreadSetup,
        plan: &PerfPlan,
        thread_context: ThreadContext<'a>,
    ) -> Driver<'a> {
        let (index, threads) = (thread_context.index, thread_context.threads);
        let plan = plan.share(index, threads);
        let mut config = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
        if thread_setup.member.is_some() {
            config.worker = u8::try_from(index).unwrap_or(u8::MAX);
            config.workers = u8::try_from(threads).unwrap_or(u8::MAX);
        }
        let endpoint = Endpoint::new(config, thread_setup.seed);
        let worker_config = worker::Config { spin: plan.spin };
        let mut worker = Worker::new(thread_setup.port, PerfApp::new(&plan), endpoint, None, worker_config);
        if let Some(member) = thread_setup.member {
            worker = worker.with_hand_off(member);
        }
        let now = worker.now();
        let slot = ConnectionSlot { handle: None, is_settled: false, is_up: false };
        Driver {
            connection_slots: vec![slot; plan.connections],
            empty: (0..plan.connections).rev().collect(),
            unsettled: 0,
            worker,
            run_phase: RunPhase::new(plan.rules(), thread_context, now),
            plan,
            next_look: now,
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
            self.worker.run_turn(Some(self.next_look))?;
            let now = self.worker.now();
            self.hear_news(now);
            if now >= self.next_look {
                self.look(now);
            }
            if self.is_over(now) {
                return Ok(());
            }
        }
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
            let Some(slot) = self.connection_slots.get_mut(number) else { continue };
            if !core::mem::replace(&mut slot.is_settled, true) {
                self.unsettled -= 1;
            }
            slot.is_up = matches!(news, News::Up(_));
            if slot.is_up {
                self.run_phase.on_up(now);
            } else {
                slot.handle = None;
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
            self.next_look = now;
        }
    }

    /// What the connections are like. Handshakes that fail are counted, and end no run.
    fn summary(&self) -> ConnectionSummary {
        ConnectionSummary {
            is_settled: self.connection_slots.iter().all(|slot| slot.is_settled),
            has_up: self.connection_slots.iter().any(|slot| slot.is_up),
            is_under_way: self.connection_slots.iter().any(|slot| slot.handle.is_some()),
            has_failed: false,
        }
    }

    fn look(&mut self, now: Instant) {
        if !self.is_handshaking() {
            self.dial(now);
        }
        let (summary, traffic) = (self.summary(), Traffic::of_port(&self.worker.counters()));
        let accounts = &mut self.worker.app_mut().accounts;
        let change = self.run_phase.look(now, accounts, summary, traffic);
        self.next_look = self.run_phase.next_look(now, accounts, EAGER);
        if change == PhaseChange::Begin {
            self.worker.activate_all();
            self.dial(now);
        }
    }

    fn is_over(&mut self, now: Instant) -> bool {
        let has_up = self.connection_slots.iter().any(|slot| slot.is_up);
        let is_handshaking = self.is_handshaking();
        let accounts = &self.worker.app_mut().accounts;
        let record = &accounts.record;
        // Handshakes that never succeed are not tried for ever, and exchanges need a connection.
        let is_hopeless = match is_handshaking {
            true => record.connection_failures.total() > 0 && record.succeeded == 0,
            false => !has_up,
        };
        let has_begun = accounts.phase != Phase::Connecting;
        let summary = ConnectionSummary { has_up, is_under_way: true, ..ConnectionSummary::default() };
        (has_begun && is_hopeless) || self.run_phase.is_over(now, accounts, summary)
    }

    /// Makes the connections that are missing, as many at a time as the plan permits.
    #[inline]
    fn dial(&mut self, now: Instant) {
        let is_handshaking = self.is_handshaking();
        while let Some(&number) = self.empty.last() {
            if !is_handshaking && self.unsettled >= self.plan.handshakes {
                return;
            }
            let accounts = &mut self.worker.app_mut().accounts;
            let mut state = ClientConnection::new(number, self.plan.outstanding, now);
            if is_handshaking {
                let Some(intended) = accounts.peek(now) else { return };
                state.booked = Some(accounts.begin(now, intended));
            }
            self.empty.pop();
            let booked = state.booked;
            let made = self.worker.connect(&self.plan.quic, &self.plan.server_name, self.plan.address, state);
            let Some(slot) = self.connection_slots.get_mut(number) else { continue };
            match made {
                Ok(handle) => {
                    slot.handle = Some(handle);
                    self.unsettled += usize::from(!slot.is_settled);
                }
                Err(error) => {
                    slot.is_settled = true;
                    let accounts = &mut self.worker.app_mut().accounts;
                    accounts.on_connection_failure(Failure::Tls);
                    accounts.on_fault(|| error.to_string());
                    if let Some(times) = booked {
                        accounts.on_failure(now, &times, Failure::Tls);
                    }
                }
            }
        }
    }

    /// The last entries of the record, and the close of connections.
    fn finish(&mut self) {
        let now = self.worker.now();
        let traffic = Traffic::of_port(&self.worker.counters());
        let accounts = &mut self.worker.app_mut().accounts;
        self.run_phase.finish(now, accounts, Duration::ZERO, traffic);
        for handle in self.connection_slots.iter().filter_map(|slot| slot.handle) {
            let Some((connection, _)) = self.worker.connection(handle) else { continue };
            connection.close(now, NO_ERROR, b"");
            let (lost, size, rtt) =
                (connection.counters().lost_packets, connection.packet_size(), connection.rtt());
            let record = &mut self.worker.app_mut().accounts.record;
            record.lost_packets += lost;
            record.packet_size = record.packet_size.max(size);
            record.rtt = record.rtt.max(rtt);
        }
        // Unsent closes do no harm: the server's idle timeout ends those connections.
        let _ = self.worker.run_turn(Some(now + CLOSE));
    }
}
