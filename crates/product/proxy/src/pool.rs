//! Connections to an upstream that wait for the next request.
//!
//! Data structure: a list for each runtime that drives connections, the one that was used last at its end. That one is used next, so
//! that those at the front grow old and are closed: by a task that looks once in the time that a connection may wait, and ends with the
//! last of them.

use crate::connect::Connection;
use crate::failure::Failure;
use crate::runtime::Realm;
use client::tasks::spawn_on;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::runtime::Handle;
use tokio::time::{Duration, Instant, sleep};

/// The connections of an upstream.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Of each runtime at most.
    most: usize,
    keep_alive: Duration,
    lists: Arc<Lists>,
}

#[derive(Debug, Default)]
struct Lists(Mutex<BTreeMap<Realm, List>>);

#[derive(Debug, Default)]
struct List {
    waiting: VecDeque<Waiting>,
    /// A task closes those that are old.
    is_swept: bool,
    turn: Arc<Turn>,
}

/// Who connects next, and why the last one could not, since when.
type Turn = tokio::sync::Mutex<Option<(Instant, Failure)>>;

#[derive(Debug)]
struct Waiting {
    connection: Connection,
    since: Instant,
}

impl Lists {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Realm, List>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    pub(crate) fn new(most: usize, keep_alive: Duration) -> Pool {
        Pool { most, keep_alive, lists: Arc::default() }
    }

    /// A connection that can be used at once. One that takes several requests stays here, too.
    ///
    /// Connections before the one that is found are not looked at: the cost does not grow with their number.
    pub(crate) fn take(&self, now: Instant) -> Option<Connection> {
        let mut lists = self.lists.lock();
        let List { waiting, .. } = lists.get_mut(&Realm::here())?;
        for place in (0..waiting.len()).rev() {
            let found = waiting.get_mut(place)?;
            if !found.is_good(now, self.keep_alive) {
                waiting.remove(place);
            } else if found.connection.is_ready() {
                if let Some(shared) = found.connection.share() {
                    found.since = now;
                    return Some(shared);
                }
                return Some(waiting.remove(place)?.connection);
            }
        }
        None
    }

    /// One that takes several requests and can be used at once, if there is one.
    pub(crate) fn shared(&self) -> Option<Connection> {
        let mut lists = self.lists.lock();
        let List { waiting, .. } = lists.get_mut(&Realm::here())?;
        let mut ready = waiting.iter().rev().filter(|waiting| waiting.connection.is_ready());
        ready.find_map(|waiting| waiting.connection.share())
    }

    /// A connection that takes several requests, and whether it is new. `connect` makes one and puts it here, one at a time, however many
    /// requests wait for it; all that wait for one that fails fail with it.
    ///
    /// # Errors
    /// None can be made.
    pub(crate) async fn share(
        &self,
        connect: impl Future<Output = Result<Connection, Failure>>,
    ) -> Result<(Connection, bool), Failure> {
        if self.most == 0 {
            return Ok((connect.await?, true));
        }
        let since = Instant::now();
        let turn = Arc::clone(&self.lists.lock().entry(Realm::here()).or_default().turn);
        let mut last = turn.lock().await;
        if let Some(connection) = self.take(Instant::now()) {
            return Ok((connection, false));
        }
        if let Some((_, failure)) = last.as_ref().filter(|(at, _)| *at >= since) {
            return Err(failure.of_connection());
        }
        match connect.await {
            Ok(connection) => {
                *last = None;
                Ok((connection, true))
            }
            Err(failure) => {
                *last = Some((Instant::now(), failure.of_connection()));
                Err(failure)
            }
        }
    }

    /// Keeps a connection whose exchange is complete, or that takes several, for the runtime that drives it. From any thread.
    pub(crate) fn put(&self, connection: Connection, (realm, runtime): (Realm, &Handle)) {
        if connection.is_closed() || self.most == 0 {
            return;
        }
        let mut lists = self.lists.lock();
        let List { waiting, is_swept, .. } = lists.entry(realm).or_default();
        if waiting.len() >= self.most {
            waiting.pop_front();
        }
        waiting.push_back(Waiting { connection, since: Instant::now() });
        if !std::mem::replace(is_swept, true) {
            spawn_on(runtime, Box::pin(sweep(Arc::downgrade(&self.lists), realm, self.keep_alive)));
        }
    }
}

impl Waiting {
    fn is_good(&self, now: Instant, keep_alive: Duration) -> bool {
        !self.connection.is_closed() && now.saturating_duration_since(self.since) < keep_alive
    }
}

/// Closes connections of `realm` that have waited long enough, until there are none.
async fn sweep(lists: Weak<Lists>, realm: Realm, keep_alive: Duration) {
    loop {
        sleep(keep_alive).await;
        let Some(lists) = lists.upgrade() else { return };
        let mut lists = lists.lock();
        let Some(list) = lists.get_mut(&realm) else { return };
        let now = Instant::now();
        list.waiting.retain(|waiting| waiting.is_good(now, keep_alive));
        if list.waiting.is_empty() {
            list.is_swept = false;
            return;
        }
    }
}
