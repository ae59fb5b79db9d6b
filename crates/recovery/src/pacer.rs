//! Spreads a window over its round trip, in trains instead of single packets. Source: RFC 9002 §7.7.
//!
//! A bucket of bytes that fills at the rate the congestion controller gives. Two sizes rule it. A *train* is what leaves
//! at once in one system call: about a millisecond of the rate, at least one packet, at most what one GSO call takes.
//! Once the bucket is empty nothing leaves until a whole train is there; otherwise a saturated sender would be woken for
//! every packet. The bucket's *depth* is how much may pile up: ten packets (the initial window), or a train, and on top
//! a millisecond of the rate, because a sleeping worker wakes that late and must not lose what it was owed.
//!
//! Below a millisecond of round trip (loopback, a local network) there is no limit: timers are no finer than that.
//! Rejected: a departure time per packet (SO_TXTIME), which needs the fq queueing discipline and breaks GSO trains.

#[cfg(test)]
mod tests;

use crate::rate::Rate;
use base::time::{Duration, Instant};

/// Bytes that one GSO send can carry at most.
pub const LARGEST_TRAIN: u64 = 65_000;
/// How much of the rate a train and the allowance for late wake-ups hold.
const QUANTUM: Duration = Duration::from_millis(1);
/// Packets that may always leave back to back. Source: RFC 9002 §7.7.
const BURST_PACKETS: u64 = 10;

/// Bytes by which sums of floats may fall short, so that a train which is due is not put off by a nanosecond.
const ROUNDING: f64 = 1.0;

/// The pacer of one path.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    rate: Rate,
    /// Bytes that may leave. Below zero after a probe that left unasked.
    tokens: f64,
    depth: f64,
    train: f64,
    packet: f64,
    filled_at: Instant,
    state: State,
}

/// Whether a train is leaving or being saved up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Releasing,
    Saving,
}

impl Pacer {
    /// Unlimited until the first [`Pacer::set_rate`]. `mtu` is the largest datagram, in bytes.
    pub fn new(now: Instant, mtu: u16) -> Pacer {
        let mut pacer = Pacer {
            rate: Rate::UNLIMITED,
            tokens: 0.0,
            depth: 0.0,
            train: 0.0,
            packet: 0.0,
            filled_at: now,
            state: State::Releasing,
        };
        pacer.set_rate(Rate::UNLIMITED, mtu);
        pacer.tokens = pacer.depth;
        pacer
    }

    /// The rate from now on; the caller takes it from [`crate::congestion::Controller::pacing_rate`] after each event
    /// that changes the window or the round-trip time.
    pub fn set_rate(&mut self, rate: Rate, mtu: u16) {
        let packet = f64::from(mtu);
        let quantum = if rate.is_unlimited() { LARGEST_TRAIN as f64 } else { rate.bytes_in(QUANTUM) };
        self.rate = rate;
        self.packet = packet;
        self.train = quantum.min(LARGEST_TRAIN as f64).max(packet);
        self.depth = self.train.max(packet * BURST_PACKETS as f64) + quantum;
        self.tokens = self.tokens.min(self.depth);
    }

    /// Bytes that may leave now; 0 means wait for [`Pacer::next_release`]. Otherwise at least one packet.
    #[inline]
    pub fn allowance(&mut self, now: Instant) -> u64 {
        if self.rate.is_unlimited() {
            return u64::MAX;
        }
        self.fill(now);
        let enough = if self.state == State::Saving { self.train } else { self.packet };
        let ready = self.tokens + ROUNDING;
        if ready < enough {
            self.state = State::Saving;
            return 0;
        }
        self.state = State::Releasing;
        ready as u64
    }

    /// `bytes` left. Packets that do not wait for the pacer (probes) are told too; pure acknowledgements are not.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        if self.rate.is_unlimited() {
            return;
        }
        self.fill(now);
        self.tokens = (self.tokens - bytes as f64).max(-self.depth);
    }

    /// When the next train may leave; `None` while something may leave already.
    pub fn next_release(&self) -> Option<Instant> {
        if self.rate.is_unlimited() || self.state == State::Releasing {
            return None;
        }
        Some(self.filled_at + self.rate.time_for(self.train - self.tokens))
    }

    #[inline]
    fn fill(&mut self, now: Instant) {
        // A clock that steps back adds nothing, and must not stop the filling until it has caught up.
        let elapsed = now.saturating_since(self.filled_at);
        self.tokens = (self.tokens + self.rate.bytes_in(elapsed)).min(self.depth);
        self.filled_at = now;
    }
}
