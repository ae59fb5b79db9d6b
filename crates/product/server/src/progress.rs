//! The minimum rate at which a client takes its response. A slower client holds memory that others need.
//!
//! The rule is the one of connections over TCP (tcp/timeouts.rs), with its figures: while something is owed to the client, a
//! minimum of content moves in either direction in a given time. What the client can make us send at will, like the
//! acknowledgement of a PING, is no content.

use base::time::{Duration, Instant};

/// The rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The time in which at least `bytes` of content move while something is owed. Default 60 s.
    pub within: Duration,
    /// In bytes. Default 1,024.
    pub bytes: u64,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { within: Duration::from_secs(60), bytes: 1_024 }
    }
}

/// What a look at a connection found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing is owed.
    Idle,
    /// The client has time until then.
    Until(Instant),
    /// Too little has moved.
    Stalled,
}

/// One connection's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    /// When the present span began, and what had moved by then; `None` while nothing is owed.
    span: Option<(Instant, u64)>,
}

impl Watch {
    /// Applies the rule. `moved` is the sum of all content so far; `None` says that nothing is owed now.
    #[inline]
    pub(crate) fn look(&mut self, now: Instant, moved: Option<u64>, rule: &Progress) -> Look {
        let Some(moved) = moved else {
            self.span = None;
            return Look::Idle;
        };
        let (since, mark) = *self.span.get_or_insert((now, moved));
        let end = since + rule.within;
        if now < end {
            return Look::Until(end);
        }
        if moved.saturating_sub(mark) < rule.bytes {
            return Look::Stalled;
        }
        self.span = Some((now, moved));
        Look::Until(now + rule.within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(1) + Duration::from_secs(seconds)
    }

    #[test]
    fn too_little_in_a_span_is_a_stall_and_enough_begins_the_next() {
        let (mut watch, rule) = (Watch::default(), Progress::default());
        assert_eq!(watch.look(at(0), Some(500), &rule), Look::Until(at(60)));
        assert_eq!(watch.look(at(59), Some(500), &rule), Look::Until(at(60)));
        assert_eq!(watch.look(at(60), Some(1_524), &rule), Look::Until(at(120)));
        assert_eq!(watch.look(at(120), Some(2_547), &rule), Look::Stalled);
    }

    #[test]
    fn a_span_begins_when_something_is_owed() {
        let (mut watch, rule) = (Watch::default(), Progress::default());
        watch.look(at(0), Some(0), &rule);
        assert_eq!(watch.look(at(50), None, &rule), Look::Idle);
        assert_eq!(watch.look(at(70), Some(0), &rule), Look::Until(at(130)));
    }
}
