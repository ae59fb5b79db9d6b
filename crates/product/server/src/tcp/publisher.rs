//! What a thread of TCP publishes of itself: see metrics/board.rs.

use super::ThreadCounters;
use super::counters::Traffic;
use super::thread_state::ThreadState;
use crate::metrics::board::BoardEntry;
use std::cell::RefCell;
use std::rc::Rc;

/// The counters of a thread, and where it publishes them.
pub(super) struct Publisher {
    thread_state: Rc<ThreadState>,
    traffic: Rc<Traffic>,
    board: RefCell<BoardEntry>,
}

impl Publisher {
    pub(super) fn new(thread_state: Rc<ThreadState>, traffic: Rc<Traffic>, board: BoardEntry) -> Publisher {
        Publisher { thread_state, traffic, board: RefCell::new(board) }
    }

    /// The ask that the thread has not answered, if there is one.
    pub(super) fn asked(&self) -> Option<u64> {
        self.board.borrow().asked()
    }

    /// All that was asked for by `ask` is published.
    pub(super) fn answer(&self, ask: u64) {
        self.board.borrow_mut().answer(ask);
    }

    /// Publishes what the thread did; `open` connections are open.
    pub(super) fn publish(&self, open: usize) -> ThreadCounters {
        let mut counters = *self.thread_state.counters.borrow();
        self.traffic.add_to(&mut counters);
        self.board.borrow().publish(|metrics| {
            metrics.tcp = counters;
            metrics.tcp_open = open as u64;
            metrics.requests.copy(&self.thread_state.requests.borrow());
        });
        counters
    }

    /// Writes what the log holds back, and publishes for the last time.
    pub(super) fn finish(&self) -> ThreadCounters {
        self.thread_state.recorder.borrow_mut().flush();
        self.publish(0)
    }
}
