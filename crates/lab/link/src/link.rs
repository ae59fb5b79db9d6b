//! One direction between two ends: the nodes in order, what each remembers, and the randomness that they share.
//!
//! A node sees datagrams in the order in which they reach it, at the time at which they do. A node that keeps a datagram back says
//! when it goes on; the driver brings it to the next node then ([`Link::travel`]), or decides at once ([`Link::pass`]).

use crate::early::{EarlyState, Sign, waiting};
use crate::node::{Burst, EventRate, Node, Queue};
use crate::waits::Waits;
use base::net::Ecn;
use base::rng::Rng;
use base::time::{Duration, Instant};

/// What a link must know of a datagram, and may change in it.
pub trait Datagram {
    /// Bytes that it takes of a line, of a queue, and of the limit of [`Node::Mtu`].
    fn size(&self) -> usize;

    /// Its marking.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    /// Marks it anew. Without effect where the driver carries no marks.
    fn set_ecn(&mut self, ecn: Ecn) {
        let _ = ecn;
    }

    /// Its bytes, for [`Node::Corrupt`]; none where the driver does not lend them.
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut []
    }
}

/// What a link did, in datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Datagrams that entered.
    pub entered: u64,
    /// Lost by chance, by list, or in a black hole.
    pub lost: u64,
    /// Lost because the queue was full, or dropped datagrams early.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOutcome {
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
    /// Datagrams in a row that were affected.
    run: u32,
    /// When a datagram was last seen.
    seen_at: Instant,
    /// When the line is free, or the last datagram went on.
    free_at: Instant,
    /// Of a queue that drops early.
    early: EarlyState,
}

/// A run of affected datagrams ends when the line was quiet for so long: the state of the network is bad for a while. Otherwise a
/// run would outlast one exponentially backed-off probe after another. Where runs are bounded, the count goes on instead: else the
/// bound would not hold for such probes, and they would all be lost.
const RUN_TIMEOUT: Duration = Duration::from_millis(100);

impl Memory {
    fn on_datagram(&mut self, now: Instant, node: &Node) {
        self.seen += 1;
        if now.saturating_since(self.seen_at) > RUN_TIMEOUT && !node.bounds_runs() {
            self.run = 0;
        }
        self.seen_at = now;
    }
}

/// One direction.
#[derive(Debug)]
pub struct Link {
    nodes: Vec<(Node, Memory)>,
    rng: Rng,
    /// What happened so far.
    pub counters: LinkCounters,
    /// How long datagrams that passed a [`Node::Queue`], [`Node::Rate`] or [`Node::Steps`] waited there before they were sent.
    pub waits: Waits,
}

