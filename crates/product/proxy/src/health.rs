//! Whether an upstream answers.
//!
//! Two things tell: requests that fail, and checks of our own (check.rs, watch.rs). Failures in a row count, and after some an upstream gets no
//! requests for a while if there are others. Then the next request tries it; one failure more, and it is passed over again. An upstream
//! whose checks fail is passed over until they succeed.
//!
//! What is known outlives the sites: an upstream that a reload leaves as it is, with the same rules, is as healthy after it.

use crate::address::Address;
use crate::check::{Check, Probe};
use crate::log::Notice;
use crate::settings::{Retries, Settings};
use crate::tally::{Tally, tally};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use tokio::time::{Duration, Instant};

/// By what an upstream's health is known again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    address: Address,
    retries: Retries,
    check: Option<Check>,
    /// Checks begin as requests do: what expects the PROXY protocol refuses all else.
    proxy_protocol: bool,
}

/// The health of an upstream, which routes may share.
#[derive(Debug)]
pub(crate) struct Health {
    identity: Identity,
    /// In a row.
    failures: AtomicU32,
    /// Until then it gets no requests: milliseconds since `began`.
    out_until: AtomicU64,
    began: Instant,
    /// Its checks fail.
    is_down: AtomicBool,
    /// Live routes that have it.
    live: AtomicUsize,
    /// A task checks it.
    is_watched: AtomicBool,
    /// How it is checked now.
    probe: Mutex<Option<Arc<Probe>>>,
    notice: Notice,
    /// There once it is live.
    tally: OnceLock<Arc<Tally>>,
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

/// Those of upstreams that some route has.
static KNOWN: Mutex<Vec<Weak<Health>>> = Mutex::new(Vec::new());

impl Health {
    /// That of an upstream of a route: the one that is known, or a new one.
    pub(crate) fn of(address: &Address, settings: &Settings) -> Arc<Health> {
        let (retries, check) = (settings.retries, settings.check.clone());
        let (address, proxy_protocol) = (address.clone(), settings.proxy_protocol);
        let identity = Identity { address, retries, check, proxy_protocol };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|health| health.strong_count() > 0);
        let found = known.iter().filter_map(Weak::upgrade).find(|health| health.identity == identity);
        found.unwrap_or_else(|| {
            let health = Arc::new(Health::new(identity));
            known.push(Arc::downgrade(&health));
            health
        })
    }

    fn new(identity: Identity) -> Health {
        Health {
            identity,
            failures: AtomicU32::new(0),
            out_until: AtomicU64::new(0),
            began: Instant::now(),
            is_down: AtomicBool::new(false),
            live: AtomicUsize::new(0),
            is_watched: AtomicBool::new(false),
            probe: Mutex::default(),
            notice: Notice::default(),
            tally: OnceLock::new(),
        }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.identity.address
    }

    pub(crate) fn notice(&self) -> &Notice {
        &self.notice
    }

    pub(crate) fn tally(&self) -> Option<&Tally> {
        self.tally.get().map(Arc::as_ref)
    }

    /// A route that has it takes requests from now on. Its checks go by `probe`. Returns whether a task is to begin them.
    pub(crate) fn begin(&self, probe: Option<Probe>) -> bool {
        self.tally.get_or_init(|| tally(&self.identity.address));
        self.live.fetch_add(1, Ordering::AcqRel);
        let is_checked = probe.is_some();
        *self.probe.lock().unwrap_or_else(PoisonError::into_inner) = probe.map(Arc::new);
        is_checked && !self.is_watched.swap(true, Ordering::AcqRel)
    }

    /// Another route has taken the place of one that has it.
    pub(crate) fn end(&self) {
        self.live.fetch_sub(1, Ordering::AcqRel);
    }

