//! A run for tests: one of everything, with texts that try to be markup.

use crate::model::{
    Axis, Block, Cell, Drawing, Plot, PlotGrid, PlotKind, Point, Row, Run, Scale, Series, Study, Table,
};
use crate::stats::{Ratio, Summary};

/// What no page may contain as it is.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>\"'|*&";

/// A run with one study that has everything.
pub(crate) fn run() -> Run {
    Run {
        began: "2026-11-21T18:30:05Z".to_owned(),
        seconds: 412.0,
        is_quick: true,
        was_interrupted: false,
        environment: vec![
            ("Kernel".to_owned(), "Linux 6.18".to_owned()),
            ("CPU".to_owned(), HOSTILE.to_owned()),
        ],
        studies: vec![
            study(),
            Study { id: "e2".to_owned(), problem: Some("killed".to_owned()), ..Study::default() },
        ],
    }
}

fn study() -> Study {
    Study {
        id: "e1".to_owned(),
        title: format!("Paths {HOSTILE}"),
        question: format!("Which is faster? {HOSTILE}"),
        method: vec![format!("Two processes. {HOSTILE}")],
        findings: vec![format!("gso is 4.6 times as fast. {HOSTILE}")],
        blocks: vec![
            Block::Table(table()),
            Block::Plot(plot()),
            Block::Drawing(drawing()),
            Block::Grid(grid()),
        ],
        notes: vec![format!("One core was busy. {HOSTILE}")],
        problem: None,
        seconds: 312.0,
        raw: serde_json::json!({"trials": [1, 2]}),
    }
}

pub(crate) fn table() -> Table {
    let plain = [131.2, 129.9, 133.0];
    let gso = [612.0, 598.0, 620.0];
    let same = [131.0, 130.0, 132.5];
    let row = |name: &str, trials: [f64; 3], path: &str| Row {
        name: name.to_owned(),
        is_published: false,
        cells: vec![
            Cell::Trials(Summary::of(trials), 1),
            Ratio::by_rounds(&trials, &plain).into(),
            Cell::from(path),
        ],
    };
    Table {
        title: format!("Goodput {HOSTILE}"),
        corner: "server's path".to_owned(),
        columns: ["MB/s".to_owned(), "times plain".to_owned(), format!("path {HOSTILE}")].to_vec(),
        rows: vec![
            row("plain", plain, "sendmsg"),
            row("mmsg", same, "sendmmsg"),
            row(HOSTILE, gso, HOSTILE),
            Row {
                name: "LSQUIC".to_owned(),
                is_published: true,
                cells: vec![Cell::Number(102_077_709.0, 0)],
            },
        ],
    }
}

fn plot() -> Plot {
    let point = |x, y| Point { x, y, interval: None };
    let series = |name: &str, is_published| Series {
        name: name.to_owned(),
        is_published,
        points: vec![point(0.0, 131.0), point(1.0, 612.0), point(1.0, f64::NAN)],
    };
    Plot {
        title: format!("Goodput {HOSTILE}"),
        kind: PlotKind::Bars(vec!["plain".to_owned(), HOSTILE.to_owned()]),
        x: Axis::default(),
        y: Axis { label: "MB/s".to_owned(), scale: Scale::Linear },
        series: vec![series(HOSTILE, false), series("LSQUIC", true)],
    }
}

/// One for each of two contestants, with a line for each of two rounds.
fn grid() -> PlotGrid {
    let line = |top: f64| Series {
        points: [0.0, 0.5, 1.0].map(|x| Point { x, y: top * x, interval: None }).to_vec(),
        ..Series::default()
    };
    let plot = |name: &str, top: f64| Plot {
        title: name.to_owned(),
        x: Axis { label: "s".to_owned(), ..Axis::default() },
        y: Axis { label: "MB/s".to_owned(), ..Axis::default() },
        series: vec![line(top), line(top / 2.0)],
        ..Plot::default()
    };
    PlotGrid {
        title: format!("In the course of trials {HOSTILE}"),
        plots: vec![plot("plain", 131.0), plot(HOSTILE, 4_000.0)],
    }
}

fn drawing() -> Drawing {
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\" height=\"310\"><script>zoom()</script></svg>";
    Drawing { title: format!("Flame graph {HOSTILE}"), svg: svg.to_owned() }
}
