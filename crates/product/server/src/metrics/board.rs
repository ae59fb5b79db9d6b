//! Where the threads of a server publish what they count, and how they are asked to.
//!
//! An ask is a number that rises. A thread that finds another number than it has answered publishes all, and says which number it
//! has answered. A thread that has ended has answered all.

use super::Metrics;
use crate::counters::Counters;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a thread that has ended has answered.
const ALL: u64 = u64::MAX;

/// The metrics of all threads, as they last said. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The last ask.
    asked: AtomicU64,
    entries: Box<[Entry]>,
}

#[derive(Debug, Default)]
struct Entry {
    metrics: Mutex<Metrics>,
    answered: AtomicU64,
}

impl Board {
    pub(crate) fn new(threads: usize) -> Board {
        let entries = (0..threads).map(|_| Entry::default()).collect();
        Board(Arc::new(Shared { asked: AtomicU64::new(0), entries }))
    }

    /// Where a thread publishes.
    pub(crate) fn entry(&self, index: usize) -> BoardEntry {
        BoardEntry { board: self.clone(), index, answered: 0 }
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.0.entries.len()
    }

    /// Asks all threads. They must be woken.
    pub(crate) fn ask(&self) -> u64 {
        self.0.asked.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// How many threads have not answered this ask.
    pub(crate) fn silent(&self, ask: u64) -> usize {
        let is_silent = |entry: &&Entry| entry.answered.load(Ordering::Acquire) < ask;
        self.0.entries.iter().filter(is_silent).count()
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.each(|metrics| sum += metrics.counters());
        sum
    }

    pub(crate) fn sum(&self) -> Metrics {
        let mut sum = Metrics::default();
        self.each(|metrics| sum.add(metrics));
        sum
    }

    fn each(&self, mut look: impl FnMut(&Metrics)) {
        self.0
            .entries
            .iter()
            .for_each(|entry| look(&entry.metrics.lock().unwrap_or_else(PoisonError::into_inner)));
    }
}

/// Where one thread publishes its metrics. Dropped when the thread has ended.
#[derive(Debug, Default)]
pub struct BoardEntry {
    board: Board,
    index: usize,
    /// The last ask that was answered.
    answered: u64,
}

impl BoardEntry {
    /// The ask that the thread has not answered, if there is one. To be called once per turn.
    #[inline]
    pub(crate) fn asked(&self) -> Option<u64> {
        let asked = self.board.0.asked.load(Ordering::Acquire);
        (asked != self.answered).then_some(asked)
    }

    /// Publishes by `fill`, which changes what was published before. To be called seldom: it takes a lock.
    pub(crate) fn publish(&self, fill: impl FnOnce(&mut Metrics)) {
        if let Some(entry) = self.board.0.entries.get(self.index) {
            fill(&mut entry.metrics.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// All that was asked for by `ask` is published.
    pub(crate) fn answer(&mut self, ask: u64) {
        self.answered = ask;
        self.note(ask);
    }

    fn note(&self, ask: u64) {
        if let Some(entry) = self.board.0.entries.get(self.index) {
            entry.answered.store(ask, Ordering::Release);
        }
    }
}

impl Drop for BoardEntry {
    fn drop(&mut self) {
        self.note(ALL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a thread that hangs could pass for one that lives, or one that has ended for one that hangs.
    #[test]
    fn each_thread_answers_each_ask_and_one_that_has_ended_all() {
        let board = Board::new(2);
        let (mut first, second) = (board.entry(0), board.entry(1));
        assert_eq!((first.asked(), board.silent(0)), (None, 0));
        let ask = board.ask();
        assert_eq!((first.asked(), second.asked(), board.silent(ask)), (Some(ask), Some(ask), 2));
        first.publish(|metrics| metrics.tcp_open = 7);
        assert_eq!(board.silent(ask), 2, "what is published for other reasons is no answer");
        first.answer(ask);
        assert_eq!((first.asked(), board.silent(ask)), (None, 1));
        second.publish(|metrics| metrics.tcp_open = 1);
        drop(second);
        let next = board.ask();
        assert_eq!((board.silent(ask), board.silent(next)), (0, 1));
        assert_eq!(board.sum().tcp_open, 8, "what ended threads did counts");
    }
}
