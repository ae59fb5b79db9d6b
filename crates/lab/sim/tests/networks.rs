//! A twentieth of the study of bad networks (docs/networks), each contest with its time at most a tenth above what was accepted
//! (networks.txt). The same program takes the same time on every machine; a change that moves chance alone may need accepting, too:
//! `NETWORKS_ACCEPT=1 cargo test -p tercel-sim --test networks as_fast_as_they_were`.

#![expect(clippy::panic, reason = "a helper of a test may panic as the test itself may")]

use recovery::congestion::Algorithm::{self, Auto, Bbr, Cubic, NewReno, Prague};
use sim::networks::Work::{self, Bulk, Megabyte, Page};
use sim::networks::{ALGORITHMS, Axis, NetworkProfile, Record, cells, measure, name, upload};

/// The median of these counts.
const SEEDS: [u64; 3] = [1, 2, 3];

fn record(axis: Axis, cell_name: &str, work: Work, algorithm: Algorithm) -> Record {
    let cells = cells();
    let cell = cells.iter().find(|cell| cell.axis == axis && cell.name == cell_name);
    let cell = cell.unwrap_or_else(|| panic!("no cell {cell_name}"));
    let record = measure(cell, work, algorithm, &SEEDS).unwrap_or_else(|problem| panic!("{problem}"));
    println!(
        "{}: {cell_name}, {}, {algorithm:?}: {:.0} ms, stall {:.0} ms, resumed {:?} ms, {:.2} % needless",
        axis.name(),
        work.name(),
        record.time_ms,
        record.stall_ms,
        record.resumed_ms,
        record.needless * 100.0
    );
    record
}

/// The contests: milliseconds that were accepted, axis, cell, work, controller.
const ACCEPTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/networks.txt");
/// A contest takes no longer than so many times what was accepted.
const MOST: f64 = 1.1;
/// Nor do all of them on the geometric mean.
const MOST_OF_ALL: f64 = 1.03;
/// With this in the environment the file is written anew: for a change that is worth what it costs.
const ACCEPT: &str = "NETWORKS_ACCEPT";

/// The record of a line, and the milliseconds that it accepts.
fn contest(line: &str) -> (f64, Record) {
    let mut words = line.split("; ");
    let mut next = || words.next().unwrap_or_else(|| panic!("too short: {line}"));
    let (accepted, axis, cell, work, controller) = (next(), next(), next(), next(), next());
    let cells = cells();
    let cell = cells.iter().find(|known| known.axis.name() == axis && known.name == cell);
    let work = Work::ALL.into_iter().find(|known| known.name() == work);
    let algorithm = ALGORITHMS.into_iter().find(|known| name(*known) == controller);
    let (Some(cell), Some(work), Some(algorithm)) = (cell, work, algorithm) else {
        panic!("unknown: {line}")
    };
    let accepted = accepted.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
    (accepted, record(cell.axis, &cell.name, work, algorithm))
}

#[test]
fn downloads_over_bad_networks_are_as_fast_as_they_were() {
    let text = std::fs::read_to_string(ACCEPTED).expect("the accepted times");
    let (mut anew, mut logarithms, mut worse) = (String::new(), Vec::new(), Vec::new());
    for line in text.lines() {
        let (accepted, record) = contest(line);
        assert_eq!(record.unfinished, 0, "{record:?}");
        let Record { axis, cell, work, algorithm, time_ms, .. } = &record;
        anew += &format!("{time_ms:.1}; {axis}; {cell}; {work}; {algorithm}\n");
        let ratio = time_ms / accepted;
        logarithms.push(ratio.ln());
        if ratio > MOST {
            worse.push(format!("{ratio:.2} times as long: {line}"));
        }
    }
    if std::env::var_os(ACCEPT).is_some() {
        return std::fs::write(ACCEPTED, anew).expect("the accepted times");
    }
    let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
    println!("{} contests, {mean:.3} of the accepted time on the geometric mean", logarithms.len());
    assert!(logarithms.len() >= 43, "a twentieth of the study");
    assert!(worse.is_empty() && mean < MOST_OF_ALL, "{mean:.3}; if it is worth it, {ACCEPT}=1: {worse:#?}");
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

/// Deleted, a flow in jitter would take chance for a queue: ten megabytes took auto 8.0 s and BBR 3.4.
#[test]
fn jitter_is_no_queue() {
    for (algorithm, most_ms) in [(Auto, 3_000.0), (Bbr, 2_200.0)] {
        let record = record(Axis::Pairs, "3 % loss, jitter up to 20 ms", Bulk, algorithm);
        assert!(record.time_ms < most_ms, "{algorithm:?}: {} ms", record.time_ms);
    }
}

/// Milliseconds from the end of an outage until content arrives, at most, over 40 ms: two probe timeouts, by the traces.
const RESUMED_MS: u64 = 185;

/// Deleted, content could stay away for as long again after an outage as the outage was long.
#[test]
fn after_an_outage_content_arrives_soon() {
    for name in ["0.2 s", "1 s", "2 s", "5 s"] {
        for algorithm in [NewReno, Cubic, Bbr, Prague, Auto] {
            let record = record(Axis::Outage, name, Page, algorithm);
            let most = RESUMED_MS as f64;
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

/// Uploads after outages: from the end of the outage until content arrives again. The server asks for the rest. Deleted, its end could be
/// learned of by the client's probes alone, after as long again as the outage was.
#[test]
fn after_an_outage_an_upload_goes_on() {
    for outage_ms in [200, 500, 1_000, 2_000, 5_000] {
        let profile = NetworkProfile::new(100, 40).with_outage(outage_ms);
        for algorithm in [Cubic, Bbr, Auto] {
            let mut resumed: Vec<_> = (1..=9)
                .map(|seed| {
                    let trial =
                        upload(&profile, algorithm, seed).unwrap_or_else(|problem| panic!("{problem}"));
                    trial.resumed_after.expect("content after the outage")
                })
                .collect();
            resumed.sort();
            println!("upload, outage of {outage_ms} ms, {algorithm:?}: {:?} {:?}", resumed[4], resumed[8]);
            assert!(resumed[8].as_millis() <= RESUMED_MS, "{outage_ms} ms, {algorithm:?}: {resumed:?}");
        }
    }
}
