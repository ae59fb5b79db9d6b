//! The course of a run as one thread sees it: gather connections, wait for the other threads, warm up, measure, end.
//!
//! The thread says what its connections are like ([`Crowd`]) and how late it is; from here it hears when to begin, and when
//! it is over. What the connections speak makes no difference.

use super::books::{Books, Phase};
use super::budget::Budget;
use super::plan::{Bound, Plan, Reuse};
use super::record::Record;
use super::stage::Stage;
use super::traffic::Traffic;
use base::time::{Duration, Instant};
use cpu::times::Times;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often deadlines, progress and the other threads are looked at.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// So long without any connection, the thread gives up.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often progress is shown.
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// The pause before a failed connection is made again, at first and at most.
pub(super) const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// A thread's place among the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Post<'a> {
    pub(super) index: usize,
    pub(super) threads: usize,
    pub(super) stage: &'a Stage,
    /// Set when everybody has to stop.
    pub(super) halt: &'a AtomicBool,
}

/// What the connections of a thread are like.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crowd {
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
pub(super) enum Turn {
    /// Go on.
    Same,
    /// Requests may begin now: all connections have to look.
    Begin,
}

/// One thread's course.
pub(super) struct Course<'a> {
    post: Post<'a>,
    bound: Bound,
    warm_up: Duration,
    plan: Plan,
    arrived: bool,
    has_worked: bool,
    /// When a connection last was up.
    up_at: Instant,
    next_show: Instant,
    /// At the beginning of measuring.
    before: (Times, Traffic),
}

impl<'a> Course<'a> {
    /// `plan` is the thread's share.
    pub(super) fn new(plan: &Plan, post: Post<'a>, now: Instant) -> Course<'a> {
        Course {
            post,
            bound: plan.bound,
            warm_up: plan.warm_up,
            plan: plan.clone(),
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
    pub(super) fn look(&mut self, now: Instant, books: &mut Books, crowd: Crowd, traffic: Traffic) -> Turn {
        let is_resting = self.plan.reuse == Reuse::Never && !crowd.has_failed;
        if crowd.has_up || is_resting {
            self.up_at = now;
        }
        match books.phase {
            Phase::Gathering if !self.arrived && (crowd.is_settled || self.plan.reuse == Reuse::Never) => {
                self.arrived = true;
                self.post.stage.gathering.arrive(now);
            }
            Phase::Measuring if now >= self.next_show => {
                self.next_show = now + SHOW_EVERY;
                self.post.stage.show(self.post.index, || books.record.without_series());
            }
            _ => {}
        }
        let Some(start) = self.post.stage.gathering.start() else { return Turn::Same };
        let measure = start + self.warm_up;
        match books.phase {
            Phase::Gathering if now < measure => {
                (books.phase, books.budget) = (Phase::WarmUp, Budget::new(u64::MAX, self.plan.pace, now));
                Turn::Begin
            }
            Phase::Gathering | Phase::WarmUp if now >= measure => {
                self.post.stage.gathering.on_measuring();
                self.before = (Times::of_this_thread(), traffic);
                let count = match self.bound {
                    Bound::Requests(count) => count,
                    Bound::Span(_) => u64::MAX,
                };
                (books.phase, books.budget) = (Phase::Measuring, Budget::new(count, self.plan.pace, now));
                (books.record.began, books.record.ended, books.last_answer) = (now, now, now);
                Turn::Begin
            }
            _ => Turn::Same,
        }
    }

    /// When to look again if nothing happens before. While threads wait for each other they look every `eager`.
    pub(super) fn next_look(&self, now: Instant, books: &Books, eager: Duration) -> Instant {
        let tick = now + TICK;
        match (books.phase, self.post.stage.gathering.start()) {
            (Phase::Gathering, _) if self.arrived => now + eager,
            (Phase::WarmUp, Some(start)) => tick.min(start + self.warm_up),
            (Phase::Measuring, _) => match self.bound {
                Bound::Span(span) => tick.min(books.record.began + span),
                Bound::Requests(_) => tick,
            },
            _ => tick,
        }
    }

    /// Whether there is nothing more to do, or no hope of it.
    pub(super) fn is_over(&self, now: Instant, books: &Books, crowd: Crowd) -> bool {
        if self.post.halt.load(Ordering::Relaxed) {
            return true;
        }
        if books.phase == Phase::Measuring {
            let is_done = match self.bound {
                Bound::Requests(_) => books.is_done(),
                Bound::Span(span) => now >= books.record.began + span,
            };
            if is_done {
                return true;
            }
        }
        if self.has_worked {
            return now.saturating_since(self.up_at) >= PATIENCE;
        }
        // Not before the others are ready too: they may have a connection.
        let has_tried = match self.plan.reuse {
            Reuse::Always => true,
            Reuse::Never => crowd.has_failed && !crowd.is_under_way,
        };
        books.phase != Phase::Gathering && has_tried
    }

    /// The last entries. `oldest` is how long the oldest outstanding request has waited.
    pub(super) fn finish(&mut self, now: Instant, books: &mut Books, oldest: Duration, traffic: Traffic) {
        if !self.arrived {
            // The others must not wait for a thread that will never be ready.
            self.arrived = true;
            self.post.stage.gathering.arrive(now);
        }
        let measured = books.phase == Phase::Measuring;
        let overdue = books.budget.overdue(now);
        let longest_overdue = books.budget.next_due().filter(|_| overdue > 0);
        let record = &mut books.record;
        if measured {
            self.post.stage.gathering.on_done();
            record.times = Times::of_this_thread().since(&self.before.0);
            record.traffic = traffic.since(&self.before.1);
        }
        let overdue_for = longest_overdue.map_or(Duration::ZERO, |due| now.saturating_since(due));
        record.oldest_unfinished = oldest.max(overdue_for);
        record.unfinished = books.outstanding as u64;
        match self.bound {
            Bound::Requests(count) => {
                record.not_begun = if measured { books.budget.left() } else { count };
                record.ended = books.last_answer;
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
        books.phase = Phase::Over;
        self.post.stage.show(self.post.index, || books.record.without_series());
    }

    /// The record, at the very end.
    pub(super) fn take_record(books: &mut Books) -> Record {
        core::mem::replace(&mut books.record, Record::new())
    }
}
