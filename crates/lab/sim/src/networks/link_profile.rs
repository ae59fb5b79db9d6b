//! What a link is like, and the nodes that make it.

use crate::protection::Protection;
use crate::scenario::Scenario;
use base::rng::Rng;
use base::time::Duration;
use link::{Burst, EventRate, Node};

/// Datagrams that the shallowest queue holds.
const LEAST_QUEUE_BYTES: u64 = 4 * 1_500;
/// An outage begins after so many round trips: a download of a megabyte is under way.
const OUTAGE_AFTER: u64 = 4;

/// A limit without a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policer {
    /// Bits of UDP payload a second.
    pub bits_per_second: u64,
    /// Bytes that may come at once after a pause.
    pub burst_bytes: u64,
}

/// How the rate of the way of the data changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Changes {
    /// Milliseconds from the beginning on, and megabits a second from then on.
    Steps(&'static [(u64, u64)]),
    /// As of a mobile network: each 100 ms the rate is multiplied by a factor between 1/2 and 2, its logarithm evenly drawn, and stays between
    /// these many megabits a second. The sequence is the same in each run.
    Walk(u64, u64),
}

/// The rate changes so often while it walks.
const PACE: Duration = Duration::from_millis(100);
/// For two minutes.
const WALK_STEPS: u64 = 1_200;
/// Draws that the sequence begins with.
const WALK_SEED: u64 = 1;

impl Changes {
    /// Times and bits a second, from this rate on.
    fn steps(self, bits_per_second: u64) -> Vec<(Duration, u64)> {
        match self {
            Changes::Steps(steps) => steps
                .iter()
                .map(|(ms, megabits)| (Duration::from_millis(*ms), megabits * 1_000_000))
                .collect(),
            Changes::Walk(lowest, highest) => {
                let mut rng = Rng::from_u64(WALK_SEED);
                let mut rate = bits_per_second as f64;
                let step = |index| {
                    let step = (PACE * index, rate as u64);
                    let exponent = rng.below(2_001) as f64 / 1_000.0 - 1.0;
                    rate = (rate * exponent.exp2()).clamp(lowest as f64 * 1e6, highest as f64 * 1e6);
                    step
                };
                (0..WALK_STEPS).map(step).collect()
            }
        }
    }
}

/// What becomes of acknowledgements on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPath {
    /// One in so many passes, if it is small, and one each 25 ms.
    pub keep: u32,
    /// They go on together each time that so much has passed.
    pub turn: Duration,
}

/// Datagrams of at most so many bytes are taken for acknowledgements.
const ACK_BYTES: usize = 100;
/// The longest time without any.
const LONGEST_THINNED: Duration = Duration::from_millis(25);

/// A link. Loss, reordering, jitter and outages strike both directions; queue and policer stand in the way of the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkProfile {
    /// Bits of UDP payload a second, in each direction.
    pub bits_per_second: u64,
    /// The round trip without waiting.
    pub rtt: Duration,
    /// What the queue holds, in bandwidth-delay products; four datagrams at least.
    pub queue: f64,
    /// Datagrams that are lost by chance.
    pub loss: Option<EventRate>,
    /// Datagrams that arrive so much later, and so are overtaken: how many in a million, and by how much.
    pub reordering: Option<(u32, Duration)>,
    /// Every datagram is up to so much later, in order.
    pub jitter: Option<Duration>,
    /// A limit beside the line's rate.
    pub policer: Option<Policer>,
    /// Nothing passes for so long, from four round trips after the beginning on.
    pub outage: Option<Duration>,
    /// The rate of the way of the data is another one with time; [`NetworkProfile::bits_per_second`] is then that of the other way, and
    /// of the queue.
    pub changes: Option<Changes>,
    /// What becomes of acknowledgements.
    pub acks: Option<AckPath>,
    /// What is done against losses beside what the ends do.
    pub protection: Option<Protection>,
}

impl NetworkProfile {
    /// A link of this many megabits a second and milliseconds, with a queue of one product, on which nothing goes wrong.
    pub const fn new(megabits: u64, rtt_ms: u64) -> NetworkProfile {
        NetworkProfile {
            bits_per_second: megabits * 1_000_000,
            rtt: Duration::from_millis(rtt_ms),
            queue: 1.0,
            loss: None,
            reordering: None,
            jitter: None,
            policer: None,
            outage: None,
            changes: None,
            acks: None,
            protection: None,
        }
    }

    /// The same with a queue of this many bandwidth-delay products.
    #[must_use]
    pub const fn with_queue(self, queue: f64) -> NetworkProfile {
        NetworkProfile { queue, ..self }
    }

    /// The same, losing this many of a million datagrams in each direction.
    #[must_use]
    pub const fn with_loss(self, ppm: u32) -> NetworkProfile {
        NetworkProfile { loss: Some(EventRate { ppm, burst: Burst::None }), ..self }
    }

