//! A summary as crate `report` shows it: tables and plots.

use crate::records::Trace;
use crate::summary::Summary;
use report::model::{Axis, Block, Cell, Plot, PlotKind, Point, Row, Scale, Series, Study, Table};

/// Points of a line, and marks of a kind, at most: a picture shows no more.
const MOST_POINTS: usize = 240;

/// A trace as a study of its own, by the name of its file.
pub fn study(name: &str, trace: &Trace, summary: &Summary) -> Study {
    let mut blocks = vec![Block::Table(figures(summary))];
    if !summary.requests.is_empty() {
        blocks.push(Block::Table(requests(summary)));
    }
    if !summary.stalls.is_empty() {
        blocks.push(Block::Table(stalls(summary)));
    }
    blocks.extend(plots(summary).into_iter().map(Block::Plot));
    Study {
        id: "qlog".to_owned(),
        title: format!("{name}: {} {}", trace.title, trace.vantage),
        question: "What the connection did, by its trace.".to_owned(),
        findings: findings(trace, summary),
        blocks,
        notes: trace.notes.clone(),
        seconds: summary.duration_ms / 1e3,
        raw: serde_json::to_value(summary).unwrap_or_default(),
        ..Study::default()
    }
}

fn findings(trace: &Trace, summary: &Summary) -> Vec<String> {
    let Summary { addresses: [local, peer], version, alpn, handshake_ms, end, .. } = summary;
    let unknown = || "unknown".to_owned();
    let began = trace.began.as_ref().map(|began| format!("It began at {began}."));
    let ends = format!(
        "{} is {}, its peer {}.",
        summary.vantage,
        local.clone().unwrap_or_else(unknown),
        peer.clone().unwrap_or_else(unknown)
    );
    let handshake = handshake_ms.map(|ms| format!("The handshake took {ms:.1} ms."));
    let spoken = format!(
        "QUIC version {}, application protocol {}.",
        version.clone().unwrap_or_else(unknown),
        alpn.clone().unwrap_or_else(unknown)
    );
    let end = match end {
        Some(end) => format!("It ended after {:.1} ms: {end}.", summary.duration_ms),
        None => {
            format!("The trace stops after {:.1} ms without an end of the connection.", summary.duration_ms)
        }
    };
    [began, Some(ends), Some(spoken), handshake, Some(end)].into_iter().flatten().collect()
}

fn figures(summary: &Summary) -> Table {
    let row = |name: &str, cells: [Cell; 2]| Row {
        name: name.to_owned(),
        is_published: false,
        cells: cells.into(),
    };
    let count = |value: u64| Cell::Number(value as f64, 0);
    let both = |values: [u64; 2]| values.map(count);
    let [lowest, median, high] = summary
        .rtt_ms
        .map_or([Cell::Empty, Cell::Empty, Cell::Empty], |rtt| rtt.map(|ms| Cell::Number(ms, 2)));
    Table {
        title: "The connection".to_owned(),
        corner: "".to_owned(),
        columns: vec!["sent".to_owned(), "received".to_owned()],
        rows: vec![
            row("packets", both(summary.packets)),
            row("bytes", both(summary.bytes)),
            row("content of streams, bytes", both(summary.stream_bytes)),
            row("packets lost", [count(summary.lost), Cell::Empty]),
            row("of them acknowledged later", [count(summary.spurious), Cell::Empty]),
            row("packets dropped", [Cell::Empty, count(summary.dropped)]),
            row("lowest RTT, ms", [lowest, Cell::Empty]),
            row("median RTT, ms", [median, Cell::Empty]),
            row("99 % of RTTs below, ms", [high, Cell::Empty]),
            row("largest window, bytes", [summary.largest_window.map_or(Cell::Empty, count), Cell::Empty]),
        ],
    }
}

/// Requests that a table shows.
const SHOWN_REQUESTS: usize = 50;

fn requests(summary: &Summary) -> Table {
    let row = |request: &crate::Request| Row {
        name: request.stream.to_string(),
        is_published: false,
        cells: vec![
            Cell::Text(request.method.clone()),
            Cell::Text(request.path.clone()),
            request.status.map_or(Cell::Empty, |status| Cell::Number(status.into(), 0)),
            Cell::Number(request.began_ms, 1),
            request.duration_ms.map_or(Cell::Empty, |ms| Cell::Number(ms, 1)),
        ],
    };
    let rows: Vec<Row> = summary.requests.iter().take(SHOWN_REQUESTS).map(row).collect();
    let title = match summary.request_count {
        count if count > rows.len() as u64 => format!("The first {} of {count} requests", rows.len()),
        _ => "Requests".to_owned(),
    };
    let columns = ["method", "path", "status", "began, ms", "took, ms"].map(str::to_owned).into();
    Table { title, corner: "stream".to_owned(), columns, rows }
}

