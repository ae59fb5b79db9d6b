//! What the threads of a run of requests share: how they begin together, and how far each is.
//!
//! Nothing here is touched for a request; a thread looks while it waits for the others, at its ticks, and at the end.

use super::record::Record;
use super::start_barrier::StartBarrier;
use std::sync::{Mutex, PoisonError};

/// Shared by the threads of one run.
#[derive(Debug)]
pub(super) struct RunState {
    pub(super) start_barrier: StartBarrier,
    /// One for each thread, when there is a watcher.
    progress: Vec<Mutex<Option<Record>>>,
    watched: bool,
}

/// Whether progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgressWatch {
    /// One does.
    Yes,
    /// None does.
    No,
}

impl RunState {
    /// For this many threads. `server` is the process whose CPU time is taken at the beginning and at the end.
    pub(super) fn new(threads: usize, server: Option<u32>, watching: ProgressWatch) -> RunState {
        RunState {
            start_barrier: StartBarrier::new(threads, server),
            progress: (0..threads).map(|_| Mutex::new(None)).collect(),
            watched: watching == ProgressWatch::Yes,
        }
    }

    /// Shows how far thread `index` is, if there is a watcher.
    pub(super) fn show(&self, index: usize, record: impl FnOnce() -> Record) {
        if self.watched
            && let Some(board) = self.progress.get(index)
        {
            *board.lock().unwrap_or_else(PoisonError::into_inner) = Some(record());
        }
    }

    /// How far all are; `None` before any has measured anything.
    pub(super) fn seen(&self) -> Option<Record> {
        let mut all: Option<Record> = None;
        for board in &self.progress {
            if let Some(record) = &*board.lock().unwrap_or_else(PoisonError::into_inner) {
                all.get_or_insert_with(Record::new).merge(record);
            }
        }
        all
    }
}
