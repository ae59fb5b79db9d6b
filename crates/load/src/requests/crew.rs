//! The threads of a run: started together, watched, and merged into one report.

use super::generator::Generator;
use super::plan::Plan;
use super::record::Record;
use super::report::{self, Report};
use super::stage::{Stage, Watching};
use super::times::Times;
use datapath::Port;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};

/// Whoever wants to see how far a run is.
pub trait Watcher {
    /// So much was measured so far, by all threads. Called a few times a second, once measuring has begun.
    fn on_progress(&mut self, record: &Record);
}

/// How often progress is told.
const PROGRESS: std::time::Duration = std::time::Duration::from_millis(100);

/// Who carries out a plan.
pub struct Crew<P> {
    /// A port for each thread.
    pub ports: Vec<P>,
    /// A secret for each thread, from which its randomness comes.
    pub seeds: Vec<[u8; 32]>,
    /// The server's process, if its CPU time is to be taken.
    pub server: Option<u32>,
}

impl<P: Port + Send> Crew<P> {
    /// Carries out `plan` until it is fulfilled or `stop` is set, and reports what was measured until then.
    ///
    /// # Errors
    /// The plan cannot be carried out, a thread cannot be started, or a port has failed.
    pub fn run(
        self,
        plan: &Plan,
        stop: &AtomicBool,
        mut watcher: Option<&mut dyn Watcher>,
    ) -> io::Result<Report> {
        let threads = self.ports.len();
        plan.check(threads).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        if self.seeds.len() < threads {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "each thread needs a seed of its own"));
        }
        let watching = if watcher.is_some() { Watching::Yes } else { Watching::No };
        let stage = Stage::new(threads, self.server, watching);
        let halt = AtomicBool::new(false);
        let (sender, results) = channel();
        let mut records = Vec::new();
        let mut failure = None;
        std::thread::scope(|scope| {
            let (stage, halt) = (&stage, &halt);
            for (index, (port, seed)) in self.ports.into_iter().zip(self.seeds).enumerate() {
                let sender = sender.clone();
                let builder = std::thread::Builder::new().name(format!("load {index}"));
                let started = builder.spawn_scoped(scope, move || {
                    let generator = Generator::new(port, plan, (index, threads), seed);
                    // Whoever listens does so until the last thread has ended.
                    let _ = sender.send(generator.run(stage, halt));
                });
                if let Err(error) = started {
                    failure = Some(error);
                    halt.store(true, Ordering::Relaxed);
                }
            }
            drop(sender);
            loop {
                match results.recv_timeout(PROGRESS) {
                    Ok(Ok(record)) => records.push(record),
                    Ok(Err(error)) => {
                        failure = Some(error);
                        halt.store(true, Ordering::Relaxed);
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if let (Some(watcher), Some(record)) = (&mut watcher, stage.seen()) {
                            watcher.on_progress(&record);
                        }
                    }
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
        let mut all = Record::new();
        records.iter().for_each(|record| all.merge(record));
        let server = server_times(&stage);
        Ok(report::of(plan, threads, &all, server.as_deref(), stop.load(Ordering::Relaxed)))
    }
}

/// What each of the server's threads used while measuring.
fn server_times(stage: &Stage) -> Option<Vec<Times>> {
    let [before, after] = stage.take_samples();
    Some(after?.since(&before?))
}
