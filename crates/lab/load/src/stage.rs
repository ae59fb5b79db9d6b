//! What the threads of a run of requests share: how they begin together, and how far each is.
//!
//! Nothing here is touched for a request; a thread looks while it waits for the others, at its ticks, and at the end.

use super::gathering::Gathering;
use super::record::Record;
use std::sync::{Mutex, PoisonError};

/// Shared by the threads of one run.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) gathering: Gathering,
    /// One for each thread, when somebody watches.
    boards: Vec<Mutex<Option<Record>>>,
    watched: bool,
}

/// Whether somebody wants to see how far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watching {
    /// Somebody does.
    Yes,
    /// Nobody does.
    No,
}

impl Stage {
    /// For so many threads. `server` is the process whose CPU time is taken at the beginning and at the end.
    pub(super) fn new(threads: usize, server: Option<u32>, watching: Watching) -> Stage {
        Stage {
            gathering: Gathering::new(threads, server),
            boards: (0..threads).map(|_| Mutex::new(None)).collect(),
            watched: watching == Watching::Yes,
        }
    }

    /// Shows how far thread `index` is, if somebody watches.
    pub(super) fn show(&self, index: usize, record: impl FnOnce() -> Record) {
        if self.watched
            && let Some(board) = self.boards.get(index)
        {
            *board.lock().unwrap_or_else(PoisonError::into_inner) = Some(record());
        }
    }

    /// How far all are; `None` before any has measured anything.
    pub(super) fn seen(&self) -> Option<Record> {
        let mut all: Option<Record> = None;
        for board in &self.boards {
            if let Some(record) = &*board.lock().unwrap_or_else(PoisonError::into_inner) {
                all.get_or_insert_with(Record::new).merge(record);
            }
        }
        all
    }
}
