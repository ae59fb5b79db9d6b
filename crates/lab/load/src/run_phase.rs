//! The course of a run as one thread sees it: gather connections, wait for the other threads, warm up, measure, end.
//!
//! The thread says what its connections are like ([`ConnectionSummary`]) and how late it is; from here it hears when to begin, and when
//! it is over. What the connections speak makes no difference.

use super::accounts::{Phase, RequestAccounts};
use super::budget::Budget;
use super::plan::{Bound, Reuse, RunRules};
use super::record::Record;
use super::run_state::RunState;
use super::traffic::Traffic;
use base::time::{Duration, Instant};
use cpu::times::Times;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often deadlines, progress and the other threads are looked at.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// How often threads look that wait for each other to begin.
pub(super) const EAGER: Duration = Duration::from_micros(200);
/// How long the close of connections may take.
pub(super) const CLOSE: Duration = Duration::from_millis(20);
/// So long without any connection, the thread gives up.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often progress is shown.
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// The pause before a failed connection is made again, at first and at most.
pub(super) const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// A thread's place among the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadContext<'a> {
    pub(super) index: usize,
    pub(super) threads: usize,
    pub(super) run_state: &'a RunState,
    /// Set when everybody has to stop.
    pub(super) halt: &'a AtomicBool,
}

/// What the connections of a thread are like.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnectionSummary {
    /// Every one has worked or failed.
    pub(super) is_settled: bool,
    /// One of them takes requests.
    pub(super) has_up: bool,
    /// One of them is being made or takes requests.
    pub(super) is_under_way: bool,
    /// One of them failed when it was last made.
    pub(super) has_failed: bool,
}

/// What a thread has to do after it looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhaseChange {
    /// Go on.
    Same,
    /// Requests may begin now: all connections have to look.
    Begin,
}

/// One thread's course.
pub(super) struct RunPhase<'a> {
    thread_context: ThreadContext<'a>,
    rules: RunRules,
    arrived: bool,
    has_worked: bool,
    /// When a connection last was up.
    up_at: Instant,
    next_show: Instant,
    /// At the beginning of measuring.
    before: (Times, Traffic),
}

