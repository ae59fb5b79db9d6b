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
//! Both sizes can be set ([`Burst`]): then a train is this many packets, or this much of the rate, and no more than that piles up
//! while there is nothing to send. What a sender is owed that was woken late still leaves at once, in several trains: a
//! limit that cost rate would be a second congestion controller.
//!
//! On a path that has lost nothing of late a train may be longer ([`Pacer::set_long_trains`]): ten packets of a flow of 10 Mbit/s, one at a time, wake
//! both ends ten times. More than ten packets are no more than a quarter of the longest queue that the path has held: two trains in a row, and what
//! a late wake-up adds, may overflow a shorter one. A long train is no longer than what waits to be sent ([`Pacer::expect`]), so that the end of an answer waits for nothing. And
//! it takes along what would be a short one behind it, for which the tokens go below zero: three packets of the sixteen for which an acknowledgement
//! makes room are not worth a wake-up.
//!
//! Where the window is full nothing is saved up for ([`Pacer::hold`]): an acknowledgement wakes the sender.
//!
//! Where many connections share a worker, a train of a slow one may hold more of the rate ([`Pacer::set_savings`]), up to
//! ten packets or what the path is known to absorb: or else the worker is woken for each packet of each connection, and nothing leaves
//! in trains any more.
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
use crate::rtt::Rtt;
use base::time::{Duration, Instant};

/// Bytes that one GSO send can carry at most.
pub const LARGEST_TRAIN: u64 = 65_000;
/// How much of the rate a train and the allowance for late wake-ups hold.
const QUANTUM: Duration = Duration::from_millis(1);
/// Trains of a round trip at least, where the sender wants to be woken seldom.
const PARTS: u64 = 4;
/// The same, and trains of a queue, where that is long.
const PARTS_OF_QUEUE: u64 = 2;
/// Packets that may always leave back to back. Source: RFC 9002 §7.7.
const BURST_PACKETS: u64 = 10;

/// Long trains of a round trip at least, of up to ten packets.
const LONG_TRAINS: u32 = 8;
/// The same, of up to [`LONG_TRAIN_PACKETS`].
const LONGER_TRAINS: u32 = 16;
/// And such of the longest queue that the path has held.
const PARTS_OF_LONGEST_QUEUE: u32 = 4;
/// Packets of a long train at most: what a path of which nothing is known gets at first, too. Source: RFC 9002 §7.7.
const LONG_TRAIN_PACKETS: u64 = 32;
/// What is left over leaves with a long train, if it is no more than this part of the tokens that are there.
const REMAINDER: f64 = 0.5;

/// How long before its departure a train may be released, to a data path that holds it: two more trains than the one
/// that is due, and what a timer may be late.
pub const HORIZON: Duration = Duration::from_micros(2_250);
/// So long before the next departure the sender is woken, since it is woken late.
const LEAD: Duration = Duration::from_micros(200);

/// Bursts of a number of packets hold no more than this of the rate: slow paths get shorter ones.
const LONGEST_BURST: Duration = Duration::from_millis(10);

/// Bytes by which sums of floats may fall short, so that a train which is due is not put off by a nanosecond.
const ROUNDING: f64 = 1.0;

/// Whether and how a window is spread over its round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// In bursts.
    On(Burst),
    /// Whatever the window permits leaves at once.
    Off,
}

impl Default for Pacing {
    fn default() -> Pacing {
        Pacing::On(Burst::default())
    }
}

/// How much leaves back to back at most. Without either limit, the default: a millisecond of the rate, up to what one GSO
/// call takes, more where the path has room ([`Pacer::set_long_trains`], [`Pacer::set_savings`]), and ten packets after a pause.
/// With both, the smaller one. A single packet is always possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// This many packets, also on paths whose round trip is too short to be paced: one train, one send. On slow paths fewer,
    /// so that a burst holds no more than ten milliseconds of the rate.
    pub packets: Option<u16>,
    /// So much of the rate.
    pub span: Option<Duration>,
}

impl Burst {
    /// Whether it is the default.
    fn is_free(&self) -> bool {
        self.packets.is_none() && self.span.is_none()
    }

    /// Bytes of a burst at a finite rate.
    fn bytes(&self, rate: Rate, packet: f64) -> f64 {
        let longest = if self.packets.is_some() { LONGEST_BURST } else { QUANTUM };
        let by_span = rate.bytes_in(self.span.unwrap_or(longest));
        by_span.min(self.most(packet)).max(packet)
    }

    /// Bytes of a burst at whatever rate.
    fn most(&self, packet: f64) -> f64 {
        let packets = self.packets.map_or(f64::INFINITY, |packets| f64::from(packets.max(1)) * packet);
        packets.min(LARGEST_TRAIN as f64).max(packet)
    }
}

