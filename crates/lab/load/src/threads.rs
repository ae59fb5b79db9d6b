//! The threads of a run: started together, watched, and merged into one report.

use super::plan::{LoadPlan, Protocol};
use super::quic::{self, Member};
use super::record::Record;
use super::report::{self, Report, RunContext};
use super::run_phase::ThreadContext;
use super::run_state::{ProgressWatch, RunState};
use super::tcp;
use cpu::times::Times;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

/// Receives the progress of a run.
pub trait Watcher {
    /// So much was measured so far, by all threads. Called a few times a second, once measuring has begun.
    fn on_progress(&mut self, record: &Record);
}

/// How often progress is told.
const PROGRESS: std::time::Duration = std::time::Duration::from_millis(100);

/// A plan, about to be carried out until it is fulfilled or the user interrupts it.
pub struct Run<'a> {
    /// The plan.
    pub plan: &'a LoadPlan,
    /// The server's process, if its CPU time is to be taken.
    pub server: Option<u32>,
    /// Set to end the run early. The report covers what was measured until then.
    pub stop: &'a AtomicBool,
}

impl Run<'_> {
    /// A run over HTTP/3, a thread for each member.
    ///
    /// # Errors
    /// The plan cannot be carried out or is not for HTTP/3, a thread cannot be started, or a port has failed.
    pub fn over_quic(&self, members: Vec<Member>, watcher: Option<&mut dyn Watcher>) -> io::Result<Report> {
        let Protocol::Http3(config) = &self.plan.protocol else {
            return Err(invalid("the plan is not for HTTP/3"));
        };
        self.carry_out(members, |member, post| quic::run(member, self.plan, config, post), watcher)
    }

    /// A run over HTTP/1.1 or HTTP/2, on this many threads.
    ///
    /// # Errors
    /// The plan cannot be carried out or is for HTTP/3, or a thread cannot be started.
    pub fn over_tcp(&self, threads: usize, watcher: Option<&mut dyn Watcher>) -> io::Result<Report> {
        if matches!(self.plan.protocol, Protocol::Http3(_)) {
            return Err(invalid("the plan is for HTTP/3"));
        }
        self.carry_out(vec![(); threads], |(), post| tcp::run(self.plan, post), watcher)
    }

    fn carry_out<M: Send>(
        &self,
        members: Vec<M>,
        work: impl Fn(M, ThreadContext<'_>) -> io::Result<Record> + Sync,
        watcher: Option<&mut dyn Watcher>,
    ) -> io::Result<Report> {
        let threads = members.len();
        self.plan.check(threads).map_err(invalid)?;
        let group = ThreadGroup { name: "load", server: self.server, stop: self.stop };
        let Measured { record, server, interrupted } = group.run(members, work, watcher)?;
        Ok(report::of(self.plan, &record, RunContext { threads, server: server.as_deref(), interrupted }))
    }
}

/// The threads of a run, whatever they ask for.
pub(super) struct ThreadGroup<'a> {
    /// What the threads' names begin with.
    pub(super) name: &'static str,
    /// The server's process, if its CPU time is to be taken.
    pub(super) server: Option<u32>,
    /// Ends the run when set.
    pub(super) stop: &'a AtomicBool,
}

/// What the threads of a run have measured.
pub(super) struct Measured {
    /// All threads together.
    pub(super) record: Record,
    /// What each of the server's threads used.
    pub(super) server: Option<Vec<Times>>,
    /// Whether the run was ended early.
    pub(super) interrupted: bool,
}

impl ThreadGroup<'_> {
    /// Starts a thread for each member and follows them to their end.
    ///
    /// # Errors
    /// A thread cannot be started, or has failed.
    pub(super) fn run<M: Send>(
        &self,
        members: Vec<M>,
        work: impl Fn(M, ThreadContext<'_>) -> io::Result<Record> + Sync,
        mut watcher: Option<&mut dyn Watcher>,
    ) -> io::Result<Measured> {
        let threads = members.len();
        let watching = if watcher.is_some() { ProgressWatch::Yes } else { ProgressWatch::No };
        let run_state = RunState::new(threads, self.server, watching);
        let halt = AtomicBool::new(false);
        let (sender, results) = channel();
        let record = std::thread::scope(|scope| {
            let (run_state, halt, work) = (&run_state, &halt, &work);
            let mut unstarted = None;
            for (index, member) in members.into_iter().enumerate() {
                let sender = sender.clone();
                let builder = std::thread::Builder::new().name(format!("{} {index}", self.name));
                let thread_context = ThreadContext { index, threads, run_state, halt };
                let started = builder.spawn_scoped(scope, move || {
                    // The receiver listens until the last thread has ended.
                    let _ = sender.send(work(member, thread_context));
                });
                if let Err(error) = started {
                    halt.store(true, Ordering::Relaxed);
                    unstarted = Some(error);
                }
            }
            drop(sender);
            let record = self.follow(&results, run_state, halt, &mut watcher);
            match unstarted {
                Some(error) => Err(error),
                None => record,
            }
        })?;
        let server = run_state.start_barrier.server_times();
        Ok(Measured { record, server, interrupted: self.stop.load(Ordering::Relaxed) })
    }

    /// Collects what the threads have measured, shows how far they are, and stops them.
    fn follow(
        &self,
        results: &Receiver<io::Result<Record>>,
        run_state: &RunState,
        halt: &AtomicBool,
        watcher: &mut Option<&mut dyn Watcher>,
    ) -> io::Result<Record> {
        let mut all = Record::new();
        let mut failure = None;
        loop {
            match results.recv_timeout(PROGRESS) {
                Ok(Ok(record)) => all.merge(&record),
                Ok(Err(error)) => {
                    failure = Some(error);
                    halt.store(true, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let (Some(watcher), Some(record)) = (watcher.as_deref_mut(), run_state.seen()) {
                        watcher.on_progress(&record);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.stop.load(Ordering::Relaxed) {
                halt.store(true, Ordering::Relaxed);
            }
        }
        failure.map_or(Ok(all), Err)
    }
}

pub(super) fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}
