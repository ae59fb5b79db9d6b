//! What is run for the published table.
//!
//! Not the whole product: where packets are lost by chance only the queue of one product is run, since the flow rarely fills
//! it; paths whose product is less than four packets are left out, because no controller's window is that small; and fast
//! long paths are left out, because their controllers settle in minutes of simulated time, which are hours of real time.

use super::link_profile::{Dropping, LinkProfile, Marking};
use super::run::ContestRun;
use base::time::Duration;
use recovery::congestion::Algorithm;

/// All controllers, in the order in which they are shown.
pub(super) const ALL: [Algorithm; 5] =
    [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Prague, Algorithm::Auto];

/// Queues, in bandwidth-delay products.
pub(super) const QUEUES: [f64; 3] = [0.25, 1.0, 4.0];
/// Losses by chance, in millionths.
pub(super) const LOSSES: [u32; 3] = [1_000, 10_000, 50_000];
/// Megabits a second, and the round trips in milliseconds at that rate.
pub(super) const LINKS: [(u64, &[u64]); 5] = [
    (1, &[50, 100, 300]),
    (10, &[10, 50, 100, 300]),
    (100, &[1, 10, 50, 100, 300]),
    (1_000, &[1, 10, 50]),
    (10_000, &[1, 10]),
];
/// The same where the queue marks.
const MARKING_LINKS: [(u64, &[u64]); 3] = [(10, &[10, 50]), (100, &[10, 50, 100]), (1_000, &[10])];
/// Rates and round trips where a queue drops early, or marks instead.
const EARLY_LINKS: [(u64, u64); 2] = [(10, 50), (100, 50)];
/// Such queues.
const EARLY: [(Dropping, Marking); 4] = [
    (Dropping::CoDel, Marking::None),
    (Dropping::Pie, Marking::None),
    (Dropping::CoDel, Marking::Early),
    (Dropping::Pie, Marking::Early),
];
/// The links that two flows share, and the names of their pictures.
pub(super) const SHARED: [(&str, LinkProfile); 11] = [
    ("shares-shallow", LinkProfile::new(20, 40, 0.25)),
    ("shares-one-product", LinkProfile::new(20, 40, 1.0)),
    ("shares-deep", LinkProfile::new(20, 40, 4.0)),
    ("shares-fast", LinkProfile::new(100, 20, 1.0)),
    ("shares-l4s", LinkProfile::new(50, 20, 4.0).with_marking(Marking::L4s)),
    ("shares-classic-ecn", LinkProfile::new(50, 20, 4.0).with_marking(Marking::Classic)),
    ("shares-codel", LinkProfile::new(20, 40, 4.0).with_dropping(Dropping::CoDel)),
    ("shares-codel-long", LinkProfile::new(20, 150, 4.0).with_dropping(Dropping::CoDel)),
    ("shares-pie", LinkProfile::new(20, 40, 4.0).with_dropping(Dropping::Pie)),
    (
        "shares-codel-marks",
        LinkProfile::new(20, 40, 4.0).with_dropping(Dropping::CoDel).with_marking(Marking::Early),
    ),
    (
        "shares-pie-marks",
        LinkProfile::new(20, 40, 4.0).with_dropping(Dropping::Pie).with_marking(Marking::Early),
    ),
];
/// Rate, round trip, queue and seconds of the beginnings.
const STARTS: [(u64, u64, f64, u64); 5] =
    [(10, 50, 1.0, 3), (100, 50, 0.25, 3), (100, 50, 1.0, 3), (100, 50, 4.0, 3), (1_000, 50, 1.0, 3)];

/// Which table a heat is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// One flow on a queue that drops.
    Alone,
    /// One flow on a queue that marks, or drops early.
    Marked,
    /// One flow, from its first packet on.
    Start,
    /// Two flows.
    Pair,
}

/// A heat, and what it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The table.
    pub part: Part,
    /// What is run.
    pub heat: ContestRun,
}

impl Item {
    /// How much work it is, in packets at most: the heaviest are best begun first.
    pub fn weight(&self) -> u64 {
        let seconds = (self.heat.warm_up + self.heat.span).as_secs_f64();
        (self.heat.link_profile.bits_per_second as f64 * seconds / 1e4) as u64
    }
}

/// All of it, in the order of the tables.
pub fn items() -> Vec<Item> {
    let mut items = Vec::new();
    for (megabits, trips) in LINKS {
        for rtt_ms in trips {
            for link_profile in courses(megabits, *rtt_ms) {
                items.extend(ALL.map(|algorithm| alone(Part::Alone, link_profile, algorithm)));
            }
        }
    }
    for marking in [Marking::L4s, Marking::Classic] {
        for (megabits, trips) in MARKING_LINKS {
            for rtt_ms in trips {
                let link_profile = LinkProfile::new(megabits, *rtt_ms, 4.0).with_marking(marking);
                items.extend(ALL.map(|algorithm| alone(Part::Marked, link_profile, algorithm)));
            }
        }
    }
    for (dropping, marking) in EARLY {
        for (megabits, rtt_ms) in EARLY_LINKS {
            let link_profile = LinkProfile::new(megabits, rtt_ms, 4.0);
            let link_profile = link_profile.with_dropping(dropping).with_marking(marking);
            items.extend(ALL.map(|algorithm| alone(Part::Marked, link_profile, algorithm)));
        }
    }
    for (megabits, rtt_ms, queue, seconds) in STARTS {
        let link_profile = LinkProfile::new(megabits, rtt_ms, queue);
        let span = Duration::from_secs(seconds);
        items.extend(ALL.map(|algorithm| Item {
            part: Part::Start,
            heat: ContestRun::alone(link_profile, algorithm, Duration::ZERO, span),
        }));
    }
    for (_, link_profile) in SHARED {
        let (warm_up, span) = (Duration::from_secs(30), Duration::from_secs(60));
        items.extend(pairs().map(|both| Item {
            part: Part::Pair,
            heat: ContestRun::pair(link_profile, both, warm_up, span),
        }));
    }
    items
}

/// Every two controllers, same ones included.
pub(super) fn pairs() -> impl Iterator<Item = [Algorithm; 2]> {
    let of = |(index, first): (usize, &Algorithm)| {
        let first = *first;
        ALL.iter().skip(index).map(move |second| [first, *second])
    };
    ALL.iter().enumerate().flat_map(of)
}

/// The queues and losses of a link.
fn courses(megabits: u64, rtt_ms: u64) -> Vec<LinkProfile> {
    let queues: &[f64] = if megabits < 10_000 { &QUEUES } else { &[1.0] };
    let losses: &[u32] = match megabits {
        0..1_000 => &LOSSES,
        1_000..10_000 => &[1_000],
        _ => &[],
    };
    let of_queue = queues.iter().map(|queue| LinkProfile::new(megabits, rtt_ms, *queue));
    let of_loss = losses.iter().map(|ppm| LinkProfile::new(megabits, rtt_ms, 1.0).with_loss(*ppm));
    of_queue.chain(of_loss).collect()
}

fn alone(part: Part, link_profile: LinkProfile, algorithm: Algorithm) -> Item {
    let (warm_up, span) = match link_profile.bits_per_second / 1_000_000 {
        0..100 => (20, 60),
        100..1_000 => (15, 45),
        1_000..10_000 => (4, 8),
        _ => (2, 2),
    };
    let heat =
        ContestRun::alone(link_profile, algorithm, Duration::from_secs(warm_up), Duration::from_secs(span));
    Item { part, heat }
}
