//! What is counted of upstreams, for the metrics.
//!
//! Data structure: a list of addresses in the order in which they became live. It does not shrink, as counters must not fall; at most
//! [`TOLD_APART`] are told apart, whatever reloads bring.

use crate::address::Address;
use base::time::Duration;
use server::metrics::{Classes, Histogram};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Other addresses are counted together.
const TOLD_APART: usize = 64;
/// What these are called.
const OTHERS: &str = "(other)";

/// What is counted of an address.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) failures: AtomicU64,
    pub(crate) failed_checks: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) active: AtomicU64,
    answered: Mutex<Answered>,
}

/// Responses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answered {
    pub(crate) classes: Classes,
    /// From the choice of the upstream to the head of its response.
    pub(crate) durations: Histogram,
}

impl Tally {
    /// A request is sent.
    pub(crate) fn on_begin(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    /// A request and its response are over.
    pub(crate) fn on_end(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// A connection was opened.
    pub(crate) fn on_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// The head of a response has come.
    pub(crate) fn on_response(&self, status: u16, after: Duration) {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) =
            usize::from(status / 100).checked_sub(1).and_then(|place| answered.classes.get_mut(place))
        {
            *count += 1;
        }
        answered.durations.observe(after);
    }

    /// There is none, and it is the upstream's fault.
    pub(crate) fn on_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted of responses.
    pub(crate) fn answered(&self) -> Answered {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A check has failed.
    pub(crate) fn on_failed_check(&self) {
        self.failed_checks.fetch_add(1, Ordering::Relaxed);
    }
}

/// In the order in which they became live.
static ALL: Mutex<Vec<(String, Arc<Tally>)>> = Mutex::new(Vec::new());

/// The tally of an address.
pub(crate) fn tally(address: &Address) -> Arc<Tally> {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let name = address.to_string();
    let name = if is_told_apart(&all, &name) { name } else { OTHERS.to_owned() };
    if let Some((_, tally)) = all.iter().find(|(known, _)| *known == name) {
        return Arc::clone(tally);
    }
    let tally = Arc::<Tally>::default();
    all.push((name, Arc::clone(&tally)));
    tally
}

fn is_told_apart<T>(all: &[(String, T)], name: &str) -> bool {
    all.len() < TOLD_APART || all.iter().any(|(known, _)| known == name)
}

/// All of them, with what they are called.
pub(crate) fn all() -> Vec<(String, Arc<Tally>)> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, reloads could fill the memory of Prometheus.
    #[test]
    fn so_many_addresses_are_told_apart() {
        let all: Vec<(String, ())> = (0..TOLD_APART).map(|number| (number.to_string(), ())).collect();
        assert!(is_told_apart(&all, "63") && !is_told_apart(&all, "64") && is_told_apart(&all[1..], "64"));
    }
}
