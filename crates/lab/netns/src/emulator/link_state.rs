//! What becomes of a datagram: the model of the crate `link`, asked once for each datagram when its frame has come.
//!
//! A datagram waits in the queue, is serialised at the rate, may be lost on the line, and arrives after the delay. Every UDP or TCP
//! datagram draws once from the loss sequence, whatever else becomes of it, so the n-th datagram's outcome depends on the seed
//! and on n alone. Late and doubled datagrams draw from a sequence of their own. Hence three links: losses, line, other events.
//!
//! Times are nanoseconds of any clock that does not go backwards.

use base::rng::Rng;
use base::time::{Duration, Instant};
use link::{Burst, EventRate, Link, Node, NodeOutcome, Waits};

use super::options::{LinkOptions, millionths};

/// What the state must know of a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    /// Its frame on the line, in bytes.
    pub(crate) frame_bytes: u64,
    /// Its IP packet in bytes if it is UDP or TCP, which take part in the lottery. Of a TCP super-packet, its largest segment's.
    pub(crate) ip_bytes: Option<u32>,
    /// Whether an event of this link changes a byte of it; false before.
    pub(crate) is_corrupted: bool,
}

/// The line counts frames.
impl link::Datagram for Datagram {
    fn size(&self) -> usize {
        usize::try_from(self.frame_bytes).unwrap_or(usize::MAX)
    }
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatagramOutcome {
    /// Longer than the black hole's limit.
    BlackHole,
    /// Longer than the far host's MTU.
    TooLong,
    /// The queue is full.
    Overflowed,
    /// Lost on the line.
    Lost,
    /// Arrives, in order.
    Arrives { at: u64 },
    /// Arrives, in order, with one byte changed.
    Corrupted { at: u64 },
    /// Arrives twice, in order.
    Doubled { at: u64 },
    /// Arrives behind its successors.
    Late { at: u64 },
}

/// One direction's state.
#[derive(Debug)]
pub(crate) struct LinkState {
    options: LinkOptions,
    losses: Link,
    line: Link,
    other_events: Link,
    /// The nodes of [`LinkOptions::events`].
    events: Link,
    /// When the first datagram came that takes part.
    began: Option<u64>,
    jitter: Duration,
    last_arrival: Instant,
    /// The far host's MTU.
    mtu: u32,
}

impl LinkState {
    pub(crate) fn new(options: LinkOptions) -> LinkState {
        let (losses, other_events) = seeded(&options);
        let line = Link::new(line(&options), Rng::from_u64(options.seed));
        let events = events(&options);
        let (jitter, last_arrival) = (Duration::ZERO, Instant::ZERO);
        LinkState {
            options,
            losses,
            line,
            other_events,
            events,
            began: None,
            jitter,
            last_arrival,
            mtu: u32::MAX,
        }
    }

    /// The far host takes IP packets of up to `mtu` bytes.
    pub(crate) fn limit(&mut self, mtu: u32) {
        self.mtu = mtu;
    }

    /// New options. The sequences go on where they are, unless the seed is new. What is under way stays as it was decided.
    pub(crate) fn change(&mut self, options: &LinkOptions) {
        if options.events != self.options.events {
            self.events = events(options);
            self.began = None;
        }
        if options.seed == self.options.seed {
            self.losses.change(losses(options));
            self.other_events.change(other_events(options));
        } else {
            (self.losses, self.other_events) = seeded(options);
        }
        self.line.change(line(options));
        // A shorter delay is not held up by what travels with the longer one.
        self.last_arrival = Instant::ZERO;
        self.options = options.clone();
    }

    /// How long those that passed the line had waited for it.
    pub(crate) fn waits(&self) -> &Waits {
        &self.line.waits
    }

    /// A frame begins: its datagrams share one draw of jitter.
    pub(crate) fn begin_frame(&mut self) {
        let longest = duration(self.options.jitter);
        self.jitter = if longest.is_zero() { longest } else { self.other_events.draw_up_to(longest) };
    }

