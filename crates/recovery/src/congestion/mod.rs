//! Congestion control of one path: a closed enum, chosen at run time.
//!
//! The enum dispatches and holds nothing itself, because a model-based controller (BBR) shares no state with the
//! loss-based ones; those share [`window::LossWindow`]. Bytes in flight are the caller's sum over its spaces.
//! Rejected: a trait object (an indirect call per acknowledgement, and no `Copy`), a type parameter (it spreads over the
//! whole connection, and users choose at run time).
//!
//! RFC 9002 §7, RFC 9438.

mod cubic;
mod new_reno;
#[cfg(test)]
mod tests;
mod window;

use crate::rate::Rate;
use crate::rtt::Rtt;
use base::time::Instant;
use cubic::Cubic;
use new_reno::NewReno;

pub use window::{AckedBytes, MAX_WINDOW, initial_window, minimum_window};

/// Round trips' worth of window that leave a round trip in slow start. Source: RFC 9002 §7.7 asks for more than 1.
const SLOW_START_GAIN: f64 = 2.0;
/// The same in congestion avoidance. Source: RFC 9002 §7.7.
const AVOIDANCE_GAIN: f64 = 1.25;

/// The controllers to choose from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RFC 9002 §7 and appendix B.
    NewReno,
    /// RFC 9438.
    #[default]
    Cubic,
}

/// The sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A packet was lost.
    Loss,
    /// The peer reported more packets marked CE.
    EcnCe,
}

/// A path's congestion controller.
#[derive(Clone, Copy, Debug)]
pub struct Controller(Kind);

#[derive(Clone, Copy, Debug)]
enum Kind {
    NewReno(NewReno),
    Cubic(Cubic),
}

/// Calls the same method of whichever controller it is.
macro_rules! each {
    ($self:expr, $inner:ident => $call:expr) => {
        match $self {
            Kind::NewReno($inner) => $call,
            Kind::Cubic($inner) => $call,
        }
    };
}

impl Controller {
    /// At the initial window, in slow start. `mtu` is max_datagram_size in bytes.
    pub fn new(algorithm: Algorithm, mtu: u16) -> Controller {
        Controller(match algorithm {
            Algorithm::NewReno => Kind::NewReno(NewReno::new(mtu)),
            Algorithm::Cubic => Kind::Cubic(Cubic::new(mtu)),
        })
    }

    /// Which one it is.
    pub fn algorithm(&self) -> Algorithm {
        match self.0 {
            Kind::NewReno(_) => Algorithm::NewReno,
            Kind::Cubic(_) => Algorithm::Cubic,
        }
    }

    /// `bytes` of packets that count left; `in_flight` includes them. May be called once for a whole train.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64, in_flight: u64) {
        each!(&mut self.0, inner => inner.on_sent(now, bytes, in_flight));
    }

    /// Bytes left flight because the peer acknowledged them: one call per ACK frame, after its losses were declared.
    pub fn on_ack(&mut self, now: Instant, acked: AckedBytes) {
        if acked.bytes > 0 {
            each!(&mut self.0, inner => inner.on_ack(now, acked));
        }
    }

    /// Congestion, of which a packet sent at `sent_at` is the sign; the latest such packet where there are several.
    /// Signs from before the last reduction change nothing. Source: RFC 9002 §7.3.2.
    pub fn on_congestion(&mut self, now: Instant, sent_at: Instant, cause: Cause) {
        each!(&mut self.0, inner => inner.on_congestion(now, sent_at, cause));
    }

    /// Persistent congestion: back to the minimum window. Call after `on_congestion`. Source: RFC 9002 §7.6.2.
    pub fn on_persistent_congestion(&mut self) {
        each!(&mut self.0, inner => inner.on_persistent_congestion());
    }

    /// max_datagram_size changed. Source: RFC 9002 §7.2.
    pub fn on_mtu_change(&mut self, mtu: u16) {
        each!(&mut self.0, inner => inner.window_mut().on_mtu_change(mtu));
    }

    /// The congestion window, in bytes; never below twice the largest datagram.
    #[inline]
    pub fn window(&self) -> u64 {
        each!(&self.0, inner => inner.window().size())
    }

    /// Bytes that the window still has room for.
    #[inline]
    pub fn available(&self, in_flight: u64) -> u64 {
        self.window().saturating_sub(in_flight)
    }

    /// Whether the window has room at all.
    #[inline]
    pub fn can_send(&self, in_flight: u64) -> bool {
        in_flight < self.window()
    }

    /// The slow start threshold, in bytes; `None` before any congestion.
    pub fn ssthresh(&self) -> Option<u64> {
        each!(&self.0, inner => inner.window().ssthresh())
    }

    /// Whether the window doubles every round trip.
    pub fn is_in_slow_start(&self) -> bool {
        each!(&self.0, inner => inner.window().is_in_slow_start())
    }

    /// How fast the window may be used; for [`crate::pacer::Pacer::set_rate`] after every event that changes the window
    /// or the round-trip time. Without a sample there is no limit: the initial window may leave at once.
    pub fn pacing_rate(&self, rtt: &Rtt) -> Rate {
        if !rtt.has_sample() {
            return Rate::UNLIMITED;
        }
        let gain = if self.is_in_slow_start() { SLOW_START_GAIN } else { AVOIDANCE_GAIN };
        Rate::of_window(self.window(), rtt.smoothed(), gain)
    }
}
