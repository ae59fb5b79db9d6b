//! Which request may begin now: how many are left, and in an open loop when the next one is due.
//!
//! An open loop has no queue: the n-th request is meant to begin at `origin + n / rate`, so those that are due and have not
//! begun are known by two numbers.

use super::plan::Pace;
use base::time::Instant;

/// One thread's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    left: u64,
    begun: u64,
    origin: Instant,
    /// Nanoseconds between two beginnings; 0 in a closed loop.
    interval_ns: f64,
}

impl Budget {
    /// Nothing may begin.
    pub(super) const NONE: Budget = Budget { left: 0, begun: 0, origin: Instant::ZERO, interval_ns: 0.0 };

    /// `count` requests from `origin` on.
    pub(super) fn new(count: u64, pace: Pace, origin: Instant) -> Budget {
        let interval_ns = match pace {
            Pace::Closed => 0.0,
            Pace::Open(rate) => 1e9 / rate,
        };
        Budget { left: count, begun: 0, origin, interval_ns }
    }

    /// Requests that have not begun.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    fn due_at(&self) -> Instant {
        Instant::from_nanos(
            self.origin.as_nanos().saturating_add((self.begun as f64 * self.interval_ns) as u64),
        )
    }

    /// When the next request should have begun, if one may begin now; [`Budget::begin`] says that it did.
    #[inline]
    pub(super) fn peek(&self, now: Instant) -> Option<Instant> {
        if self.left == 0 {
            return None;
        }
        if self.interval_ns == 0.0 {
            return Some(now);
        }
        Some(self.due_at()).filter(|due| *due <= now)
    }

    /// The request that `peek` spoke of has begun.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.begun += 1;
    }

    /// Open loop: when the next request is due, or was. `None` in a closed loop.
    pub(super) fn next_due(&self) -> Option<Instant> {
        (self.left > 0 && self.interval_ns > 0.0).then(|| self.due_at())
    }

    /// Open loop: when the next request is due after `now`, those that are overdue left aside: room for them is told by
    /// answers.
    pub(super) fn next_due_after(&self, now: Instant) -> Option<Instant> {
        let overdue = self.overdue(now);
        let at = self.begun.saturating_add(overdue) as f64 * self.interval_ns;
        let due = Instant::from_nanos(self.origin.as_nanos().saturating_add(at as u64));
        (self.interval_ns > 0.0 && self.left > overdue).then_some(due)
    }

    /// Open loop: how many are due and have not begun.
    pub(super) fn overdue(&self, now: Instant) -> u64 {
        if self.interval_ns == 0.0 || self.left == 0 || now < self.origin {
            return 0;
        }
        let due = (now.saturating_since(self.origin).as_nanos() as f64 / self.interval_ns) as u64 + 1;
        due.saturating_sub(self.begun).min(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::time::Duration;

    #[test]
    fn an_open_loop_knows_what_it_owes() {
        let origin = Instant::from_nanos(1_000);
        let mut budget = Budget::new(5, Pace::Open(1_000.0), origin);
        let at = |ms: u64| origin + Duration::from_millis(ms);
        assert_eq!((budget.peek(Instant::ZERO), budget.overdue(Instant::ZERO)), (None, 0), "not begun");
        assert_eq!(budget.peek(at(0)), Some(at(0)));
        budget.begin();
        assert_eq!((budget.peek(at(0)), budget.next_due()), (None, Some(at(1))));
        // A stall: what should have begun meanwhile keeps its own time.
        assert_eq!((budget.overdue(at(3)), budget.next_due_after(at(3))), (3, Some(at(4))));
        for ms in 1..4 {
            assert_eq!(budget.peek(at(3)), Some(at(ms)));
            budget.begin();
        }
        assert_eq!((budget.peek(at(3)), budget.overdue(at(3))), (None, 0));
        budget.begin();
        assert_eq!((budget.peek(at(100)), budget.left(), budget.next_due()), (None, 0, None));
        assert_eq!((budget.overdue(at(100)), budget.next_due_after(at(100))), (0, None));
    }

    #[test]
    fn a_closed_loop_asks_at_once_until_nothing_is_left() {
        let mut budget = Budget::new(1, Pace::Closed, Instant::ZERO);
        let now = Instant::from_nanos(7);
        assert_eq!((budget.peek(now), budget.next_due(), budget.overdue(now)), (Some(now), None, 0));
        budget.begin();
        assert_eq!((budget.peek(now), budget.left()), (None, 0));
        assert_eq!(Budget::NONE.peek(now), None);
    }
}
