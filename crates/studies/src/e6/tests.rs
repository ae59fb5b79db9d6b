use super::*;
use crate::downloads::Trial;

fn lane(name: &str, costs: &[f64]) -> Lane {
    let trial = |&cost: &f64| Trial {
        server_cpu_s_per_gb: cost,
        client_cpu_s_per_gb: cost * 2.0,
        ..Trial::default()
    };
    Lane { trials: costs.iter().map(trial).collect(), ..Lane::new(name, Method::Gso, &[]) }
}

/// Deleted, a technique could be praised for what noise did.
#[test]
fn only_what_an_interval_shows_is_worth_something() {
    let mut lanes = vec![lane("everything", &[1.0, 1.01, 0.99])];
    lanes.extend(TECHNIQUES.iter().enumerate().map(|(place, technique)| match place {
        0 => lane(technique.name, &[3.0, 3.1, 2.9]),
        1 => lane(technique.name, &[1.2, 1.21, 1.19]),
        _ => lane(technique.name, &[0.9, 1.1, 1.0]),
    }));
    let versions = [
        lane("HTTP/1.1", &[0.5, 0.51, 0.49]),
        lane("HTTP/2", &[0.6, 0.61, 0.59]),
        lane("HTTP/3", &[1.0, 1.01, 0.99]),
    ];
    let said = findings(&lanes, &versions);
    assert!(said[0].starts_with("without GSO on send: the server's CPU time was 200 % more"), "{said:?}");
    assert!(said[1].starts_with("without sendmmsg: the server's CPU time was 20 % more"), "{said:?}");
    assert!(said[2].starts_with("No measurable difference to the server: without GSO and sendmmsg; "));
    assert!(said.last().unwrap().contains("2.00 times that over HTTP/1.1"), "{said:?}");

    let table = ablation_table(&lanes);
    assert_eq!(table.rows.len(), TECHNIQUES.len());
    assert!(table.rows.iter().all(|row| row.cells.len() == COLUMNS.len()));
    let table = version_table(&versions);
    assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
    assert_eq!(plot(&lanes).series[0].points.len(), TECHNIQUES.len());
}

#[test]
fn a_study_that_was_interrupted_early_claims_nothing() {
    let nothing = |name| lane(name, &[]);
    let lanes: Vec<Lane> = std::iter::once("everything")
        .chain(TECHNIQUES.iter().map(|technique| technique.name))
        .map(nothing)
        .collect();
    let versions = ["HTTP/1.1", "HTTP/2", "HTTP/3"].map(nothing);
    assert_eq!(findings(&lanes, &versions), Vec::<String>::new());
    assert!(plot(&lanes).series[0].points.is_empty());
}

/// Deleted, two rows could be the same, or one that differs in nothing from the row with everything.
#[test]
fn every_row_leaves_something_else_out() {
    let everything = Lane::new("everything", Method::Gso, &SIZE);
    let mut lanes = vec![everything];
    for technique in &TECHNIQUES {
        let lane = technique.lane();
        let ways = |lane: &Lane| (lane.method, lane.server.clone(), lane.client.clone());
        assert!(lanes.iter().all(|other| ways(other) != ways(&lane)), "{}", lane.name);
        lanes.push(lane);
    }
}
