//! The longest round trip of late, beside which a shorter one is free.

use super::ROUNDS;
use base::time::{Duration, Instant};

/// The longest of late, and what confirms the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Longest {
    longest: Duration,
    /// When frames were read last, and the shortest that they have measured.
    read_at: Instant,
    latest: Duration,
    /// The shortest of those that were read together before.
    before: Duration,
}

impl Longest {
    pub(super) const fn new() -> Longest {
        Longest {
            longest: Duration::ZERO,
            read_at: Instant::ZERO,
            latest: Duration::ZERO,
            before: Duration::ZERO,
        }
    }

    /// A frame has measured that. Where an end may be woken late, only what frames say that are read one after the other counts: those that
    /// are read together are as late as one another.
    pub(super) fn on_sample(&mut self, now: Instant, rtt: Duration, may_be_late: bool) {
        if now == self.read_at {
            self.latest = self.latest.min(rtt);
        } else {
            (self.read_at, self.before, self.latest) = (now, self.latest, rtt);
        }
        self.longest = self.longest.max(if may_be_late { self.before.min(rtt) } else { rtt });
    }

    /// The wait beside the shortest of all loses an eighth.
    pub(super) fn on_round(&mut self, min_rtt: Duration) {
        self.longest = self.longest.saturating_sub(self.wait(min_rtt) / ROUNDS);
    }

    pub(super) fn wait(&self, min_rtt: Duration) -> Duration {
        self.longest.saturating_sub(min_rtt)
    }
}
