//! Spreads a window over its round trip, in trains instead of single packets. Source: RFC 9002 §7.7.
//!
//! A bucket of bytes that fills at the rate the congestion controller gives. Two sizes rule it. A *train* is what leaves
//! at once in one system call: about a millisecond of the rate, at least one packet, at most what one GSO call takes.
//! Once the bucket is empty nothing leaves until a whole train is there; otherwise a saturated sender would be woken for
//! every packet. The bucket's *depth* is how much may pile up: ten packets (the initial window), or a train, and on top
//! a millisecond of the rate, because a sleeping worker wakes that late and must not lose what it was owed.
//!
//! Below a millisecond of round trip (loopback, a local network) there is no limit: timers are no finer than that.
//!
//! Where the data path holds trains back until they depart (SO_TXTIME and the fq queueing discipline), the pacer looks
//! ahead: a train whose bytes will be there within [`HORIZON`] is released now, with the time at which it departs, and
//! the tokens go below zero. One wake-up then serves three trains, and none of them leaves late. Departures never go
//! back, so that packets leave in the order of their numbers. The horizon is short because what has been handed over
//! does not hear of congestion any more.
//! Rejected: a departure time per packet, which breaks GSO trains.

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

/// How long before its departure a train may be released, to a data path that holds it: two more trains than the one
/// that is due, and what a timer may be late.
pub const HORIZON: Duration = Duration::from_micros(2_250);
/// So long before the next departure the sender is woken, since it is woken late.
const LEAD: Duration = Duration::from_micros(200);

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
    release: Release,
    /// When the train departs that may be released now.
    due: Instant,
    /// When the last one departs.
    departed: Instant,
}

/// Whether trains may be released before they depart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// They leave when they are released.
    #[default]
    OnTime,
    /// The data path holds them until they depart.
    Early,
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
            release: Release::OnTime,
            due: now,
            departed: now,
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

    /// What the data path does with departure times.
    pub fn set_release(&mut self, release: Release) {
        self.release = release;
    }

    /// Bytes that may be released now, to depart at [`Pacer::departure`]; 0 means wait for [`Pacer::next_release`].
    /// Otherwise at least one packet.
    #[inline]
    pub fn allowance(&mut self, now: Instant) -> u64 {
        self.due = now;
        if self.rate.is_unlimited() {
            return u64::MAX;
        }
        self.fill(now);
        let enough = if self.state == State::Saving { self.train } else { self.packet };
        let ready = self.tokens + ROUNDING;
        if ready < enough {
            return self.look_ahead(now);
        }
        self.state = State::Releasing;
        ready as u64
    }

    /// A whole train, if it departs soon enough.
    fn look_ahead(&mut self, now: Instant) -> u64 {
        self.state = State::Saving;
        if self.release == Release::OnTime {
            return 0;
        }
        let due = now + self.rate.time_for(self.train - self.tokens);
        if due > now + HORIZON {
            return 0;
        }
        self.state = State::Releasing;
        self.due = due;
        (self.train + ROUNDING) as u64
    }

    /// When what is sent now departs; `None` is at once. As of the last [`Pacer::allowance`], also if that was 0: what does
    /// not wait for the pacer must not overtake what has been released early.
    #[inline]
    pub fn departure(&self, now: Instant) -> Option<Instant> {
        let due = self.due.max(self.departed);
        (due > now).then_some(due)
    }

    /// `bytes` left. Packets that do not wait for the pacer (probes) are told too; pure acknowledgements are not.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.departed = self.departed.max(self.due);
        if self.rate.is_unlimited() {
            return;
        }
        self.fill(now);
        let floor = match self.release {
            Release::OnTime => -self.depth,
            Release::Early => -self.depth - self.rate.bytes_in(HORIZON),
        };
        self.tokens = (self.tokens - bytes as f64).max(floor);
    }

    /// When the next train may be released; `None` while something may be already.
    pub fn next_release(&self) -> Option<Instant> {
        if self.rate.is_unlimited() || self.state == State::Releasing {
            return None;
        }
        let wait = self.rate.time_for(self.train - self.tokens);
        Some(match self.release {
            Release::OnTime => self.filled_at + wait,
            Release::Early => self.filled_at + wait.saturating_sub(LEAD),
        })
    }

    #[inline]
    fn fill(&mut self, now: Instant) {
        // A clock that steps back adds nothing, and must not stop the filling until it has caught up.
        let elapsed = now.saturating_since(self.filled_at);
        self.tokens = (self.tokens + self.rate.bytes_in(elapsed)).min(self.depth);
        self.filled_at = now;
    }
}