    /// How to check it now; `None` if no live route has it, and then its task ends.
    pub(crate) fn next_probe(&self) -> Option<Arc<Probe>> {
        if self.live.load(Ordering::Acquire) == 0 {
            self.is_watched.store(false, Ordering::Release);
            // A route that has begun just now has left it to this task.
            if self.live.load(Ordering::Acquire) == 0 || self.is_watched.swap(true, Ordering::AcqRel) {
                return None;
            }
        }
        self.probe.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The checks say so. Returns whether that is new.
    pub(crate) fn set_down(&self, is_down: bool) -> bool {
        self.is_down.swap(is_down, Ordering::Relaxed) != is_down
    }

    /// Whether it gets requests while others do, too.
    pub(crate) fn is_good(&self, now: Instant) -> bool {
        self.out_until.load(Ordering::Relaxed) <= self.since_began(now)
            && !self.is_down.load(Ordering::Relaxed)
    }

    /// A request has failed, and it is the upstream's fault.
    pub(crate) fn on_failure(&self, now: Instant) -> Change {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if failures < self.identity.retries.failures {
            return Change::None;
        }
        let until = self.since_began(now).saturating_add(milliseconds(self.identity.retries.cool_down));
        let before = self.out_until.swap(until, Ordering::Relaxed);
        if before == 0 { Change::Out } else { Change::None }
    }

    /// It has answered.
    pub(crate) fn on_response(&self) -> Change {
        if self.failures.load(Ordering::Relaxed) == 0 {
            return Change::None;
        }
        self.failures.store(0, Ordering::Relaxed);
        if self.out_until.swap(0, Ordering::Relaxed) == 0 { Change::None } else { Change::Back }
    }

    fn since_began(&self, now: Instant) -> u64 {
        milliseconds(now.saturating_duration_since(self.began))
    }
}

/// The addresses that live routes have, and whether they are healthy: all routes' rules say so.
pub(crate) fn live() -> Vec<(Address, bool)> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let mut all: Vec<(Address, bool)> = Vec::new();
    let is_live = |health: &Arc<Health>| health.live.load(Ordering::Acquire) > 0;
    for health in known.iter().filter_map(Weak::upgrade).filter(is_live) {
        let is_good = health.is_good(now);
        match all.iter_mut().find(|(address, _)| address == health.address()) {
            Some((_, is_all_good)) => *is_all_good &= is_good,
            None => all.push((health.address().clone(), is_good)),
        }
    }
    all
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(address: &str) -> Settings {
        Settings::new(vec![address.parse().unwrap()])
    }

    fn health(settings: &Settings) -> Arc<Health> {
        Health::of(&settings.upstreams[0], settings)
    }

    /// Deleted, an upstream that is down could be told of with each request, or never come back.
    #[test]
    fn an_upstream_goes_out_once_and_comes_back_once() {
        let health = health(&settings("unix:/once"));
        let now = Instant::now();
        let changes = [(); 4].map(|()| health.on_failure(now));
        assert_eq!(changes, [Change::None, Change::None, Change::Out, Change::None]);
        assert!(!health.is_good(now + Duration::from_secs(9)));
        let later = now + Duration::from_secs(11);
        assert!(health.is_good(later));
        assert_eq!(health.on_failure(later), Change::None);
        assert!(!health.is_good(later), "one failure more is enough");
        assert_eq!([health.on_response(), health.on_response()], [Change::Back, Change::None]);
        assert!(health.is_good(later));
        // Failures that are not in a row.
        for _ in 0..9 {
            assert_eq!(health.on_failure(later), Change::None);
            assert_eq!(health.on_response(), Change::None);
        }
    }

    /// Deleted, a reload could send requests to upstreams that are known to be down, or keep what is known of those that have gone.
    #[test]
    fn health_is_that_of_an_address_with_the_same_rules_while_a_route_has_it() {
        let mut settings = settings("unix:/same");
        let now = Instant::now();
        let before = health(&settings);
        (0..3).for_each(|_| _ = before.on_failure(now));
        let after = health(&settings);
        drop(before);
        assert!(!after.is_good(now) && !health(&settings).is_good(now));
        settings.retries.failures = 4;
        assert!(health(&settings).is_good(now), "other rules");
        settings.retries.failures = 3;
        drop(after);
        assert!(health(&settings).is_good(now), "no route has had it since");
    }

    /// Deleted, a check could go on for an upstream that no route has, or end for one that a reload leaves.
    #[test]
    fn an_upstream_is_live_while_a_route_that_takes_requests_has_it() {
        let health = health(&settings("unix:/live"));
        let is_live = || live().iter().any(|(address, _)| address == health.address());
        assert!(!is_live());
        assert!(!health.begin(None) && !health.begin(None));
        health.end();
        assert!(is_live());
        assert!(health.set_down(true) && !health.set_down(true));
        assert!(live().iter().any(|(address, is_good)| address == health.address() && !is_good));
        health.end();
        assert!(!is_live() && health.next_probe().is_none());
    }
}
