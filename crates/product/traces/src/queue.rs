//! What waits to be written: chunks of traces, in order, bounded in bytes.
//!
//! The lock is held for the time of a push or a pop, once for every 16 KiB of events. That a trace is over is never refused: it takes
//! a kilobyte at most, once for a connection.

use qlog::Refused;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Part of one trace.
#[derive(Debug)]
pub(crate) struct Item {
    /// Which trace.
    pub(crate) number: u64,
    /// Its file.
    pub(crate) name: String,
    /// Whole records.
    pub(crate) bytes: Vec<u8>,
    /// Whether more follow.
    pub(crate) position: Position,
}

/// The position of an item in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    Within,
    Last,
}

/// What the writer has done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) files: u64,
    pub(crate) left_out: u64,
    pub(crate) bytes: u64,
    pub(crate) failed: u64,
    pub(crate) failure: Option<String>,
    pub(crate) refused: u64,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    bytes: usize,
    /// The writer is at an item that it took.
    is_busy: bool,
    is_closed: bool,
    tally: Tally,
}

/// The queue to the writer.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    emptied: Condvar,
    max_bytes: usize,
}

impl Queue {
    pub(crate) fn new(max_bytes: usize) -> Queue {
        Queue { state: Mutex::default(), filled: Condvar::new(), emptied: Condvar::new(), max_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the writer has done so far.
    pub(crate) fn tally(&self) -> Tally {
        self.lock().tally.clone()
    }

    /// Adds a chunk, if there is room.
    pub(crate) fn push(&self, number: u64, name: &str, bytes: Vec<u8>) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.bytes.saturating_add(bytes.len()) > self.max_bytes {
            state.tally.refused += 1;
            return Err(Refused);
        }
        state.add(Item { number, name: name.to_owned(), bytes, position: Position::Within });
        self.filled.notify_one();
        Ok(())
    }

    /// The trace is over.
    pub(crate) fn finish(&self, number: u64, name: &str, bytes: Vec<u8>) {
        self.lock().add(Item { number, name: name.to_owned(), bytes, position: Position::Last });
        self.filled.notify_one();
    }

    /// The next item; waits for one. `None`: the queue is closed, and empty.
    pub(crate) fn next(&self) -> Option<Item> {
        let mut state = self.lock();
        state.is_busy = false;
        loop {
            if let Some(item) = state.items.pop_front() {
                state.bytes -= item.bytes.len();
                state.is_busy = true;
                return Some(item);
            }
            self.emptied.notify_all();
            if state.is_closed {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Counts what the writer has done.
    pub(crate) fn count(&self, add: impl FnOnce(&mut Tally)) {
        add(&mut self.lock().tally);
    }

    /// Waits until nothing waits, and tells what was done.
    pub(crate) fn drained(&self) -> Tally {
        let mut state = self.lock();
        while state.is_busy || !state.items.is_empty() {
            state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.tally.clone()
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_one();
    }
}

impl State {
    fn add(&mut self, item: Item) {
        self.bytes += item.bytes.len();
        self.items.push_back(item);
    }
}
