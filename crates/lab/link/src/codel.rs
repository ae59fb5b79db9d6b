//! CoDel: a queue that drops datagrams while those that leave it have waited for long, however many wait.
//!
//! It is asked for each datagram when that leaves the queue, which a line of known rate knows when it comes: what is dropped takes none
//! of the line's time. How much waits then is not known yet, so the rule that never drops the last full datagram looks at what waits
//! when it comes.
//!
//! RFC 8289 §3, §5.

use base::time::{Duration, Instant};

/// The largest datagram: less is never dropped. Source: RFC 8289 §5.6.
const LARGEST: u64 = 1_500;
/// A new time of dropping soon after another goes on from its rate. Source: RFC 8289 §5.5.
const SOON: u64 = 16;

/// What the queue heeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// What may wait always. Source: RFC 8289 §4.4.
    pub target: Duration,
    /// For how long more may wait. Source: RFC 8289 §4.3.
    pub interval: Duration,
}

impl CoDel {
    /// For paths of the Internet. Source: RFC 8289 §4.3, §4.4.
    pub const INTERNET: CoDel =
        CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
}

/// What the queue remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CoDelState {
    /// When waits that are too long will have lasted for an interval; `None` while they are not.
    too_long_at: Option<Instant>,
    is_dropping: bool,
    /// When the next datagram is dropped.
    next: Instant,
    /// Datagrams dropped since dropping began, and with what it had begun.
    count: u64,
    began_with: u64,
}

impl CoDelState {
    /// Whether the datagram is dropped that leaves the queue at `now` after so long, and beside which so many bytes waited.
    pub(crate) fn drops(&mut self, options: CoDel, now: Instant, (wait, waiting): (Duration, u64)) -> bool {
        let may_drop = self.is_too_long(options, now, (wait, waiting));
        self.is_dropping &= may_drop;
        if self.is_dropping {
            let is_due = now >= self.next;
            if is_due {
                self.count += 1;
                self.next = law(self.next, options.interval, self.count);
            }
            return is_due;
        }
        if may_drop {
            self.begin(options, now);
        }
        may_drop
    }

    /// Waits have been too long for an interval. Source: RFC 8289 §5.6, `dodequeue`.
    fn is_too_long(&mut self, options: CoDel, now: Instant, (wait, waiting): (Duration, u64)) -> bool {
        if wait < options.target || waiting <= LARGEST {
            self.too_long_at = None;
            return false;
        }
        let at = *self.too_long_at.get_or_insert(now + options.interval);
        now >= at
    }

    /// Source: RFC 8289 §5.5, `dequeue`.
    fn begin(&mut self, options: CoDel, now: Instant) {
        let dropped = self.count.saturating_sub(self.began_with);
        let is_soon = now.saturating_since(self.next) < options.interval * SOON;
        self.is_dropping = true;
        self.count = if dropped > 1 && is_soon { dropped } else { 1 };
        self.began_with = self.count;
        self.next = law(now, options.interval, self.count);
    }
}

/// The more were dropped, the sooner the next. Source: RFC 8289 §3.3.
fn law(from: Instant, interval: Duration, count: u64) -> Instant {
    let nanos = interval.as_nanos() as f64 / (count.max(1) as f64).sqrt();
    from + Duration::from_nanos(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When datagrams are dropped of one each millisecond, which have waited so many milliseconds.
    fn drops(state: &mut CoDelState, span: core::ops::Range<u64>, wait_ms: u64) -> Vec<u64> {
        let wait = Duration::from_millis(wait_ms);
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        span.filter(|ms| state.drops(CoDel::INTERNET, at(*ms), (wait, 100_000))).collect()
    }

    /// RFC 8289 §3.3: 100 ms after the waits were too long, and then after 100 ms / √n. Deleted, the queue could be any.
    #[test]
    fn drops_follow_the_control_law_and_end_with_the_queue() {
        let mut state = CoDelState::default();
        assert!(drops(&mut state, 1_000..2_000, 4).is_empty(), "below the target");
        assert_eq!(drops(&mut state, 2_000..2_450, 6), [2_100, 2_200, 2_271, 2_329, 2_379, 2_424]);
        assert!(drops(&mut state, 2_450..2_500, 4).is_empty());
        let again = drops(&mut state, 2_500..2_700, 6);
        assert_eq!(again, [2_600, 2_645, 2_686], "soon after, it goes on from its rate");
        assert!(drops(&mut state, 9_000..9_100, 4).is_empty());
        assert_eq!(drops(&mut state, 9_100..9_310, 6), [9_200, 9_300], "later, it begins anew");
    }

    #[test]
    fn the_last_datagram_is_never_dropped() {
        let mut state = CoDelState::default();
        let wait = Duration::from_secs(1);
        let dropped = (1..100).any(|s| state.drops(CoDel::INTERNET, Instant::ZERO + wait * s, (wait, 1_500)));
        assert!(!dropped);
    }
}
