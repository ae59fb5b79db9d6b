//! Flow control, one file for bytes on a stream, bytes on the connection, and numbers of streams. Source: RFC 9000
//! §4.
//!
//! [`Credit`] is what the peer grants us: a limit that only rises and what we have used of it. [`Window`] is what we
//! grant the peer: a limit that follows what was consumed. Neither knows what it counts.
//!
//! Invariants: the limit that we announce is never more than the window above what was consumed, and "consumed" means
//! taken by the application in order, so that data which sits in a buffer never earns the peer new credit. Both
//! limits only rise.

use crate::announce::Announce;
use base::time::{Duration, Instant};
use wire::varint;

/// What the peer allows us to use, and how much of it we have used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credit {
    limit: u64,
    used: u64,
    /// The limit that is in the way, for the *_BLOCKED frame.
    pub(crate) blocked: Announce<u64>,
    /// The limit we last complained about plus one; 0 if we never did.
    complained: u64,
}

impl Credit {
    pub(crate) fn new(limit: u64) -> Credit {
        Credit { limit, ..Credit::default() }
    }

    /// Nothing may be used, and the peer is not told that more is wanted.
    pub(crate) fn withheld() -> Credit {
        Credit { complained: u64::MAX, ..Credit::default() }
    }

    /// The limit was one of an earlier connection and does not hold: there is none until the peer grants one.
    pub(crate) fn forget_limit(&mut self) {
        (self.limit, self.complained) = (0, 0);
        self.blocked.cancel();
    }

    /// All that it says while the peer is owed no word of it.
    pub(crate) fn at_rest(&self) -> Option<CreditAtRest> {
        let Credit { limit, used, complained, .. } = *self;
        (self.blocked == Announce::Idle).then_some(CreditAtRest { limit, used, complained })
    }

    /// How much more may be used.
    #[inline]
    pub(crate) fn available(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// The limit.
    #[inline]
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// How much was used so far.
    #[inline]
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Uses `count`, which must be available.
    #[inline]
    pub(crate) fn use_up(&mut self, count: u64) {
        debug_assert!(count <= self.available(), "flow control credit overdrawn");
        self.used += count;
    }

    /// The peer's limit is at least `limit`. Returns whether that is news.
    pub(crate) fn on_limit(&mut self, limit: u64) -> bool {
        // RFC 9000 §4.1: a limit that is not larger is ignored, packets may arrive out of order.
        //= rfc9000/4.1#2
        let raised = limit > self.limit;
        if raised {
            self.limit = limit;
            self.blocked.cancel();
        }
        raised
    }

    /// There is more to send than the limit allows: the peer is told, once for each limit. Returns whether a frame is
    /// pending. Source: RFC 9000 §4.1.
    pub(crate) fn note_blocked(&mut self) -> bool {
        self.note_blocked_above(0)
    }

    /// The same where the last `kept` bytes are not for what waits.
    pub(crate) fn note_blocked_above(&mut self, kept: u64) -> bool {
        //= rfc9000/4.1#3
        if self.available() <= kept && self.complained <= self.limit {
            self.complained = self.limit + 1;
            self.blocked.request(self.limit);
        }
        self.blocked.is_pending()
    }
}

/// A credit of which nothing is announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreditAtRest {
    limit: u64,
    used: u64,
    complained: u64,
}

impl From<CreditAtRest> for Credit {
    fn from(CreditAtRest { limit, used, complained }: CreditAtRest) -> Credit {
        Credit { limit, used, blocked: Announce::Idle, complained }
    }
}

/// A window that is consumed in fewer round trips is too small. A peer may fill it at once and then wait a round trip for the next limit. Data
/// behind a lost packet is consumed one or two round trips later.
const ROUNDS: u128 = 4;

/// What part of a window must be consumed before the peer hears of a new limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// For bytes: few frames, and one that is lost is not what the peer waits for: it has half of the window for another.
    Quarter,
    /// For streams: a peer that keeps nearly all of them open must not wait for half of them to close.
    Eighth,
}

/// What we allow the peer to use.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    limit: u64,
    consumed: u64,
    /// How far ahead of `consumed` the limit may be.
    size: u64,
    max_size: u64,
    step: Step,
    /// When the half that is being consumed now was begun; `None` before anything was consumed.
    since: Option<Instant>,
    /// The limit for the MAX_* frame.
    announce: Announce<u64>,
}

