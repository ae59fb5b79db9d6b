//! One direction between two hosts: the nodes in order, what each remembers, and the chance they share.
//!
//! A node sees datagrams in the order in which they reach it, at the time at which they do; a node that keeps one back
//! says when it goes on, and the network brings it to the next node then.

use crate::node::{Burst, EventRate, Node, Queue};
use crate::waits::Waits;
use base::net::Ecn;
use base::rng::Rng;
use base::time::{Duration, Instant};
use core::net::SocketAddr;

/// A datagram under way.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub ecn: Ecn,
    pub bytes: Vec<u8>,
}

/// What a link did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Datagrams that entered.
    pub entered: u64,
    /// Lost by chance, by list, or in a black hole.
    pub lost: u64,
    /// Lost because the queue was full.
    pub overflowed: u64,
    /// Lost because they were too large.
    pub too_large: u64,
    /// Delivered with a changed byte.
    pub corrupted: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Held back.
    pub reordered: u64,
    /// Marked CE.
    pub marked: u64,
}

/// Where a datagram is after a node.
pub(crate) enum NodeOutcome {
    /// At the next node, now.
    On,
    /// At the next node, then.
    At(Instant),
    /// At the next node now, and a copy of it then.
    Twice(Instant),
    /// Nowhere.
    Gone,
}

/// What a node remembers.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// Datagrams seen.
    seen: u64,
    /// Misfortunes in a row so far.
    run: u32,
    /// When a datagram was last seen.
    seen_at: Instant,
    /// When the line is free.
    free_at: Instant,
}

/// A run of misfortunes is over when the line was quiet for so long: it is the network's mood that is bad for a while, not
/// so many datagrams that are doomed, else a run would outlast one exponentially backed-off probe after another.
const RUN_TIMEOUT: Duration = Duration::from_millis(100);

impl Memory {
    fn on_datagram(&mut self, now: Instant) {
        self.seen += 1;
        if now.saturating_since(self.seen_at) > RUN_TIMEOUT {
            self.run = 0;
        }
        self.seen_at = now;
    }
}

#[derive(Debug)]
pub(crate) struct Link {
    pub to: usize,
    nodes: Vec<(Node, Memory)>,
    rng: Rng,
    pub counters: LinkCounters,
    /// How long what passed its queues waited there.
    pub waits: Waits,
}