    /// Decides on the next datagram, which came at `now`.
    pub(crate) fn decide(&mut self, now: u64, mut datagram: Datagram) -> DatagramOutcome {
        let takes_part = datagram.ip_bytes.is_some();
        let is_lost_by_chance = takes_part && self.draws_loss(&mut datagram);
        let is_lost_by_event =
            takes_part && !self.events.is_empty() && self.loses_by_event(now, &mut datagram);
        let is_lost = is_lost_by_chance || is_lost_by_event;
        let is_corrupted = std::mem::take(&mut datagram.is_corrupted);
        let is_above = |limit: u32| datagram.ip_bytes.is_some_and(|bytes| bytes > limit);
        if self.options.drops_above.is_some_and(is_above) {
            return DatagramOutcome::BlackHole;
        }
        let now = Instant::from_nanos(now);
        let sent_at = match self.line.pass(0, (now, Duration::ZERO), &mut datagram) {
            NodeOutcome::Gone => return DatagramOutcome::Overflowed,
            NodeOutcome::At(then) => then,
            NodeOutcome::On | NodeOutcome::Twice(_) => now,
        };
        if is_lost {
            return DatagramOutcome::Lost;
        }
        // The far host drops it, so it takes its time on the line.
        if datagram.ip_bytes.is_some_and(|bytes| bytes > self.mtu) {
            return DatagramOutcome::TooLong;
        }
        let at = (sent_at + duration(self.options.delay) + self.jitter).max(self.last_arrival);
        if is_corrupted {
            self.last_arrival = at;
            return DatagramOutcome::Corrupted { at: at.as_nanos() };
        }
        let others = if datagram.ip_bytes.is_some() { self.other_events.len() } else { 0 };
        for node in 0..others {
            match self.other_events.pass(node, (at, Duration::ZERO), &mut datagram) {
                NodeOutcome::At(late) => return DatagramOutcome::Late { at: late.as_nanos() },
                NodeOutcome::Twice(_) => {
                    self.last_arrival = at;
                    return DatagramOutcome::Doubled { at: at.as_nanos() };
                }
                NodeOutcome::On | NodeOutcome::Gone => {}
            }
        }
        self.last_arrival = at;
        DatagramOutcome::Arrives { at: at.as_nanos() }
    }

    /// Which byte of `len` changes, and by which mask.
    pub(crate) fn draw_damage(&mut self, len: usize) -> (usize, u8) {
        let last = u64::try_from(len).unwrap_or(u64::MAX).saturating_sub(1);
        let place = self.events.draw_up_to(Duration::from_nanos(last)).as_nanos();
        let mask = 1 + self.events.draw_up_to(Duration::from_nanos(254)).as_nanos();
        (usize::try_from(place).unwrap_or(0), u8::try_from(mask).unwrap_or(1))
    }

    /// Whether an event drops the datagram. One that is corrupted is noted in it.
    fn loses_by_event(&mut self, now: u64, datagram: &mut Datagram) -> bool {
        let age = Duration::from_nanos(now.saturating_sub(*self.began.get_or_insert(now)));
        let corrupted = self.events.counters.corrupted;
        let mut is_lost = false;
        for node in 0..self.events.len() {
            let outcome = self.events.pass(node, (Instant::from_nanos(now), age), datagram);
            is_lost |= outcome == NodeOutcome::Gone;
        }
        datagram.is_corrupted = self.events.counters.corrupted > corrupted;
        is_lost
    }

    /// Each node draws, so that the sequence does not depend on the outcome. No time passes for them: a burst of losses is as long
    /// in datagrams on a quiet line as on a busy one.
    fn draws_loss(&mut self, datagram: &mut Datagram) -> bool {
        let mut is_lost = false;
        for node in 0..self.losses.len() {
            let outcome = self.losses.pass(node, (Instant::ZERO, Duration::ZERO), datagram);
            is_lost |= outcome == NodeOutcome::Gone;
        }
        is_lost
    }
}

/// The links that draw, at the beginning of their sequences.
fn seeded(options: &LinkOptions) -> (Link, Link) {
    let mut rng = Rng::from_u64(options.seed);
    let others = Link::new(other_events(options), rng.fork());
    (Link::new(losses(options), rng), others)
}

/// A sequence of its own: with or without events, the others draw the same.
fn events(options: &LinkOptions) -> Link {
    Link::new(options.events.clone(), Rng::from_u64(!options.seed))
}

/// What cannot happen has no node, and draws nothing.
fn losses(options: &LinkOptions) -> Vec<Node> {
    let single = Some(EventRate { ppm: millionths(options.loss), burst: Burst::None });
    let burst = options.burst.map(|burst| EventRate {
        ppm: millionths(burst.begins),
        burst: Burst::Gilbert { ends_ppm: millionths(burst.ends) },
    });
    single.into_iter().chain(burst).filter(|rate| rate.ppm > 0).map(Node::Loss).collect()
}

fn line(options: &LinkOptions) -> Vec<Node> {
    let rate = options.rate_bits.filter(|rate| *rate > 0);
    let node = |bits_per_second| Node::Rate { bits_per_second, queue_bytes: options.queue_bytes };
    rate.map(node).into_iter().collect()
}

fn other_events(options: &LinkOptions) -> Vec<Node> {
    let late = options.reorder.map(|reorder| (millionths(reorder.share), duration(reorder.by)));
    let late = late.filter(|(ppm, _)| *ppm > 0).map(|(ppm, by)| Node::Late { ppm, by });
    let ppm = millionths(options.duplicate);
    let doubled = (ppm > 0).then_some(Node::Duplicate { ppm, after: Duration::ZERO });
    late.into_iter().chain(doubled).collect()
}

fn duration(duration: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
