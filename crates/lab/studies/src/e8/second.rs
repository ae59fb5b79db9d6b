//! Second visits: what a sender has learned of a path on a client's first visit, and what the next one gains by it.

use report::model::{Cell, Table};

use super::lane::{Attempt, CellResult, Lane, Outcome, SecondVisit};
use super::sender::Sender;
use super::words::{AUTO, auto_stands, by_default, matrix, standings as stand};

/// The second visits as cells of their own, named so: those cells that have any.
pub(super) fn visits(results: &[CellResult]) -> Vec<CellResult> {
    let cells = results.iter().map(|cell| CellResult {
        name: format!("{}, second visit", cell.name),
        lanes: cell.lanes.iter().map(lane).collect(),
    });
    cells.filter(|cell| cell.lanes.iter().any(|lane| !lane.attempts.is_empty())).collect()
}

fn lane(first: &Lane) -> Lane {
    let attempt = |(attempt, second): (&Attempt, &SecondVisit)| Attempt {
        seed: attempt.seed,
        seconds: second.seconds,
        fault: second.fault.clone(),
        missed: second.missed,
        worst_late_ms: second.worst_late_ms,
        ..Attempt::default()
    };
    let attempts = first.attempts.iter().filter_map(|attempt| Some((attempt, attempt.second.as_ref()?)));
    Lane { attempts: attempts.map(attempt).collect(), ..Lane::new(&first.sender) }
}

/// Times and their ratios to the best.
pub(super) fn table(senders: &[Sender], again: &[CellResult]) -> Table {
    let title = "Second visits: time of the download, s / over the best sender's of the cell";
    matrix((title, "cell; download"), senders, again, |cell, sender| {
        match (cell.outcome(sender), cell.ratio(sender, by_default)) {
            (Outcome::Unknown, _) => Cell::Empty,
            (Outcome::Seconds(seconds), Some(ratio)) => format!("{seconds:.2}/{ratio:.2}").into(),
            (Outcome::NotThere, _) | (_, None) => "not there".into(),
        }
    })
}

/// How the senders stand in second visits, and what these take of the time of the first ones. No queue is measured in them.
pub(super) fn standings(senders: &[Sender], results: &[CellResult], again: &[CellResult]) -> Table {
    let mut table = stand("How the senders stand in second visits", senders, again);
    let first_of_the_queue = table.columns.len() - 2;
    table.columns.truncate(first_of_the_queue);
    table.columns.push("over the first visits, geometric mean".to_owned());
    for row in &mut table.rows {
        row.cells.truncate(first_of_the_queue);
        row.cells.push(over_first(results, &row.name).map_or(Cell::Empty, |gain| Cell::Number(gain, 2)));
    }
    if again.is_empty() {
        table.rows.clear();
    }
    table
}

/// The sentences about auto's second visits; nothing if there are none.
pub(super) fn findings(senders: &[Sender], results: &[CellResult], again: &[CellResult]) -> Vec<String> {
    let Some(gain) = over_first(results, AUTO) else { return Vec::new() };
    let gain = format!(
        "Second visits by {AUTO} take {gain:.2} of the time of the first ones, on the geometric mean."
    );
    let is_of_a_cell = |sentence: &String| again.iter().any(|cell| sentence.starts_with(&cell.name));
    let named = auto_stands(senders, again).into_iter().map(|sentence| {
        // A cell's name says it.
        if is_of_a_cell(&sentence) { sentence } else { format!("Second visits: {sentence}") }
    });
    std::iter::once(gain).chain(named).collect()
}

/// The geometric mean of a sender's second visits over its first ones, where both were there and valid.
fn over_first(results: &[CellResult], sender: &str) -> Option<f64> {
    let attempts = results.iter().filter_map(|cell| cell.lane(sender)).flat_map(|lane| &lane.attempts);
    let ratio = |attempt: &Attempt| {
        let second = attempt.second.as_ref().filter(|second| attempt.missed + second.missed == 0)?;
        Some((second.seconds? / attempt.seconds?).ln())
    };
    let logs: Vec<f64> = attempts.filter_map(ratio).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}
