//! What is known of upstreams, for who looks after the server.

use crate::health;
use crate::tally::{Answered, Tally, all};
use server::metrics::{Classes, Histogram};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is known of an upstream.
#[derive(Clone, Debug)]
pub struct UpstreamReport {
    /// Its address, as a configuration has it; or `(other)`, for all beyond the first 64.
    pub name: String,
    /// Whether it gets requests; `None` if no route has it now.
    pub is_healthy: Option<bool>,
    /// Requests that it has.
    pub active: u64,
    /// Responses by the classes of their status.
    pub classes: Classes,
    /// From the choice of the upstream to the head of its response.
    pub durations: Histogram,
    /// Requests without a response, by its fault.
    pub failures: u64,
    /// Checks that failed.
    pub failed_checks: u64,
    /// Connections that were opened.
    pub connections: u64,
}

/// All upstreams that a route has, or had.
pub fn upstreams() -> Vec<UpstreamReport> {
    let live: Vec<(String, bool)> =
        health::live().into_iter().map(|(address, is_good)| (address.to_string(), is_good)).collect();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let report = |(name, tally): (String, Arc<Tally>)| {
        let Answered { classes, durations } = tally.answered();
        UpstreamReport {
            is_healthy: live.iter().find(|(known, _)| *known == name).map(|(_, is_good)| *is_good),
            name,
            active: count(&tally.active),
            classes,
            durations,
            failures: count(&tally.failures),
            failed_checks: count(&tally.failed_checks),
            connections: count(&tally.connections),
        }
    };
    all().into_iter().map(report).collect()
}
