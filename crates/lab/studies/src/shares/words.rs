//! What the study says: tables, a plot, findings and notes.

use std::io;

use report::model::{Axis, Cell, Plot, PlotKind, Point, Row, Scale, Table};

use super::trial::{Flow, LATER, MEASURED, Meeting, Outcome, SETTLED};
use super::{AT_ONCE, OURS, QUEUES, Series, THEIRS};

/// A trial, as it is told when it is over.
pub(super) fn line(meeting: &Meeting, outcome: &io::Result<Outcome>) -> String {
    let what = match outcome {
        Ok(outcome) => {
            let [first, second] = outcome.shares.map(|share| share * 100.0);
            format!("{first:.0} + {second:.0} %, {:.2}", outcome.jain())
        }
        Err(problem) => format!("failed: {problem}"),
    };
    format!("{:25} queue {:4}: {what}", meeting.pair(), meeting.queue)
}

pub(super) fn method(all: &[Series], rounds: usize) -> Vec<String> {
    let queues: Vec<String> = queues(all).iter().map(f64::to_string).collect();
    vec![
        format!(
            "Two downloads from the same end of a link of 20 Mbit/s and 40 ms, with a queue of {} bandwidth-delay products: one by tercel, one by \
             nginx over the kernel's TCP (HTTP/2), which begins {} s later. Real processes in network namespaces that an emulated link joins.",
            queues.join(", "),
            LATER.as_secs_f64()
        ),
        format!(
            "Shares are what the clients' files grew in {} s, after {} s, of what the link carries, frames and all. Jain's index says how evenly: 1 is \
             evenly, 0.5 is one alone.",
            MEASURED.as_secs(),
            SETTLED.as_secs()
        ),
        format!(
            "{rounds} rounds, {AT_ONCE} trials at a time, each on a link of its own. Two flows of the kernel's TCP are the baseline: each has the controller \
             of its namespace when it was accepted."
        ),
        "Intervals are 95 % intervals of the mean, by Student.".to_owned(),
    ]
}

/// The queues that were measured.
fn queues(all: &[Series]) -> Vec<f64> {
    QUEUES.into_iter().filter(|queue| all.iter().any(|series| series.meeting.queue == *queue)).collect()
}

/// Pairs in the order of the plan.
fn pairs(all: &[Series]) -> Vec<String> {
    let mut pairs: Vec<String> = all.iter().map(|series| series.meeting.pair()).collect();
    pairs.dedup();
    pairs
}

fn find<'a>(all: &'a [Series], pair: &str, queue: f64) -> Option<&'a Series> {
    all.iter().find(|series| series.meeting.queue == queue && series.meeting.pair() == pair)
}

fn table(title: &str, all: &[Series], cell: impl Fn(&Series) -> Option<Cell>) -> Table {
    let queues = queues(all);
    let cells = |pair: &str| {
        queues.iter().map(|queue| find(all, pair, *queue).and_then(&cell).unwrap_or_default()).collect()
    };
    let row = |name: String| Row { cells: cells(&name), name, is_published: false };
    Table {
        title: title.to_owned(),
        corner: "first + second".to_owned(),
        columns: queues.iter().map(|queue| format!("queue of {queue} products")).collect(),
        rows: pairs(all).into_iter().map(row).collect(),
    }
}

/// Medians of both shares.
pub(super) fn shares(all: &[Series]) -> Table {
    table("Shares of the link in per cent, at the median: first + second", all, |series| {
        let [first, second] = [0, 1].map(|flow| series.summary(move |outcome| outcome.shares[flow] * 100.0));
        Some(Cell::Text(format!("{:.0} + {:.0}", first?.median, second?.median)))
    })
}

pub(super) fn indices(all: &[Series]) -> Table {
    table("Jain's index of both shares", all, |series| Some(Cell::Trials(series.summary(Outcome::jain)?, 2)))
}

