//! A twentieth of the study of bad networks (docs/networks), each contest with a bound on its time. Bounds leave a quarter of
//! room, and half where packets are lost by chance: for a change that moves chance, not for one that makes a bad network worse.

#![expect(clippy::panic, reason = "a helper of a test may panic as the test itself may")]

use recovery::congestion::Algorithm::{self, Auto, Bbr, Cubic, NewReno, Prague};
use sim::networks::Work::{self, Bulk, Megabyte, Page};
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
const BOUNDS: [(Axis, &str, Work, Algorithm, f64); 35] = [
    (Axis::Rate, "100 Mbit/s", Page, Cubic, 380.0),
    (Axis::Rate, "1 Mbit/s", Page, Bbr, 6_400.0),
    (Axis::Rate, "500 Mbit/s", Bulk, Cubic, 760.0),
    (Axis::RoundTrip, "5 ms", Megabyte, NewReno, 140.0),
    (Axis::RoundTrip, "600 ms", Page, Cubic, 5_600.0),
    (Axis::RoundTrip, "150 ms", Bulk, Prague, 3_000.0),
    (Axis::Loss, "0.1 %", Bulk, Bbr, 1_700.0),
    (Axis::Loss, "1 %", Megabyte, Cubic, 670.0),
    (Axis::Loss, "3 %", Bulk, Bbr, 2_500.0),
    (Axis::Loss, "10 %", Bulk, Bbr, 3_000.0),
    (Axis::Loss, "30 %", Page, Bbr, 1_110.0),
    (Axis::Loss, "30 %", Megabyte, Bbr, 1_320.0),
    (Axis::Bursts, "3 % in runs of 4", Bulk, Bbr, 2_300.0),
    (Axis::Bursts, "10 % in runs of 16", Page, Cubic, 590.0),
    (Axis::Reordering, "10 % by 20 ms", Bulk, NewReno, 1_590.0),
    (Axis::Reordering, "30 % by 8 ms", Page, Cubic, 440.0),
    (Axis::Reordering, "30 % by 20 ms", Bulk, Cubic, 1_770.0),
    (Axis::Reordering, "30 % by 20 ms", Bulk, Bbr, 1_810.0),
    (Axis::Reordering, "30 % by 20 ms", Bulk, Prague, 1_750.0),
    (Axis::Jitter, "up to 20 ms", Megabyte, Cubic, 750.0),
    (Axis::Queue, "0.1 products", Bulk, Cubic, 2_100.0),
    (Axis::Queue, "10 products", Bulk, Bbr, 1_370.0),
    (Axis::Policer, "20 Mbit/s, 25 kB at once", Bulk, Bbr, 6_400.0),
    (Axis::Policer, "20 Mbit/s, 250 kB at once", Megabyte, Cubic, 650.0),
    (Axis::Outage, "0.2 s", Megabyte, Bbr, 770.0),
    (Axis::Outage, "0.2 s", Bulk, Cubic, 1_750.0),
    (Axis::Outage, "1 s", Bulk, NewReno, 2_800.0),
    (Axis::Outage, "2 s", Page, Cubic, 3_100.0),
    (Axis::Outage, "5 s", Bulk, Prague, 8_300.0),
    (Axis::Outage, "5 s", Page, Bbr, 7_400.0),
    (Axis::Pairs, "mobile: 10 Mbit/s, 150 ms, 10 % loss", Bulk, Bbr, 15_800.0),
    (Axis::Pairs, "mobile: 10 Mbit/s, 150 ms, 30 % loss", Page, Bbr, 4_400.0),
    (Axis::Pairs, "bufferbloat: the same, 1 % loss", Bulk, Bbr, 13_200.0),
    (Axis::Pairs, "satellite: 20 Mbit/s, 600 ms, 1 % loss", Megabyte, Bbr, 8_100.0),
    (Axis::Pairs, "Wi-Fi: 50 Mbit/s, 5 ms, 1 % in runs of 8, jitter", Bulk, Bbr, 3_100.0),
];

#[test]
fn downloads_over_bad_networks_are_as_fast_as_they_were() {
    for (axis, name, work, algorithm, most) in BOUNDS {
        let record = record(axis, name, work, algorithm);
        assert!(record.time_ms < most, "{record:?}");
        assert_eq!(record.unfinished, 0, "{record:?}");
    }
}

/// Contests, and how many times the better time of CUBIC and BBR auto takes at most.
const REGRETS: [(Axis, &str, Work, f64); 14] = [
    (Axis::Rate, "100 Mbit/s", Page, 1.05),
    (Axis::RoundTrip, "600 ms", Bulk, 1.05),
    (Axis::Loss, "1 %", Bulk, 1.25),
    (Axis::Loss, "3 %", Page, 1.4),
    (Axis::Loss, "10 %", Megabyte, 1.4),
    (Axis::Loss, "30 %", Page, 1.6),
    (Axis::Bursts, "3 % in runs of 4", Bulk, 1.25),
    (Axis::Reordering, "30 % by 20 ms", Page, 1.25),
    (Axis::Jitter, "up to 20 ms", Bulk, 1.15),
    (Axis::Queue, "0.3 products", Bulk, 1.15),
    (Axis::Policer, "20 Mbit/s, 250 kB at once", Bulk, 1.15),
    (Axis::Outage, "1 s", Bulk, 1.2),
    (Axis::Pairs, "mobile: 10 Mbit/s, 150 ms, 10 % loss", Page, 1.4),
    (Axis::Pairs, "bufferbloat: the same, 1 % loss", Bulk, 1.25),
];

/// Deleted, a flow that chooses could choose what suits no path.
#[test]
fn a_flow_that_chooses_is_nearly_as_fast_as_the_better_choice() {
    for (axis, name, work, most) in REGRETS {
        let [auto, cubic, bbr] = [Auto, Cubic, Bbr].map(|algorithm| record(axis, name, work, algorithm));
        let regret = auto.time_ms / cubic.time_ms.min(bbr.time_ms);
        println!("regret {regret:.2}");
        assert!(regret < most, "{regret}: {auto:?}");
    }
}

/// Deleted, content could stay away for as long again after an outage as the outage was long. A path that is back is found after an
/// eighth of the outage, or two probe timeouts, and a round trip.
#[test]
fn after_an_outage_content_arrives_soon() {
    for (name, outage_ms) in [("0.2 s", 200.0), ("1 s", 1_000.0), ("2 s", 2_000.0), ("5 s", 5_000.0)] {
        for algorithm in [NewReno, Cubic, Bbr, Prague, Auto] {
            let record = record(Axis::Outage, name, Page, algorithm);
            let most = 350.0 + outage_ms / 8.0;
            assert!(record.resumed_ms.is_some_and(|resumed| resumed < most), "{record:?}");
        }
    }
}

/// Deleted, thresholds could learn from losses alone again: 3 % of a page's packets were sent twice then.
#[test]
fn hardly_anything_is_sent_twice_where_packets_are_only_late() {
    for (name, work, most) in
        [("30 % by 20 ms", Page, 0.02), ("30 % by 20 ms", Bulk, 0.02), ("10 % by 8 ms", Megabyte, 0.02)]
    {
        for algorithm in [NewReno, Cubic, Bbr, Prague, Auto] {
            let record = record(Axis::Reordering, name, work, algorithm);
            assert!(record.loses_nothing && record.needless < most, "{record:?}");
        }
    }
}
