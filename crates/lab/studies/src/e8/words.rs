//! The study's method, tables, plot and sentences.

use std::time::Duration;

use report::model::{Axis, Cell, NEVER, Plot, PlotKind, Point, Row, Series, Table};
use sim::networks::beside::{APART, COUNT, SMALL};

use super::answers::Answers;
use super::lane::{Attempt, CellResult, Lane, NEAR, Outcome, Standing};
use super::plan::{LIMIT, Plan};
use super::sender::{Sender, TEN};
use super::simulated::{AGREES, Compared};

/// The sender that chooses by itself.
pub(super) const AUTO: &str = "tercel auto";

/// What is said of an attempt while the study runs.
pub(super) fn line(attempt: &Attempt, limit: Duration) -> String {
    let took = |seconds: Option<f64>, fault: &Option<String>| match (seconds, fault) {
        (Some(seconds), _) => format!("{seconds:8.3} s"),
        (None, Some(fault)) => format!("failed: {fault}"),
        (None, None) => format!("not there after {:.0} s", limit.as_secs_f64()),
    };
    let mut line = took(attempt.seconds, &attempt.fault);
    line.push_str(&format!("; {:.1} ms in the queue", attempt.queue.mean_ms));
    if let Some(requests) = &attempt.requests {
        line.push_str(&format!("; requests {} and {}", latency(&requests.same), latency(&requests.other)));
    }
    if let Some(second) = &attempt.second {
        line.push_str(&format!("; again {}", took(second.seconds, &second.fault).trim_start()));
    }
    let missed = attempt.missed + attempt.second.as_ref().map_or(0, |second| second.missed);
    if missed > 0 {
        line.push_str(&format!("; the emulator missed {missed} frames"));
    }
    line
}

pub(super) fn method(plan: &Plan) -> Vec<String> {
    vec![
        format!(
            "{} cells of the simulator's study (docs/networks), one download in each: a page (30 resources, 600 kB), 1, 10 or 100 MB over a new \
             connection. Medians over rounds with the seeds {:?}; all senders of a round meet the same seed; each cell begins \
             with another sender, every other round has the opposite order.",
            plan.cells.len(),
            plan.seeds
        ),
        "Server, link emulator and client are real processes and threads in network namespaces made for the download: neither a server nor the \
         kernel's TCP knows the path of a first visit. Several downloads run at a time, each on a link of its own: two of a fast cell that loses nothing, \
         five of another, six with requests beside; of 100 MB five at 100 Mbit/s, one at 500, or two where packets are lost."
            .to_owned(),
        "The link is the simulator's model (docs/networks says what strikes which direction), with three differences: rate and queue count whole \
         frames, lost datagrams take their time on the line, and an outage is dated from the first packet of each direction. Trains of UDP and \
         segments of TCP are cut before the link, so that each packet has a fate of its own."
            .to_owned(),
        "The client is tercel get for all, over HTTP/3 and, for TCP, over HTTP/2: only the sender differs. The time is the client's, from \
         its start to the last byte of the last resource, handshake included; the start of its process is not in it."
            .to_owned(),
        format!(
            "100 MB are downloaded in every other round. A download that is not there after {} s is stopped; of 100 MB and with requests beside it \
             after twice the time for which the line alone is busy with it, and 5 s. Two of them in three rounds decide the median.",
            LIMIT.as_secs()
        ),
        format!(
            "Requests beside 10 MB: {COUNT} for {SMALL} bytes, {} ms apart, from the first content on, on the download's connection as a browser makes them, \
             and at the same times on another one. Each is timed by itself from asking to the last byte; those of all rounds stand together. Their client \
             is the library behind tercel get.",
            APART.as_millis()
        ),
        "The wait in the bottleneck's queue is the emulator's account of what it sent towards the client: from when a packet came to when its first bit \
         was sent, the mean of a download's packets and what 99 of 100 did not exceed; medians over rounds. A policer has no queue."
            .to_owned(),
        "tercel: its five controllers; it searches for the packet size, as by default. quinn, quiche, s2n-quic and quic-go are told that \
         1,452 bytes of UDP payload pass, and have their libraries' default controllers; quiche's program does not pace. Caddy is not told. \
         TCP: the kernel's, sent by nginx."
            .to_owned(),
        format!(
            "{TEN}: --initial-window 10, which is what RFC 9002 §7.2 recommends. tercel begins by default with ten for each 12.5 ms of the first \
             round trip, 32 at most (docs/decisions/031), quic-go with 32. It is no default: its ratios are to the best of the others, and no \
             other's are to it."
        ),
        "Second visits: where a page or 1 MB is downloaded, and the link does not fall silent, server and link stay, and right after the first \
         download a new client makes the same one over a new connection: a page of the same site, minutes at most after the first. The first \
         visit is the one of the first tables, and all that a sender can have learned of the path. What it makes of that is its own default: \
         tercel remembers the path (docs/decisions/027), the kernel's TCP has its metrics. The client is a new process that keeps nothing, for \
         all: no session is resumed, no token shown, and there is no 0-RTT. Where the first download was not there, there is no second."
            .to_owned(),
    ]
}

