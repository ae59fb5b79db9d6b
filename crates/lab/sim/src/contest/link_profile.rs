//! What a link is like.

use base::time::Duration;
use link::{Burst, CoDel, Discipline, EventRate, Node, Pie, Queue};

/// Datagrams that the shallowest queue holds: fewer, and not even the trains of a slow sender fit.
const LEAST_QUEUE_BYTES: u64 = 4 * 1_500;
/// An L4S queue marks above this, or above two full packets where those take longer. Source: RFC 9332, appendix A.1, has a
/// threshold of about a millisecond, and one in packets for slow links.
const L4S_STEP: Duration = Duration::from_millis(1);
/// A classic queue marks above this: the target of RFC 9332's classic queue, about a usual round trip's slack.
const CLASSIC_STEP: Duration = Duration::from_millis(15);

/// When the queue marks datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Marking {
    /// Never: it drops what does not fit.
    #[default]
    None,
    /// ECT(1) above a millisecond, ECT(0) above fifteen; neither below two full packets.
    L4s,
    /// Both above fifteen milliseconds: a queue that knows ECN but not L4S.
    Classic,
    /// Both where it would drop early otherwise.
    Early,
}

/// When the queue drops datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dropping {
    /// When it is full.
    #[default]
    Tail,
    /// When datagrams wait for long, too: CoDel as for paths of the Internet. Source: RFC 8289.
    CoDel,
    /// By a probability that follows how long datagrams wait, too: PIE as for paths of the Internet. Source: RFC 8033.
    Pie,
}

/// A link: rate, round trip, loss, queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkProfile {
    /// Bits of UDP payload a second.
    pub bits_per_second: u64,
    /// The round trip without waiting.
    pub rtt: Duration,
    /// Datagrams lost by chance on the way to the receiver, in millionths.
    pub loss_ppm: u32,
    /// What the queue holds, in bandwidth-delay products; four datagrams at least.
    pub queue: f64,
    /// When it marks.
    pub marking: Marking,
    /// When it drops.
    pub dropping: Dropping,
}

impl LinkProfile {
    /// A link of this many megabits a second, this many milliseconds, and a queue of this many bandwidth-delay products, that
    /// loses nothing by chance and marks nothing.
    pub const fn new(megabits: u64, rtt_ms: u64, queue: f64) -> LinkProfile {
        LinkProfile {
            bits_per_second: megabits * 1_000_000,
            rtt: Duration::from_millis(rtt_ms),
            loss_ppm: 0,
            queue,
            marking: Marking::None,
            dropping: Dropping::Tail,
        }
    }

    /// The same, losing this many of a million datagrams.
    #[must_use]
    pub const fn with_loss(self, loss_ppm: u32) -> LinkProfile {
        LinkProfile { loss_ppm, ..self }
    }

    /// The same, marking.
    #[must_use]
    pub const fn with_marking(self, marking: Marking) -> LinkProfile {
        LinkProfile { marking, ..self }
    }

    /// The same, dropping in another way.
    #[must_use]
    pub const fn with_dropping(self, dropping: Dropping) -> LinkProfile {
        LinkProfile { dropping, ..self }
    }

    /// The bandwidth-delay product in bytes.
    pub fn product(&self) -> u64 {
        let bytes = u128::from(self.bits_per_second) * u128::from(self.rtt.as_nanos()) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// What the queue holds, in bytes.
    pub fn queue_bytes(&self) -> u64 {
        ((self.product() as f64 * self.queue) as u64).max(LEAST_QUEUE_BYTES)
    }

    /// The way of the data, and the way of the acknowledgements.
    pub(super) fn nodes(&self) -> (Vec<Node>, Vec<Node>) {
        let half = Duration::from_nanos(self.rtt.as_nanos() / 2);
        let two_packets = Duration::from_nanos(2 * 1_500 * 8_000_000_000 / self.bits_per_second.max(1));
        let (step, classic) = (L4S_STEP.max(two_packets), CLASSIC_STEP.max(two_packets));
        let (mark_ect1_above, mark_ect0_above) = match self.marking {
            Marking::None | Marking::Early => (None, None),
            Marking::L4s => (Some(step), Some(classic)),
            Marking::Classic => (Some(classic), Some(classic)),
        };
        let queue = Queue {
            bits_per_second: self.bits_per_second,
            bytes: self.queue_bytes(),
            mark_ect1_above,
            mark_ect0_above,
            discipline: match self.dropping {
                Dropping::Tail => Discipline::Tail,
                Dropping::CoDel => Discipline::CoDel(CoDel::INTERNET),
                Dropping::Pie => Discipline::Pie(Pie::INTERNET),
            },
            marks_early: self.marking == Marking::Early,
        };
        let mut there = vec![Node::Queue(queue), Node::Delay(half)];
        if self.loss_ppm > 0 {
            there.insert(0, Node::Loss(EventRate { ppm: self.loss_ppm, burst: Burst::None }));
        }
        (there, vec![Node::Delay(half)])
    }
}
