//! The links of the study. Not a product of all axes: a base, from which one axis at a time is varied, and pairs that matter.

use super::link_profile::{Changes, NetworkProfile};
use super::work::Work;

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// The rate of the line.
    Rate,
    /// The round trip.
    RoundTrip,
    /// Loss, each datagram for itself.
    Loss,
    /// Loss in runs.
    Bursts,
    /// Reordering.
    Reordering,
    /// Jitter that keeps the order.
    Jitter,
    /// The queue.
    Queue,
    /// A policer.
    Policer,
    /// An outage.
    Outage,
    /// Acknowledgements that are thinned out, or come together.
    Acks,
    /// A rate that changes.
    Changes,
    /// Several at once.
    Pairs,
}

impl Axis {
    /// As tables have it.
    pub const fn name(self) -> &'static str {
        match self {
            Axis::Rate => "Rate",
            Axis::RoundTrip => "Round trip",
            Axis::Loss => "Loss by chance",
            Axis::Bursts => "Loss in runs",
            Axis::Reordering => "Reordering",
            Axis::Jitter => "Jitter",
            Axis::Queue => "Queue",
            Axis::Policer => "Policer",
            Axis::Outage => "Outage",
            Axis::Acks => "Acknowledgements",
            Axis::Changes => "Changes of the rate",
            Axis::Pairs => "Several at once",
        }
    }
}

/// A link of the study.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What is varied.
    pub axis: Axis,
    /// What is special about it.
    pub name: String,
    /// The link.
    pub profile: NetworkProfile,
}

impl Cell {
    /// Whether that is downloaded: 10 MB and 100 MB are not where the rate alone makes them long.
    pub fn runs(&self, work: Work) -> bool {
        let least = match work {
            Work::Page | Work::Megabyte => 0,
            Work::Bulk => 10_000_000,
            Work::Large => 500_000_000,
        };
        self.profile.bits_per_second >= least
    }
}

/// The link that all others vary.
const BASE: NetworkProfile = NetworkProfile::new(100, 40);

/// A download of 10 MB is under way when the rate falls and when it rises. Milliseconds and megabits a second.
const DOWN_AND_UP: &[(u64, u64)] = &[(0, 100), (500, 10), (2_500, 100)];
/// The same for one that begins slowly.
const UP_AND_DOWN: &[(u64, u64)] = &[(0, 10), (1_000, 100), (1_500, 10)];

/// All cells, in the order in which they are shown.
pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut add = |axis: Axis, name: &str, profile: NetworkProfile| {
        cells.push(Cell { axis, name: name.to_owned(), profile });
    };
    for megabits in [1, 10, 100, 500] {
        add(Axis::Rate, &format!("{megabits} Mbit/s"), NetworkProfile::new(megabits, 40));
    }
    for rtt_ms in [5, 150, 600] {
        add(Axis::RoundTrip, &format!("{rtt_ms} ms"), NetworkProfile::new(100, rtt_ms));
    }
    for (name, ppm) in
        [("0.1 %", 1_000), ("1 %", 10_000), ("3 %", 30_000), ("10 %", 100_000), ("30 %", 300_000)]
    {
        add(Axis::Loss, name, BASE.with_loss(ppm));
    }
    for (name, ppm, mean) in [
        ("1 % in runs of 8", 10_000, 8),
        ("3 % in runs of 4", 30_000, 4),
        ("10 % in runs of 16", 100_000, 16),
    ] {
        add(Axis::Bursts, name, BASE.with_bursts(ppm, mean));
    }
    for percent in [1, 10, 30] {
        for by_ms in [1, 8, 20] {
            let name = format!("{percent} % by {by_ms} ms");
            add(Axis::Reordering, &name, BASE.with_reordering(percent * 10_000, by_ms));
        }
    }
    for up_to_ms in [5, 20] {
        add(Axis::Jitter, &format!("up to {up_to_ms} ms"), BASE.with_jitter(up_to_ms));
    }
    for queue in [0.1, 0.3, 3.0, 10.0] {
        add(Axis::Queue, &format!("{queue} products"), BASE.with_queue(queue));
    }
    for burst_kilobytes in [25, 250] {
        let name = format!("20 Mbit/s, {burst_kilobytes} kB at once");
        add(Axis::Policer, &name, BASE.with_policer(20, burst_kilobytes));
    }
    for ms in [200, 1_000, 2_000, 5_000] {
        add(Axis::Outage, &format!("{} s", ms as f64 / 1e3), BASE.with_outage(ms));
    }
    for (name, keep, turn_ms) in
        [("one in 8", 8, 0), ("together each 10 ms", 1, 10), ("one in 8, together each 10 ms", 8, 10)]
    {
        add(Axis::Acks, name, BASE.with_acks(keep, turn_ms));
    }
    add(Axis::Changes, "100, 10, 100 Mbit/s", BASE.with_changes(Changes::Steps(DOWN_AND_UP)));
    add(Axis::Changes, "10, 100, 10 Mbit/s", BASE.with_changes(Changes::Steps(UP_AND_DOWN)));
    let mobile = NetworkProfile::new(20, 60).with_queue(3.0);
    add(Axis::Changes, "mobile: 2 to 50 Mbit/s, 60 ms", mobile.with_changes(Changes::Walk(2, 50)));
    pairs(&mut add);
    cells
}

/// What goes wrong together on links that people have.
fn pairs(add: &mut impl FnMut(Axis, &str, NetworkProfile)) {
    let link = NetworkProfile::new;
    for (name, profile) in [
        ("20 ms, 3 % loss", link(100, 20).with_loss(30_000)),
        ("20 ms, 10 % loss", link(100, 20).with_loss(100_000)),
        ("20 ms, 30 % loss", link(100, 20).with_loss(300_000)),
        ("20 ms, 30 % late by 8 ms", link(100, 20).with_reordering(300_000, 8)),
        ("500 Mbit/s, 3 % loss", link(500, 40).with_loss(30_000)),
        ("1 % loss, 10 % late by 8 ms", BASE.with_loss(10_000).with_reordering(100_000, 8)),
        ("3 % loss, jitter up to 20 ms", BASE.with_loss(30_000).with_jitter(20)),
        ("mobile: 10 Mbit/s, 150 ms, 3 % loss", link(10, 150).with_loss(30_000)),
        ("mobile: 10 Mbit/s, 150 ms, 10 % loss", link(10, 150).with_loss(100_000)),
        ("mobile: 10 Mbit/s, 150 ms, 30 % loss", link(10, 150).with_loss(300_000)),
        ("mobile: 10 Mbit/s, 150 ms, outage 1 s", link(10, 150).with_outage(1_000)),
        ("bufferbloat: 10 Mbit/s, 10 products", link(10, 40).with_queue(10.0)),
        ("bufferbloat: the same, 1 % loss", link(10, 40).with_queue(10.0).with_loss(10_000)),
        ("satellite: 20 Mbit/s, 600 ms, 1 % loss", link(20, 600).with_loss(10_000)),
        (
            "Wi-Fi: 50 Mbit/s, 5 ms, 1 % in runs of 8, jitter",
            link(50, 5).with_bursts(10_000, 8).with_jitter(5),
        ),
    ] {
        add(Axis::Pairs, name, profile);
    }
}
