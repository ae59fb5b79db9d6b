//! A twentieth of the study of bad networks (docs/networks), each contest with a bound on its time. Bounds leave a quarter of
//! room: for a change that moves chance, not for one that makes a bad network worse.

#![expect(clippy::panic, reason = "a helper of a test may panic as the test itself may")]

use recovery::congestion::Algorithm::{self, Bbr, Cubic};
use sim::networks::Work::{self, Bulk, Page};
use sim::networks::{Axis, Record, cells, measure};

/// The median of these counts.
const SEEDS: [u64; 3] = [1, 2, 3];

fn record(axis: Axis, name: &str, work: Work, algorithm: Algorithm) -> Record {
    let cells = cells();
    let cell = cells.iter().find(|cell| cell.axis == axis && cell.name == name);
    let cell = cell.unwrap_or_else(|| panic!("no cell {name}"));
    let record = measure(cell, work, algorithm, &SEEDS).unwrap_or_else(|problem| panic!("{problem}"));
    println!(
        "{}: {name}, {}, {algorithm:?}: {:.0} ms, stall {:.0} ms, resumed {:?} ms, {:.2} % needless",
        axis.name(),
        work.name(),
        record.time_ms,
        record.stall_ms,
        record.resumed_ms,
        record.needless * 100.0
    );
    record
}

/// Contests, and milliseconds that the median takes at most.
const BOUNDS: [(Axis, &str, Work, Algorithm, f64); 2] =
    [(Axis::Rate, "100 Mbit/s", Page, Cubic, 380.0), (Axis::Rate, "100 Mbit/s", Bulk, Bbr, 1_400.0)];

#[test]
fn downloads_over_bad_networks_are_as_fast_as_they_were() {
    for (axis, name, work, algorithm, most) in BOUNDS {
        let record = record(axis, name, work, algorithm);
        assert!(record.time_ms < most, "{record:?}");
        assert_eq!(record.unfinished, 0, "{record:?}");
    }
}
