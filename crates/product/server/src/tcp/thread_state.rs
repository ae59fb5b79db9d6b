//! What the connections of a thread share beside what answers: the log, the clock, the counters. One thread, so no lock.

use super::ThreadCounters;
use super::cut::NextCut;
use crate::access_log::{Entry, Protocol, Recorder};
use crate::low::Shared;
use crate::metrics::RequestTally;
use crate::request::Head;
use crate::response_fields::DateField;
use crate::warnings::Warnings;
use base::time::Instant;
use http::HeaderMap;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Heads that are kept for their memory.
const SPARE_HEADS: usize = 64;

/// Heads of requests that were answered. Boxed, because heads are handed from place to place and are large.
type Spare = Vec<Box<Head>>;

/// The head of a request, in memory that is used again ([`ThreadState::recycle`]).
pub(super) struct PooledHead(Option<Box<Head>>);

impl Deref for PooledHead {
    type Target = Head;

    fn deref(&self) -> &Head {
        static EMPTY: Head = Head::new();
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl DerefMut for PooledHead {
    fn deref_mut(&mut self) -> &mut Head {
        self.0.get_or_insert_default()
    }
}

/// A thread's part of the site.
pub(super) struct ThreadState {
    pub(super) recorder: RefCell<Recorder>,
    pub(super) counters: RefCell<ThreadCounters>,
    pub(super) requests: RefCell<RequestTally>,
    pub(super) warnings: Warnings,
    pub(super) next_cut: NextCut,
    date: RefCell<DateField>,
    spare: RefCell<Spare>,
}

impl ThreadState {
    /// Logs to `recorder`.
    pub(super) fn new(shared: &Shared, recorder: Recorder) -> ThreadState {
        ThreadState {
            recorder: RefCell::new(recorder),
            counters: RefCell::default(),
            requests: RefCell::default(),
            warnings: shared.warnings.clone(),
            next_cut: NextCut::default(),
            date: RefCell::new(DateField::new(shared.clock)),
            spare: RefCell::default(),
        }
    }

    /// An empty head.
    pub(super) fn head(&self) -> PooledHead {
        PooledHead(Some(self.spare.borrow_mut().pop().unwrap_or_default()))
    }

    /// Takes a head back for its memory. An empty one stays, which has none.
    pub(super) fn recycle(&self, head: &mut PooledHead) {
        let Some(mut head) = head.0.take() else { return };
        head.recycle();
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_HEADS {
            spare.push(head);
        }
    }

    /// The wall clock as of `now`, in seconds since 1970.
    pub(super) fn unix_s(&self, now: Instant) -> u64 {
        self.date.borrow_mut().unix_s(now)
    }

    /// Adds the Date field as of `now`.
    pub(super) fn date(&self, fields: &mut HeaderMap, now: Instant) {
        self.date.borrow_mut().add(fields, now);
    }

    /// A request for this site is over.
    pub(super) fn on_answered(&self, entry: &Entry<'_>, site: usize, now: Instant) {
        self.recorder.borrow_mut().record(entry, now);
        self.requests.borrow_mut().on_answered(entry.protocol, entry.status, site, entry.duration);
        let mut counters = self.counters.borrow_mut();
        let served = match entry.protocol {
            Protocol::Http2 => &mut counters.http2,
            _ => &mut counters.http1,
        };
        served.requests += 1;
        served.content_bytes += entry.bytes;
    }
}
