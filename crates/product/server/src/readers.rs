//! Threads that wait for the disk, so that no thread that serves does; and threads for other work that takes long.
//!
//! A thread that serves reads by itself what is in memory, see [`Pool`](crate::pool::Pool) and
//! [`Root::find_in_memory`](crate::files::root::Root), and gives away what would wait. The result lies in a [`Ticket`], whose
//! wakers are called. A read holds up nothing but its own response, however long the disk takes.
//!
//! Data structure: one queue behind a lock for all who serve. Threads begin when there are more jobs than idle threads, at most as
//! many as their [`ThreadRule`] says, and end after [`REST`] without work. The process does not wait for them when it ends.
//!
//! Invariant: the queue needs no bound of its own. A read belongs to a response that holds its place, at most a few for each
//! connection; lookups are bounded where they are asked (lookups.rs). A job whose ticket was dropped is not done.
//!
//! Rejected: io_uring (a ring for each worker beside the data path's wait, and forbidden in many containers).

use rustix::fd::BorrowedFd;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::thread::{Builder, Thread};
use std::time::Duration;

/// Reads that wait at a time.
const THREADS: usize = 64;
/// How long a thread stays without work.
const REST: Duration = Duration::from_secs(10);
/// A thread's stack, in bytes.
const STACK: usize = 128 * 1024;

type Job = Box<dyn FnOnce() + Send>;

/// Whom to wake when what the disk was asked for is there. `None`: the caller has asked for enough at present, and comes again
/// when one of those is there.
pub type ResultWaker<'a> = &'a dyn Fn() -> Option<Waker>;

/// What makes a file or folder slow, for tests: reads of it count as reads of the disk.
pub trait InjectedDelay: fmt::Debug + Send + Sync {
    /// Whether it stands before this file or folder.
    fn concerns(&self, file: BorrowedFd<'_>) -> bool;
    /// Waits until the file can be read.
    fn pass(&self, file: BorrowedFd<'_>);
}

/// What threads are like, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadRule {
    pub(crate) name: &'static str,
    /// At a time.
    pub(crate) most: usize,
    /// In bytes, of each.
    pub(crate) stack: usize,
    /// By how much they give way to other threads. Source: nice(2).
    pub(crate) niceness: i32,
}

impl Default for ThreadRule {
    /// Those that wait for the disk.
    fn default() -> ThreadRule {
        ThreadRule { name: "reader", most: THREADS, stack: STACK, niceness: 0 }
    }
}

/// The threads. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Readers {
    shared: Arc<Shared>,
    obstacle: Option<Arc<dyn InjectedDelay>>,
}

#[derive(Default)]
struct Shared {
    rule: ThreadRule,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("jobs", &self.lock().jobs.len()).finish_non_exhaustive()
    }
}

impl Readers {
    /// Threads that find `obstacle` before some files.
    #[must_use]
    pub fn with_obstacle(obstacle: Arc<dyn InjectedDelay>) -> Readers {
        Readers { shared: Arc::default(), obstacle: Some(obstacle) }
    }

    /// Threads that are like this.
    pub(crate) fn by(rule: ThreadRule) -> Readers {
        Readers { shared: Arc::new(Shared { rule, ..Shared::default() }), obstacle: None }
    }

    /// Whether a read of the file counts as one that waits.
    #[inline]
    pub(crate) fn is_slow(&self, file: BorrowedFd<'_>) -> bool {
        self.obstacle.as_ref().is_some_and(|obstacle| obstacle.concerns(file))
    }

    /// To be called before a read that may wait.
    pub(crate) fn pass(&self, file: BorrowedFd<'_>) {
        if let Some(obstacle) = self.obstacle.as_ref().filter(|obstacle| obstacle.concerns(file)) {
            obstacle.pass(file);
        }
    }

    /// Has a thread do `work`, and wakes `waker` when it is done.
    pub(crate) fn submit<T: Send + 'static>(
        &self,
        waker: Waker,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Ticket<T> {
        let ticket = Ticket(Arc::new(Mutex::new(Stage::Waiting(vec![waker]))));
        let ours = Ticket(Arc::clone(&ticket.0));
        self.run(move || {
            let is_wanted = Arc::strong_count(&ours.0) > 1;
            ours.settle(is_wanted.then(work));
        });
        ticket
    }

