//! An upstream of a route: how many requests it has, its connections, and its health.

use crate::address::Address;
use crate::check::Probe;
use crate::health::{Change, Health};
use crate::log::Notice;
use crate::pool::Pool;
use crate::runtime::shared;
use crate::settings::Settings;
use crate::tally::Tally;
use crate::watch::watch;
use base::time::Duration;
use client::tasks::spawn_on;
use server::proxy_protocol::Sender;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::Instant;

/// An upstream; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Upstream(Arc<State>);

#[derive(Debug)]
struct State {
    health: Arc<Health>,
    /// Requests under way at most.
    most: usize,
    /// Requests under way.
    active: AtomicUsize,
    pool: Pool,
}

impl Upstream {
    /// Those of a route.
    pub(crate) fn all(settings: &Settings) -> Vec<Upstream> {
        // A connection that tells of a client is of no use to another one.
        let idle = if settings.proxy_protocol { 0 } else { settings.idle_connections };
        let of = |address: &Address| {
            Upstream(Arc::new(State {
                health: Health::of(address, settings),
                most: settings.connections,
                active: AtomicUsize::new(0),
                pool: Pool::new(idle, settings.timeouts.keep_alive),
            }))
        };
        settings.upstreams.iter().map(of).collect()
    }

    /// Its route takes requests from now on.
    pub(crate) fn begin(&self, settings: &Settings) {
        let probe = settings.check.clone().map(|check| {
            let host = check.host.clone().or_else(|| settings.host.clone());
            let host = host.unwrap_or_else(|| Probe::host(self.address()));
            let sender = settings.proxy_protocol.then_some(Sender::Local);
            Probe { check, tls: settings.tls.clone(), host, sender }
        });
        if self.0.health.begin(probe)
            && let Ok(runtime) = shared()
        {
            spawn_on(&runtime, Box::pin(watch(Arc::downgrade(&self.0.health))));
        }
    }

    /// Its route takes no more.
    pub(crate) fn end(&self) {
        self.0.health.end();
    }

    pub(crate) fn address(&self) -> &Address {
        self.0.health.address()
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    pub(crate) fn notice(&self) -> &Notice {
        self.0.health.notice()
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
        self.tally().filter(|_| entered.is_ok()).into_iter().for_each(Tally::on_begin);
        entered.ok().map(|_| Underway(self.clone()))
    }

    /// Whether it gets requests while others do, too.
    pub(crate) fn is_healthy(&self, now: Instant) -> bool {
        self.0.health.is_good(now)
    }

    /// A request has failed, and it is the upstream's fault.
    pub(crate) fn on_failure(&self, now: Instant) -> Change {
        self.tally().into_iter().for_each(Tally::on_failure);
        self.0.health.on_failure(now)
    }

    /// It has answered with `status` to a request that was sent at `since`.
    pub(crate) fn on_response(&self, status: u16, since: Instant) -> Change {
        if let Some(tally) = self.tally() {
            let nanos = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            tally.on_response(status, Duration::from_nanos(nanos));
        }
        self.0.health.on_response()
    }

    /// A connection to it was opened.
    pub(crate) fn on_connection(&self) {
        self.tally().into_iter().for_each(Tally::on_connection);
    }

    fn tally(&self) -> Option<&Tally> {
        self.0.health.tally()
    }
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
        self.0.tally().into_iter().for_each(Tally::on_end);
    }
}
