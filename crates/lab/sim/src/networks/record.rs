//! A cell's downloads over several seeds as one record.

use super::cell::Cell;
use super::run::{LIMIT, Trial, run};
use super::work::Work;
use recovery::congestion::Algorithm;
use serde_json::{Value, json};

/// The contestants, in the order in which they are shown.
pub const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Prague, Algorithm::Auto];

/// A controller's name.
pub const fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::NewReno => "NewReno",
        Algorithm::Cubic => "CUBIC",
        Algorithm::Bbr => "BBR",
        Algorithm::Prague => "Prague",
        Algorithm::Auto => "auto",
    }
}

/// Medians over the seeds, in milliseconds and in shares.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// [`Cell::axis`], as tables have it.
    pub axis: String,
    /// [`Cell::name`].
    pub cell: String,
    /// [`Work::name`].
    pub work: String,
    /// The controller's name.
    pub algorithm: String,
    /// Time of the whole download.
    pub time_ms: f64,
    /// The slowest seed's.
    pub worst_ms: f64,
    /// The longest time without content.
    pub stall_ms: f64,
    /// From the end of an outage until content arrived.
    pub resumed_ms: Option<f64>,
    /// Packets declared lost that were not, of those sent.
    pub needless: f64,
    /// Packets declared lost, of those sent.
    pub declared: f64,
    /// Whether nothing is lost but in queue and policer.
    pub loses_nothing: bool,
    /// Downloads that did not end within [`LIMIT`].
    pub unfinished: usize,
}

/// Runs a cell with each of `seeds`.
///
/// # Errors
/// When a connection failed, in words.
pub fn measure(cell: &Cell, work: Work, algorithm: Algorithm, seeds: &[u64]) -> Result<Record, String> {
    let trials: Result<Vec<Trial>, String> = seeds
        .iter()
        .map(|seed| {
            let problem =
                |text| format!("{}, {}, {algorithm:?}, seed {seed}: {text}", cell.name, work.name());
            run(&cell.profile, work, algorithm, *seed).map_err(problem)
        })
        .collect();
    let trials = trials?;
    let of = |figure: fn(&Trial) -> f64| median(trials.iter().map(figure).collect());
    let time = |trial: &Trial| trial.time.unwrap_or(LIMIT).as_secs_f64() * 1e3;
    let resumed: Vec<f64> =
        trials.iter().filter_map(|trial| Some(trial.resumed_after?.as_secs_f64() * 1e3)).collect();
    Ok(Record {
        axis: cell.axis.name().to_owned(),
        cell: cell.name.clone(),
        work: work.name().to_owned(),
        algorithm: name(algorithm).to_owned(),
        time_ms: of(time),
        worst_ms: rounded(trials.iter().map(time).fold(0.0, f64::max)),
        stall_ms: of(|trial| trial.stall.as_secs_f64() * 1e3),
        resumed_ms: (!resumed.is_empty()).then(|| median(resumed)),
        needless: of(Trial::needless),
        declared: of(|trial| trial.declared as f64 / trial.sent.max(1) as f64),
        loses_nothing: cell.profile.loses_nothing(),
        unfinished: trials.iter().filter(|trial| trial.time.is_none()).count(),
    })
}

/// The middle one, or the lower of the two in the middle.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    rounded(figures.get(figures.len().saturating_sub(1) / 2).copied().unwrap_or_default())
}

/// Four digits behind the point: what the file has.
fn rounded(figure: f64) -> f64 {
    (figure * 1e4).round() / 1e4
}

/// The file of the study: one record in a line, so that a change is easy to see.
pub fn to_json(revision: &str, seeds: &[u64], records: &[Record]) -> String {
    let lines: Vec<String> = records.iter().map(|record| record.to_json().to_string()).collect();
    format!(
        "{{\"revision\": {}, \"seeds\": {seeds:?}, \"records\": [\n{}\n]}}\n",
        json!(revision),
        lines.join(",\n")
    )
}

impl Record {
    fn to_json(&self) -> Value {
        json!({
            "axis": self.axis,
            "cell": self.cell,
            "work": self.work,
            "controller": self.algorithm,
            "time_ms": self.time_ms,
            "worst_ms": self.worst_ms,
            "stall_ms": self.stall_ms,
            "resumed_ms": self.resumed_ms,
            "needless": self.needless,
            "declared": self.declared,
            "loses_nothing": self.loses_nothing,
            "unfinished": self.unfinished,
        })
    }
}

/// What [`to_json`] has written: revision, seeds, records; `None` if it is anything else.
pub fn from_json(value: &Value) -> Option<(String, Vec<u64>, Vec<Record>)> {
    let seeds: Option<Vec<u64>> = value.get("seeds")?.as_array()?.iter().map(Value::as_u64).collect();
    let records: Option<Vec<Record>> = value.get("records")?.as_array()?.iter().map(record).collect();
    Some((value.get("revision")?.as_str()?.to_owned(), seeds?, records?))
}

fn record(value: &Value) -> Option<Record> {
    let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
    let number = |key: &str| value.get(key)?.as_f64();
    Some(Record {
        axis: text("axis")?,
        cell: text("cell")?,
        work: text("work")?,
        algorithm: text("controller")?,
        time_ms: number("time_ms")?,
        worst_ms: number("worst_ms")?,
        stall_ms: number("stall_ms")?,
        resumed_ms: number("resumed_ms"),
        needless: number("needless")?,
        declared: number("declared")?,
        loses_nothing: value.get("loses_nothing")?.as_bool()?,
        unfinished: usize::try_from(value.get("unfinished")?.as_u64()?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, `--again` could make a page of other figures than those that were measured.
    #[test]
    fn a_file_says_what_was_measured() {
        let cell = super::super::cells().remove(0);
        let record = measure(&cell, Work::Page, Algorithm::Bbr, &[1]).expect("a download");
        assert!(record.time_ms > 4_800.0, "600 kB at 1 Mbit/s: {record:?}");
        let outage = Record { resumed_ms: Some(3.25), unfinished: 2, ..record.clone() };
        let records = vec![record, outage];
        let text = to_json("abc", &[1, 7], &records);
        let value = serde_json::from_str(&text).expect("a file");
        assert_eq!(from_json(&value), Some(("abc".to_owned(), vec![1, 7], records)));
    }
}