impl Link {
    pub(crate) fn new(to: usize, nodes: Vec<Node>, rng: Rng) -> Link {
        let nodes = nodes.into_iter().map(|node| (node, Memory::default())).collect();
        Link { to, nodes, rng, counters: LinkCounters::default(), waits: Waits::default() }
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// What node `index` makes of a datagram at `now`, `age` after the beginning of the run.
    pub(crate) fn pass(
        &mut self,
        index: usize,
        now: Instant,
        age: Duration,
        datagram: &mut Datagram,
    ) -> NodeOutcome {
        let Link { nodes, rng, counters, waits, .. } = self;
        let Some((node, memory)) = nodes.get_mut(index) else { return NodeOutcome::On };
        memory.on_datagram(now);
        match node {
            Node::Delay(delay) => NodeOutcome::At(now + *delay),
            Node::Rate { bits_per_second, queue_bytes } => {
                let passage =
                    queue(memory, now, datagram.bytes.len() as u64, (*bits_per_second, *queue_bytes));
                counters.overflowed += u64::from(matches!(passage, NodeOutcome::Gone));
                passage
            }
            Node::Queue(options) => {
                let wait = memory.free_at.saturating_since(now);
                let line = (options.bits_per_second, options.bytes);
                let passage = queue(memory, now, datagram.bytes.len() as u64, line);
                if matches!(passage, NodeOutcome::Gone) {
                    counters.overflowed += 1;
                } else {
                    waits.note(wait);
                    counters.marked += u64::from(mark(options, wait, datagram));
                }
                passage
            }
            Node::Loss(odds) => lose(counters, is_affected(odds, memory, rng)),
            Node::Drop(ordinals) => lose(counters, ordinals.contains(&memory.seen)),
            Node::Blackhole { from, to } => lose(counters, age >= *from && age < *to),
            Node::Blinking { on, off } => {
                let period = (*on + *off).as_nanos().max(1);
                lose(counters, age.as_nanos() % period >= on.as_nanos())
            }
            Node::Corrupt(odds) => {
                if is_affected(odds, memory, rng) {
                    counters.corrupted += 1;
                    corrupt(&mut datagram.bytes, rng);
                }
                NodeOutcome::On
            }
            Node::Duplicate { ppm, after } => {
                let (hit, late) = (chance(*ppm, rng), up_to(*after, rng));
                counters.duplicated += u64::from(hit);
                if hit { NodeOutcome::Twice(now + late) } else { NodeOutcome::On }
            }
            Node::Reorder { ppm, by } => {
                let (hit, late) = (chance(*ppm, rng), up_to(*by, rng));
                counters.reordered += u64::from(hit);
                if hit { NodeOutcome::At(now + late) } else { NodeOutcome::On }
            }
            Node::Mtu(limit) => fit(counters, datagram, *limit),
            Node::MtuFrom { at, limit } => {
                let limit = if age < *at { usize::MAX } else { *limit };
                fit(counters, datagram, limit)
            }
            Node::EcnMark { ppm } => {
                if chance(*ppm, rng) && datagram.ecn != Ecn::NotEct {
                    counters.marked += 1;
                    datagram.ecn = Ecn::Ce;
                }
                NodeOutcome::On
            }
            Node::EcnBleach => {
                datagram.ecn = Ecn::NotEct;
                NodeOutcome::On
            }
            // The translator stands at the sender's edge; the network asks it.
            Node::Rebind { .. } => NodeOutcome::On,
        }
    }
}

fn fit(counters: &mut LinkCounters, datagram: &Datagram, limit: usize) -> NodeOutcome {
    let too_large = datagram.bytes.len() > limit;
    counters.too_large += u64::from(too_large);
    if too_large { NodeOutcome::Gone } else { NodeOutcome::On }
}

fn lose(counters: &mut LinkCounters, is_lost: bool) -> NodeOutcome {
    counters.lost += u64::from(is_lost);
    if is_lost { NodeOutcome::Gone } else { NodeOutcome::On }
}

/// A line that sends one bit after the other, and the queue before it.
fn queue(
    memory: &mut Memory,
    now: Instant,
    len: u64,
    (bits_per_second, queue_bytes): (u64, u64),
) -> NodeOutcome {
    let rate = u128::from(bits_per_second.max(1));
    let wait = memory.free_at.saturating_since(now).as_nanos();
    let waiting = u128::from(wait) * rate / 8_000_000_000;
    if waiting + u128::from(len) > u128::from(queue_bytes) && wait > 0 {
        return NodeOutcome::Gone;
    }
    let nanos = u128::from(len) * 8_000_000_000 / rate;
    let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
    memory.free_at = memory.free_at.max(now) + time;
    NodeOutcome::At(memory.free_at)
}

/// Marks a datagram that waits too long; whether it did.
fn mark(queue: &Queue, wait: Duration, datagram: &mut Datagram) -> bool {
    let most = match datagram.ecn {
        Ecn::Ect1 => queue.mark_ect1_above,
        Ecn::Ect0 => queue.mark_ect0_above,
        Ecn::NotEct | Ecn::Ce => None,
    };
    let is_marked = most.is_some_and(|most| wait > most);
    if is_marked {
        datagram.ecn = Ecn::Ce;
    }
    is_marked
}

fn chance(ppm: u32, rng: &mut Rng) -> bool {
    rng.below(1_000_000) < u64::from(ppm)
}

fn up_to(longest: Duration, rng: &mut Rng) -> Duration {
    Duration::from_nanos(rng.below(longest.as_nanos().saturating_add(1)))
}

/// Whether misfortune strikes this datagram.
fn is_affected(odds: &EventRate, memory: &mut Memory, rng: &mut Rng) -> bool {
    let hit = match odds.burst {
        Burst::None => chance(odds.ppm, rng),
        Burst::AtMost(longest) => chance(odds.ppm, rng) && memory.run < longest,
        Burst::Mean(mean) => {
            let mean = u64::from(mean.max(1));
            let likelihood = if memory.run > 0 {
                1_000_000 - 1_000_000 / mean
            } else {
                // A run begins so rarely that the share of struck datagrams is `ppm`.
                let spared = 1_000_000u64.saturating_sub(u64::from(odds.ppm)).max(1);
                u64::from(odds.ppm) * 1_000_000 / (mean * spared)
            };
            chance(u32::try_from(likelihood).unwrap_or(u32::MAX), rng)
        }
    };
    memory.run = if hit { memory.run + 1 } else { 0 };
    hit
}

/// Changes one byte. Of a first byte, not the bits that tell long headers from short ones: what a short header would be
/// taken for is decided by what was encrypted, and that is not the same in two runs of a seed.
fn corrupt(bytes: &mut [u8], rng: &mut Rng) {
    let (place, change) = (rng.below(bytes.len() as u64) as usize, rng.next_u64());
    if let Some(byte) = bytes.get_mut(place) {
        *byte ^= if place == 0 { 1 + (change % 0x3f) as u8 } else { 1 + (change % 0xff) as u8 };
    }
}
