//! Requests to one origin at a time: a place for each, which the content of the response holds until it has ended.

use super::origin::Origin;
use ::body::{Body, BodyError};
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places that were given out or are waited for, by origin.
pub(crate) struct Quotas {
    most: Option<NonZeroUsize>,
    origins: Mutex<HashMap<Origin, Arc<Semaphore>>>,
}

/// The place of one request. Dropped, the next request has it.
pub(crate) struct Place(Option<OwnedSemaphorePermit>);

impl Quotas {
    pub(crate) fn new(most: Option<NonZeroUsize>) -> Quotas {
        Quotas { most, origins: Mutex::default() }
    }

    /// Waits for a place. The requests of an origin get theirs in the order in which they came.
    pub(crate) async fn place(&self, origin: &Origin) -> Place {
        let Some(most) = self.most else { return Place(None) };
        let places = {
            let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
            if !origins.contains_key(origin) {
                // Each permit and each waiting request has a clone.
                origins.retain(|_, places| Arc::strong_count(places) > 1);
            }
            let most = most.get().min(Semaphore::MAX_PERMITS);
            Arc::clone(origins.entry(origin.clone()).or_insert_with(|| Arc::new(Semaphore::new(most))))
        };
        // It is never closed.
        Place(places.acquire_owned().await.ok())
    }
}

impl Place {
    /// The same content, which holds the place until it has ended or is dropped.
    pub(crate) fn hold(self, content: Body) -> Body {
        match self.0 {
            Some(permit) if !content.is_end_stream() => Body::new(Holding { content, permit: Some(permit) }),
            _ => content,
        }
    }
}

struct Holding {
    content: Body,
    permit: Option<OwnedSemaphorePermit>,
}

impl http_body::Body for Holding {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.content).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.permit = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}
