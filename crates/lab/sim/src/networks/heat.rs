//! The study as one heat map: a row for each link, a column for each controller and download.

use super::page::{best, contests};
use super::record::{ALGORITHMS, Record, name};
use super::work::Work;
use report::model::{Plot, PlotKind, Point, Series};

/// How many times the best fixed controller's time each download takes, by colour.
pub fn heat(records: &[Record]) -> Plot {
    let row = |record: &Record| format!("{}: {}", record.axis, record.cell);
    let mut rows: Vec<String> = records.iter().map(row).collect();
    rows.dedup();
    let contests = contests(records);
    let column = |algorithm: &'static str, work: Work| {
        let point = |contest: &Vec<&Record>| {
            let record = contest.iter().find(|record| record.algorithm == algorithm)?;
            let place = rows.iter().position(|name| *name == row(record))?;
            let is_ours = record.work == work.name();
            is_ours.then(|| Point { x: place as f64, y: record.time_ms / best(contest), interval: None })
        };
        let points = contests.iter().filter_map(point).collect();
        Series { name: format!("{algorithm}, {}", work.name()), points, ..Series::default() }
    };
    let columns =
        ALGORITHMS.iter().flat_map(|algorithm| Work::ALL.map(|work| column(name(*algorithm), work)));
    Plot {
        title: "Time over the best fixed controller's".to_owned(),
        series: columns.collect(),
        kind: PlotKind::Heat(rows.clone()),
        ..Plot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a figure could stand in the row of another link, or in the column of another controller.
    #[test]
    fn each_figure_has_its_row_and_its_column() {
        let record = |cell: &str, algorithm: &str, time_ms: f64| Record {
            axis: "Loss".to_owned(),
            cell: cell.to_owned(),
            work: "1 MB".to_owned(),
            algorithm: algorithm.to_owned(),
            time_ms,
            worst_ms: time_ms,
            stall_ms: 0.0,
            resumed_ms: None,
            needless: 0.0,
            declared: 0.0,
            loses_nothing: true,
            unfinished: 0,
        };
        let records = [
            record("1 %", "CUBIC", 300.0),
            record("1 %", "BBR", 100.0),
            record("3 %", "CUBIC", 500.0),
            record("3 %", "auto", 600.0),
        ];
        let plot = heat(&records);
        assert_eq!(plot.kind, PlotKind::Heat(vec!["Loss: 1 %".to_owned(), "Loss: 3 %".to_owned()]));
        let of = |name: &str| {
            let column = plot.series.iter().find(|series| series.name == name).unwrap();
            column.points.iter().map(|point| (point.x, point.y)).collect::<Vec<_>>()
        };
        assert_eq!(of("CUBIC, 1 MB"), [(0.0, 3.0), (1.0, 1.0)]);
        assert_eq!(of("BBR, 1 MB"), [(0.0, 1.0)]);
        assert_eq!(of("auto, 1 MB"), [(1.0, 1.2)]);
        assert!(of("auto, page").is_empty());
        assert_eq!(plot.series.len(), ALGORITHMS.len() * Work::ALL.len());
    }
}
