//! The threads of a run of the perf client.

use super::driver::Driver;
use super::plan::PerfPlan;
use super::report::{self, Report};
use super::thread_setup::ThreadSetup;
use crate::threads::{Measured, ThreadGroup, invalid};
use datapath::Port;
use std::io;
use std::sync::atomic::AtomicBool;

/// Who carries out a plan.
pub struct Run<'a> {
    /// One for each thread.
    pub thread_setups: Vec<ThreadSetup>,
    /// The server's process, if its CPU time is to be taken.
    pub server: Option<u32>,
    /// Called on each thread with its number before anything else, as for keeping it on a core.
    pub prepare: &'a (dyn Fn(usize) -> io::Result<()> + Sync),
}

impl Run<'_> {
    /// Carries out `plan` until it is fulfilled or `stop` is set, and reports what was measured until then.
    ///
    /// # Errors
    /// The plan cannot be carried out, a thread cannot be started, or a port has failed.
    pub fn run(self, plan: &PerfPlan, stop: &AtomicBool) -> io::Result<Report> {
        let threads = self.thread_setups.len();
        plan.check(threads).map_err(invalid)?;
        let datapath = self.thread_setups.first().map_or("", |setup| setup.port.capabilities().name);
        let group = ThreadGroup { name: "perf", server: self.server, stop };
        let work = |setup, thread_context: crate::run_phase::ThreadContext<'_>| {
            let driver = Driver::new(setup, plan, thread_context);
            (self.prepare)(thread_context.index)?;
            driver.run()
        };
        let Measured { record, server, interrupted } = group.run(self.thread_setups, work, None)?;
        let mut report = report::of(plan, threads, &record, server.as_deref());
        report.interrupted = interrupted;
        report.datapath = datapath.to_owned();
        Ok(report)
    }
}
