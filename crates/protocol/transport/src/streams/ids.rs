//! Which streams may exist: how many we may open, how many the peer may, and which of the peer's are still to come.
//! Source: RFC 9000 §2.1, §4.6.
//!
//! The peer may use its streams in any order: a higher number opens the lower ones too. Those are not made until a
//! frame names them; a set of ranges remembers which they are, so that one frame with a high number costs one range,
//! and a stream that is over can be told from one that never began.

use crate::flow::{Credit, Step, Window};
use base::ranges::RangeSet;
use base::time::{Duration, Instant};

/// Our own streams of one kind. The credit counts streams.
#[derive(Debug, Default)]
pub(super) struct LocalStreams {
    pub(super) credit: Credit,
    /// Opening was refused since the last event about it.
    pub(super) refused: bool,
    /// The application must hear that it may open streams again.
    pub(super) available: bool,
    /// Streams that were opened and are not over.
    pub(super) open: usize,
}

impl LocalStreams {
    /// The number of the next stream, if the peer allows one.
    pub(super) fn open(&mut self) -> Option<u64> {
        //= rfc9000/4.6#2
        if self.credit.available() == 0 {
            self.refused = true;
            self.credit.note_blocked();
            return None;
        }
        let index = self.credit.used();
        self.credit.use_up(1);
        Some(index)
    }

    /// Whether stream `index` has been opened.
    pub(super) fn was_opened(&self, index: u64) -> bool {
        index < self.credit.used()
    }

    /// The peer allows `limit` streams in all.
    pub(super) fn on_limit(&mut self, limit: u64) {
        //= rfc9000/4.6#4
        if self.credit.on_limit(limit) {
            self.available |= core::mem::take(&mut self.refused);
        }
    }
}

/// What a stream number of the peer's means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// A stream that begins now.
    New,
    /// It was there and is over.
    Over,
    /// Above the limit.
    Refused,
}

/// The peer's streams of one kind.
#[derive(Debug)]
pub(super) struct PeerStreams {
    /// Counts streams; "consumed" are those that are over.
    pub(super) window: Window,
    /// One above the highest number seen.
    next: u64,
    /// Below `next` and never named.
    unseen: RangeSet,
    returns: Returns,
}

/// When the peer may open another stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Returns {
    /// When a stream is over.
    WhenOver,
    /// When a stream is over and the application has released one; `balance` is how many more were released than are over.
    WhenReleased { balance: i64 },
}

impl PeerStreams {
    /// At most `max` streams at a time.
    pub(super) fn new(max: u64) -> PeerStreams {
        let max = max.min(wire::frame::MAX_STREAM_COUNT);
        PeerStreams {
            window: Window::new(max, max, Step::Eighth),
            next: 0,
            unseen: RangeSet::new(),
            returns: Returns::WhenOver,
        }
    }

    /// From now on the application says by [`PeerStreams::release`] when it is done with a stream.
    pub(super) fn hold(&mut self) {
        self.returns = Returns::WhenReleased { balance: 0 };
    }

    /// The application is done with a stream. Returns whether a MAX_STREAMS frame is due.
    pub(super) fn release(&mut self) -> bool {
        let Returns::WhenReleased { balance } = &mut self.returns else { return false };
        *balance += 1;
        *balance <= 0 && self.permit_another()
    }

    /// A frame names stream `index`, which does not exist.
    #[inline]
    pub(super) fn admit(&mut self, index: u64) -> Admission {
        if index >= self.window.limit().min(wire::frame::MAX_STREAM_COUNT) {
            return Admission::Refused;
        }
        if index >= self.next {
            //= rfc9000/3.2#1
            self.unseen.insert(self.next..index);
            self.next = index + 1;
            return Admission::New;
        }
        if self.unseen.remove(index..index + 1) > 0 { Admission::New } else { Admission::Over }
    }

    /// A stream is over, and the application has heard of it: the peer may open another. Returns whether a
    /// MAX_STREAMS frame is due.
    pub(super) fn on_over(&mut self) -> bool {
        if let Returns::WhenReleased { balance } = &mut self.returns {
            *balance -= 1;
            if *balance < 0 {
                return false;
            }
        }
        self.permit_another()
    }

    fn permit_another(&mut self) -> bool {
        // Counts of streams never grow by themselves, so the time does not matter.
        self.window.on_consumed(1, Instant::ZERO, Duration::ZERO)
    }

    /// The limit for a MAX_STREAMS frame, if one is due.
    pub(super) fn pending_limit(&mut self) -> Option<u64> {
        self.window.pending().map(|limit| limit.min(wire::frame::MAX_STREAM_COUNT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_may_use_its_streams_in_any_order_but_only_once() {
        let mut streams = PeerStreams::new(8);
        assert_eq!(streams.admit(5), Admission::New);
        assert_eq!(streams.admit(8), Admission::Refused);
        for index in [3, 0, 4, 2, 1, 6, 7] {
            assert_eq!(streams.admit(index), Admission::New);
            assert_eq!(streams.admit(index), Admission::Over);
        }
        assert!(streams.unseen.is_empty());
        assert!(streams.on_over());
        assert_eq!(streams.pending_limit(), Some(9));
    }

    /// Deleted, a peer could fill an application's queue of streams that it has not accepted yet.
    #[test]
    fn a_stream_that_the_application_holds_earns_no_credit_and_neither_does_one_that_is_not_over() {
        let mut streams = PeerStreams::new(2);
        streams.hold();
        assert_eq!([streams.admit(0), streams.admit(1)], [Admission::New, Admission::New]);
        assert!(!streams.on_over() && !streams.on_over(), "over, and held");
        assert_eq!(streams.admit(2), Admission::Refused);
        assert!(streams.release());
        assert_eq!([streams.admit(2), streams.admit(3)], [Admission::New, Admission::Refused]);
        assert!(streams.release());
        assert!(!streams.release(), "released before it is over");
        assert_eq!([streams.admit(3), streams.admit(4)], [Admission::New, Admission::Refused]);
        assert!(streams.on_over());
        assert_eq!(streams.admit(4), Admission::New);
    }

    /// RFC 9000 §4.6: MAX_STREAMS frames overtake each other.
    #[test]
    fn a_limit_that_does_not_rise_allows_and_takes_back_nothing() {
        let mut streams = LocalStreams::default();
        for limit in [2, 1, 0] {
            streams.on_limit(limit);
        }
        assert_eq!([streams.open(), streams.open(), streams.open()], [Some(0), Some(1), None]);
        streams.on_limit(2);
        assert_eq!(streams.open(), None);
        streams.on_limit(3);
        assert_eq!([streams.open(), streams.open()], [Some(2), None]);
    }

    #[test]
    fn one_high_number_costs_one_range() {
        let mut streams = PeerStreams::new(1 << 60);
        assert_eq!(streams.admit((1 << 60) - 1), Admission::New);
        assert_eq!(streams.unseen.count(), 1);
    }
}
