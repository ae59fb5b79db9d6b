use super::*;

fn lanes() -> Vec<EntryResult> {
    let lane = |who, seconds: &[f64]| EntryResult::pretended(who, Http::Three, Client::Load, seconds);
    vec![
        lane(Contestant::Tercel, &[1.0, 1.1, 0.9]),
        lane(Contestant::Quinn, &[2.0, 2.1, 1.9]),
        lane(Contestant::Quiche, &[1.0, 1.2, 0.9]),
        lane(Contestant::Caddy, &[]),
    ]
}

/// Deleted, a column could be added to the head and not to the rows, and every figure after it stand in the wrong place.
#[test]
fn every_row_has_a_cell_for_each_column() {
    let table = table(&lanes());
    assert_eq!(table.columns.len(), COLUMNS.len());
    assert!(table.rows.iter().all(|row| row.cells.len() == COLUMNS.len()));
    assert_eq!(table.rows.iter().filter(|row| row.is_published).count(), PUBLISHED.len());
    assert_eq!(table.rows[0].cells[2], Cell::Empty, "tercel is not compared with itself");
    let Cell::Ratio(ratio) = &table.rows[1].cells[2] else { panic!("no ratio") };
    assert!((ratio.ratio - 2.0).abs() < 0.01, "{ratio:?}");
}

/// Deleted, sentences could contradict the trials.
#[test]
fn findings_follow_from_the_trials() {
    let found = findings(&lanes());
    assert_eq!(found.len(), 3, "one of ours, one for each other that has trials: {found:?}");
    assert!(found[1].contains("quinn") && found[1].contains("tercel is faster"), "{found:?}");
    assert!(found[2].contains("neither is shown to be faster"), "{found:?}");
    assert!(findings(&[]).is_empty());
}

/// Deleted, a quick run's bars would look twenty times as fast as the published ones.
#[test]
fn bars_are_for_a_million_requests() {
    let plot = times(&lanes(), MILLION / 20);
    assert!((plot.series[0].points[0].y - 20.0).abs() < 1e-9, "{plot:?}");
    let PlotKind::Bars(names) = &plot.kind else { panic!("no bars") };
    let points: usize = plot.series.iter().map(|series| series.points.len()).sum();
    assert_eq!(names.len(), points, "a bar for each name");
}