fn stalls(summary: &Summary) -> Table {
    let row = |stall: &crate::Stall| Row {
        name: format!("at {:.0} ms", stall.began_ms),
        is_published: false,
        cells: vec![Cell::Number(stall.lasted_ms, 1), Cell::Text(stall.ended_by.clone())],
    };
    Table {
        title: "The longest times without progress".to_owned(),
        corner: "began".to_owned(),
        columns: vec!["lasted, ms".to_owned(), "ended by".to_owned()],
        rows: summary.stalls.iter().map(row).collect(),
    }
}

fn plots(summary: &Summary) -> Vec<Plot> {
    let curves = &summary.curves;
    let [sent, received] = &curves.content;
    let content = [line("sent", sent), line("received", received), marks("declared lost", &curves.lost)];
    let window = [
        line("congestion window", &curves.window),
        line("bytes in flight", &curves.in_flight),
        line("slow start threshold", &curves.threshold),
    ];
    let rtt = [line("latest", &curves.rtt), line("smoothed", &curves.smoothed)];
    [
        plot(sequence_title(summary), "packet number", 1.0, &sequence(summary)),
        plot("Content of streams over time", "MB, added up", 1e-6, &content),
        plot("Congestion control", "kB", 1e-3, &window),
        plot("Round-trip time", "ms", 1.0, &rtt),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether the connection carried more from this end than to it.
fn is_sender(summary: &Summary) -> bool {
    summary.bytes[0] >= summary.bytes[1]
}

fn sequence_title(summary: &Summary) -> &'static str {
    if is_sender(summary) { "Sequence of sent packets" } else { "Sequence of received packets" }
}

/// The packets of the direction that carries more.
fn sequence(summary: &Summary) -> Vec<Drawn<'_>> {
    let sequence = &summary.sequence;
    if is_sender(summary) {
        vec![
            line("sent", &sequence.sent),
            line("largest acknowledged", &sequence.acknowledged),
            marks("declared lost", &sequence.lost),
            marks("with content sent again", &sequence.sent_again),
        ]
    } else {
        vec![
            line("received in order", &sequence.received),
            marks("behind a larger number", &sequence.late),
            marks("with content received before", &sequence.received_again),
        ]
    }
}

/// Points that belong together, by their name.
struct Drawn<'a> {
    name: &'static str,
    is_line: bool,
    points: &'a [(f64, f64)],
}

/// Figures over time.
fn line<'a>(name: &'static str, points: &'a [(f64, f64)]) -> Drawn<'a> {
    Drawn { name, is_line: true, points }
}

/// Events.
fn marks<'a>(name: &'static str, points: &'a [(f64, f64)]) -> Drawn<'a> {
    Drawn { name, is_line: false, points }
}

/// `None` without figures.
fn plot(title: &str, unit: &str, scale: f64, drawn: &[Drawn<'_>]) -> Option<Plot> {
    let drawn = || drawn.iter().filter(|drawn| !drawn.points.is_empty());
    let series: Vec<Series> = drawn()
        .map(|drawn| Series {
            name: drawn.name.to_owned(),
            is_published: false,
            points: thinned(drawn.points)
                .map(|(time, value)| Point { x: time / 1e3, y: value * scale, interval: None })
                .collect(),
        })
        .collect();
    let events: Vec<String> =
        drawn().filter(|drawn| !drawn.is_line).map(|drawn| drawn.name.to_owned()).collect();
    (!series.is_empty()).then(|| Plot {
        title: title.to_owned(),
        kind: if events.is_empty() { PlotKind::Lines } else { PlotKind::LinesAndMarks(events) },
        x: Axis { label: "seconds".to_owned(), scale: Scale::Linear },
        y: Axis { label: unit.to_owned(), scale: Scale::Linear },
        series,
    })
}

/// As many of the points as a picture can show, the last one among them.
fn thinned(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    let step = points.len().div_ceil(MOST_POINTS).max(1);
    let last = points.len().saturating_sub(1);
    points
        .iter()
        .enumerate()
        .filter(move |(index, _)| index % step == 0 || *index == last)
        .map(|(_, point)| *point)
}
