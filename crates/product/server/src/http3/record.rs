//! What the access log says of HTTP/3 responses, and the responses that wait to be logged.
//!
//! The log tells the time from the arrival of a request's head to the acknowledgement of all of its response. A response that was
//! handed over whole therefore waits in [`Unacknowledged`], without its body. A response that is given up is logged at once.
//! While the log is off nothing waits here.

use crate::access_log::{Entry, Protocol, Recorder};
use crate::low::{Handler, Head as _};
use crate::metrics::RequestTally;
use crate::served::Served;
use base::time::Instant;
use std::collections::VecDeque;
use std::net::IpAddr;
use transport::StreamId;

/// Responses of one connection that wait for their acknowledgement. More are logged without.
const MOST: usize = 128;

/// A response without its body.
pub(super) struct Record<H: Handler> {
    pub(super) id: StreamId,
    pub(super) head: Box<H::Head>,
    pub(super) status: u16,
    /// Bytes of content that were handed over.
    pub(super) sent: u64,
    /// When the request's head arrived.
    pub(super) began: Instant,
}

/// When a response ended, and whose it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) now: Instant,
    /// The same on the wall clock, in seconds since 1970.
    pub(super) unix_s: u64,
    pub(super) peer: IpAddr,
}

/// What one worker counts and logs. Each verb returns a head that is needed no longer.
pub(super) struct ResponseLog {
    pub(super) served: Served,
    pub(super) requests: RequestTally,
    pub(super) recorder: Recorder,
}

impl ResponseLog {
    /// All of a response was handed over: it is counted now, and logged when it is acknowledged.
    pub(super) fn on_whole<H: Handler>(
        &mut self,
        at: At,
        waiting: &mut Unacknowledged<H>,
        record: Record<H>,
    ) -> Option<Box<H::Head>> {
        self.count(at.now, &record);
        if !self.recorder.is_on() {
            return Some(record.head);
        }
        waiting.add(record).map(|oldest| self.on_over(at, oldest))
    }

    /// A response was given up before all of it was handed over.
    pub(super) fn on_cut<H: Handler>(&mut self, at: At, record: Record<H>) -> Box<H::Head> {
        self.count(at.now, &record);
        self.on_over(at, record)
    }

    /// A response that was counted waits no longer.
    pub(super) fn on_over<H: Handler>(&mut self, at: At, record: Record<H>) -> Box<H::Head> {
        let entry = Entry {
            peer: at.peer,
            unix_s: at.unix_s,
            line: record.head.line(),
            protocol: Protocol::Http3,
            status: record.status,
            bytes: record.sent,
            duration: at.now.saturating_since(record.began),
        };
        self.recorder.record(&entry, at.now);
        record.head
    }

    fn count<H: Handler>(&mut self, now: Instant, record: &Record<H>) {
        self.served.requests += 1;
        self.served.content_bytes += record.sent;
        let duration = now.saturating_since(record.began);
        self.requests.on_answered(Protocol::Http3, record.status, record.head.site(), duration);
    }
}

/// Responses of one connection that were handed over whole and are not acknowledged.
pub(super) struct Unacknowledged<H: Handler> {
    /// In the order of the hand-over.
    records: VecDeque<Record<H>>,
    /// Streams among them that are over, in the order in which they ended.
    over: VecDeque<StreamId>,
}

impl<H: Handler> Unacknowledged<H> {
    /// Nothing waits.
    pub(super) const NONE: Unacknowledged<H> =
        Unacknowledged { records: VecDeque::new(), over: VecDeque::new() };

    /// A response was handed over whole. Returns the oldest one when too many wait.
    pub(super) fn add(&mut self, record: Record<H>) -> Option<Record<H>> {
        self.records.push_back(record);
        if self.records.len() > MOST { self.records.pop_front() } else { None }
    }

    /// All of a stream was acknowledged, or the client wants no more of it.
    #[inline]
    pub(super) fn on_over(&mut self, id: StreamId) {
        if !self.records.is_empty() {
            self.over.push_back(id);
        }
    }

    /// A response that waits no longer.
    #[inline]
    pub(super) fn next_over(&mut self) -> Option<Record<H>> {
        while let Some(id) = self.over.pop_front() {
            if let Some(place) = self.records.iter().position(|record| record.id == id) {
                return self.records.remove(place);
            }
        }
        None
    }

    /// The connection has closed: nothing will be acknowledged any more.
    pub(super) fn on_closed(&mut self) {
        self.over = self.records.iter().map(|record| record.id).collect();
    }

    /// Whether [`Unacknowledged::next_over`] has something.
    #[inline]
    pub(super) fn has_over(&self) -> bool {
        !self.over.is_empty()
    }

    /// Gives back memory that responses to come would use again.
    pub(super) fn release_memory(&mut self) {
        self.records.shrink_to_fit();
        self.over.shrink_to_fit();
    }

    /// All that wait.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Record<H>> {
        self.records.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::Files;
    use transport::Dir;
    use wire::Side;

    fn record(number: u64) -> Record<Files> {
        let id = StreamId::new(Side::Client, Dir::Bidi, number);
        Record { id, head: Box::default(), status: 200, sent: 0, began: Instant::ZERO }
    }

    #[test]
    fn few_responses_wait_and_each_is_told_once() {
        let mut waiting = Unacknowledged::NONE;
        for number in 0..MOST as u64 {
            assert!(waiting.add(record(number)).is_none());
        }
        assert_eq!(waiting.add(record(1_000)).map(|oldest| oldest.id), Some(record(0).id));
        for number in [0, 7, 7, 5] {
            waiting.on_over(record(number).id);
        }
        let over: Vec<StreamId> =
            core::iter::from_fn(|| waiting.next_over()).map(|record| record.id).collect();
        assert_eq!(over, [7, 5].map(|number| record(number).id), "in the order in which they ended");
        assert_eq!(waiting.iter().count(), MOST - 2);
        waiting.on_closed();
        assert_eq!(
            waiting.next_over().map(|over| over.id),
            Some(record(1).id),
            "in the order of the hand-over"
        );
        assert_eq!(core::iter::from_fn(|| waiting.next_over()).count(), MOST - 3);
        assert!(!waiting.has_over());
    }
}