pub(super) fn notes<'a>(results: impl Iterator<Item = &'a CellResult> + Clone) -> Vec<String> {
    let mut notes = Vec::new();
    for cell in results.clone() {
        if cell.missed() > 0 {
            notes.push(format!(
                "NOT VALID, and in no count: {}. The emulator missed {} frames.",
                cell.name,
                cell.missed()
            ));
        }
        for lane in &cell.lanes {
            let faults = lane.attempts.iter().filter_map(|attempt| attempt.fault.as_deref());
            let faults = faults.map(|fault| format!("failed: {fault}"));
            let left_out = lane.problem.iter().map(|problem| format!("left out: {problem}"));
            notes
                .extend(faults.chain(left_out).map(|what| format!("{}, {}: {what}", cell.name, lane.sender)));
        }
    }
    let attempts = || results.clone().flat_map(|cell| &cell.lanes).flat_map(|lane| &lane.attempts);
    let missed: u64 = results.clone().map(CellResult::missed).sum();
    let mut late: Vec<f64> = attempts().map(|attempt| attempt.worst_late_ms).collect();
    late.sort_by(f64::total_cmp);
    let at =
        |share: f64| late.get((late.len() as f64 * share) as usize).or(late.last()).copied().unwrap_or(0.0);
    notes.push(format!(
        "{} downloads. The emulator missed {missed} frames in all. The latest frame of a download left {:.1} ms after its time at the median, \
         {:.1} ms in one of ten, {:.1} ms at worst.",
        attempts().count(),
        at(0.5),
        at(0.9),
        at(1.0)
    ));
    notes
}

/// Whether a sender has default settings: the others are compared with the best of these, and are none of them.
pub(super) fn by_default(name: &str) -> bool {
    name != TEN
}

/// The names of the senders that are not tercel.
fn others(senders: &[Sender]) -> Vec<&str> {
    senders.iter().filter(|sender| !sender.is_ours()).map(|sender| sender.name.as_str()).collect()
}

fn names(senders: &[Sender]) -> Vec<String> {
    senders.iter().map(|sender| sender.name.clone()).collect()
}

/// A row for each cell, a column for each sender.
pub(super) fn matrix(
    (title, corner): (&str, &str),
    senders: &[Sender],
    results: &[CellResult],
    figure: impl Fn(&CellResult, &str) -> Cell,
) -> Table {
    let row = |cell: &CellResult| Row {
        name: if cell.missed() > 0 { format!("{} (NOT VALID)", cell.name) } else { cell.name.clone() },
        is_published: false,
        cells: senders.iter().map(|sender| figure(cell, &sender.name)).collect(),
    };
    Table {
        title: title.to_owned(),
        corner: corner.to_owned(),
        columns: names(senders),
        rows: results.iter().map(row).collect(),
    }
}

pub(super) fn times(senders: &[Sender], results: &[CellResult]) -> Table {
    matrix(("Time of the download, s", "cell; download"), senders, results, |cell, sender| {
        match cell.outcome(sender) {
            Outcome::Unknown => Cell::Empty,
            Outcome::NotThere => "not there".into(),
            Outcome::Seconds(seconds) => Cell::Number(seconds, if seconds < 10.0 { 2 } else { 1 }),
        }
    })
}

pub(super) fn ratios(senders: &[Sender], results: &[CellResult]) -> Table {
    matrix(("Time over the best sender's of the cell", "cell; download"), senders, results, |cell, sender| {
        match cell.ratio(sender, by_default) {
            None => Cell::Empty,
            Some(ratio) if ratio.is_infinite() => "∞".into(),
            Some(ratio) => Cell::Number(ratio, 2),
        }
    })
}

/// How the senders stand: a row for each of them.
pub(super) fn standings(title: &str, senders: &[Sender], results: &[CellResult]) -> Table {
    let row = |sender: &Sender| {
        let standing = Standing::of(results, &sender.name, by_default);
        let worst = match &standing.worst {
            Some((ratio, cell)) => format!("{ratio:.1} ({cell})").into(),
            None => Cell::Empty,
        };
        let count = |count: usize| Cell::Number(count as f64, 0);
        Row {
            name: sender.name.clone(),
            is_published: false,
            cells: vec![
                count(standing.cells),
                count(standing.best),
                count(standing.near),
                count(standing.not_there),
                Cell::Number(standing.mean, 2),
                worst,
                Cell::Number(standing.queue.mean_ms, 1),
                Cell::Number(standing.queue.p99_ms, 0),
            ],
        }
    };
    let columns = [
        "cells",
        "best",
        "within 10 % of the best",
        "not there",
        "geometric mean of the ratios",
        "largest ratio",
        "wait in the queue, ms",
        "99 of 100 wait less, ms",
    ];
    Table {
        title: title.to_owned(),
        corner: "sender".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: senders.iter().map(row).collect(),
    }
}