impl Link {
    /// A link of `nodes` whose randomness comes from `rng`.
    pub fn new(nodes: Vec<Node>, rng: Rng) -> Link {
        let nodes = nodes.into_iter().map(|node| (node, Memory::default())).collect();
        Link { nodes, rng, counters: LinkCounters::default(), waits: Waits::default() }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none: then everything passes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node after the last that loses datagrams by chance.
    pub fn first_after_losses(&self) -> usize {
        let loses = |(node, _): &(Node, Memory)| matches!(node, Node::Loss(_));
        self.nodes.iter().rposition(loses).map_or(0, |place| place + 1)
    }

    /// New nodes. The sequence of random numbers goes on; a node of the kind that stood in its place keeps its memory.
    pub fn change(&mut self, nodes: Vec<Node>) {
        let before = core::mem::take(&mut self.nodes);
        let mut before = before.into_iter();
        let kept = |node: Node| {
            let place = before
                .next()
                .filter(|(old, _)| core::mem::discriminant(old) == core::mem::discriminant(&node));
            (node, place.map_or_else(Memory::default, |(_, memory)| memory))
        };
        self.nodes = nodes.into_iter().map(kept).collect();
    }

    /// A time up to `longest`, from the sequence of this link.
    pub fn draw_up_to(&mut self, longest: Duration) -> Duration {
        up_to(longest, &mut self.rng)
    }

    /// Takes a datagram at `now`, `age` after the beginning of the run, from node `first` to the end, unless a node keeps or loses it. `hold` takes what goes on later: the time, the
    /// node at which it goes on, and the datagram. Returns the datagram if it has arrived.
    pub fn travel<D: Datagram + Clone>(
        &mut self,
        first: usize,
        (now, age): (Instant, Duration),
        mut datagram: D,
        mut hold: impl FnMut(Instant, usize, D),
    ) -> Option<D> {
        for node in first..self.nodes.len() {
            match self.pass(node, (now, age), &mut datagram) {
                NodeOutcome::On => {}
                NodeOutcome::Gone => return None,
                NodeOutcome::At(then) => {
                    hold(then, node + 1, datagram);
                    return None;
                }
                NodeOutcome::Twice(then) => hold(then, node + 1, datagram.clone()),
            }
        }
        Some(datagram)
    }

    /// What node `index` makes of a datagram at a time, and that time since the beginning of the run. Behind the last node everything
    /// passes.
    pub fn pass<D: Datagram>(
        &mut self,
        index: usize,
        (now, age): (Instant, Duration),
        datagram: &mut D,
    ) -> NodeOutcome {
        let Link { nodes, rng, counters, waits } = self;
        let Some((node, memory)) = nodes.get_mut(index) else { return NodeOutcome::On };
        memory.on_datagram(now, node);
        match node {
            Node::Delay(delay) => NodeOutcome::At(now + *delay),
            Node::Rate { bits_per_second, queue_bytes } => {
                let wait = memory.free_at.saturating_since(now);
                let outcome = queue(memory, now, datagram.size() as u64, (*bits_per_second, *queue_bytes));
                account((counters, waits), wait, outcome)
            }
            Node::Steps { bits_per_second, queue_bytes } => {
                let line = (bits_per_second.as_slice(), *queue_bytes);
                let wait = memory.free_at.saturating_since(now);
                let outcome = queue_by_steps(memory, (now, age), datagram.size() as u64, line);
                account((counters, waits), wait, outcome)
            }
            Node::Gather(turn) => NodeOutcome::At(now + until_turn(age, *turn)),
            Node::Thin { up_to, .. } if datagram.size() > *up_to => NodeOutcome::On,
            Node::Thin { keep, longest, .. } => lose(counters, thins_out(memory, now, (*keep, *longest))),
            Node::Police { bits_per_second, burst_bytes } => {
                police(counters, memory, now, (datagram.size() as u64, *bits_per_second, *burst_bytes))
            }
            Node::Queue(options) => {
                let sign = memory.early.sign(options, (now, memory.free_at), rng);
                queue_or_drop((counters, waits), (options, sign), (memory, now), datagram)
            }
            Node::Loss(rate) => lose(counters, is_affected(rate, memory, rng)),
            Node::Drop(ordinals) => lose(counters, ordinals.contains(&memory.seen)),
            Node::Blackhole { from, to } => lose(counters, age >= *from && age < *to),
            Node::Blinking { on, off } => {
                let period = (*on + *off).as_nanos().max(1);
                lose(counters, age.as_nanos() % period >= on.as_nanos())
            }
            Node::Corrupt(rate) => {
                if is_affected(rate, memory, rng) {
                    counters.corrupted += 1;
                    corrupt(datagram.bytes_mut(), rng);
                }
                NodeOutcome::On
            }
            Node::Duplicate { ppm, after } => {
                let (hit, late) = (chance(*ppm, rng), up_to(*after, rng));
                counters.duplicated += u64::from(hit);
                if hit { NodeOutcome::Twice(now + late) } else { NodeOutcome::On }
            }
            Node::Jitter(most) => in_order(memory, now + up_to(*most, rng)),
            Node::Reorder { ppm, by } => {
                let (hit, late) = (chance(*ppm, rng), up_to(*by, rng));
                hold_back(counters, hit.then_some(now + late))
            }
            Node::Late { ppm, by } => hold_back(counters, chance(*ppm, rng).then_some(now + *by)),
            Node::Mtu(limit) => fit(counters, datagram.size(), *limit),
            Node::MtuFrom { at, limit } => {
                let limit = if age < *at { usize::MAX } else { *limit };
                fit(counters, datagram.size(), limit)
            }
            Node::EcnMark { ppm } => {
                if chance(*ppm, rng) && datagram.ecn() != Ecn::NotEct {
                    counters.marked += 1;
                    datagram.set_ecn(Ecn::Ce);
                }
                NodeOutcome::On
            }
            Node::EcnBleach => {
                datagram.set_ecn(Ecn::NotEct);
                NodeOutcome::On
            }
            // The translator stands at the sender's edge; the driver does its work.
            Node::Rebind { .. } => NodeOutcome::On,
        }
    }
}

fn fit(counters: &mut LinkCounters, size: usize, limit: usize) -> NodeOutcome {
    let too_large = size > limit;
    counters.too_large += u64::from(too_large);
    if too_large { NodeOutcome::Gone } else { NodeOutcome::On }
}

fn lose(counters: &mut LinkCounters, is_lost: bool) -> NodeOutcome {
    counters.lost += u64::from(is_lost);
    if is_lost { NodeOutcome::Gone } else { NodeOutcome::On }
}

fn hold_back(counters: &mut LinkCounters, until: Option<Instant>) -> NodeOutcome {
    counters.reordered += u64::from(until.is_some());
    until.map_or(NodeOutcome::On, NodeOutcome::At)
}

/// At the next node then, but not before the datagram that came before.
fn in_order(memory: &mut Memory, then: Instant) -> NodeOutcome {
    memory.free_at = memory.free_at.max(then);
    NodeOutcome::At(memory.free_at)
}

/// Notes what became of a datagram that came to a line on which it would have to wait for so long.
fn account(
    (counters, waits): (&mut LinkCounters, &mut Waits),
    wait: Duration,
    outcome: NodeOutcome,
) -> NodeOutcome {
    if outcome == NodeOutcome::Gone {
        counters.overflowed += 1;
    } else {
        waits.note(wait);
    }
    outcome
}

/// A line that sends one bit after the other, and the queue before it: a single number, the time at which the line is free. What
/// waits is the rate times what is left until then. An idle line takes any datagram.
fn queue(
    memory: &mut Memory,
    now: Instant,
    len: u64,
    (bits_per_second, queue_bytes): (u64, u64),
) -> NodeOutcome {
    let wait = memory.free_at.saturating_since(now);
    let bits_per_second = bits_per_second.max(1);
    take_turn(memory, now, len, (bits_per_second, waiting(wait, bits_per_second), queue_bytes))
}

/// The same, where so many bytes wait.
fn take_turn(
    memory: &mut Memory,
    now: Instant,
    len: u64,
    (bits_per_second, waiting, queue_bytes): (u64, u64, u64),
) -> NodeOutcome {
    if waiting.saturating_add(len) > queue_bytes && memory.free_at > now {
        return NodeOutcome::Gone;
    }
    let nanos = u128::from(len) * 8_000_000_000 / u128::from(bits_per_second.max(1));
    let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
    memory.free_at = memory.free_at.max(now) + time;
    NodeOutcome::At(memory.free_at)
}

/// A line whose rate changes, and the queue before it.
fn queue_by_steps(
    memory: &mut Memory,
    (now, age): (Instant, Duration),
    len: u64,
    (steps, queue_bytes): (&[(Duration, u64)], u64),
) -> NodeOutcome {
    let wait = memory.free_at.saturating_since(now);
    let (waiting, rate) = sent_by_steps(steps, (age, age + wait));
    take_turn(memory, now, len, (rate, waiting, queue_bytes))
}

/// The time until the next multiple of `turn`.
fn until_turn(age: Duration, turn: Duration) -> Duration {
    let turn = turn.as_nanos().max(1);
    Duration::from_nanos((turn - age.as_nanos() % turn) % turn)
}

/// The bytes that a line sends from a time of day to another, at rates that change, and the rate at the end in bits a second.
fn sent_by_steps(steps: &[(Duration, u64)], (from, to): (Duration, Duration)) -> (u64, u64) {
    let first = steps.partition_point(|(at, _)| *at <= from).saturating_sub(1);
    let (mut bytes, mut rate, mut begun) = (0, 1, from);
    for (at, bits_per_second) in steps.iter().skip(first).take_while(|(at, _)| *at <= to) {
        bytes += waiting(at.saturating_sub(begun), rate);
        (rate, begun) = (*bits_per_second, begun.max(*at));
    }
    (bytes + waiting(to.saturating_sub(begun), rate), rate)
}

/// Whether a small datagram is one of those that do not pass.
fn thins_out(memory: &mut Memory, now: Instant, (keep, longest): (u32, Duration)) -> bool {
    let is_due = memory.run + 1 >= keep || now.saturating_since(memory.free_at) >= longest;
    memory.run = if is_due { 0 } else { memory.run + 1 };
    if is_due {
        memory.free_at = now;
    }
    !is_due
}

/// A line with a queue that marks or drops early, and accounts of it.
fn queue_or_drop(
    (counters, waits): (&mut LinkCounters, &mut Waits),
    (options, sign): (&Queue, Sign),
    (memory, now): (&mut Memory, Instant),
    datagram: &mut impl Datagram,
) -> NodeOutcome {
    let wait = memory.free_at.saturating_since(now);
    let is_ect = matches!(datagram.ecn(), Ecn::Ect0 | Ecn::Ect1);
    let is_marked = sign == Sign::Mark && is_ect;
    let outcome = if sign != Sign::None && !is_marked {
        NodeOutcome::Gone
    } else {
        queue(memory, now, datagram.size() as u64, (options.bits_per_second, options.bytes))
    };
    if outcome != NodeOutcome::Gone {
        if is_marked {
            datagram.set_ecn(Ecn::Ce);
        }
        counters.marked += u64::from(is_marked || mark(options, wait, datagram));
    }
    account((counters, waits), wait, outcome)
}

/// A queue that nothing waits in: what is spent of the burst is what would wait.
fn police(
    counters: &mut LinkCounters,
    memory: &mut Memory,
    now: Instant,
    (len, bits_per_second, burst_bytes): (u64, u64, u64),
) -> NodeOutcome {
    let is_over = queue(memory, now, len, (bits_per_second, burst_bytes)) == NodeOutcome::Gone;
    counters.overflowed += u64::from(is_over);
    if is_over { NodeOutcome::Gone } else { NodeOutcome::On }
}

/// Marks a datagram that waits too long; whether it did.
fn mark(queue: &Queue, wait: Duration, datagram: &mut impl Datagram) -> bool {
    let most = match datagram.ecn() {
        Ecn::Ect1 => queue.mark_ect1_above,
        Ecn::Ect0 => queue.mark_ect0_above,
        Ecn::NotEct | Ecn::Ce => None,
    };
    let is_marked = most.is_some_and(|most| wait > most);
    if is_marked {
        datagram.set_ecn(Ecn::Ce);
    }
    is_marked
}

fn chance(ppm: u32, rng: &mut Rng) -> bool {
    rng.below(1_000_000) < u64::from(ppm)
}

fn up_to(longest: Duration, rng: &mut Rng) -> Duration {
    Duration::from_nanos(rng.below(longest.as_nanos().saturating_add(1)))
}

/// Whether an event of this rate affects the datagram.
fn is_affected(rate: &EventRate, memory: &mut Memory, rng: &mut Rng) -> bool {
    let hit = match rate.burst {
        Burst::None => chance(rate.ppm, rng),
        Burst::AtMost(longest) => chance(rate.ppm, rng) && memory.run < longest,
        Burst::Mean(mean) => {
            let mean = u64::from(mean.max(1));
            let likelihood = if memory.run > 0 {
                1_000_000 - 1_000_000 / mean
            } else {
                // A run begins so rarely that the share of affected datagrams is `ppm`.
                let spared = 1_000_000u64.saturating_sub(u64::from(rate.ppm)).max(1);
                u64::from(rate.ppm) * 1_000_000 / (mean * spared)
            };
            chance(u32::try_from(likelihood).unwrap_or(u32::MAX), rng)
        }
        Burst::Gilbert { ends_ppm } => {
            let is_bad = memory.run > 0;
            is_bad ^ chance(if is_bad { ends_ppm } else { rate.ppm }, rng)
        }
    };
    memory.run = if hit { memory.run.saturating_add(1) } else { 0 };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// So many bytes, and nothing else.
    struct Bytes(usize);

    impl Datagram for Bytes {
        fn size(&self) -> usize {
            self.0
        }
    }

    /// Deleted, a policer could hold datagrams, or forget what it has let pass.
    #[test]
    fn a_policer_lets_a_burst_and_then_its_rate_pass_at_once() {
        let police = Node::Police { bits_per_second: 8_000, burst_bytes: 3_000 };
        let mut link = Link::new(vec![police], Rng::from_u64(1));
        let mut pass = |ms: u64| {
            let now = Instant::ZERO + Duration::from_millis(ms);
            link.pass(0, (now, Duration::ZERO), &mut Bytes(1_000))
        };
        let burst = [pass(0), pass(0), pass(0), pass(0)];
        assert_eq!(burst, [NodeOutcome::On, NodeOutcome::On, NodeOutcome::On, NodeOutcome::Gone]);
        assert_eq!([pass(999), pass(1_000)], [NodeOutcome::Gone, NodeOutcome::On], "one a second");
        assert_eq!(link.counters.overflowed, 2);
    }

    /// Deleted, jitter could reorder.
    #[test]
    fn jitter_keeps_the_order() {
        let most = Duration::from_millis(20);
        let mut link = Link::new(vec![Node::Jitter(most)], Rng::from_u64(1));
        let mut last = Instant::ZERO;
        for ms in 0..100 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let NodeOutcome::At(at) = link.pass(0, (now, Duration::ZERO), &mut Bytes(1)) else {
                unreachable!("every datagram goes on")
            };
            assert!(at >= last && at <= now + most, "{at:?} after {last:?} at {now:?}");
            last = at;
        }
    }