impl<'a> RunPhase<'a> {
    /// `rules` are of the thread's share.
    pub(super) fn new(rules: RunRules, thread_context: ThreadContext<'a>, now: Instant) -> RunPhase<'a> {
        RunPhase {
            thread_context,
            rules,
            arrived: false,
            has_worked: false,
            up_at: now,
            next_show: now,
            before: (Times::default(), Traffic::default()),
        }
    }

    /// Whether any connection has ever been made.
    pub(super) fn has_worked(&self) -> bool {
        self.has_worked
    }

    /// A connection takes requests.
    pub(super) fn on_up(&mut self, now: Instant) {
        (self.has_worked, self.up_at) = (true, now);
    }

    /// A connection that took requests is over.
    pub(super) fn on_down(&mut self, now: Instant) {
        self.up_at = now;
    }

    /// Time has passed, or something happened: into the next phase, if it is there. `traffic` is what was counted so far.
    pub(super) fn look(
        &mut self,
        now: Instant,
        accounts: &mut RequestAccounts,
        connection_summary: ConnectionSummary,
        traffic: Traffic,
    ) -> PhaseChange {
        let is_resting = self.rules.reuse == Reuse::Never && !connection_summary.has_failed;
        if connection_summary.has_up || is_resting {
            self.up_at = now;
        }
        match accounts.phase {
            Phase::Connecting
                if !self.arrived && (connection_summary.is_settled || self.rules.reuse == Reuse::Never) =>
            {
                self.arrived = true;
                self.thread_context.run_state.start_barrier.arrive(now);
            }
            Phase::Measuring if now >= self.next_show => {
                self.next_show = now + SHOW_EVERY;
                self.thread_context
                    .run_state
                    .show(self.thread_context.index, || accounts.record.without_series());
            }
            _ => {}
        }
        let Some(start) = self.thread_context.run_state.start_barrier.start() else {
            return PhaseChange::Same;
        };
        let measure = start + self.rules.warm_up;
        match accounts.phase {
            // Without a warm-up a thread whose clock was read before the others were ready looks once more.
            Phase::Connecting if now < measure && !self.rules.warm_up.is_zero() => {
                (accounts.phase, accounts.budget) =
                    (Phase::WarmUp, Budget::new(u64::MAX, self.rules.pace, now));
                PhaseChange::Begin
            }
            Phase::Connecting | Phase::WarmUp if now >= measure => {
                self.thread_context.run_state.start_barrier.on_measuring();
                self.before = (Times::of_this_thread(), traffic);
                let count = match self.rules.bound {
                    Bound::Requests(count) => count,
                    Bound::Span(_) => u64::MAX,
                };
                (accounts.phase, accounts.budget) =
                    (Phase::Measuring, Budget::new(count, self.rules.pace, now));
                (accounts.record.began, accounts.record.ended, accounts.last_answer) = (now, now, now);
                PhaseChange::Begin
            }
            _ => PhaseChange::Same,
        }
    }

    /// When to look again if nothing happens before. While threads wait for each other they look every `eager`.
    pub(super) fn next_look(&self, now: Instant, accounts: &RequestAccounts, eager: Duration) -> Instant {
        let tick = now + TICK;
        match (accounts.phase, self.thread_context.run_state.start_barrier.start()) {
            (Phase::Connecting, _) if self.arrived => now + eager,
            (Phase::WarmUp, Some(start)) => tick.min(start + self.rules.warm_up),
            (Phase::Measuring, _) => match self.rules.bound {
                Bound::Span(span) => tick.min(accounts.record.began + span),
                Bound::Requests(_) => tick,
            },
            _ => tick,
        }
    }

    /// Whether there is nothing more to do, or no hope of it.
    pub(super) fn is_over(
        &self,
        now: Instant,
        accounts: &RequestAccounts,
        connection_summary: ConnectionSummary,
    ) -> bool {
        if self.thread_context.halt.load(Ordering::Relaxed) {
            return true;
        }
        if accounts.phase == Phase::Measuring {
            let is_done = match self.rules.bound {
                Bound::Requests(_) => accounts.is_done(),
                Bound::Span(span) => now >= accounts.record.began + span,
            };
            if is_done {
                return true;
            }
        }
        if self.has_worked {
            return now.saturating_since(self.up_at) >= PATIENCE;
        }
        // Not before the others are ready too: they may have a connection.
        let has_tried = match self.rules.reuse {
            Reuse::Always => true,
            Reuse::Never => connection_summary.has_failed && !connection_summary.is_under_way,
        };
        accounts.phase != Phase::Connecting && has_tried
    }

    /// The last entries. `oldest` is how long the oldest outstanding request has waited.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        accounts: &mut RequestAccounts,
        oldest: Duration,
        traffic: Traffic,
    ) {
        if !self.arrived {
            // The others must not wait for a thread that will never be ready.
            self.arrived = true;
            self.thread_context.run_state.start_barrier.arrive(now);
        }
        let measured = accounts.phase == Phase::Measuring;
        let overdue = accounts.budget.overdue(now);
        let longest_overdue = accounts.budget.next_due().filter(|_| overdue > 0);
        let record = &mut accounts.record;
        if measured {
            self.thread_context.run_state.start_barrier.on_done();
            record.times = Times::of_this_thread().since(&self.before.0);
            record.traffic = traffic.since(&self.before.1);
        }
        let overdue_for = longest_overdue.map_or(Duration::ZERO, |due| now.saturating_since(due));
        record.oldest_unfinished = oldest.max(overdue_for);
        record.unfinished = accounts.outstanding as u64;
        match self.rules.bound {
            Bound::Requests(count) => {
                record.not_begun = if measured { accounts.budget.left() } else { count };
                record.ended = accounts.last_answer;
            }
            Bound::Span(_) => {
                record.unfinished += overdue;
                record.ended = if measured { now } else { record.began };
            }
        }
        let elapsed = record.elapsed().as_secs_f64();
        if elapsed > 0.0 {
            record.busiest = [record.times.cpu_s / elapsed, record.times.waited_s / elapsed];
        }
        record.series.finish();
        accounts.phase = Phase::Over;
        self.thread_context.run_state.show(self.thread_context.index, || accounts.record.without_series());
    }

    /// The record, at the very end.
    pub(super) fn take_record(accounts: &mut RequestAccounts) -> Record {
        core::mem::replace(&mut accounts.record, Record::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Pace;
    use crate::run_state::ProgressWatch;

    /// Deleted, a run without a warm-up could begin with requests that do not count, whose content does.
    #[test]
    fn a_run_without_a_warm_up_has_none() {
        let (run_state, halt) = (RunState::new(2, None, ProgressWatch::No), AtomicBool::new(false));
        let thread_context = ThreadContext { index: 0, threads: 2, run_state: &run_state, halt: &halt };
        let rules = RunRules {
            bound: Bound::Requests(5),
            pace: Pace::Closed,
            reuse: Reuse::Always,
            warm_up: Duration::ZERO,
            series: None,
        };
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        let mut run_phase = RunPhase::new(rules, thread_context, at(1));
        let mut accounts = RequestAccounts::new(&rules);
        let summary = ConnectionSummary { is_settled: true, has_up: true, ..ConnectionSummary::default() };
        let mut look = |us| run_phase.look(at(us), &mut accounts, summary, Traffic::default());
        assert_eq!(look(10), PhaseChange::Same, "the other thread is not ready");
        // It is while this one has a clock of before.
        run_state.start_barrier.arrive(at(20));
        assert_eq!(look(15), PhaseChange::Same);
        assert_eq!(look(30), PhaseChange::Begin);
        assert_eq!(accounts.phase, Phase::Measuring);
    }
}
