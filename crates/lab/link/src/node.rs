//! What a link is made of: a short list of these for each direction.

use crate::codel::CoDel;
use crate::pie::Pie;
use base::time::Duration;

/// One thing that happens to datagrams on their way. A link passes them from node to node in the order of its list.
/// Times of day count from the beginning of the run. Bytes are those that the driver counts ([`crate::Datagram::size`]): UDP payload
/// in the simulator and over a port, frames and IP packets in the emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// Every datagram takes so long.
    Delay(Duration),
    /// This many bits a second pass, and at most `queue_bytes` wait; more are lost.
    Rate {
        /// Bits a second.
        bits_per_second: u64,
        /// Bytes that may wait.
        queue_bytes: u64,
    },
    /// The same as [`Node::Rate`], with a rate that changes.
    Steps {
        /// Bits a second from each time on, ascending; the first also before. A datagram leaves at the rate of the moment at which the line
        /// begins with it, and what waits keeps its departure when the rate changes.
        bits_per_second: Vec<(Duration, u64)>,
        /// Bytes that may wait.
        queue_bytes: u64,
    },
    /// Datagrams wait for the next multiple of this time and then go on together: what a shared medium does that grants turns.
    Gather(Duration),
    /// Of datagrams of at most `up_to` bytes, mostly acknowledgements, one in `keep` passes, and one that comes when none has passed
    /// for `longest`; the others are lost.
    Thin {
        /// Bytes of the largest that is thinned out.
        up_to: usize,
        /// One in so many passes.
        keep: u32,
        /// The longest time without any.
        longest: Duration,
    },
    /// What exceeds this many bits a second, and a burst, is lost; nothing waits.
    Police {
        /// Bits a second.
        bits_per_second: u64,
        /// Bytes that may come at once after a pause.
        burst_bytes: u64,
    },
    /// The same as [`Node::Rate`], with marks or early drops, and with an account of how long datagrams waited ([`crate::Link::waits`]).
    Queue(Queue),
    /// Some are lost.
    Loss(EventRate),
    /// Exactly these are lost: ordinals, counted from 1 at this node.
    Drop(Vec<u64>),
    /// Some arrive with one byte changed.
    Corrupt(EventRate),
    /// Some arrive twice, the copy up to `after` later.
    Duplicate {
        /// How often, in millionths.
        ppm: u32,
        /// The longest way behind.
        after: Duration,
    },
    /// Every datagram is held back up to so long, and none is overtaken.
    Jitter(Duration),
    /// Some are held back, up to `by`, and so overtaken.
    Reorder {
        /// How often, in millionths.
        ppm: u32,
        /// The longest time.
        by: Duration,
    },
    /// Some are held back by exactly so long, and so overtaken.
    Late {
        /// How often, in millionths.
        ppm: u32,
        /// The time.
        by: Duration,
    },
    /// Nothing passes from a time to another.
    Blackhole {
        /// The first moment of silence.
        from: Duration,
        /// The first moment after it.
        to: Duration,
    },
    /// Nothing passes for `off` after every `on` of passing.
    Blinking {
        /// How long datagrams pass.
        on: Duration,
        /// How long they do not.
        off: Duration,
    },
    /// Datagrams larger than this many bytes are lost.
    Mtu(usize),
    /// The same, from some time on.
    MtuFrom {
        /// The first moment at which they are lost.
        at: Duration,
        /// Bytes that pass.
        limit: usize,
    },
    /// Some that are ECN-capable arrive marked CE.
    EcnMark {
        /// How often, in millionths.
        ppm: u32,
    },
    /// All arrive without their ECN mark.
    EcnBleach,
    /// The address translator at the sender's edge forgets its binding: from then on the sender appears to come from
    /// somewhere else, and what is sent to where it was before is lost.
    Rebind {
        /// When first, counted from a moment that the driver chooses.
        at: Duration,
        /// And again after every so long.
        every: Duration,
        /// So often in all.
        times: u32,
        /// What changes.
        what: Renewal,
    },
}

/// A line, the queue before it, and when the queue marks: by the step, every datagram that waits longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Bits a second.
    pub bits_per_second: u64,
    /// Bytes that may wait.
    pub bytes: u64,
    /// Datagrams that wait longer and say ECT(1) are marked CE: what an L4S queue does. Source: RFC 9331 §5.
    pub mark_ect1_above: Option<Duration>,
    /// The same for those that say ECT(0). Source: RFC 3168 §5.
    pub mark_ect0_above: Option<Duration>,
    /// What happens before the queue is full.
    pub discipline: Discipline,
    /// A datagram that says ECT is marked CE where the discipline would drop it. Source: RFC 3168 §5; RFC 8033 §5.1.
    pub marks_early: bool,
}

/// Which datagrams a queue drops before it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// None.
    Tail,
    /// Those that leave it while all have waited too long for a while.
    CoDel(CoDel),
    /// Those that come, by a probability that follows the wait.
    Pie(Pie),
}

/// What an address translator gives anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The port.
    Port,
    /// The IP address, and the port with it.
    Address,
}

/// How often something happens to a datagram, and how many in a row it happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRate {
    /// How often, in millionths of all datagrams.
    pub ppm: u32,
    /// How it clusters.
    pub burst: Burst,
}

/// How events cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// Each datagram for itself.
    None,
    /// In runs of this many on average; the odds stay what they are.
    Mean(u32),
    /// Each for itself, but never more than this many in a row, however far apart: what the QUIC interop runner's network does.
    AtMost(u32),
    /// In runs by the two-state model of Gilbert: the rate is how often a run begins, of datagrams outside of runs.
    Gilbert {
        /// How often a run ends, in millionths of the datagrams in it: 1 / its mean length.
        ends_ppm: u32,
    },
}

impl Node {
    /// Whether no more than some datagrams in a row are affected.
    pub(crate) const fn bounds_runs(&self) -> bool {
        matches!(
            self,
            Node::Loss(EventRate { burst: Burst::AtMost(_), .. })
                | Node::Corrupt(EventRate { burst: Burst::AtMost(_), .. })
        )
    }
}

impl EventRate {
    /// This many per cent, each datagram for itself.
    pub const fn percent(percent: u32) -> EventRate {
        EventRate { ppm: percent * 10_000, burst: Burst::None }
    }

    /// The same odds, clustered.
    pub const fn with_burst(self, burst: Burst) -> EventRate {
        EventRate { burst, ..self }
    }
}