    /// Deleted, a step could reorder what waits, or come when a datagram arrives and not when the line gets to it.
    #[test]
    fn a_line_has_the_rate_of_the_moment() {
        let ms = Duration::from_millis;
        let steps = vec![(ms(0), 8_000_000), (ms(2), 800_000), (ms(20), 8_000_000)];
        let mut link =
            Link::new(vec![Node::Steps { bits_per_second: steps, queue_bytes: 10_000 }], Rng::from_u64(1));
        let mut pass = |at: u64| link.pass(0, (Instant::ZERO + ms(at), ms(at)), &mut Bytes(1_000));
        let at = |millis: u64| NodeOutcome::At(Instant::ZERO + ms(millis));
        assert_eq!([pass(0), pass(0), pass(0), pass(1)], [at(1), at(2), at(12), at(22)]);
        assert_eq!([pass(1), pass(40)], [at(23), at(41)], "as fast as before");
        let waits =
            sent_by_steps(&[(ms(0), 8_000_000), (ms(2), 800_000), (ms(20), 8_000_000)], (ms(1), ms(22)));
        assert_eq!(waits, (1_000 + 1_800 + 2_000, 8_000_000));
    }

    /// Deleted, a study of delays in queues could count the time on the line, or datagrams that found no room.
    #[test]
    fn a_line_notes_how_long_each_waited_for_it() {
        let ms = Duration::from_millis;
        let mut link =
            Link::new(vec![Node::Rate { bits_per_second: 8_000_000, queue_bytes: 3_000 }], Rng::from_u64(1));
        for at in [0, 0, 0, 0, 2, 50] {
            link.pass(0, (Instant::ZERO + ms(at), ms(at)), &mut Bytes(1_000));
        }
        // At once, after 1 and after 2 ms; the fourth has no room; 1 ms, and at once again.
        assert_eq!((link.waits.total(), link.counters.overflowed), (5, 1));
        assert_eq!((link.waits.mean(), link.waits.percentile(60)), (Duration::from_micros(800), waits_of(1)));
        assert_eq!(link.waits.percentile(100), waits_of(2));
    }

