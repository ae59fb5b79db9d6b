//! An upstream: how many requests it has, and whether it fails.
//!
//! Health is passive: failures in a row count, and after some an upstream gets no requests for a while if there are others. Then the
//! next request tries it; one failure more, and it is passed over again.

use crate::address::Address;
use crate::log::Notice;
use crate::pool::Pool;
use crate::settings::{Retries, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use tokio::time::{Duration, Instant};

/// An upstream; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Upstream(Arc<State>);

#[derive(Debug)]
struct State {
    address: Address,
    /// Requests under way at most.
    most: usize,
    retries: Retries,
    /// Requests under way.
    active: AtomicUsize,
    /// In a row.
    failures: AtomicU32,
    /// Until then it gets no requests: milliseconds since `began`.
    out_until: AtomicU64,
    began: Instant,
    pool: Pool,
    notice: Notice,
}

/// What a failure or a response changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Change {
    None,
    /// It gets no requests for a while.
    Out,
    /// It answers again.
    Back,
}

impl Upstream {
    /// Those of a route.
    pub(crate) fn all(settings: &Settings) -> Vec<Upstream> {
        let of = |address: &Address| {
            Upstream(Arc::new(State {
                address: address.clone(),
                most: settings.connections,
                retries: settings.retries,
                active: AtomicUsize::new(0),
                failures: AtomicU32::new(0),
                out_until: AtomicU64::new(0),
                began: Instant::now(),
                pool: Pool::new(settings.idle_connections, settings.timeouts.keep_alive),
                notice: Notice::default(),
            }))
        };
        settings.upstreams.iter().map(of).collect()
    }

    pub(crate) fn address(&self) -> &Address {
        &self.0.address
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    pub(crate) fn notice(&self) -> &Notice {
        &self.0.notice
    }

    /// Requests under way.
    pub(crate) fn active(&self) -> usize {
        self.0.active.load(Ordering::Relaxed)
    }

    /// Whether it may get another request.
    pub(crate) fn has_room(&self) -> bool {
        self.active() < self.0.most
    }

    /// Counts a request; `None` if there are too many.
    pub(crate) fn enter(&self) -> Option<Underway> {
        let enter = |active| (active < self.0.most).then_some(active + 1);
        let entered = self.0.active.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter);
        entered.ok().map(|_| Underway(self.clone()))
    }

    /// Whether it gets requests while others do, too.
    pub(crate) fn is_healthy(&self, now: Instant) -> bool {
        self.0.out_until.load(Ordering::Relaxed) <= self.since_began(now)
    }

    /// A request has failed, and it is the upstream's fault.
    pub(crate) fn on_failure(&self, now: Instant) -> Change {
        let failures = self.0.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if failures < self.0.retries.failures {
            return Change::None;
        }
        let until = self.since_began(now).saturating_add(milliseconds(self.0.retries.cool_down));
        let before = self.0.out_until.swap(until, Ordering::Relaxed);
        if before == 0 { Change::Out } else { Change::None }
    }

    /// It has answered.
    pub(crate) fn on_response(&self) -> Change {
        if self.0.failures.load(Ordering::Relaxed) == 0 {
            return Change::None;
        }
        self.0.failures.store(0, Ordering::Relaxed);
        if self.0.out_until.swap(0, Ordering::Relaxed) == 0 { Change::None } else { Change::Back }
    }

    fn since_began(&self, now: Instant) -> u64 {
        milliseconds(now.saturating_duration_since(self.0.began))
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A request that an upstream has, until its response is over.
#[derive(Debug)]
pub(crate) struct Underway(Upstream);

impl Underway {
    pub(crate) fn upstream(&self) -> &Upstream {
        &self.0
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, an upstream that is down could be told of with each request, or never come back.
    #[test]
    fn an_upstream_goes_out_once_and_comes_back_once() {
        let settings = Settings::new(vec!["unix:/a".parse().unwrap()]);
        let upstream = Upstream::all(&settings).remove(0);
        let now = Instant::now();
        let changes = [(); 4].map(|()| upstream.on_failure(now));
        assert_eq!(changes, [Change::None, Change::None, Change::Out, Change::None]);
        assert!(!upstream.is_healthy(now + Duration::from_secs(9)));
        let later = now + Duration::from_secs(11);
        assert!(upstream.is_healthy(later));
        assert_eq!(upstream.on_failure(later), Change::None);
        assert!(!upstream.is_healthy(later), "one failure more is enough");
        assert_eq!([upstream.on_response(), upstream.on_response()], [Change::Back, Change::None]);
        assert!(upstream.is_healthy(later));
        // Failures that are not in a row.
        for _ in 0..9 {
            assert_eq!(upstream.on_failure(later), Change::None);
            assert_eq!(upstream.on_response(), Change::None);
        }
    }
}