pub(super) fn near(senders: &[Sender], results: &[CellResult]) -> Plot {
    let points = senders.iter().enumerate().map(|(place, sender)| {
        let standing = Standing::of(results, &sender.name, by_default);
        Point { x: place as f64, y: standing.near as f64, interval: None }
    });
    let series = Series { name: "cells".to_owned(), points: points.collect(), ..Series::default() };
    Plot {
        title: "Cells in which a sender is within 10 % of the best".to_owned(),
        kind: PlotKind::Bars(names(senders)),
        x: Axis::default(),
        y: Axis { label: "cells".to_owned(), ..Axis::default() },
        series: vec![series],
    }
}

/// The same as [`ratios`], as colours.
pub(super) fn heat(senders: &[Sender], results: &[CellResult]) -> Plot {
    let column = |sender: &Sender| {
        let point = |(row, cell): (usize, &CellResult)| {
            let ratio = cell.ratio(&sender.name, by_default)?;
            Some(Point { x: row as f64, y: ratio.min(NEVER), interval: None })
        };
        let points = results.iter().enumerate().filter_map(point).collect();
        Series { name: sender.name.clone(), points, ..Series::default() }
    };
    Plot {
        title: "Time over the best sender's of the cell".to_owned(),
        kind: PlotKind::Heat(results.iter().map(|cell| cell.name.clone()).collect()),
        series: senders.iter().map(column).collect(),
        ..Plot::default()
    }
}

/// What waited in the bottleneck's queue.
pub(super) fn queues(senders: &[Sender], results: &[CellResult]) -> Table {
    let title = "Wait in the bottleneck's queue, ms: mean / 99 of 100";
    matrix((title, "cell; download"), senders, results, |cell, sender| {
        let wait = cell.lane(sender).and_then(Lane::queue);
        wait.map_or(Cell::Empty, |wait| format!("{}/{}", ms(wait.mean_ms), ms(wait.p99_ms)).into())
    })
}

/// Small requests beside a download: two rows for each cell that has them, a column for each sender.
pub(super) fn requests(senders: &[Sender], results: &[CellResult]) -> Table {
    let title = "Small requests beside the download, ms: median / 99 of 100";
    let corner = "cell; connection";
    let of_cell = |cell: &CellResult| {
        [("the download's", true), ("another", false)].map(|(which, is_same)| {
            // All of them have the same download.
            let link = cell.name.rsplit_once("; ").map_or(cell.name.as_str(), |(link, _)| link);
            let named = CellResult { name: format!("{link}; {which}"), ..cell.clone() };
            matrix((title, corner), senders, &[named], |cell, sender| {
                let requests = cell.lane(sender).and_then(Lane::requests);
                let answers = requests.map(|both| if is_same { both.same } else { both.other });
                answers.map_or(Cell::Empty, |answers| latency(&answers).into())
            })
        })
    };
    let has_some = |cell: &&CellResult| cell.lanes.iter().any(|lane| lane.requests().is_some());
    let tables = results.iter().filter(has_some).flat_map(of_cell);
    Table {
        title: title.to_owned(),
        corner: corner.to_owned(),
        columns: names(senders),
        rows: tables.flat_map(|table| table.rows).collect(),
    }
}

/// The median and what 99 of 100 did not exceed, in milliseconds.
fn latency(answers: &Answers) -> String {
    let shown = |percent| match answers.percentile(percent) {
        None => "none".to_owned(),
        Some(never) if never.is_infinite() => "∞".to_owned(),
        Some(latency) => ms(latency),
    };
    // Without spaces, so that it stays on a line.
    format!("{}/{}", shown(50), shown(99))
}

/// Milliseconds with as many digits as are worth it.
fn ms(milliseconds: f64) -> String {
    if milliseconds < 10.0 { format!("{milliseconds:.1}") } else { format!("{milliseconds:.0}") }
}