    /// The same, losing this many of a million datagrams in runs of `mean` on average (two states, Gilbert's model).
    #[must_use]
    pub const fn with_bursts(self, ppm: u32, mean: u32) -> NetworkProfile {
        NetworkProfile { loss: Some(EventRate { ppm, burst: Burst::Mean(mean) }), ..self }
    }

    /// The same, this many of a million datagrams being so many milliseconds late.
    #[must_use]
    pub const fn with_reordering(self, ppm: u32, by_ms: u64) -> NetworkProfile {
        NetworkProfile { reordering: Some((ppm, Duration::from_millis(by_ms))), ..self }
    }

    /// The same, every datagram up to so many milliseconds late, in order.
    #[must_use]
    pub const fn with_jitter(self, up_to_ms: u64) -> NetworkProfile {
        NetworkProfile { jitter: Some(Duration::from_millis(up_to_ms)), ..self }
    }

    /// The same, behind a policer of this many megabits a second that lets so many kilobytes pass at once.
    #[must_use]
    pub const fn with_policer(self, megabits: u64, burst_kilobytes: u64) -> NetworkProfile {
        let policer = Policer { bits_per_second: megabits * 1_000_000, burst_bytes: burst_kilobytes * 1_000 };
        NetworkProfile { policer: Some(policer), ..self }
    }

    /// The same, silent for so many milliseconds.
    #[must_use]
    pub const fn with_outage(self, ms: u64) -> NetworkProfile {
        NetworkProfile { outage: Some(Duration::from_millis(ms)), ..self }
    }

    /// The same with a rate that changes.
    #[must_use]
    pub const fn with_changes(self, changes: Changes) -> NetworkProfile {
        NetworkProfile { changes: Some(changes), ..self }
    }

    /// The same, where one in `keep` acknowledgements passes, those that do going on together each `turn_ms` milliseconds.
    #[must_use]
    pub const fn with_acks(self, keep: u32, turn_ms: u64) -> NetworkProfile {
        NetworkProfile { acks: Some(AckPath { keep, turn: Duration::from_millis(turn_ms) }), ..self }
    }

    /// The same, with this against losses.
    #[must_use]
    pub const fn with_protection(self, plan: Protection) -> NetworkProfile {
        NetworkProfile { protection: Some(plan), ..self }
    }

    /// Whether nothing is lost but what a queue or a policer has no room for.
    pub fn loses_nothing(&self) -> bool {
        self.loss.is_none() && self.outage.is_none()
    }

    /// When nothing passes, from the beginning of the run.
    pub fn silence(&self) -> Option<(Duration, Duration)> {
        let from = self.rtt * OUTAGE_AFTER;
        self.outage.map(|outage| (from, from + outage))
    }

    /// The bandwidth-delay product in bytes.
    fn product(&self) -> u64 {
        let bytes = u128::from(self.bits_per_second) * u128::from(self.rtt.as_nanos()) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// What a queue of so many bandwidth-delay products holds, in bytes. In the way of the data it is [`NetworkProfile::queue`] of them,
    /// in the other one.
    pub fn queue_bytes(&self, products: f64) -> u64 {
        ((self.product() as f64 * products) as u64).max(LEAST_QUEUE_BYTES)
    }

    /// One direction with this line, without the other limits of the way of the data.
    fn nodes(&self, line: Node) -> Vec<Node> {
        let half = Duration::from_nanos(self.rtt.as_nanos() / 2);
        let outage = self.silence().map(|(from, to)| Node::Blackhole { from, to });
        let line = [line, Node::Delay(half)];
        let jitter = self.jitter.map(Node::Jitter);
        let late = self.reordering.map(|(ppm, by)| Node::Late { ppm, by });
        let before = outage.into_iter().chain(self.loss.map(Node::Loss));
        before.chain(line).chain(jitter).chain(late).collect()
    }

    /// A run over this link.
    pub(super) fn scenario(&self, seed: u64) -> Scenario {
        let mut scenario = Scenario { protection: self.protection, ..Scenario::interop(seed) };
        let bits_per_second = self.bits_per_second;
        let line = |products| Node::Rate { bits_per_second, queue_bytes: self.queue_bytes(products) };
        let steps = self.changes.map(|changes| changes.steps(bits_per_second));
        let changing = steps
            .map(|steps| Node::Steps { bits_per_second: steps, queue_bytes: self.queue_bytes(self.queue) });
        scenario.to_client = self.nodes(changing.unwrap_or_else(|| line(self.queue)));
        if let Some(Policer { bits_per_second, burst_bytes }) = self.policer {
            scenario.to_client.insert(0, Node::Police { bits_per_second, burst_bytes });
        }
        scenario.to_server = self.nodes(line(1.0));
        if let Some(AckPath { keep, turn }) = self.acks {
            let thin = Node::Thin { up_to: ACK_BYTES, keep, longest: LONGEST_THINNED };
            scenario.to_server.splice(0..0, [thin, Node::Gather(turn)]);
        }
        scenario
    }
}
