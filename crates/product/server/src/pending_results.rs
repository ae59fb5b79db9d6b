//! What a handler has asked other threads for, once for a key however many requests wait for it.
//!
//! The first request that comes again after the work is done takes the result. A result that was not taken for [`FRESH`] is
//! forgotten: the disk may have changed.

use crate::monotonic::now;
use crate::readers::{Readers, ResultWaker, Ticket};
use base::time::{Duration, Instant};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::task::Poll;

/// How old a result may be.
const FRESH: Duration = Duration::from_secs(1);

/// Work under way, and results that wait.
#[derive(Debug)]
pub(crate) struct PendingResults<K, T> {
    /// With the time when it was done.
    jobs: HashMap<K, Ticket<(Instant, T)>>,
    /// As many at a time.
    most: usize,
}

/// As much is under way as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl<K: Eq + Hash, T: Send + 'static> PendingResults<K, T> {
    pub(crate) fn new(most: usize) -> PendingResults<K, T> {
        PendingResults { jobs: HashMap::new(), most }
    }

    /// Whether nothing is under way and no result waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether no more may be asked for at present.
    pub(crate) fn is_full(&self) -> bool {
        self.jobs.len() >= self.most
    }

    /// The result for `key`, once; `Ready(None)` where the thread must be asked.
    pub(crate) fn take<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Poll<Option<T>>
    where
        K: Borrow<Q>,
    {
        if self.jobs.is_empty() {
            return Poll::Ready(None);
        }
        let Some(ticket) = self.jobs.get(key) else { return Poll::Ready(None) };
        let Poll::Ready(result) = ticket.poll(&|| None) else { return Poll::Pending };
        self.jobs.remove(key);
        Poll::Ready(result.filter(|(at, _)| now().saturating_since(*at) < FRESH).map(|(_, result)| result))
    }

    /// All results that were not taken yet.
    pub(crate) fn take_done(&mut self) -> Vec<(K, T)> {
        let done = self.jobs.extract_if(|_, ticket| ticket.is_done());
        let result = |(key, ticket): (K, Ticket<(Instant, T)>)| match ticket.poll(&|| None) {
            Poll::Ready(Some((at, result))) if now().saturating_since(at) < FRESH => Some((key, result)),
            Poll::Ready(_) | Poll::Pending => None,
        };
        done.filter_map(result).collect()
    }

    /// Has one of `readers` do `work`, and wakes `whom` when it is done.
    ///
    /// # Errors
    /// Too much is under way already: `whom` is woken when something of that is done.
    pub(crate) fn ask(
        &mut self,
        readers: &Readers,
        key: K,
        wake_target: ResultWaker<'_>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(), TooMany> {
        if self.jobs.get(&key).is_some_and(|ticket| ticket.poll(wake_target).is_pending()) {
            return Ok(());
        }
        if self.is_full() {
            self.jobs.retain(|_, ticket| ticket.poll(wake_target).is_pending());
            if self.is_full() {
                return Err(TooMany);
            }
        }
        let Some(waker) = wake_target() else { return Ok(()) };
        let ticket = readers.submit(waker, move || {
            let result = work();
            (now(), result)
        });
        self.jobs.insert(key, ticket);
        Ok(())
    }
}
