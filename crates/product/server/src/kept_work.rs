//! Results of work that takes long: done once for a key, by threads of its own, and kept within bounds. All threads that serve share them.
//!
//! Two generations as in the cache of files: when the young one holds half of a limit it becomes the old one, and what was old is
//! forgotten. Bounds: count and weight of results, and work under way; a caller that would begin more hears [`Known::Busy`]. The lock is
//! held for a look-up.

use crate::caught::caught;
use crate::readers::{Readers, ResultWaker, ThreadRule};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// How much is kept and done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<T> {
    /// Results.
    pub(crate) entries: usize,
    /// The weights of all results together.
    pub(crate) weight: u64,
    /// The weight of one.
    pub(crate) weigh: fn(&T) -> u64,
    /// Work that waits for a thread, or has one.
    pub(crate) under_way: usize,
}

/// What is known of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Known<T> {
    /// The result.
    Done(T),
    /// Nothing, and too much is under way to begin more.
    Busy,
    /// Nothing: it must be asked for.
    Nothing,
}

/// Results; clones are the same.
pub(crate) struct KeptWork<K, T> {
    shared: Arc<Shared<K, T>>,
    threads: Readers,
}

struct Shared<K, T> {
    bounds: Bounds<T>,
    state: Mutex<State<K, T>>,
}

struct State<K, T> {
    young: HashMap<K, T>,
    old: HashMap<K, T>,
    young_weight: u64,
    /// What is being done, and who waits for it.
    under_way: HashMap<K, Vec<Waker>>,
}

impl<K, T> Clone for KeptWork<K, T> {
    fn clone(&self) -> KeptWork<K, T> {
        KeptWork { shared: Arc::clone(&self.shared), threads: self.threads.clone() }
    }
}

impl<K, T> fmt::Debug for KeptWork<K, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        let results = state.young.len() + state.old.len();
        out.debug_struct("KeptWork").field("results", &results).finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash + Send + 'static, T: Clone + Send + 'static> KeptWork<K, T> {
    pub(crate) fn new(bounds: Bounds<T>, threads: ThreadRule) -> KeptWork<K, T> {
        let state =
            State { young: HashMap::new(), old: HashMap::new(), young_weight: 0, under_way: HashMap::new() };
        KeptWork {
            shared: Arc::new(Shared { bounds, state: Mutex::new(state) }),
            threads: Readers::by(threads),
        }
    }

    pub(crate) fn find(&self, key: &K) -> Known<T> {
        let mut state = self.shared.lock();
        state.promote(key, &self.shared.bounds);
        match state.young.get(key) {
            Some(known) => Known::Done(known.clone()),
            None if state.is_full(key, &self.shared.bounds) => Known::Busy,
            None => Known::Nothing,
        }
    }

    /// Has a thread do `work` for what is [`Known::Nothing`], and wakes `wake_target` when it is done. Work that panics has the result
    /// `failed`.
    pub(crate) fn ask(
        &self,
        key: K,
        failed: T,
        wake_target: ResultWaker<'_>,
        work: impl FnOnce() -> T + Send + 'static,
    ) {
        let Some(waker) = wake_target() else { return };
        let mut state = self.shared.lock();
        if state.young.contains_key(&key) {
            drop(state);
            return waker.wake();
        }
        if let Some(wakers) = state.under_way.get_mut(&key) {
            if !wakers.iter().any(|known| known.will_wake(&waker)) {
                wakers.push(waker);
            }
            return;
        }
        state.under_way.insert(key.clone(), vec![waker]);
        drop(state);
        let shared = Arc::clone(&self.shared);
        self.threads.run(move || {
            let result = caught(work).unwrap_or(failed);
            let mut state = shared.lock();
            let wakers = state.under_way.remove(&key);
            state.insert(key, result, &shared.bounds);
            drop(state);
            wakers.into_iter().flatten().for_each(Waker::wake);
        });
    }
}

impl<K, T> Shared<K, T> {
    fn lock(&self) -> MutexGuard<'_, State<K, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash, T> State<K, T> {
    fn is_full(&self, key: &K, bounds: &Bounds<T>) -> bool {
        self.under_way.len() >= bounds.under_way && !self.under_way.contains_key(key)
    }

    fn promote(&mut self, key: &K, bounds: &Bounds<T>) {
        if let Some((key, known)) = self.old.remove_entry(key) {
            self.insert(key, known, bounds);
        }
    }

    /// The only place where results grow.
    fn insert(&mut self, key: K, result: T, bounds: &Bounds<T>) {
        let weight = (bounds.weigh)(&result);
        let is_full = self.young.len() + 1 > bounds.entries / 2;
        if is_full || self.young_weight.saturating_add(weight) > bounds.weight / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_weight = 0;
        }
        self.old.remove(&key);
        self.young_weight += weight;
        if let Some(replaced) = self.young.insert(key, result) {
            self.young_weight = self.young_weight.saturating_sub((bounds.weigh)(&replaced));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::Poll;

    const BOUNDS: Bounds<u64> = Bounds { entries: 64, weight: 10_000, weigh: |weight| *weight, under_way: 4 };

    fn kept() -> KeptWork<u64, u64> {
        KeptWork::new(BOUNDS, ThreadRule { name: "test", most: 2, ..ThreadRule::default() })
    }

    fn done(kept: &KeptWork<u64, u64>, key: u64, work: impl Fn() -> u64 + Clone + Send + 'static) -> u64 {
        readers::wait(|wake_target| match kept.find(&key) {
            Known::Done(result) => Poll::Ready(result),
            Known::Busy => panic!("too much is under way"),
            Known::Nothing => {
                kept.ask(key, u64::MAX, wake_target, work.clone());
                Poll::Pending
            }
        })
    }

    #[test]
    fn work_is_done_once_and_a_panic_is_a_result() {
        let kept = kept();
        let times = Arc::new(AtomicU64::new(0));
        for _ in 0..3 {
            let times = Arc::clone(&times);
            assert_eq!(done(&kept, 1, move || times.fetch_add(1, Ordering::Relaxed)), 0);
        }
        assert_eq!(times.load(Ordering::Relaxed), 1);
        assert_eq!(done(&kept, 2, || panic!("on purpose")), u64::MAX);
        assert_eq!(done(&kept, 3, || 7), 7, "the thread goes on");
    }

    #[test]
    fn results_are_bounded_in_count_and_weight_and_what_is_asked_for_stays() {
        for weight in [0, 10, 1_000] {
            let kept = kept();
            let mut state = kept.shared.lock();
            for key in 0..1_000 {
                state.insert(key, weight, &BOUNDS);
                state.promote(&0, &BOUNDS);
                let all = || state.young.values().chain(state.old.values());
                assert!(all().count() <= 64 && all().sum::<u64>() <= 10_000, "{key}");
                assert!(state.young.contains_key(&0), "{key}");
            }
        }
    }

    #[test]
    fn work_under_way_is_bounded() {
        let kept = kept();
        let mut state = kept.shared.lock();
        (0..4).for_each(|key| drop(state.under_way.insert(key, Vec::new())));
        drop(state);
        assert_eq!(kept.find(&3), Known::Nothing, "what is under way is waited for");
        assert_eq!(kept.find(&4), Known::Busy);
    }
}