/// Jain's index of each pair, a bar for each queue.
pub(super) fn plot(all: &[Series]) -> Plot {
    let pairs = pairs(all);
    let point = |(place, pair): (usize, &String), queue: f64| {
        let jain = find(all, pair, queue)?.summary(Outcome::jain)?;
        let interval = jain.interval().map(|[low, high]| [low, high.min(1.0)]);
        Some(Point { x: place as f64, y: jain.mean, interval })
    };
    let series = queues(all).into_iter().map(|queue| report::model::Series {
        name: format!("queue of {queue} products"),
        points: pairs.iter().enumerate().filter_map(|pair| point(pair, queue)).collect(),
        is_published: false,
    });
    Plot {
        title: "Jain's index of both shares, mean and 95 % interval".to_owned(),
        series: series.collect(),
        kind: PlotKind::Bars(pairs.clone()),
        x: Axis::default(),
        y: Axis { label: "Jain's index".to_owned(), scale: Scale::Linear },
    }
}

/// For each controller of tercel's beside each of the kernel's: its least even queue, and what the kernel's own flows are at there.
pub(super) fn findings(all: &[Series]) -> Vec<String> {
    let meetings = THEIRS.into_iter().flat_map(|tcp| OURS.map(|ours| (Flow::Tercel(ours), tcp)));
    meetings.filter_map(|(ours, tcp)| finding(all, ours, tcp)).collect()
}

fn finding(all: &[Series], ours: Flow, tcp: &str) -> Option<String> {
    let those = || all.iter().filter(|series| series.meeting.first == ours && series.meeting.tcp == tcp);
    let jain = |series: &Series| series.summary(Outcome::jain);
    let (worst, figures) = those()
        .filter_map(|series| Some((series, jain(series)?)))
        .min_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean))?;
    let least = those()
        .filter_map(|series| series.summary(|outcome| outcome.shares[1]))
        .map(|share| share.median)
        .min_by(f64::total_cmp)?;
    let interval = figures
        .interval()
        .map_or_else(String::new, |[low, high]| format!(" ({low:.2} to {:.2})", high.min(1.0)));
    let queue = worst.meeting.queue;
    let baseline: Vec<String> = THEIRS
        .into_iter()
        .filter_map(|first| {
            let meeting = Meeting { first: Flow::Tcp(first), ..worst.meeting };
            let found = all.iter().find(|series| series.meeting == meeting)?;
            Some(format!("{} {:.2}", Flow::Tcp(first).name(), jain(found)?.mean))
        })
        .collect();
    let baseline = match baseline.as_slice() {
        [] => String::new(),
        known => format!("; flows of the kernel in its place: {}", known.join(", ")),
    };
    Some(format!(
        "{} beside {}: Jain's index is {:.2}{interval} over the queue where it is lowest, {queue} products{baseline}. TCP has {:.0} % of the link at least.",
        ours.name(),
        Flow::Tcp(worst.meeting.tcp).name(),
        figures.mean,
        least * 100.0
    ))
}

pub(super) fn notes(all: &[Series], kernel: &str) -> Vec<String> {
    let mut notes: Vec<String> = THEIRS
        .into_iter()
        .filter(|name| !kernel.split_whitespace().any(|known| known == *name))
        .map(|name| format!("The kernel has no {name} for TCP."))
        .collect();
    let outcomes = || all.iter().flat_map(|series| &series.outcomes);
    let missed = outcomes().filter(|outcome| outcome.missed > 0).count();
    if missed > 0 {
        notes.push(format!("{missed} trials are not counted: the emulator has missed frames."));
    }
    if let Some(late) = outcomes().map(|outcome| outcome.worst_late_ms).max_by(f64::total_cmp) {
        notes.push(format!("The emulator's latest frame of all trials was {late:.1} ms late."));
    }
    for series in all {
        let (pair, queue) = (series.meeting.pair(), series.meeting.queue);
        notes.extend(series.problems.iter().map(|problem| format!("{pair}, queue {queue}: {problem}")));
    }
    notes
}
