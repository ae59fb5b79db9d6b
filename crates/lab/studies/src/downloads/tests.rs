use super::*;

fn lane(costs: &[f64]) -> DownloadSeries {
    let trial = |&cost: &f64| Trial { server_cpu_s_per_gb: cost, ..Trial::default() };
    DownloadSeries {
        trials: costs.iter().map(trial).collect(),
        ..DownloadSeries::new("a lane", Method::Gso, &["--flag"])
    }
}

/// Deleted, a finding could claim a saving that the trials do not show, or turn a loss into one.
#[test]
fn a_saving_is_claimed_only_where_the_interval_shows_one() {
    let base = lane(&[1.0, 1.02, 0.98]);
    let words = |other: &DownloadSeries| saving(&other.cost_over(&base).unwrap());
    assert!(words(&lane(&[0.75, 0.76, 0.74])).starts_with("25 % less (95 % interval: 2"));
    assert!(words(&lane(&[1.5, 1.52, 1.48])).starts_with("50 % more (95 % interval: 4"));
    assert!(words(&lane(&[0.9, 1.15, 0.95])).starts_with("no measurable difference"));
    assert!(lane(&[1.0]).cost_over(&base).is_none(), "one trial has no interval");
}

#[test]
fn a_server_that_is_to_do_without_segmentation_has_another_path() {
    let path = |flags: &[&str]| DownloadSeries::new("a lane", Method::Gso, flags).path_in_use();
    assert_eq!(path(&["--without", "gro"]), "gso");
    assert_eq!(path(&["--packet-size", "1452", "--without", "gso,sendmmsg"]), "mmsg");
}

#[test]
fn a_lane_without_trials_is_an_empty_cell() {
    assert_eq!(lane(&[]).cell(3, |trial| trial.server_cpu_s_per_gb), Cell::Empty);
    assert!(matches!(lane(&[1.0]).cell(3, |trial| trial.server_cpu_s_per_gb), Cell::Trials(_, 3)));
}
