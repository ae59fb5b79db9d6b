//! What counts: the books of one thread, whatever its connections speak.
//!
//! Connections ask here before they begin a request ([`RequestAccounts::peek`], [`RequestAccounts::begin`]). They report its
//! outcome here, once for each request. Time is an argument, so a test can run a day in a moment.

use super::budget::Budget;
use super::failure::Failure;
use super::kinds::HandshakeKind;
use super::plan::{Bound, RunRules};
use super::record::Record;
use base::time::{Duration, Instant};

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Connections are made.
    Connecting,
    /// Requests are made and not counted.
    WarmUp,
    /// Requests are counted.
    Measuring,
    /// Nothing counts any more.
    Over,
}

/// A request that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestTimes {
    /// When it was meant to begin.
    pub(super) intended: Instant,
    /// When it began: what a timeout counts from.
    pub(super) began: Instant,
    /// Whether it began while requests were counted.
    pub(super) is_counted: bool,
}

/// The books.
#[derive(Debug)]
pub(super) struct RequestAccounts {
    bound: Bound,
    pub(super) phase: Phase,
    pub(super) budget: Budget,
    /// Requests that have begun and not ended.
    pub(super) outstanding: usize,
    pub(super) record: Record,
    /// When the last answer that counts came.
    pub(super) last_answer: Instant,
}

impl RequestAccounts {
    pub(super) fn new(rules: &RunRules) -> RequestAccounts {
        RequestAccounts {
            bound: rules.bound,
            phase: Phase::Connecting,
            budget: Budget::NONE,
            outstanding: 0,
            record: Record::with_series(rules.series),
            last_answer: Instant::ZERO,
        }
    }

    /// When the next request should have begun, if one may begin now.
    #[inline]
    pub(super) fn peek(&self, now: Instant) -> Option<Instant> {
        self.budget.peek(now)
    }

    /// The request that `peek` spoke of begins.
    #[inline]
    pub(super) fn begin(&mut self, now: Instant, intended: Instant) -> RequestTimes {
        self.budget.begin();
        self.outstanding += 1;
        RequestTimes { intended, began: now, is_counted: self.phase == Phase::Measuring }
    }

    /// Whether all that was to be asked has been, and has ended.
    pub(super) fn is_done(&self) -> bool {
        self.budget.left() == 0 && self.outstanding == 0
    }

    /// Whether a request counts that ends now. A span of time counts what ends in it, a number what begins after the
    /// warm-up, so that exactly this many are counted.
    #[inline]
    pub(super) fn counts(&self, asked: &RequestTimes) -> bool {
        self.phase == Phase::Measuring && (asked.is_counted || matches!(self.bound, Bound::Span(_)))
    }

    /// Content has arrived.
    #[inline]
    pub(super) fn on_content(&mut self, now: Instant, bytes: u64) {
        if self.phase == Phase::Measuring {
            self.record.content_bytes += bytes;
            if let Some((slice, _)) = self.record.series.at(now, self.record.began) {
                slice.content_bytes += bytes;
            }
        }
    }

    /// Bytes of requests were acknowledged.
    #[inline]
    pub(super) fn on_upload(&mut self, bytes: u64) {
        if self.phase == Phase::Measuring {
            self.record.uploaded_bytes += bytes;
        }
    }

    /// An answer is complete. The perf protocol has no status: 0.
    #[inline]
    pub(super) fn on_answer(&mut self, now: Instant, asked: &RequestTimes, status: u16) {
        let succeeds = status < 400;
        if !succeeds {
            self.book_failure(now, asked, Failure::Status);
        }
        self.outstanding -= 1;
        if !self.counts(asked) {
            return;
        }
        let latency = now.saturating_since(asked.intended);
        self.last_answer = now;
        self.record.statuses.add(status);
        self.record.latency.add(latency);
        self.record.succeeded += u64::from(succeeds);
        if let Some((slice, spans)) = self.record.series.at(now, self.record.began) {
            slice.succeeded += u64::from(succeeds);
            slice.longest_ns = slice.longest_ns.max(latency.as_nanos());
            spans.add(latency);
        }
    }

    /// There will be no answer, or not all of it.
    #[cold]
    pub(super) fn on_failure(&mut self, now: Instant, asked: &RequestTimes, failure: Failure) {
        self.outstanding -= 1;
        self.book_failure(now, asked, failure);
    }

    #[cold]
    fn book_failure(&mut self, now: Instant, asked: &RequestTimes, failure: Failure) {
        if self.phase == Phase::Over {
            return;
        }
        if !self.counts(asked) {
            self.record.warm_up_failures += 1;
            return;
        }
        self.last_answer = now;
        self.record.failures.add(failure, 1);
        let waited = now.saturating_since(asked.intended);
        if failure == Failure::Timeout {
            self.record.latency.add(waited);
        }
        if let Some((slice, spans)) = self.record.series.at(now, self.record.began) {
            slice.failed += 1;
            if failure == Failure::Timeout {
                slice.longest_ns = slice.longest_ns.max(waited.as_nanos());
                spans.add(waited);
            }
        }
    }

    /// A handshake is complete that took so long. That of a connection which is there for one request counts if the request does.
    pub(super) fn on_handshake(&mut self, asked: Option<&RequestTimes>, took: Duration, kind: HandshakeKind) {
        if asked.is_none_or(|asked| self.counts(asked)) {
            self.record.handshake.add(took);
            self.record.kinds.add(kind);
        }
    }

    /// The head of an answer has come, on a connection that is there for its request.
    pub(super) fn on_head(&mut self, now: Instant, asked: &RequestTimes) {
        if self.counts(asked) {
            self.record.first_byte.add(now.saturating_since(asked.intended));
        }
    }

    /// A connection could not be made.
    #[cold]
    pub(super) fn on_connection_failure(&mut self, failure: Failure) {
        if self.phase != Phase::Over {
            self.record.connection_failures.add(failure, 1);
        }
    }

    /// Something went wrong with a connection, in words. The first one is kept.
    #[cold]
    pub(super) fn on_fault(&mut self, words: impl FnOnce() -> String) {
        if self.phase != Phase::Over {
            self.record.first_fault.get_or_insert_with(words);
        }
    }
}
