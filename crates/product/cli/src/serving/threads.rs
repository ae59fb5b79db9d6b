//! The workers' threads. One worker alone runs on the thread that calls; more get a thread each.
//!
//! All end together: on the order to stop, and when one of them fails, be it by a panic. Whatever leaves a thread gives the
//! order on its way out, so that none is forgotten.

use datapath::Waker;
use server::tcp::ShutdownSignal;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, ScopedJoinHandle};

/// The stop flag, and the threads that it wakes.
#[derive(Clone)]
pub(crate) struct Stop {
    pub(crate) flag: Arc<AtomicBool>,
    pub(crate) wakers: Arc<[Waker]>,
    pub(crate) shutdown_signals: Arc<[ShutdownSignal]>,
}

/// A thread's name, also in messages: `worker 0`.
pub(crate) trait ThreadName {
    fn name(&self) -> String;
}

impl Stop {
    /// Orders it.
    pub(crate) fn order(&self) {
        self.flag.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Wakes all, so that they look whether it was ordered.
    pub(crate) fn wake(&self) {
        self.wakers.iter().for_each(Waker::wake);
        self.shutdown_signals.iter().for_each(ShutdownSignal::shut_down);
    }
}

/// Gives the order to stop when it goes out of scope.
struct StopOnDrop<'a>(&'a Stop);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.order();
    }
}

/// Does `work`, which goes on until the order to stop, on each seat. Returns what each reports, in their order.
///
/// # Errors
/// The first worker that failed, in one line; the others were stopped in good order.
pub(crate) fn run<S, R>(
    worker_setups: Vec<S>,
    stop: &Stop,
    work: impl Fn(S) -> io::Result<R> + Sync,
) -> Result<Vec<R>, String>
where
    S: Send + ThreadName,
    R: Send,
{
    if worker_setups.len() == 1 {
        let reports = worker_setups.into_iter().map(work).collect::<io::Result<_>>();
        return reports.map_err(|error| format!("the worker has failed: {error}"));
    }
    let work = &work;
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut failure = None;
        for worker_setup in worker_setups {
            let name = worker_setup.name();
            let job = move || {
                let _last = StopOnDrop(stop);
                work(worker_setup)
            };
            match Builder::new().name(name.replace(' ', "-")).spawn_scoped(scope, job) {
                Ok(thread) => threads.push((name, thread)),
                Err(error) => {
                    stop.order();
                    failure = Some(format!("{name} cannot be started: {error}"));
                    break;
                }
            }
        }
        let reports: Vec<_> = threads.into_iter().map(|(name, thread)| report(&name, thread)).collect();
        failure.map_or_else(|| reports.into_iter().collect(), Err)
    })
}

fn report<R>(name: &str, thread: ScopedJoinHandle<'_, io::Result<R>>) -> Result<R, String> {
    match thread.join() {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(error)) => Err(format!("{name} has failed: {error}")),
        Err(_) => Err(format!("{name} has panicked; the lines above say where")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    impl ThreadName for i32 {
        fn name(&self) -> String {
            format!("worker {self}")
        }
    }

    fn stop(wakers: Vec<Waker>) -> Stop {
        Stop { flag: Arc::default(), wakers: wakers.into(), shutdown_signals: Arc::default() }
    }

    /// What a worker does when nothing fails: it goes on until it is told to stop, for ten seconds at most.
    fn until_stopped(stop: &Stop) -> io::Result<bool> {
        for _ in 0..10_000 {
            if stop.flag.load(Ordering::Relaxed) {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(false)
    }

    #[test]
    fn a_worker_that_fails_stops_and_wakes_all_and_is_named() {
        let waker = Waker::new().unwrap();
        let stop = stop(vec![waker.clone()]);
        let failed = run(vec![0, 1, 2], &stop, |worker_setup| match worker_setup {
            1 => Err(io::Error::other("the interface is gone")),
            _ => until_stopped(&stop),
        });
        assert_eq!(failed.unwrap_err(), "worker 1 has failed: the interface is gone");
        assert!(stop.flag.load(Ordering::Relaxed));
        let mut count = [0; 8];
        assert!(rustix::io::read(&waker, &mut count).is_ok(), "who sleeps is woken");
    }

    #[test]
    fn a_worker_that_panics_stops_all_too() {
        let stop = stop(Vec::new());
        let failed = run(vec![0, 1], &stop, |worker_setup| match worker_setup {
            0 => panic!("on purpose"),
            _ => until_stopped(&stop),
        });
        assert!(failed.unwrap_err().starts_with("worker 0 has panicked"));
    }

    #[test]
    fn reports_come_in_the_order_of_seats_and_one_worker_needs_no_thread() {
        let here = std::thread::current().id();
        let on_this_thread = |_| Ok(std::thread::current().id() == here);
        assert_eq!(run(vec![0], &stop(Vec::new()), on_this_thread), Ok(vec![true]));
        assert_eq!(run(vec![0, 1], &stop(Vec::new()), on_this_thread), Ok(vec![false, false]));
        assert_eq!(run(vec![5, 6, 7], &stop(Vec::new()), Ok), Ok(vec![5, 6, 7]));
        let alone = run(vec![0], &stop(Vec::new()), |_| Err::<(), _>(io::Error::other("why")));
        assert_eq!(alone.unwrap_err(), "the worker has failed: why");
    }
}
