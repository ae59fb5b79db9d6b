//! The workers' threads. One worker runs on the thread that calls; more get a thread each.
//!
//! All end together: on the order to stop, and when one of them fails, be it by a panic. Whatever leaves a thread gives the
//! order on its way out, so that none is forgotten.

use super::shift::{Outfit, Record, Seat, work};
use datapath::Waker;
use paths::Path;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, ScopedJoinHandle};

/// The order to stop, and whom it must wake.
#[derive(Clone)]
pub(crate) struct Stop {
    pub(crate) flag: Arc<AtomicBool>,
    pub(crate) wakers: Arc<[Waker]>,
}

impl Stop {
    fn order(&self) {
        self.flag.store(true, Ordering::Relaxed);
        self.wakers.iter().for_each(Waker::wake);
    }
}

/// Gives the order to stop when it goes out of scope.
struct Last<'a>(&'a Stop);

impl Drop for Last<'_> {
    fn drop(&mut self) {
        self.0.order();
    }
}

/// Runs a worker on each seat until the order to stop.
///
/// # Errors
/// The first worker that failed, in one line; the others were stopped in good order.
pub(crate) fn run<P>(seats: Vec<Seat<P>>, outfit: &Outfit, stop: &Stop) -> Result<Vec<Record>, String>
where
    P: Path + Send,
{
    if seats.len() == 1 {
        let records = seats.into_iter().map(|seat| work(seat, outfit, &stop.flag));
        return records.collect::<io::Result<_>>().map_err(|error| format!("the worker has failed: {error}"));
    }
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut failure = None;
        for seat in seats {
            let number = seat.number;
            let job = move || {
                let _last = Last(stop);
                work(seat, outfit, &stop.flag)
            };
            match Builder::new().name(format!("worker-{number}")).spawn_scoped(scope, job) {
                Ok(thread) => threads.push((number, thread)),
                Err(error) => {
                    stop.order();
                    failure = Some(format!("worker {number} cannot be started: {error}"));
                    break;
                }
            }
        }
        let ended: Vec<_> = threads.into_iter().map(|(number, thread)| ended(number, thread)).collect();
        match failure {
            Some(failure) => Err(failure),
            None => ended.into_iter().collect(),
        }
    })
}

fn ended(number: u8, thread: ScopedJoinHandle<'_, io::Result<Record>>) -> Result<Record, String> {
    match thread.join() {
        Ok(Ok(record)) => Ok(record),
        Ok(Err(error)) => Err(format!("worker {number} has failed: {error}")),
        Err(_) => Err(format!("worker {number} has panicked; the lines above say where")),
    }
}
