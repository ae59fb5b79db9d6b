//! Steps of handshakes that other threads take: signatures with keys that need long, for which every other connection of the worker would
//! wait.
//!
//! The program says what runs them, by a [`HandshakeExecutor`]. A step goes out with the number of its connection and comes back
//! through an inbox of the worker's, which it wakes. The path is cold: a worker reads one flag per turn.
//!
//! Invariants: at most [`MOST_OUT`] steps of a worker are out, so that what runs them needs no bound of its own. Others stay in their
//! connections, and their places in line here, in the order in which they came; both go with the connection. Connections in this
//! state are bounded as all handshakes under way are. A step that is out when its connection ends is finished in vain, and the
//! handle that it carries leads nowhere then.
//!
//! Rejected: a queue of steps that all workers share and that may be full. What comes then would have to be done here, as slowly as
//! ever, or be dropped; and steps of connections that have ended would stay in it.

use crate::app::ConnectionEntry;
use base::slab::Handle;
use core::fmt;
use datapath::Waker;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transport::{HandshakeOutcome, HandshakeWork};

/// Steps of one worker that are out at a time: enough that no thread waits for the worker's next turn.
pub const MOST_OUT: usize = 4;
/// Handshakes that wait for others of them, above which those delay each other.
const LONG_LINE: usize = 8;

/// What has steps taken: on other threads, soon, each once. Workers call it on theirs; it must not wait.
pub type HandshakeExecutor = Arc<dyn Fn(HandshakeTask) + Send + Sync>;

/// A step to be taken on any thread. One that is dropped undone ends its connection.
pub struct HandshakeTask {
    handle: Handle,
    work: Option<HandshakeWork>,
    /// `None` once the worker was told.
    inbox: Option<Arc<Inbox>>,
}

impl HandshakeTask {
    /// Takes the step and tells the worker.
    pub fn run(mut self) {
        let outcome = self.work.take().map(HandshakeWork::run);
        self.tell(outcome);
    }

    fn tell(&mut self, outcome: Option<HandshakeOutcome>) {
        if let Some(inbox) = self.inbox.take() {
            inbox.put(Finished { handle: self.handle, outcome });
        }
    }
}

impl Drop for HandshakeTask {
    fn drop(&mut self) {
        self.tell(None);
    }
}

impl fmt::Debug for HandshakeTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeTask").field("work", &self.work).finish_non_exhaustive()
    }
}

/// A step that has come back.
pub(crate) struct Finished {
    pub(crate) handle: Handle,
    /// `None` if it was not taken.
    pub(crate) outcome: Option<HandshakeOutcome>,
}

/// Where steps come back to.
struct Inbox {
    is_filled: AtomicBool,
    finished: Mutex<Vec<Finished>>,
    waker: Option<Waker>,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Vec<Finished>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, finished: Finished) {
        let mut inbox = self.lock();
        inbox.push(finished);
        let must_wake = !self.is_filled.swap(true, Ordering::AcqRel);
        drop(inbox);
        if must_wake && let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}

/// Whether handshakes that wait delay each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Short,
    Long,
}

/// The steps of a worker that are out or wait.
pub(crate) struct Handshakes {
    executor: HandshakeExecutor,
    inbox: Arc<Inbox>,
    out: usize,
    /// Connections whose steps wait until others are back.
    line: VecDeque<Handle>,
}

impl Handshakes {
    /// `waker` ends the worker's sleep.
    pub(crate) fn new(executor: HandshakeExecutor, waker: Option<Waker>) -> Handshakes {
        let inbox = Inbox { is_filled: AtomicBool::new(false), finished: Mutex::default(), waker };
        Handshakes { executor, inbox: Arc::new(inbox), out: 0, line: VecDeque::new() }
    }

    /// Whether steps have come back.
    #[inline]
    pub(crate) fn has_finished(&self) -> bool {
        self.inbox.is_filled.load(Ordering::Acquire)
    }

    /// The steps that have come back.
    pub(crate) fn take_finished(&mut self) -> Vec<Finished> {
        let mut inbox = self.inbox.lock();
        self.inbox.is_filled.store(false, Ordering::Release);
        let finished = core::mem::take(&mut *inbox);
        self.out = self.out.saturating_sub(finished.len());
        finished
    }

    /// A connection has a step to give away.
    #[cold]
    pub(crate) fn on_work<S>(&mut self, handle: Handle, entry: &mut ConnectionEntry<S>) -> Line {
        if self.out < MOST_OUT {
            self.begin(handle, entry);
        } else if !core::mem::replace(&mut entry.is_in_line, true) {
            self.line.push_back(handle);
        }
        if self.line.len() < LONG_LINE { Line::Short } else { Line::Long }
    }

    /// The next connection in line, if a step may go out.
    pub(crate) fn next_in_line(&mut self) -> Option<Handle> {
        if self.out < MOST_OUT { self.line.pop_front() } else { None }
    }

    /// Lets a connection's step go out, if it still has one.
    pub(crate) fn begin<S>(&mut self, handle: Handle, entry: &mut ConnectionEntry<S>) {
        entry.is_in_line = false;
        if let Some(work) = entry.connection.take_handshake_work() {
            self.out += 1;
            (self.executor)(HandshakeTask { handle, work: Some(work), inbox: Some(Arc::clone(&self.inbox)) });
        }
    }

    /// A connection that is in line has gone.
    #[cold]
    pub(crate) fn forget(&mut self, gone: Handle) {
        self.line.retain(|handle| *handle != gone);
    }
}
