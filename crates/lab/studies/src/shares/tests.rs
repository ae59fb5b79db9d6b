use super::trial::{Flow, Meeting, Outcome};
use super::{Series, plan, words};
use crate::context::Effort;
use report::model::Cell;

/// Deleted, a pair could be left out without a word, or one that the kernel cannot make be tried.
#[test]
fn each_controller_meets_each_of_the_kernels() {
    let all = plan(Effort::Full, "reno cubic bbr");
    assert_eq!(all.len(), 3 * 2 * (3 + 2), "{all:?}");
    let some = plan(Effort::Quick, "reno cubic");
    assert_eq!(some.len(), 4, "{some:?}");
    assert!(some.iter().all(|series| series.meeting.tcp == "cubic" && series.meeting.queue == 1.0));
    assert!(words::notes(&some, "reno cubic")[0].contains("no bbr"));
}

fn outcome(first: f64, second: f64, missed: u64) -> Outcome {
    Outcome { shares: [first, second], missed, worst_late_ms: 1.0 }
}

#[test]
fn the_index_is_one_for_equal_shares_and_a_half_for_one_alone() {
    assert!((outcome(0.4, 0.4, 0).jain() - 1.0).abs() < 1e-9);
    assert!((outcome(0.9, 0.0, 0).jain() - 0.5).abs() < 1e-9);
}

/// Deleted, a trial whose emulator missed frames could count, or a controller be praised by the queue where it shares best.
#[test]
fn the_least_even_queue_of_valid_trials_is_told() {
    let series = |first, queue, outcomes: Vec<Outcome>| Series {
        outcomes,
        ..Series::of(Meeting { first, tcp: "cubic", queue })
    };
    let auto = Flow::Tercel("auto");
    let all = [
        series(auto, 0.25, vec![outcome(0.6, 0.3, 0), outcome(0.6, 0.3, 0), outcome(0.9, 0.0, 7)]),
        series(auto, 1.0, vec![outcome(0.5, 0.45, 0)]),
        series(Flow::Tcp("cubic"), 0.25, vec![outcome(0.45, 0.45, 0)]),
    ];
    let shares = words::shares(&all);
    assert_eq!((shares.rows.len(), shares.rows[0].cells.len()), (2, 2));
    assert_eq!(shares.rows[0].cells[0], "60 + 30".into());
    assert_eq!(shares.rows[1].cells[1], Cell::Empty);
    assert_eq!(words::plot(&all).series[0].points.len(), 2);
    let expected = "tercel auto beside TCP CUBIC: Jain's index is 0.90 (0.90 to 0.90) over the queue where it is lowest, 0.25 products; \
                    flows of the kernel in its place: TCP CUBIC 1.00. TCP has 30 % of the link at least.";
    assert_eq!(words::findings(&all), [expected]);
    assert!(words::notes(&all, "cubic bbr")[0].starts_with("1 trials are not counted"));
}
