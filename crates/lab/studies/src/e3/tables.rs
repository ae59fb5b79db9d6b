//! The tables of the study.

use report::model::{Cell, Row, Table};
use report::stats::{Ratio, Summary};

use super::Cores;
use super::series::{LAST, VariantTrials};
use super::trial::PERCENTILES;

fn row(name: &str, cells: Vec<Cell>) -> Row {
    Row { name: name.to_owned(), is_published: false, cells }
}

fn published(cells: Vec<Cell>) -> Row {
    Row { name: "published: MsQuic, xdp over udp".to_owned(), is_published: true, cells }
}

fn figure(value: Option<f64>, digits: u8) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::Number(value, digits))
}

fn columns(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// (a): one request outstanding.
pub(super) fn single(lanes: &[VariantTrials], baseline: &VariantTrials) -> Table {
    let mut heads = columns(&["requests/s", "over udp, send per packet"]);
    heads.extend(PERCENTILES.map(|(name, _)| format!("{name}, µs")));
    let rows = lanes.iter().map(|lane| {
        let rates = lane.rates(1);
        let over = if lane.variant == baseline.variant {
            None
        } else {
            Ratio::by_rounds(&rates, &baseline.rates(1))
        };
        let rate = if rates.is_empty() { Cell::Empty } else { Cell::Trials(Summary::of(rates), 0) };
        let mut cells = vec![rate, over.into()];
        cells.extend((0..PERCENTILES.len()).map(|which| figure(lane.percentile(1, which), 1)));
        row(lane.variant.name, cells)
    });
    let mut rows: Vec<Row> = rows.collect();
    let mut cells = vec![Cell::Empty, "more than 2".into()];
    cells.extend(PERCENTILES.map(|_| Cell::from("lower")));
    rows.push(published(cells));
    let title = "One connection, one request outstanding".to_owned();
    Table { title, corner: "path".to_owned(), columns: heads, rows }
}

/// What an exchange costs where one is outstanding, and what of that is the protocol's.
pub(super) fn costs(lanes: &[VariantTrials]) -> Table {
    let rows = lanes.iter().map(|lane| {
        let (ours, bare) = (lane.percentile(1, 0), lane.bare_percentile(0));
        let mut cells = vec![figure(ours, 1), figure(bare, 1)];
        cells.push(figure(ours.zip(bare).map(|(ours, bare)| ours - bare), 1));
        for side in [0, 1] {
            cells.push(figure(lane.mean(1, |trial| Some(trial.cpu_us[side])), 1));
            cells.push(figure(lane.bare_mean(|trial| trial.cpu_us[side]), 1));
        }
        cells.extend([0, 1].map(|way| figure(lane.mean(1, |trial| Some(trial.datagrams[way])), 2)));
        row(lane.variant.name, cells)
    });
    Table {
        title: "What one exchange takes, and the same in bare datagrams".to_owned(),
        corner: "path".to_owned(),
        columns: columns(&[
            "p50, µs",
            "bare p50, µs",
            "difference, µs",
            "server CPU, µs",
            "bare, µs",
            "client CPU, µs",
            "bare, µs",
            "datagrams there",
            "back",
        ]),
        rows: rows.collect(),
    }
}

/// How far the tail is from the median where one is outstanding, and how much of that the machine does to bare datagrams too.
pub(super) fn tails(lanes: &[VariantTrials]) -> Table {
    let rows = lanes.iter().map(|lane| {
        let [ours, bare] = lane.tails();
        let cells = [
            figure(lane.percentile(1, 0), 1),
            figure(lane.percentile(1, LAST), 1),
            figure(ours, 1),
            figure(lane.bare_percentile(0), 1),
            figure(lane.bare_percentile(LAST), 1),
            figure(bare, 1),
        ];
        row(lane.variant.name, cells.to_vec())
    });
    Table {
        title: "The tail of the latency with one outstanding: how many times the median p99.99 is".to_owned(),
        corner: "path".to_owned(),
        columns: columns(&["p50, µs", "p99.99, µs", "times", "bare p50, µs", "bare p99.99, µs", "times"]),
        rows: rows.collect(),
    }
}

/// (b): four outstanding over one.
pub(super) fn four(lanes: &[VariantTrials]) -> Table {
    let mut heads = columns(&["requests/s"]);
    heads.extend(PERCENTILES.map(|(name, _)| name.to_owned()));
    let ratio = |lane: &VariantTrials, which| Some(lane.percentile(4, which)? / lane.percentile(1, which)?);
    let rows = lanes.iter().map(|lane| {
        let mut cells = vec![Ratio::by_rounds(&lane.rates(4), &lane.rates(1)).into()];
        cells.extend((0..PERCENTILES.len()).map(|which| figure(ratio(lane, which), 2)));
        row(lane.variant.name, cells)
    });
    let mut rows: Vec<Row> = rows.collect();
    let mut cells = vec!["more than 2".into()];
    cells.extend(PERCENTILES.map(|_| Cell::from("more than 2")));
    rows.push(Row { name: "published: MsQuic over xdp".to_owned(), is_published: true, cells });
    Table {
        title: "Four outstanding over one: how many times".to_owned(),
        corner: "path".to_owned(),
        columns: heads,
        rows,
    }
}

/// (c) and (d): the rate at each number of outstanding requests.
pub(super) fn sweep(title: &str, lanes: &[VariantTrials], points: &[usize]) -> Table {
    let mut heads: Vec<String> =
        points.iter().map(|outstanding| format!("{outstanding} outstanding")).collect();
    heads.extend(columns(&["peak", "95 % of it at"]));
    let rows = lanes.iter().map(|lane| {
        let mut cells: Vec<Cell> =
            points.iter().map(|outstanding| figure(lane.rate(*outstanding), 0)).collect();
        let peak = lane.peak();
        cells.push(figure(peak.map(|(rate, _)| rate), 0));
        cells.push(figure(peak.map(|(_, at)| at as f64), 0));
        row(lane.variant.name, cells)
    });
    let mut rows: Vec<Row> = rows.collect();
    let mut cells = vec![Cell::Empty; points.len() + 1];
    cells.push("about 20".into());
    rows.push(published(cells));
    Table { title: title.to_owned(), corner: "path".to_owned(), columns: heads, rows }
}

/// A percentile of the latency at each number of outstanding requests.
pub(super) fn latencies(lanes: &[VariantTrials], points: &[usize], which: usize) -> Table {
    let name = PERCENTILES.get(which).map_or("", |(name, _)| name);
    let rows = lanes.iter().map(|lane| {
        let cells =
            points.iter().map(|outstanding| figure(lane.percentile(*outstanding, which), 1)).collect();
        row(lane.variant.name, cells)
    });
    Table {
        title: format!("Latency at {name}, µs"),
        corner: "path".to_owned(),
        columns: points.iter().map(|outstanding| format!("{outstanding} outstanding")).collect(),
        rows: rows.collect(),
    }
}

/// (d): the peaks, two connections on two workers over one on one.
/// How many times is said only where there are cores enough for it to mean something.
pub(super) fn paired(single: &[VariantTrials], paired: &[VariantTrials], cores: &Cores) -> Table {
    let rows = paired.iter().filter_map(|two| {
        let one = single.iter().find(|one| one.variant == two.variant)?;
        let ((peak_two, at_two), (peak_one, at_one)) = (two.peak()?, one.peak()?);
        let share =
            |lane: &VariantTrials, at, side: usize| lane.mean(at, |trial| Some(trial.busiest?[side] * 100.0));
        let waited = two.mean(at_two, |trial| Some(trial.waited[0].max(trial.waited[1]) * 100.0));
        Some(row(
            two.variant.name,
            vec![
                Cell::Number(peak_one, 0),
                Cell::Number(peak_two, 0),
                figure(cores.are_enough.then_some(peak_two / peak_one), 2),
                figure(one.percentile(at_one, 0), 1),
                figure(two.percentile(at_two, 0), 1),
                figure(share(two, at_two, 0), 0),
                figure(share(two, at_two, 1), 0),
                figure(waited, 0),
            ],
        ))
    });
    let mut rows: Vec<Row> = rows.collect();
    let mut cells = vec![Cell::Empty, Cell::Empty, "almost 2".into(), Cell::Empty, "lower".into()];
    cells.resize(8, Cell::Empty);
    rows.push(published(cells));
    Table {
        title: "The peak, two connections on two workers beside one on one".to_owned(),
        corner: "path".to_owned(),
        columns: columns(&[
            "one: peak requests/s",
            "two: peak requests/s",
            "times",
            "one: p50 there, µs",
            "two: p50 there, µs",
            "busiest server thread, % of a core",
            "busiest client thread, % of a core",
            "waited for a core, % of the time",
        ]),
        rows,
    }
}
