//! The sites of a server that runs, which are replaced as a whole.
//!
//! Each thread compares a number before each request, and takes the lock only when it has changed. Responses that have begun go on; a
//! request that is not answered yet is routed anew.

use super::site::Sites;
use super::slots::Slots;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The sites of a server; clones are the same.
#[derive(Clone, Debug)]
pub struct LiveSites(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// How often they were replaced.
    version: AtomicU64,
    sites: Mutex<Arc<Sites>>,
    slots: Mutex<Slots>,
}

impl LiveSites {
    /// Sites to begin with.
    pub fn new(sites: Sites) -> LiveSites {
        let mut slots = Slots::default();
        let sites = slots.number(sites);
        sites.begin();
        LiveSites(Arc::new(Shared {
            version: AtomicU64::new(0),
            sites: Mutex::new(Arc::new(sites)),
            slots: Mutex::new(slots),
        }))
    }

    /// Requests from now on are answered by `sites`.
    pub fn replace(&self, sites: Sites) {
        let sites = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner).number(sites);
        sites.begin();
        let mut held = self.0.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *held, Arc::new(sites));
        self.0.version.fetch_add(1, Ordering::Release);
        // What both have goes on.
        before.end();
    }

    /// What the sites are called that responses are counted for, by their numbers: see
    /// [`RequestTally::sites`](crate::metrics::RequestTally::sites).
    pub fn counted(&self) -> Vec<String> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner).names()
    }

    pub(super) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// The sites, with their version.
    pub(super) fn current(&self) -> (u64, Arc<Sites>) {
        let held = self.0.sites.lock().unwrap_or_else(PoisonError::into_inner);
        (self.version(), Arc::clone(&held))
    }
}
