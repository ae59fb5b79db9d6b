//! The threads of a run: started together, and merged into one report.

use crate::driver::Driver;
use crate::plan::PerfPlan;
use crate::record::Record;
use crate::report::{self, Report};
use crate::thread_setup::ThreadSetup;
use datapath::Port;
use load::StartBarrier;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};

/// How often the order to stop is looked at.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(50);

/// Who carries out a plan.
pub struct Run<'a, P> {
    /// A seat for each thread.
    pub thread_setups: Vec<ThreadSetup<P>>,
    /// The server's process, if its CPU time is to be taken.
    pub server: Option<u32>,
    /// Called on each thread with its number before anything else, as for keeping it on a core.
    pub prepare: &'a (dyn Fn(usize) -> io::Result<()> + Sync),
}

impl<P: Port + Send> Run<'_, P> {
    /// Carries out `plan` until it is fulfilled or `stop` is set, and reports what was measured until then.
    ///
    /// # Errors
    /// The plan cannot be carried out, a thread cannot be started, or a port has failed.
    pub fn run(self, plan: &PerfPlan, stop: &AtomicBool) -> io::Result<Report> {
        let threads = self.thread_setups.len();
        plan.check(threads).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let gathering = StartBarrier::new(threads, self.server);
        let halt = AtomicBool::new(false);
        let datapath =
            self.thread_setups.first().map_or("", |thread_setup| thread_setup.port.capabilities().name);
        let (sender, results) = channel();
        let mut all = Record::default();
        let mut failure = None;
        std::thread::scope(|scope| {
            let (gathering, halt, prepare) = (&gathering, &halt, self.prepare);
            for (index, thread_setup) in self.thread_setups.into_iter().enumerate() {
                let sender = sender.clone();
                let builder = std::thread::Builder::new().name(format!("perf {index}"));
                let started = builder.spawn_scoped(scope, move || {
                    let driver = Driver::new(thread_setup, plan, (index, threads));
                    let record = prepare(index).and_then(|()| driver.run(gathering, halt));
                    // The receiver listens until the last thread has ended.
                    let _ = sender.send(record);
                });
                if let Err(error) = started {
                    failure = Some(error);
                    halt.store(true, Ordering::Relaxed);
                }
            }
            drop(sender);
            loop {
                match results.recv_timeout(LOOK_EVERY) {
                    Ok(Ok(record)) => all.merge(&record),
                    Ok(Err(error)) => {
                        failure = Some(error);
                        halt.store(true, Ordering::Relaxed);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if stop.load(Ordering::Relaxed) {
                    halt.store(true, Ordering::Relaxed);
                }
            }
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let server = gathering.server_times();
        let mut report = report::of(plan, threads, &all, server.as_deref());
        report.interrupted = stop.load(Ordering::Relaxed);
        report.datapath = datapath.to_owned();
        Ok(report)
    }
}