/// A row for each cell, a column for each controller: the processes' time over the simulator's.
pub(super) fn beside_simulator(compared: &[Compared]) -> Table {
    let mut columns: Vec<String> = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for each in compared {
        if !columns.contains(&each.controller) {
            columns.push(each.controller.clone());
        }
        let cell = match (each.ratio(), each.measured) {
            (Some(ratio), _) => format!("{ratio:.2} ({:.2} s)", each.simulated).into(),
            (None, None) if each.agrees() => "neither there".into(),
            (None, None) => format!("only simulated ({:.2} s)", each.simulated).into(),
            (None, Some(_)) => "only measured".into(),
        };
        match rows.last_mut().filter(|row| row.name == each.cell) {
            Some(row) => row.cells.push(cell),
            None => rows.push(Row { name: each.cell.clone(), is_published: false, cells: vec![cell] }),
        }
    }
    Table {
        title: "Time of the processes over the simulator's, and the simulator's".to_owned(),
        corner: "cell; download".to_owned(),
        columns,
        rows,
    }
}

pub(super) fn findings(senders: &[Sender], results: &[CellResult], compared: &[Compared]) -> Vec<String> {
    let mut findings = auto_stands(senders, results);
    if !findings.is_empty() {
        findings.extend(asked(results, &others(senders)));
    }
    if !compared.is_empty() {
        let agree = compared.iter().filter(|each| each.agrees()).count();
        findings.push(format!(
            "The simulator and the processes agree in {agree} of {} downloads by tercel's controllers: times within a factor of {AGREES}, or neither \
             there in time.",
            compared.len()
        ));
    }
    findings
}

/// How auto stands, and who is faster where; nothing if it was not measured.
pub(super) fn auto_stands(senders: &[Sender], results: &[CellResult]) -> Vec<String> {
    let others = others(senders);
    let auto = Standing::of(results, AUTO, by_default);
    if auto.cells == 0 {
        return Vec::new();
    }
    let beside = |name: &str| name == AUTO || others.contains(&name);
    let foreign = Standing::of(results, AUTO, beside);
    let mut findings = vec![
        format!(
            "{AUTO} is within 10 % of the best sender in {} of {} cells, and the best in {}.",
            auto.near, auto.cells, auto.best
        ),
        format!(
            "{AUTO} beside the other implementations alone is within 10 % of the best in {} of {} cells, and the best in {}.",
            foreign.near, foreign.cells, foreign.best
        ),
    ];
    let ten = Standing::of(results, TEN, |name| others.contains(&name));
    if ten.cells > 0 {
        findings.push(format!(
            "{TEN} is within 10 % of the best of the other implementations in {} of {} cells, and as fast or faster in {}.",
            ten.near, ten.cells, ten.best
        ));
    }
    findings.extend(lost(results, &others));
    findings
}

/// What small requests take beside a download of auto's, and beside that of another implementation which delays them least.
fn asked(results: &[CellResult], others: &[&str]) -> Vec<String> {
    let late = |cell: &CellResult, sender: &str| {
        let same = cell.lane(sender)?.requests()?.same;
        Some((same.percentile(50)?, same.percentile(99)?))
    };
    let of_cell = |cell: &CellResult| {
        let (half, most) = late(cell, AUTO)?;
        let beside = others.iter().filter_map(|name| Some((late(cell, name)?, name)));
        let best = beside.min_by(|((_, one), _), ((_, other), _)| one.total_cmp(other));
        let best = best.map_or_else(String::new, |((half, most), name)| {
            format!(
                " Of the other implementations {name} delays them least: {} and {} ms.",
                ms(half),
                ms(most)
            )
        });
        Some(format!(
            "{}: on the connection of a download by {AUTO} small requests take {} ms at the median, 99 of 100 at most {}.{best}",
            cell.name,
            ms(half),
            ms(most)
        ))
    };
    results.iter().filter(|cell| cell.missed() == 0).filter_map(of_cell).collect()
}

/// The cells in which another implementation leaves auto behind, the worst first.
fn lost(results: &[CellResult], others: &[&str]) -> Vec<String> {
    let mut lost: Vec<(f64, String)> = Vec::new();
    for cell in results.iter().filter(|cell| cell.missed() == 0) {
        let is_other = |name: &str| others.contains(&name);
        let (Some(ratio), Some(best)) = (cell.ratio(AUTO, is_other), cell.best(is_other)) else { continue };
        let winner = others.iter().find(|name| cell.outcome(name) == Outcome::Seconds(best));
        if let Some(winner) = winner.filter(|_| ratio > NEAR) {
            let took = match cell.outcome(AUTO) {
                Outcome::Seconds(seconds) => format!("{seconds:.2} s, {ratio:.2} times the {best:.2} s of"),
                _ => format!("longer than it was waited for, beside the {best:.2} s of"),
            };
            lost.push((ratio, format!("{}: {AUTO} takes {took} {winner}.", cell.name)));
        }
    }
    lost.sort_by(|one, other| other.0.total_cmp(&one.0));
    lost.into_iter().map(|(_, sentence)| sentence).collect()
}
