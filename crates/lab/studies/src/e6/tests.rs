use super::*;
use crate::downloads::Trial;

fn lane(name: &str, costs: &[f64]) -> DownloadSeries {
    let trial = |&cost: &f64| Trial {
        server_cpu_s_per_gb: cost,
        client_cpu_s_per_gb: cost * 2.0,
        ..Trial::default()
    };
    DownloadSeries {
        trials: costs.iter().map(trial).collect(),
        ..DownloadSeries::new(name, Method::Gso, &[])
    }
}

fn measured(everything: &[f64], ablation: impl Fn(usize) -> Vec<f64>) -> Measured {
    let ablation =
        TECHNIQUES.iter().enumerate().map(|(place, technique)| lane(technique.name, &ablation(place)));
    Measured {
        everything: vec![lane("everything", everything)],
        ablation: ablation.collect(),
        ..Measured::default()
    }
}

/// Deleted, a technique could be praised for what noise did.
#[test]
fn only_what_an_interval_shows_is_worth_something() {
    let mut measured = measured(&[1.0, 1.01, 0.99], |place| match place {
        0 => vec![3.0, 3.1, 2.9],
        1 => vec![1.2, 1.21, 1.19],
        _ => vec![0.9, 1.1, 1.0],
    });
    let pair = [lane("steered", &[2.0, 2.01, 1.99]), lane(steering::NAME, &[8.0, 8.1, 7.9])];
    measured.apart.push((steering::NAME, pair));
    let names = core::iter::once("everything").chain(IN_CONNECTIONS.iter().map(|technique| technique.name));
    measured.experimental = names.map(|name| lane(name, &[1.5, 1.51, 1.49])).collect();
    let pairings = measured.pairings();
    let said = pairing::findings(&pairings);
    assert!(
        said[0].starts_with("handed over between two workers") && said[0].contains("was 300 % more"),
        "{said:?}"
    );
    assert!(said[1].starts_with("A smaller difference to the server: without GSO on send; "), "{said:?}");
    assert!(said[1].contains("; without sendmmsg"), "{said:?}");
    assert!(said[2].starts_with("No measurable difference to the server: without GSO and sendmmsg; "));

    let table = pairing::table(&pairings, &Ceiling::default());
    assert_eq!(table.rows.len(), TECHNIQUES.len() + IN_CONNECTIONS.len() + 1);
    assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
    assert_eq!(pairing::plot(&pairings).series[0].points.len(), TECHNIQUES.len() + IN_CONNECTIONS.len() + 1);
}

#[test]
fn versions_are_compared_with_the_oldest() {
    let versions = [
        lane("HTTP/1.1", &[0.5, 0.51, 0.49]),
        lane("HTTP/2", &[0.6, 0.61, 0.59]),
        lane("HTTP/3", &[1.0, 1.01, 0.99]),
    ];
    let said = between_versions(&versions).unwrap();
    assert!(said.contains("2.00 times that over HTTP/1.1"), "{said}");
    let table = version_table(&versions, &Ceiling::default());
    assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
}

#[test]
fn a_study_that_was_interrupted_early_claims_nothing() {
    let measured = measured(&[], |_| Vec::new());
    let pairings = measured.pairings();
    assert_eq!(pairing::findings(&pairings), Vec::<String>::new());
    assert!(pairing::plot(&pairings).series[0].points.is_empty());
    assert_eq!(between_versions(&["HTTP/1.1", "HTTP/2", "HTTP/3"].map(|name| lane(name, &[]))), None);
    assert!(Measured::default().pairings().is_empty());
}

/// Deleted, two rows could be the same, or one that differs in nothing from the row with everything.
#[test]
fn every_row_leaves_something_else_out() {
    let everything = DownloadSeries::new("everything", Method::Gso, &SIZE);
    let mut lanes = vec![everything];
    for technique in &TECHNIQUES {
        let lane = technique.lane();
        let ways = |lane: &DownloadSeries| (lane.method, lane.server.clone(), lane.client.clone());
        assert!(lanes.iter().all(|other| ways(other) != ways(&lane)), "{}", lane.name);
        lanes.push(lane);
    }
}
