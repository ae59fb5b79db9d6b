//! Requests to one origin at a time: a permit for each, which the content of the response holds until it has ended.

use super::holding::Holding;
use super::origin::Origin;
use ::body::Body;
use http_body::Body as _;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places that were given out or are waited for, by origin.
pub(crate) struct Quotas {
    most: Option<NonZeroUsize>,
    origins: Mutex<HashMap<Origin, Arc<Semaphore>>>,
}

/// The permit of one request. Dropped, the next request has it.
pub(crate) struct RequestPermit(Option<OwnedSemaphorePermit>);

impl Quotas {
    pub(crate) fn new(most: Option<NonZeroUsize>) -> Quotas {
        Quotas { most, origins: Mutex::default() }
    }

    /// Waits for a permit. The requests of an origin get theirs in the order in which they came.
    pub(crate) async fn permit(&self, origin: &Origin) -> RequestPermit {
        let Some(most) = self.most else { return RequestPermit(None) };
        let permits = {
            let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
            if !origins.contains_key(origin) {
                // Each permit and each waiting request has a clone.
                origins.retain(|_, permits| Arc::strong_count(permits) > 1);
            }
            let most = most.get().min(Semaphore::MAX_PERMITS);
            Arc::clone(origins.entry(origin.clone()).or_insert_with(|| Arc::new(Semaphore::new(most))))
        };
        // It is never closed.
        RequestPermit(permits.acquire_owned().await.ok())
    }
}

impl RequestPermit {
    /// The same content, which holds the permit until it has ended or is dropped.
    pub(crate) fn hold(self, content: Body) -> Body {
        match self.0 {
            Some(permit) if !content.is_end_stream() => Holding::wrap(content, permit),
            _ => content,
        }
    }
}
