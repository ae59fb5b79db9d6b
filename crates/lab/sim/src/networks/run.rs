//! One download: how long it took, and what it cost.

use super::link_profile::NetworkProfile;
use super::work::Work;
use crate::lab::StopReason;
use crate::qlog_files::QlogFiles;
use crate::read_behaviour::ReadBehaviour;
use crate::requests::{Client, RequestPlan, Server};
use base::time::Duration;
use http3::Config;
use recovery::congestion::Algorithm;
use std::sync::Arc;

/// A download that takes longer counts as this long.
pub const LIMIT: Duration = Duration::from_secs(120);

/// What a download came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// From the client's first packet to its last byte; `None` if that took longer than [`LIMIT`].
    pub time: Option<Duration>,
    /// The longest time in which no content arrived, after its first byte.
    pub stall: Duration,
    /// From the end of the outage until content arrived again; `None` without an outage, or if nothing was to come after it.
    pub resumed_after: Option<Duration>,
    /// Packets that the server sent.
    pub sent: u64,
    /// Packets that it declared lost.
    pub declared: u64,
    /// Of its datagrams, those that the link lost.
    pub lost: u64,
    /// Its probe timeouts.
    pub probes: u64,
}

impl Trial {
    /// Packets declared lost that were not, as a share of those sent: what was sent twice for nothing.
    pub fn needless(&self) -> f64 {
        self.declared.saturating_sub(self.lost) as f64 / self.sent.max(1) as f64
    }
}

/// When content arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    received: u64,
    /// When it arrived last.
    at: Duration,
    pub(super) stall: Duration,
    pub(super) resumed_at: Option<Duration>,
}

impl Progress {
    pub(super) fn on_received(&mut self, age: Duration, received: u64, silent_until: Option<Duration>) {
        if received == self.received {
            return;
        }
        if self.received > 0 {
            self.stall = self.stall.max(age.saturating_sub(self.at));
        }
        if silent_until.is_some_and(|end| age >= end) {
            self.resumed_at.get_or_insert(age);
        }
        (self.received, self.at) = (received, age);
    }
}

/// Runs a download.
///
/// # Errors
/// When the connection failed before the limit, in words.
pub fn run(profile: &NetworkProfile, work: Work, algorithm: Algorithm, seed: u64) -> Result<Trial, String> {
    let mut scenario = profile.scenario(seed);
    scenario.server.congestion = algorithm;
    let (qlog, scenario) = QlogFiles::start(&scenario);
    let behaviour = ReadBehaviour::new(scenario.app_rng().fork(), 0);
    let patient = Config { head_timeout: None, body_timeout: None, ..Config::server() };
    let mut lab = scenario.build(Server::new(behaviour.clone(), Arc::new(patient)), Client::default())?;
    let requests = work.requests();
    let plan = RequestPlan::new(behaviour, requests.asks, requests.parallel, 0);
    let now = lab.network().borrow().now();
    lab.connect(plan.into_session(&Arc::new(Config::client()), now))?;
    let silent_until = profile.silence().map(|(_, to)| to);
    let mut progress = Progress::default();
    let halt = lab.run(LIMIT, |lab| {
        let age = lab.age();
        // The connection itself is not asked: that would give it a turn.
        let client = lab.client().app_mut();
        progress.on_received(age, client.received, silent_until);
        client.done > 0 || !client.failures.is_empty()
    });
    let is_done = lab.client().app_mut().done > 0;
    let failures = lab.client().app_mut().failures.clone();
    if !failures.is_empty() || !matches!(halt, StopReason::Done | StopReason::OutOfTime) {
        return Err(format!("{halt:?} after {:.3} s: {failures:?}", lab.age().as_secs_f64()));
    }
    let age = lab.age();
    let counters = lab.server().app_mut().counters;
    let (server, client) = lab.hosts();
    let link = lab.network().borrow().link_counters(server, client);
    if !is_done {
        progress.stall = progress.stall.max(age.saturating_sub(progress.at));
    }
    drop(lab);
    qlog.finish()?;
    Ok(Trial {
        time: is_done.then_some(age),
        stall: progress.stall,
        resumed_after: silent_until.and_then(|end| Some(progress.resumed_at?.saturating_sub(end))),
        sent: counters.sent_packets,
        declared: counters.lost_packets,
        lost: link.lost + link.overflowed,
        probes: counters.probe_timeouts,
    })
}
