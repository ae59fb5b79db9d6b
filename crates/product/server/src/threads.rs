//! The threads of a server. They end together: on the order to stop, and when one of them fails or panics.
//!
//! Each thread holds a [`Guard`]. Its end, be it by a panic, gives the order to stop to the others. The guard that goes last
//! releases what the threads share, such as the access log, and then hands over the reports. So no thread only waits for others.

use crate::stop::Stop;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use tokio::sync::oneshot::{self, Receiver, Sender};

/// A thread to start.
pub struct Job<R> {
    name: String,
    work: Box<dyn FnOnce() -> io::Result<R> + Send>,
}

impl<R> Job<R> {
    /// A thread that is called `name` in messages, such as `worker 0`. `work` goes on until the order to stop.
    pub fn new(name: String, work: impl FnOnce() -> io::Result<R> + Send + 'static) -> Job<R> {
        Job { name, work: Box::new(work) }
    }
}

impl<R> fmt::Debug for Job<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Job").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Which thread has failed, and why, in one line. The others were stopped in good order.
#[derive(Debug)]
pub struct ThreadError {
    thread: String,
    /// `None`: it has panicked.
    error: Option<io::Error>,
}

impl fmt::Display for ThreadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => write!(out, "{} has failed: {error}", self.thread),
            None => write!(out, "{} has panicked; the lines above say where", self.thread),
        }
    }
}

impl std::error::Error for ThreadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.as_ref().map(|error| error as _)
    }
}

/// The reports of all threads, in the order of their jobs; or the first failure.
pub type Reports<R> = Result<Vec<R>, ThreadError>;

/// Starts a thread for each job. When the last one has ended, `shared` is dropped, and then the reports arrive.
///
/// # Errors
/// The system gives no thread. Those that were started are told to stop.
pub fn start<R: Send + 'static>(
    jobs: Vec<Job<R>>,
    stop: &Stop,
    shared: impl Send + 'static,
) -> io::Result<Receiver<Reports<R>>> {
    let (sender, receiver) = oneshot::channel();
    let reports = jobs.iter().map(|job| Report { thread: job.name.clone(), result: None }).collect();
    let state = State { reports, running: jobs.len(), shared: Some(Box::new(shared)), sender: Some(sender) };
    let state = Arc::new(Mutex::new(state));
    for (index, Job { name, work }) in jobs.into_iter().enumerate() {
        let guard = Guard { state: Arc::clone(&state), index, stop: stop.clone() };
        let run = move || guard.report(work());
        if let Err(error) = Builder::new().name(name.replace(' ', "-")).spawn(run) {
            stop.drain();
            return Err(error);
        }
    }
    Ok(receiver)
}

struct Report<R> {
    thread: String,
    /// `None` until the thread has ended, and when it has panicked.
    result: Option<io::Result<R>>,
}

struct State<R> {
    reports: Vec<Report<R>>,
    running: usize,
    shared: Option<Box<dyn Send>>,
    sender: Option<Sender<Reports<R>>>,
}

/// What each thread holds.
struct Guard<R> {
    state: Arc<Mutex<State<R>>>,
    index: usize,
    stop: Stop,
}

impl<R> Guard<R> {
    /// Nothing under the lock panics.
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(self, result: io::Result<R>) {
        if let Some(report) = self.lock().reports.get_mut(self.index) {
            report.result = Some(result);
        }
    }
}

impl<R> Drop for Guard<R> {
    fn drop(&mut self) {
        // Where another process has the sockets, all threads end, each when its connections have ended.
        if !self.stop.is_retired() {
            self.stop.drain();
        }
        let (shared, reports, sender) = {
            let mut state = self.lock();
            state.running -= 1;
            if state.running > 0 {
                return;
            }
            (state.shared.take(), std::mem::take(&mut state.reports), state.sender.take())
        };
        drop(shared);
        let results = reports.into_iter().map(|Report { thread, result }| match result {
            Some(Ok(report)) => Ok(report),
            Some(Err(error)) => Err(ThreadError { thread, error: Some(error) }),
            None => Err(ThreadError { thread, error: None }),
        });
        if let Some(sender) = sender {
            // The program may have dropped the server.
            let _ = sender.send(results.collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datapath::Waker;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    fn stop(wakers: Vec<Waker>) -> Stop {
        Stop::new(wakers, 0)
    }

    fn job<R>(number: usize, work: impl FnOnce() -> io::Result<R> + Send + 'static) -> Job<R> {
        Job::new(format!("worker {number}"), work)
    }

    /// What a worker does when nothing fails: it goes on until it is told to stop, for ten seconds at most.
    fn until_stopped(stop: &Stop) -> impl FnOnce() -> io::Result<bool> + Send + 'static {
        let stop = stop.clone();
        move || {
            for _ in 0..10_000 {
                if stop.is_ordered() {
                    return Ok(true);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(false)
        }
    }

    #[test]
    fn a_thread_that_fails_stops_and_wakes_all_and_is_named() {
        let waker = Waker::new().unwrap();
        let stop = stop(vec![waker.clone()]);
        let fails = || Err(io::Error::other("the interface is gone"));
        let jobs = vec![job(0, until_stopped(&stop)), job(1, fails), job(2, until_stopped(&stop))];
        let failed = start(jobs, &stop, ()).unwrap().blocking_recv().unwrap();
        assert_eq!(failed.unwrap_err().to_string(), "worker 1 has failed: the interface is gone");
        assert!(stop.is_ordered());
        let mut count = [0; 8];
        assert!(rustix::io::read(&waker, &mut count).is_ok(), "a thread that sleeps is woken");
    }

    #[test]
    fn a_thread_that_panics_stops_all_too() {
        let stop = stop(Vec::new());
        let jobs = vec![job(0, || panic!("on purpose")), job(1, until_stopped(&stop))];
        let failed = start(jobs, &stop, ()).unwrap().blocking_recv().unwrap();
        assert!(failed.unwrap_err().to_string().starts_with("worker 0 has panicked"));
    }

    /// Deleted, an upgrade would cut clients that have just connected over TCP as soon as the workers of HTTP/3 have no connection left.
    #[test]
    fn threads_of_a_process_that_was_replaced_end_for_themselves() {
        let signals = |stop: &Stop| stop.shutdown_signals()[0].is_shut_down();
        for is_retired in [false, true] {
            let stop = Stop::new(Vec::new(), 1);
            if is_retired {
                stop.retire();
            }
            let jobs = vec![job(0, || Ok(true)), job(1, until_stopped(&stop))];
            start(jobs, &stop, ()).unwrap().blocking_recv().unwrap().unwrap();
            assert_eq!(signals(&stop), !is_retired);
            stop.drain();
            assert!(signals(&stop), "an order to stop is one still");
        }
    }

    /// Deleted, the end of a server could be told while its log is still written.
    #[test]
    fn reports_come_in_the_order_of_jobs_when_what_is_shared_has_ended() {
        struct Log(Arc<AtomicBool>);
        impl Drop for Log {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Release);
            }
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let jobs = [5, 6, 7].map(|number| {
            job(number, move || {
                std::thread::sleep(Duration::from_millis(10 * (8 - number as u64)));
                Ok(number)
            })
        });
        let reports = start(jobs.into(), &stop(Vec::new()), Log(Arc::clone(&is_over))).unwrap();
        assert_eq!(reports.blocking_recv().unwrap().unwrap(), [5, 6, 7]);
        assert!(is_over.load(Ordering::Acquire));
    }
}
