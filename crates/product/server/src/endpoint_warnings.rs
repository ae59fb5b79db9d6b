//! Counters of a worker that an operator hears of: looked at once a second while anything happens, never on the path of a
//! packet.

use crate::warnings::{Warning, Warnings, Watch};
use base::time::{Duration, Instant};
use transport::{DropReason, EndpointCounters};

/// How often counters are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Notes what a worker's endpoint has refused.
pub(crate) struct EndpointWarnings {
    watch: Watch,
    next_at: Instant,
    /// A turn was made since the last look.
    is_due: bool,
}

impl EndpointWarnings {
    pub(crate) fn new(warnings: &Warnings) -> EndpointWarnings {
        EndpointWarnings { watch: warnings.watch(), next_at: Instant::ZERO, is_due: false }
    }

    /// A turn was made. Returns whether counters were looked at, which happens at most once a second.
    #[inline]
    pub(crate) fn on_turn(&mut self, now: Instant, counters: &EndpointCounters) -> bool {
        self.is_due = now < self.next_at;
        if !self.is_due {
            self.next_at = now + LOOK_EVERY;
            self.look(counters);
        }
        !self.is_due
    }

    /// When another turn is needed, so that nothing waits for the next packet.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.is_due.then_some(self.next_at)
    }

    /// Notes everything there is.
    pub(crate) fn look(&mut self, counters: &EndpointCounters) {
        for (warning, total) in [
            (Warning::HandshakesRefused, counters.dropped(DropReason::HalfOpenLimit)),
            (Warning::HandshakeSharesExceeded, counters.dropped(DropReason::HandshakeShare)),
            (Warning::ConnectionsBeyondLimit, counters.refused_connections),
        ] {
            self.watch.on_total(warning, total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_follows_the_last_turn_and_no_more() {
        let mut endpoint_warnings = EndpointWarnings::new(&Warnings::default());
        let counters = EndpointCounters::default();
        let at = |millis| Instant::from_nanos(1) + Duration::from_millis(millis);
        _ = endpoint_warnings.on_turn(at(10), &counters);
        assert_eq!(endpoint_warnings.next_timeout(), None);
        _ = endpoint_warnings.on_turn(at(20), &counters);
        assert_eq!(endpoint_warnings.next_timeout(), Some(at(1_010)));
        _ = endpoint_warnings.on_turn(at(1_010), &counters);
        assert_eq!(endpoint_warnings.next_timeout(), None);
    }
}