/// How much a train may hold where the sender wants to be woken seldom. By default nothing more than anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Savings {
    /// So much of the rate, as far as it is no more than ten packets or `absorbed`. Less than a millisecond changes nothing.
    pub span: Duration,
    /// Bytes that the path is known to take back to back. Source: RFC 9002 §7.7.
    pub absorbed: u64,
}

impl Savings {
    /// What a path permits whose sender wants to be woken once in `span`: no more than a quarter of a round trip; or half of the queue that
    /// stands on it, and of a round trip, where that is more than ten packets of `packet` bytes. That queue is the part of `window` by which
    /// the round trip is longer than it can be. It never runs dry by that, and what it has held without a loss is more than it grows by.
    pub fn of(span: Duration, window: u64, packet: u16, rtt: &Rtt) -> Savings {
        let longest = rtt.smoothed();
        let waits = if rtt.has_sample() { longest.saturating_sub(rtt.min()) } else { Duration::ZERO };
        let queue = window as f64 * waits.as_secs_f64() / longest.as_secs_f64().max(f64::MIN_POSITIVE);
        let absorbed = (queue / PARTS_OF_QUEUE as f64) as u64;
        let is_long = absorbed > BURST_PACKETS * u64::from(packet);
        Savings { span: span.min(longest / if is_long { PARTS_OF_QUEUE } else { PARTS }), absorbed }
    }
}

/// The pacer of one path.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    pacing: Pacing,
    savings: Savings,
    /// The round trip that long trains are a part of, in microseconds; zero where there is none.
    long_trains: u32,
    /// How long packets have waited in a queue of the path at most, in microseconds.
    longest_wait: u32,
    rate: Rate,
    /// Bytes that may leave. Below zero after a probe that left unasked, or a remainder.
    tokens: f64,
    /// Tokens that pile up at most while a train is saved up for.
    depth: f64,
    train: f64,
    /// What is saved up for: a train, or more of a long one.
    goal: f64,
    /// Bytes that would leave now without a pacer; zero where no train is long.
    expected: u32,
    /// Bytes of the largest packet.
    packet: u16,
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

/// An hour is as good as any time above it.
fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

/// Whether a train is leaving or being saved up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Releasing,
    Saving,
    /// A train is saved up for, and could not leave if it were there: no timer waits for it, and no more piles up than while nothing is
    /// waited for.
    Held,
}

