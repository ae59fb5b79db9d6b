use bench::datapaths::Side;
use bench::environment::Environment;

use super::*;

fn row(method: Method, goodputs: &[f64]) -> datapaths::Row {
    let side = Side { cpu_s: 1.0, cpu_s_per_gb: 1.0, share: 1.0, core_share: 1.0, datagrams_per_call: 1.0 };
    let trial = |&goodput: &f64| Trial {
        goodput,
        server: Side { cpu_s_per_gb: 1e9 / goodput, ..side },
        client: side,
        payload_mean: 1_470.0,
        datagrams: 1,
        path_in_use: method.name().to_owned(),
        course: Vec::new(),
    };
    let trials: Vec<Trial> = goodputs.iter().map(trial).collect();
    datapaths::Row {
        method,
        goodput: Summary::of(goodputs.iter().copied()),
        server_cpu_s_per_gb: Summary::of(trials.iter().map(|trial| trial.server.cpu_s_per_gb)),
        client_cpu_s_per_gb: Summary::default(),
        gain: Ratio::of(goodputs, goodputs),
        cpu_gain: None,
        is_server_at_full_load: true,
        problem: trials.is_empty().then(|| "no driver".to_owned()),
        trials,
    }
}

fn found() -> DataPaths {
    DataPaths {
        plan: DataPathsPlan::new("tercel".into()),
        environment: Environment::here(),
        link: "veth",
        cipher: "",
        congestion: "",
        published: [PUBLISHED_UDP, PUBLISHED_XDP],
        rows: vec![
            row(Method::Plain, &[100e6, 101e6, 99e6]),
            row(Method::Gso, &[300e6, 310e6, 305e6]),
            row(Method::XdpGeneric, &[]),
            row(Method::XdpDriver, &[150e6, 151e6, 152e6]),
        ],
        notes: Vec::new(),
        was_interrupted: false,
    }
}

/// Deleted, a column could be added to the head and not to the rows; or a path be compared with itself.
#[test]
fn every_row_has_a_cell_for_each_column() {
    let table = table(&found(), &Ceiling::default());
    assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
    let names: Vec<&str> = table.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["plain", "gso", "xdp driver", "UDP (published)", "AF_XDP (published)"]);
    assert_eq!(table.rows[0].cells[2], Cell::Empty);
    assert!(matches!(table.rows[1].cells[2], Cell::Ratio(_)));
    let Cell::Ratio(published) = &table.rows[4].cells[2] else { panic!("no ratio") };
    assert!(
        (published.ratio - PUBLISHED_GAIN).abs() < 0.005,
        "the study's own figures give its own gain: {published:?}"
    );
}

/// Deleted, AF_XDP could be said to win where the trials say otherwise.
#[test]
fn findings_follow_from_the_trials() {
    let found = found();
    let sentences = findings(&found);
    assert_eq!(sentences.len(), 2, "{sentences:?}");
    assert!(
        sentences[0].contains("1.51 times the bytes of plain") && sentences[0].contains("AF_XDP is faster")
    );
    assert!(
        sentences[1].contains("0.50 times the bytes of gso")
            && sentences[1].contains("the kernel's path is faster")
    );
    assert!(notes(&found).iter().any(|note| note.contains("no driver")));
}

/// Deleted, the trials could be sorted or the rows left out, and a machine that became slower would show nowhere.
#[test]
fn the_course_shows_every_trial_in_its_order() {
    let lines = course(&found()).series;
    let shown: Vec<_> = lines.iter().map(|line| (line.name.as_str(), line.points.len())).collect();
    assert_eq!(shown, [("plain", 3), ("gso", 3), ("xdp driver", 3)]);
    let points: Vec<(f64, f64)> = lines[1].points.iter().map(|point| (point.x, point.y)).collect();
    assert_eq!(points, [(1.0, 300.0), (2.0, 310.0), (3.0, 305.0)]);
}
