//! Whether the queue that marks is an L4S one or a classic one, which does not know ECT(1) from ECT(0) and marks late.
//!
//! A classic queue's marks are meant to halve a window; answered as L4S marks they take a few per cent off it, and other
//! flows in the queue starve. What tells them apart is how long packets wait: at an L4S queue hardly more than a millisecond, at
//! a classic one several. So each round with marks is a vote, by the smoothed round trip over the least one; a run of votes
//! decides, and fewer are needed to stay than to change.
//! A flow that never finds the queue empty, because others fill it, takes its least round trip too high and is not warned: the
//! known weakness of every passive test. Jitter that looks like a queue costs rate, never others theirs.
//!
//! RFC 9331 §4.3, appendix A.1.5. The thresholds are our own.

use base::time::{Duration, Instant};

/// Waits shorter than this are an L4S queue's: twice its usual threshold.
const SHALLOW: Duration = Duration::from_millis(2);
/// Waits longer than this are a classic queue's: the shortest target in use.
const DEEP: Duration = Duration::from_millis(5);
/// Votes that decide, and votes that are kept at most, so that the other side can win again.
const DECISION: u32 = 8;
const MOST_VOTES: u32 = 16;
/// The least round trip is forgotten after two spans of this, and after one at the earliest: routes change.
const SPAN: Duration = Duration::from_secs(150);

/// The votes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Monitor {
    /// The least round trip of this span, and of the one before it.
    least: [Option<Duration>; 2],
    span_start: Instant,
    votes: u32,
    is_classic: bool,
}

impl Monitor {
    pub(super) const fn new() -> Monitor {
        Monitor { least: [None; 2], span_start: Instant::ZERO, votes: 0, is_classic: false }
    }

    /// Whether marks are to be answered as a classic queue means them.
    pub(super) const fn is_classic(&self) -> bool {
        self.is_classic
    }

    /// A round trip was measured.
    pub(super) fn on_sample(&mut self, now: Instant, rtt: Duration) {
        // A clock that stepped back takes the start with it.
        self.span_start = self.span_start.min(now);
        let since = now.saturating_since(self.span_start);
        if since >= SPAN {
            // What is left of a span without samples remembers nothing.
            self.least = [None, self.least[0].filter(|_| since < SPAN + SPAN)];
            self.span_start = now;
        }
        self.least[0] = Some(self.least[0].map_or(rtt, |least| least.min(rtt)));
    }

    /// A round with marks is over.
    pub(super) fn on_marked_round(&mut self, smoothed: Duration) {
        let Some(least) = self.least.into_iter().flatten().min() else { return };
        let wait = smoothed.saturating_sub(least);
        if wait > DEEP {
            self.votes = (self.votes + 1).min(MOST_VOTES);
        } else if wait < SHALLOW {
            self.votes = self.votes.saturating_sub(1);
        }
        self.is_classic = self.votes >= if self.is_classic { DECISION / 2 } else { DECISION };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn after(seconds: u64) -> Instant {
        Instant::from_nanos(1) + Duration::from_secs(seconds)
    }

    #[test]
    fn long_waits_decide_for_a_classic_queue_and_short_ones_against_it() {
        let mut monitor = Monitor::new();
        monitor.on_sample(after(0), ms(20));
        for round in 1..=30 {
            monitor.on_marked_round(ms(27));
            assert_eq!(monitor.is_classic(), round >= DECISION, "round {round}");
        }
        let rounds = (0..30).take_while(|_| {
            monitor.on_marked_round(ms(21));
            monitor.is_classic()
        });
        assert_eq!(rounds.count() as u32, MOST_VOTES - DECISION / 2);
    }

    #[test]
    fn an_l4s_queue_is_never_taken_for_a_classic_one() {
        let mut monitor = Monitor::new();
        monitor.on_sample(after(0), ms(20));
        for _ in 0..1_000 {
            // Slow start may overshoot now and then.
            monitor.on_marked_round(ms(30));
            for _ in 0..5 {
                monitor.on_marked_round(ms(21));
            }
            assert!(!monitor.is_classic());
        }
    }

    #[test]
    fn a_longer_route_is_learnt() {
        let mut monitor = Monitor::new();
        monitor.on_sample(after(0), ms(20));
        monitor.on_sample(after(301), ms(60));
        for _ in 0..20 {
            monitor.on_marked_round(ms(61));
        }
        assert!(!monitor.is_classic());
    }

    /// Or else a flow at a classic queue would starve its neighbours from every fifth minute on.
    #[test]
    fn one_long_round_trip_never_passes_for_the_least() {
        let mut monitor = Monitor::new();
        for second in 0..1_000 {
            // The queue runs empty once in ten seconds.
            monitor.on_sample(after(second), if second % 10 == 0 { ms(20) } else { ms(60) });
            monitor.on_marked_round(ms(40));
            assert_eq!(monitor.is_classic(), second + 1 >= u64::from(DECISION), "second {second}");
        }
    }

    #[test]
    fn a_longer_route_is_learnt_by_a_busy_flow_within_two_spans() {
        let mut monitor = Monitor::new();
        monitor.on_sample(after(0), ms(20));
        for second in 1..=300 {
            monitor.on_sample(after(second), ms(60));
        }
        monitor.on_marked_round(ms(66));
        assert_eq!(monitor.votes, 1, "a wait of 6 ms");
        for _ in 0..20 {
            monitor.on_marked_round(ms(61));
        }
        assert_eq!(monitor.votes, 0);
    }
}