    /// The length that so many milliseconds have in the counts.
    fn waits_of(ms: u64) -> Duration {
        let mut waits = Waits::default();
        waits.note(Duration::from_millis(ms));
        waits.percentile(100)
    }

    #[test]
    fn a_turn_lets_all_pass_that_wait() {
        let turn = Duration::from_millis(10);
        let mut link = Link::new(vec![Node::Gather(turn)], Rng::from_u64(1));
        let mut pass = |ms: u64| {
            let age = Duration::from_millis(ms);
            link.pass(0, (Instant::ZERO + age, age), &mut Bytes(40))
        };
        let at = |ms: u64| NodeOutcome::At(Instant::ZERO + Duration::from_millis(ms));
        assert_eq!([pass(1), pass(9), pass(10), pass(11)], [at(10), at(10), at(10), at(20)]);
    }

    #[test]
    fn one_in_so_many_small_ones_passes_and_one_after_a_pause() {
        let thin = Node::Thin { up_to: 100, keep: 3, longest: Duration::from_millis(50) };
        let mut link = Link::new(vec![thin], Rng::from_u64(1));
        let mut passes = |ms: u64, size: usize| {
            let age = Duration::from_millis(ms);
            link.pass(0, (Instant::ZERO + age, age), &mut Bytes(size)) == NodeOutcome::On
        };
        let few = [60, 61, 62, 63, 64].map(|ms| passes(ms, 40));
        assert_eq!(few, [true, false, false, true, false]);
        assert!(passes(65, 101) && !passes(66, 40) && passes(67, 40) && passes(117, 40));
        assert_eq!(link.counters.lost, 4);
    }