impl Window {
    /// A window of `size`, which grows up to `max_size` when the peer fills it fast. The peer knows of the first
    /// limit from the transport parameters.
    pub(crate) fn new(size: u64, max_size: u64, step: Step) -> Window {
        let size = size.min(varint::MAX);
        Window {
            limit: size,
            consumed: 0,
            size,
            max_size: max_size.max(size),
            step,
            since: None,
            announce: Announce::Idle,
        }
    }

    /// All that a window of bytes says while no limit is announced.
    pub(crate) fn at_rest(&self) -> Option<WindowAtRest> {
        let Window { limit, consumed, size, max_size, since, .. } = *self;
        let is_at_rest = self.announce == Announce::Idle && self.step == Step::Quarter;
        let since = since.unwrap_or(Instant::ZERO);
        is_at_rest.then_some(WindowAtRest { limit, consumed, size, max_size, since })
    }

    /// How much was consumed.
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// The highest limit announced or about to be.
    #[inline]
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// The current size.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// How much must be consumed, beyond the part that the peer knows of, before it hears of a new limit.
    #[inline]
    fn step(&self) -> u64 {
        let step = match self.step {
            Step::Quarter => self.size >> 2,
            Step::Eighth => self.size >> 3,
        };
        step.max(1)
    }

    /// How much of the window is consumed and not given back.
    #[inline]
    fn used(&self) -> u64 {
        self.consumed.saturating_add(self.size).saturating_sub(self.limit)
    }

    /// How much may be consumed before a MAX_* frame is due.
    #[inline]
    pub(crate) fn before_step(&self) -> u64 {
        self.step().saturating_sub(self.used()).saturating_sub(1)
    }

    /// The application took `count` more, in order, by which no MAX_* frame is due.
    #[inline]
    pub(crate) fn on_consumed_within_step(&mut self, count: u64, now: Instant) {
        debug_assert!(count <= self.before_step(), "a frame is due");
        self.consumed = self.consumed.saturating_add(count);
        self.since.get_or_insert(now);
    }

    /// The application took `count` more, in order. Returns whether a MAX_* frame is due.
    #[inline]
    pub(crate) fn on_consumed(&mut self, count: u64, now: Instant, rtt: Duration) -> bool {
        //= rfc9000/4.1#4
        self.consumed = self.consumed.saturating_add(count);
        let since = *self.since.get_or_insert(now);
        let used = self.used();
        if used < self.step() {
            return false;
        }
        // The speed is that of half a window: a burst is shorter.
        let half = (self.size >> 1).max(1);
        if self.consumed / half > self.consumed.saturating_sub(used) / half {
            if self.is_narrow(used.max(half), now.saturating_since(since), rtt) {
                self.grow_to(self.size.saturating_mul(2));
            }
            self.since = Some(now);
        }
        self.raise_limit();
        self.announce.request(self.limit);
        true
    }

    /// Half of the window in less than one round trip, or a whole one at that speed in less than [`ROUNDS`]: the peer is held back by the
    /// window rather than by the path.
    fn is_narrow(&self, used: u64, elapsed: Duration, rtt: Duration) -> bool {
        let whole = u128::from(elapsed.as_nanos()) * u128::from(self.size);
        elapsed < rtt || whole < u128::from(rtt.as_nanos()) * ROUNDS * u128::from(used)
    }

    /// Makes the window at least `size`, as far as its maximum permits. The peer hears of it with the next limit.
    pub(crate) fn grow_to(&mut self, size: u64) {
        self.size = self.size.max(size.min(self.max_size));
    }

    fn raise_limit(&mut self) {
        let limit = self.consumed.saturating_add(self.size).min(varint::MAX);
        self.limit = self.limit.max(limit);
    }

    /// Whether a MAX_* frame should be written.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.announce.is_pending()
    }

    /// The limit to write, brought up to date, if a frame is due.
    pub(crate) fn pending(&mut self) -> Option<u64> {
        if !self.announce.is_pending() {
            return None;
        }
        self.raise_limit();
        self.announce.request(self.limit);
        Some(self.limit)
    }

    pub(crate) fn on_sent(&mut self) {
        self.announce.on_sent();
    }

    pub(crate) fn on_acked(&mut self, limit: u64) {
        self.announce.on_value_acked(&limit);
    }

    /// Returns whether a frame is pending again.
    pub(crate) fn on_lost(&mut self, limit: u64) -> bool {
        //= rfc9000/13.3#2
        self.announce.on_value_lost(&limit);
        self.announce.is_pending()
    }

    /// The peer needs no more credit.
    pub(crate) fn close(&mut self) {
        self.announce.cancel();
    }
}

