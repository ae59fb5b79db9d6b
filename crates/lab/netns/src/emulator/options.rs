//! What a link does to datagrams, as numbers; one value for each direction.
//!
//! All fields may change while the emulator runs. Loss, bursts, reordering and duplication concern UDP and TCP only, so that
//! ARP and neighbour discovery neither fail nor use up a number of the seeded sequence.

use std::time::Duration;

use link::Node;

/// One direction of a link. The default is a cable: no delay, no limit, no loss.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOptions {
    /// The time from the last bit sent to its arrival.
    pub delay: Duration,
    /// At most this much is added to the delay of each frame, evenly distributed; the order stays.
    pub jitter: Duration,
    /// Bits of Ethernet frames per second (without preamble and check sequence); none: unlimited.
    pub rate_bits: Option<u64>,
    /// What may wait for the line, in bytes; more is dropped at the tail. Without a rate nothing waits.
    pub queue_bytes: u64,
    /// Share of datagrams lost on the line, each by itself: 0 to 1, in steps of a millionth. They take their time on the line.
    pub loss: f64,
    /// Losses in bursts, beside `loss`.
    pub burst: Option<BurstLoss>,
    /// Some datagrams are late and arrive behind their successors.
    pub reorder: Option<Reorder>,
    /// Share of datagrams that arrive twice: 0 to 1.
    pub duplicate: f64,
    /// Further events, in this order: [`Node::Loss`], [`Node::Drop`], [`Node::Corrupt`], [`Node::Blackhole`], [`Node::Blinking`] and
    /// [`Node::Police`], which counts frames; other nodes have no effect here. Ordinals and times count from the first UDP or TCP datagram
    /// in this direction.
    pub events: Vec<Node>,
    /// IP packets longer than this many bytes vanish without a word: a path-MTU black hole.
    pub drops_above: Option<u32>,
    /// The n-th datagram's luck depends on this and on n only.
    pub seed: u64,
}

/// The two-state model of Gilbert: in the bad state every datagram is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLoss {
    /// Probability, per datagram, that the good state turns bad.
    pub begins: f64,
    /// Probability, per datagram, that the bad state ends: 1 / the mean length of a burst.
    pub ends: f64,
}

/// Which datagrams are late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Share of datagrams: 0 to 1.
    pub share: f64,
    /// By how much they are late.
    pub by: Duration,
}

impl Default for LinkOptions {
    fn default() -> LinkOptions {
        LinkOptions {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            rate_bits: None,
            queue_bytes: 1 << 20,
            loss: 0.0,
            burst: None,
            reorder: None,
            duplicate: 0.0,
            events: Vec::new(),
            drops_above: None,
            seed: 0,
        }
    }
}

impl LinkOptions {
    /// What makes no sense, in one line: probabilities outside 0 to 1 or below a millionth, a rate or a queue of nothing.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let shares = [self.loss, self.duplicate, self.reorder.map_or(0.0, |reorder| reorder.share)];
        let burst = self.burst.map_or([0.0, 0.0], |burst| [burst.begins, burst.ends]);
        let all = || shares.iter().chain(&burst);
        if all().any(|share| !(0.0..=1.0).contains(share)) {
            return Some("loss, duplicate, reorder and burst are probabilities: give numbers from 0 to 1");
        }
        if all().any(|share| *share > 0.0 && millionths(*share) == 0) {
            return Some("the smallest probability of a link is one millionth, which is 0.0001 %");
        }
        if self.rate_bits == Some(0) {
            return Some(
                "a rate of 0 bits per second passes nothing: leave the rate out, or lose everything with loss 1",
            );
        }
        if self.delay.saturating_add(self.jitter) > Duration::from_secs(60) {
            return Some("delay and jitter together may be at most 60 s");
        }
        None
    }
}

/// A probability in millionths, rounded.
pub(crate) fn millionths(probability: f64) -> u32 {
    (probability * 1_000_000.0).round() as u32
}

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the left end to the right end.
    ToRight,
    /// From the right end to the left end.
    ToLeft,
}

impl Direction {
    pub(crate) const BOTH: [Direction; 2] = [Direction::ToRight, Direction::ToLeft];

    pub(crate) fn index(self) -> usize {
        match self {
            Direction::ToRight => 0,
            Direction::ToLeft => 1,
        }
    }
}

/// What happened in one direction since the start. A super-packet is one frame and several datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received from the near end.
    pub frames: u64,
    /// Datagrams in them; a frame that is neither UDP nor TCP counts as one.
    pub datagrams: u64,
    /// Those of UDP among them.
    pub udp_datagrams: u64,
    /// Bytes of the frames received, Ethernet headers included.
    pub bytes: u64,
    /// Frames handed to the far end.
    pub sent_frames: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Datagrams lost by `loss`, a burst or an event.
    pub lost: u64,
    /// Datagrams that found the queue full, or the emulator's memory at its bound.
    pub overflowed: u64,
    /// Datagrams that were longer than `eats_above`.
    pub black_holed: u64,
    /// Datagrams to a port that the address translator has forgotten.
    pub stale: u64,
    /// Frames that came while the kernel's buffer was full, because the emulator did not get the CPU: it is not counted in
    /// `frames`, and an experiment in which it is not 0 is worth nothing.
    pub missed: u64,
    /// Frames that the kernel refused to send (queue of the interface full, interface down), and datagrams longer than the
    /// MTU of the host at the far end.
    pub refused: u64,
    /// Datagrams sent twice.
    pub duplicated: u64,
    /// Datagrams made late on purpose.
    pub reordered: u64,
    /// Datagrams that arrived with one byte changed.
    pub corrupted: u64,
    /// How long after its time the latest frame left, in nanoseconds: the emulator did not get the CPU.
    pub worst_late_nanos: u64,
}
