//! How many connections are active at a time, and how seldom the worker wants to be woken for each of them.
//!
//! The pacer of a connection releases a millisecond of its rate at a time. A thousand connections that share a fast link are slow
//! ones each, for which that is a single packet: the worker is woken for each, and sends it by itself, at several times the
//! cost. So where there are many, each hears how much it should save up for a train, within the bounds of the path
//! (`recovery::pacer`), and asks its peer for acknowledgements that are as rare: the window opens by what is acknowledged.
//!
//! Connections are counted over a span of time, once each. Where there are few, what they hear changes nothing.

use base::time::{Duration, Instant};

/// How long connections are counted.
const SPAN: Duration = Duration::from_millis(100);
/// As many connections are paced finely, whatever that takes.
const FEW: u64 = 64;
/// What each one beyond adds to the time between two trains of a connection. The bounds of the path are reached soon.
const EACH: Duration = Duration::from_millis(1);

/// Active connections of a worker.
#[derive(Debug)]
pub(crate) struct Crowd {
    /// The number of the present span. Not 0, which no connection has been counted in.
    span: u32,
    began: Instant,
    active: u64,
    /// How long a connection saves up for a train, by the count of the last span.
    span_of_train: Duration,
}

impl Crowd {
    pub(crate) fn new(now: Instant) -> Crowd {
        Crowd { span: 1, began: now, active: 0, span_of_train: Duration::ZERO }
    }

    /// Time passes.
    #[inline]
    pub(crate) fn on_turn(&mut self, now: Instant) {
        if now.saturating_since(self.began) >= SPAN {
            self.span_of_train = EACH * self.active.saturating_sub(FEW);
            (self.began, self.active) = (now, 0);
            self.span = self.span.checked_add(1).unwrap_or(1);
        }
    }

    /// A connection is active that was counted in span `counted` last: how long it should save up for a train, once in each span.
    #[inline]
    pub(crate) fn count(&mut self, counted: &mut u32) -> Option<Duration> {
        if *counted == self.span {
            return None;
        }
        *counted = self.span;
        self.active += 1;
        Some(self.span_of_train)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_is_counted_once_in_a_span() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut crowd = Crowd::new(at(0));
        let mut connections = [0_u32; 400];
        for connection in connections.iter_mut() {
            assert_eq!(crowd.count(connection), Some(Duration::ZERO));
            assert_eq!(crowd.count(connection), None);
        }
        crowd.on_turn(at(99));
        assert_eq!(crowd.count(&mut connections[0]), None);
        crowd.on_turn(at(100));
        assert_eq!(crowd.count(&mut connections[0]), Some(Duration::from_millis(336)));
        crowd.on_turn(at(250));
        assert_eq!(crowd.count(&mut connections[1]), Some(Duration::ZERO), "one was active");
    }
}