    /// Deleted, a new rate could let what waits overtake itself, or a new option could shift the sequence of losses.
    #[test]
    fn new_nodes_of_the_same_kinds_keep_queue_and_sequence() {
        let nodes = |bits_per_second| {
            let loss = Node::Loss(EventRate { ppm: 500_000, burst: Burst::None });
            vec![Node::Rate { bits_per_second, queue_bytes: 1_000_000 }, loss]
        };
        let mut link = Link::new(nodes(8_000), Rng::from_u64(5));
        let pass =
            |link: &mut Link, node| link.pass(node, (Instant::ZERO, Duration::ZERO), &mut Bytes(1_000));
        let at = |seconds: u64| NodeOutcome::At(Instant::from_nanos(seconds * 1_000_000_000));
        assert_eq!((pass(&mut link, 0), pass(&mut link, 0)), (at(1), at(2)));
        let draws = |link: &mut Link| (0..50).map(|_| pass(link, 1)).collect::<Vec<_>>();
        let first = draws(&mut link);
        link.change(nodes(4_000));
        assert_eq!(pass(&mut link, 0), at(4), "what waited before still does");
        let second = draws(&mut link);
        let mut whole = Link::new(nodes(8_000), Rng::from_u64(5));
        assert_eq!([first, second].concat(), (0..100).map(|_| pass(&mut whole, 1)).collect::<Vec<_>>());
        link.change(Vec::new());
        assert_eq!((pass(&mut link, 0), link.is_empty()), (NodeOutcome::On, true));
    }
}