impl Pacer {
    /// Unlimited until the first [`Pacer::set_rate`]. `mtu` is the largest datagram, in bytes.
    pub fn new(now: Instant, mtu: u16) -> Pacer {
        let mut pacer = Pacer {
            pacing: Pacing::default(),
            savings: Savings::default(),
            long_trains: 0,
            longest_wait: 0,
            rate: Rate::UNLIMITED,
            tokens: 0.0,
            depth: 0.0,
            train: 0.0,
            goal: 0.0,
            expected: 0,
            packet: 0,
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

    /// With these bursts, or none. To be called before the first packet.
    #[must_use]
    pub fn with_pacing(mut self, pacing: Pacing) -> Pacer {
        self.pacing = pacing;
        self.set_rate(self.rate, self.packet);
        self
    }

    /// The rate from now on; the caller takes it from [`crate::congestion::Controller::pacing_rate`] after each event
    /// that changes the window or the round-trip time.
    pub fn set_rate(&mut self, rate: Rate, mtu: u16) {
        let packet = f64::from(mtu);
        self.packet = mtu;
        let (rate, burst) = match self.pacing {
            Pacing::On(burst) => (rate, burst),
            Pacing::Off => (Rate::UNLIMITED, Burst::default()),
        };
        self.rate = rate;
        let (train, late) = if rate.is_unlimited() {
            (burst.most(packet), LARGEST_TRAIN as f64)
        } else {
            (burst.bytes(rate, packet), rate.bytes_in(QUANTUM))
        };
        self.train = train;
        if burst.is_free() {
            let always = packet * BURST_PACKETS as f64;
            let Savings { span, absorbed } = self.savings;
            if span > QUANTUM && !rate.is_unlimited() {
                let most = (absorbed.min(LARGEST_TRAIN) as f64).max(always);
                self.train = train.max(rate.bytes_in(span).min(most));
            }
            self.depth = self.long_train().max(always) + late;
        } else {
            self.depth = train + late;
        }
        self.goal = self.train;
        self.tokens = self.tokens.min(self.depth);
    }

    /// Tokens that pile up at most while nothing is waited for, at a finite rate.
    fn rest(&self) -> f64 {
        let packet = f64::from(self.packet);
        match self.pacing {
            Pacing::On(burst) if !burst.is_free() => self.train,
            Pacing::On(_) | Pacing::Off => {
                let train = Burst::default().bytes(self.rate, packet);
                train.max(packet * BURST_PACKETS as f64) + self.rate.bytes_in(QUANTUM)
            }
        }
    }

    /// An eighth of `round_trip` at the rate may be saved up for a train of up to ten packets; a sixteenth for one of up to 32, if it is no more
    /// than a quarter of the longest queue that there was. A `round_trip` of zero: no more than anyway. Packets wait for `wait` in a queue now.
    /// For default bursts, from the next [`Pacer::set_rate`] on.
    pub fn set_long_trains(&mut self, round_trip: Duration, wait: Duration) {
        let is_free = matches!(self.pacing, Pacing::On(burst) if burst.is_free());
        self.long_trains = if is_free { micros(round_trip) } else { 0 };
        self.longest_wait = self.longest_wait.max(micros(wait));
        self.expected = 0;
    }

    /// `bytes` wait to be sent and may wait for a long train; zero where something may not. The window has `room` for so many. For the next
    /// [`Pacer::allowance`].
    #[inline]
    pub fn expect(&mut self, bytes: u64, room: u64) {
        let long = self.long_train();
        self.goal = long.min(self.train.max(bytes as f64));
        self.expected =
            if long > self.train { u32::try_from(bytes.min(room)).unwrap_or(u32::MAX) } else { 0 };
    }

    /// Whether [`Pacer::expect`] says anything.
    #[inline]
    pub fn has_long_trains(&self) -> bool {
        self.long_trains > 0
    }

    /// Bytes that may be saved up, no less than a train.
    fn long_train(&self) -> f64 {
        if !self.has_long_trains() || self.rate.is_unlimited() {
            return self.train;
        }
        let packet = f64::from(self.packet);
        let bytes_in = |micros: u32| self.rate.bytes_in(Duration::from_micros(micros.into()));
        let long = bytes_in(self.long_trains / LONG_TRAINS).min(packet * BURST_PACKETS as f64);
        let longer = (self.long_trains / LONGER_TRAINS).min(self.longest_wait / PARTS_OF_LONGEST_QUEUE);
        let longer = bytes_in(longer).min(packet * LONG_TRAIN_PACKETS as f64);
        self.train.max(long.max(longer).min(LARGEST_TRAIN as f64))
    }

    /// Bytes that are released at a time at most.
    fn largest(&self) -> u64 {
        match self.pacing {
            Pacing::On(burst) if !burst.is_free() => self.train as u64,
            Pacing::On(_) | Pacing::Off => u64::MAX,
        }
    }

    /// How seldom the sender wants to be woken. For default bursts, from the next [`Pacer::set_rate`] on.
    pub fn set_savings(&mut self, savings: Savings) {
        self.savings = savings;
    }

    /// As it was set; nothing at first.
    pub fn savings(&self) -> Savings {
        self.savings
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
            return self.largest();
        }
        self.fill(now);
        let enough = match self.state {
            State::Releasing => f64::from(self.packet),
            State::Saving => self.goal,
            State::Held => self.goal.min(self.rest()),
        };
        let ready = self.tokens + ROUNDING;
        if ready < enough {
            return self.look_ahead(now);
        }
        self.state = State::Releasing;
        let fits = f64::from(self.expected) <= ready * (1.0 + REMAINDER);
        let whole = if fits { self.expected.into() } else { 0 };
        (ready as u64).max(whole).min(self.largest())
    }

    /// Congestion control has no room for a packet: what is saved up for waits for an acknowledgement, until the next [`Pacer::allowance`].
    #[inline]
    pub fn hold(&mut self) {
        if self.state == State::Saving {
            self.state = State::Held;
        }
    }

    /// A whole train, if it departs soon enough.
    fn look_ahead(&mut self, now: Instant) -> u64 {
        self.state = State::Saving;
        if self.release == Release::OnTime {
            return 0;
        }
        let due = now + self.rate.time_for(self.goal - self.tokens);
        if due > now + HORIZON {
            return 0;
        }
        self.state = State::Releasing;
        self.due = due;
        ((self.goal + ROUNDING) as u64).min(self.largest())
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

    /// When the next train may be released; `None` while something may be already, or nothing could leave ([`Pacer::hold`]).
    pub fn next_release(&self) -> Option<Instant> {
        if self.rate.is_unlimited() || self.state != State::Saving {
            return None;
        }
        let wait = self.rate.time_for(self.goal - self.tokens);
        Some(match self.release {
            Release::OnTime => self.filled_at + wait,
            Release::Early => self.filled_at + wait.saturating_sub(LEAD),
        })
    }

    #[inline]
    fn fill(&mut self, now: Instant) {
        // A clock that steps back adds nothing, and must not stop the filling until it has caught up.
        let elapsed = now.saturating_since(self.filled_at);
        // What a late sender is owed it is owed in the turn that it was woken for. Nor is it idle while it waits for an acknowledgement
        // that was asked to be as rare as its trains.
        let is_owed = self.state == State::Saving || elapsed <= self.savings.span;
        let most = if is_owed { self.depth } else { self.rest() };
        self.tokens = (self.tokens + self.rate.bytes_in(elapsed)).min(most);
        self.filled_at = now;
    }
}
