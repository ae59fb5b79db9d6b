use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::first_byte::FirstByte;
use super::row::{Exchange, Kind, Scenario, Trial, Validation, scenarios};
use super::*;
use crate::context::{CellChoice, Effort, Profiles};
use report::model::Cell;
use serde_json::json;

fn row(who: Contestant, kind: Kind, server_us: &[f64]) -> HandshakeRow {
    let (exchange, validation) = (Exchange::Classic, Validation::Handshake);
    let mut row = HandshakeRow::new(Scenario { who, http: Http::Three, kind, exchange, validation }, None);
    let trial = |&server_us: &f64| Trial {
        rate: 1e6 / server_us,
        server_us,
        client_us: 100.0,
        of_kind: 1.0,
        course: Vec::new(),
    };
    row.trials = server_us.iter().map(trial).collect();
    row
}

fn rows() -> Vec<HandshakeRow> {
    vec![
        row(Contestant::Tercel, Kind::Full, &[400.0, 401.0, 399.0]),
        row(Contestant::Tercel, Kind::Resumed, &[320.0, 321.0, 319.0]),
        row(Contestant::Quinn, Kind::Full, &[600.0, 601.0, 599.0]),
        row(Contestant::QuicGo, Kind::Full, &[]),
    ]
}

const FLOOR: Floor = Floor { hybrid_us: 90.0, classic_us: 60.0, signature_us: 20.0 };

/// Deleted, a column could be added to the head and not to the rows, or a share be taken of the wrong handshake.
#[test]
fn every_row_has_a_cell_for_each_column() {
    let table = words::table(&rows(), &FLOOR);
    assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
    assert_eq!(table.rows[0].cells[3], Cell::Number(20.0, 0), "exchange and signature of 400 µs");
    assert!(matches!(table.rows[1].cells[3], Cell::Number(share, 0) if (share - 18.75).abs() < 1e-9));
    assert_eq!(table.rows[0].cells[4], Cell::Empty, "tercel is not compared with itself");
    let Cell::Ratio(ratio) = &table.rows[2].cells[4] else { panic!("no ratio") };
    assert!((ratio.ratio - 400.0 / 600.0).abs() < 1e-3, "{ratio:?}");
}

/// Deleted, sentences could call an aim reached that the trials do not show.
#[test]
fn findings_follow_from_the_trials() {
    let first_bytes = FirstBytes {
        found: vec![FirstByte { who: Contestant::Tercel, kind: Kind::Early, ms: 20.4 }],
        problems: Vec::new(),
    };
    let found = words::findings(&rows(), &FLOOR, &first_bytes);
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[0].contains("1.25") && found[0].ends_with("missed."), "{found:?}");
    assert!(found[1].contains("1.33 times as cheap"), "{found:?}");
    assert!(found[2].contains("1.50") && found[2].ends_with("reached."), "{found:?}");
    assert!(found[3].contains("1.02 round trips"), "{found:?}");
}

/// Deleted, full handshakes could stand in a row of resumed ones, and failed requests count.
#[test]
fn a_trial_of_another_kind_or_with_failures_is_none() {
    let scenario = row(Contestant::Tercel, Kind::Resumed, &[]).scenario;
    let report = |failed: u32, resumed: u32| {
        json!({
            "failed": failed, "handshakes_per_second": 900.0,
            "handshake": {"count": 100}, "handshake_kinds": {"full": 100 - resumed, "resumed": resumed, "early": 0},
            "server": {"cpu_us_per_request": 400.0}, "generator": {"cpu_us_per_request": 300.0},
        })
    };
    let trial = trial::read(scenario, &report(0, 90)).unwrap();
    assert_eq!(
        trial,
        Trial { rate: 900.0, server_us: 400.0, client_us: 300.0, of_kind: 0.9, course: Vec::new() }
    );
    assert!(trial::read(scenario, &report(0, 40)).unwrap_err().to_string().contains("40 %"));
    assert!(trial::read(scenario, &report(1, 90)).unwrap_err().to_string().contains("failed"));
}

/// Deleted, a server could be given a flag that it does not know, or a row that it cannot fill.
#[test]
fn each_server_has_the_rows_that_its_program_offers() {
    let count = |who, has_hybrid| scenarios(who, has_hybrid).len();
    assert_eq!(count(Contestant::Tercel, true), 10, "three kinds and Retry twice, and TCP");
    assert_eq!(count(Contestant::Quinn, false), 4);
    assert_eq!(count(Contestant::Nginx, false), 2, "full and resumed over TCP");
    assert_eq!(count(Contestant::Caddy, false), 0);
    let retry = scenarios(Contestant::S2n, false).pop().unwrap();
    assert_eq!((retry.server_flags(), retry.validation), (vec!["--retry"], Validation::Retry));
}

/// Deleted, the floor could be of the wrong order of magnitude, or not be measured at all.
#[test]
fn the_hybrid_key_exchange_costs_more_than_its_classic_part() {
    let ground = TestSite::on(bench::site::Site::Loopback, None).unwrap();
    let floor = Floor::measure(&ground, 40).unwrap();
    assert!(floor.hybrid_us > floor.classic_us, "{floor:?}");
    assert!(floor.classic_us > 1.0 && floor.signature_us > 1.0, "{floor:?}");
}

/// Deleted, a run on a machine without servers could panic instead of telling what is missing.
#[test]
fn a_study_that_is_stopped_has_what_it_has() {
    let stop = AtomicBool::new(true);
    let mut tell = |_: &str| {};
    let mut context = Context {
        program: PathBuf::from("/nowhere/tercel"),
        cores: cpu::first_two(),
        effort: Effort::Quick,
        cells: CellChoice::default(),
        profiles: Profiles::None,
        stop: &stop,
        progress: &mut tell,
    };
    let study = run(&mut context).unwrap();
    assert_eq!((study.id.as_str(), study.blocks.len()), ("e7", 3));
    assert!(study.notes.iter().any(|note| note.contains("is not here")), "{:?}", study.notes);
}