    /// Has a thread do `work`, which tells of its end itself.
    pub(crate) fn run(&self, work: impl FnOnce() + Send + 'static) {
        if !Shared::push(&self.shared, Box::new(work)) {
            // No thread can be had: better a wait here than none ever ending.
            let job = self.shared.lock().jobs.pop_back();
            job.into_iter().for_each(|job| job());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there is a thread to do it.
    fn push(shared: &Arc<Shared>, job: Job) -> bool {
        let mut state = shared.lock();
        state.jobs.push_back(job);
        let rule = shared.rule;
        if state.jobs.len() > state.idle && state.threads < rule.most {
            let theirs = Arc::clone(shared);
            let thread = Builder::new().name(rule.name.to_owned()).stack_size(rule.stack);
            state.threads += usize::from(thread.spawn(move || theirs.work()).is_ok());
        }
        shared.work.notify_one();
        state.threads > 0
    }

    /// What a thread does.
    fn work(&self) {
        if self.rule.niceness != 0 {
            // Without it they do the same work, in competition.
            let _ = rustix::process::nice(self.rule.niceness);
        }
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.lock();
                continue;
            }
            state.idle += 1;
            let waited = self.work.wait_timeout(state, REST).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            state.idle -= 1;
            if waited.1.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

/// What a thread was asked for. Dropping it takes the request back.
#[derive(Debug)]
pub(crate) struct Ticket<T>(Arc<Mutex<Stage<T>>>);

enum Stage<T> {
    Waiting(Vec<Waker>),
    /// `None` once it was taken.
    Done(Option<T>),
}

impl<T> fmt::Debug for Stage<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Waiting(_) => "Waiting",
            Stage::Done(_) => "Done",
        })
    }
}

impl<T> Ticket<T> {
    fn lock(&self) -> MutexGuard<'_, Stage<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, result: Option<T>) {
        let before = core::mem::replace(&mut *self.lock(), Stage::Done(result));
        if let Stage::Waiting(wakers) = before {
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// The result, once. A task that polled before is woken then.
    pub(crate) fn poll(&self, wake_target: ResultWaker<'_>) -> Poll<Option<T>> {
        match &mut *self.lock() {
            Stage::Done(result) => Poll::Ready(result.take()),
            Stage::Waiting(wakers) => {
                if let Some(waker) = wake_target()
                    && !wakers.iter().any(|known| known.will_wake(&waker))
                {
                    wakers.push(waker);
                }
                Poll::Pending
            }
        }
    }

    /// Whether the thread is done.
    pub(crate) fn is_done(&self) -> bool {
        matches!(*self.lock(), Stage::Done(_))
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks until there is a result.
pub(crate) fn wait<T>(mut poll: impl FnMut(ResultWaker<'_>) -> Poll<T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        if let Poll::Ready(result) = poll(&|| Some(waker.clone())) {
            return result;
        }
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// Jobs that wait, and what lets them go on.
    fn stuck(readers: &Readers, count: usize) -> Vec<(Ticket<usize>, Sender<()>)> {
        let stuck = |number| {
            let (sender, gate) = channel();
            let work = move || {
                let _ = gate.recv();
                number
            };
            (readers.submit(Waker::noop().clone(), work), sender)
        };
        (0..count).map(stuck).collect()
    }

    #[test]
    fn one_that_waits_holds_up_no_other() {
        let readers = Readers::default();
        let waiting = stuck(&readers, THREADS - 1);
        let quick = readers.submit(Waker::noop().clone(), || 7);
        assert_eq!(wait(|wake_target| quick.poll(wake_target)), Some(7));
        assert!(waiting.iter().all(|(ticket, _)| !ticket.is_done()));
        for (number, (ticket, gate)) in waiting.into_iter().enumerate() {
            gate.send(()).unwrap();
            assert_eq!(wait(|wake_target| ticket.poll(wake_target)), Some(number));
        }
        assert!(readers.shared.lock().threads <= THREADS);
    }

    /// Or else a client that asks and goes away keeps the disk busy.
    #[test]
    fn what_nobody_waits_for_any_more_is_not_done() {
        let readers = Readers::default();
        let waiting = stuck(&readers, THREADS);
        let (sender, did) = channel();
        drop(readers.submit(Waker::noop().clone(), move || sender.send(())));
        drop(waiting);
        assert!(did.recv().is_err(), "the job was dropped undone");
    }
}