/// A window of bytes of which nothing is announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowAtRest {
    limit: u64,
    consumed: u64,
    size: u64,
    max_size: u64,
    /// [`Instant::ZERO`] before anything was consumed.
    since: Instant,
}

impl From<WindowAtRest> for Window {
    fn from(WindowAtRest { limit, consumed, size, max_size, since }: WindowAtRest) -> Window {
        let since = (since != Instant::ZERO).then_some(since);
        Window { limit, consumed, size, max_size, step: Step::Quarter, since, announce: Announce::Idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(10);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_limit_is_complained_about_once() {
        let mut credit = Credit::new(10);
        assert!(!credit.note_blocked(), "there is credit left");
        credit.use_up(10);
        assert!(credit.note_blocked());
        credit.blocked.on_sent();
        assert!(!credit.note_blocked());
        assert!(!credit.on_limit(10) && !credit.on_limit(3));
        assert!(credit.on_limit(11));
        assert_eq!(credit.blocked, Announce::Idle, "the loss of an outdated complaint resends nothing");
        credit.use_up(1);
        assert!(credit.note_blocked());
    }

    #[test]
    fn a_blocked_credit_of_zero_is_complained_about() {
        assert!(Credit::new(0).note_blocked());
    }

    #[test]
    fn the_limit_follows_consumption_by_quarters() {
        let mut window = Window::new(100, 100, Step::Quarter);
        assert!(!window.on_consumed(24, at(0), RTT));
        assert!(window.on_consumed(1, at(100), RTT));
        window.on_consumed(7, at(100), RTT);
        assert_eq!(window.pending(), Some(132), "brought up to date when written");
        window.on_sent();
        assert_eq!(window.pending(), None);
        assert!(window.on_lost(132));
        window.on_sent();
        window.on_acked(132);
        assert!(!window.on_lost(132));
        assert_eq!(window.limit(), 132);
    }

    /// Deleted, a burst of a quarter could pass for the speed of the path.
    #[test]
    fn the_speed_is_that_of_half_a_window() {
        let mut window = Window::new(100, 300, Step::Quarter);
        for step in 0..20 {
            window.on_consumed(25, at(step * 21), RTT);
        }
        assert_eq!(window.size(), 100, "the first quarter came at once, half in 21 ms");
    }

    #[test]
    fn a_window_filled_within_two_round_trips_doubles_up_to_its_maximum() {
        let mut window = Window::new(100, 300, Step::Quarter);
        let mut limits = Vec::new();
        for step in 0..4 {
            window.on_consumed(1, at(step * 9), RTT);
            window.on_consumed(window.size() / 2, at(step * 9 + 5), RTT);
            limits.push(window.size());
        }
        assert_eq!(limits, [200, 300, 300, 300]);
    }

    /// Or else it stays at a window for each round trip, for as long as bursts happen to end so.
    #[test]
    fn a_window_filled_at_once_in_each_round_trip_doubles() {
        let mut window = Window::new(100, 300, Step::Quarter);
        window.on_consumed(1, at(0), RTT);
        window.on_consumed(99, at(10), RTT);
        assert_eq!(window.size(), 200);
        window.on_consumed(150, at(40), RTT);
        assert_eq!(window.size(), 200, "three quarters in three round trips are the path's speed");
    }

    /// What is lost comes again a round trip later or two, and all that came after it is consumed then. Deleted, a fast path that loses
    /// packets could be held back by a window that is hardly larger than the path.
    #[test]
    fn a_window_that_losses_hold_up_doubles() {
        for (whole_ms, size) in [(35, 200), (45, 100)] {
            let mut window = Window::new(100, 300, Step::Quarter);
            window.on_consumed(1, at(0), RTT);
            window.on_consumed(99, at(whole_ms), RTT);
            assert_eq!(window.size(), size);
        }
    }

    #[test]
    fn a_slow_consumer_keeps_its_window() {
        let mut window = Window::new(100, 1_000, Step::Quarter);
        for step in 0..100 {
            window.on_consumed(10, at(step * 10), RTT);
        }
        assert_eq!(window.size(), 100);
    }

    #[test]
    fn extremes_neither_wrap_nor_pass_the_largest_varint() {
        let mut window = Window::new(u64::MAX, u64::MAX, Step::Quarter);
        assert_eq!(window.limit(), varint::MAX);
        window.on_consumed(u64::MAX, Instant::FAR_FUTURE, Duration::MAX);
        window.on_consumed(u64::MAX, Instant::ZERO, Duration::ZERO);
        assert_eq!(window.limit(), varint::MAX);
    }
}
