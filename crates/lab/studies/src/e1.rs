//! Study E1: one large download over every data path of the server. Measured by [`bench::datapaths`], told here.
//!
//! The published study compared kernel UDP with AF_XDP. Kernel UDP is not one thing, so there is a row for a call for each packet,
//! for many packets in a call, and for segmentation offload: the reader sees which of them AF_XDP beats.

mod profiles;

use std::io;

use bench::datapaths::{self, DataPaths, DataPathsPlan, PUBLISHED_GAIN, PUBLISHED_UDP, PUBLISHED_XDP, Trial};
use bench::method::Method;
use bench::site::Site;
use bench::stats::{Ratio, Summary};
use report::model::{Axis, Block, Cell, Plot, PlotKind, Point, Row, Series, Study, Table};

use crate::ceiling::{self, Ceiling};
use crate::context::Context;
use crate::courses::{self, Rounds};

const COLUMNS: [&str; 9] = [
    "content, MB/s",
    "share of roofline, %",
    "goodput over the first row's",
    "server CPU, s/GB",
    "first row's server CPU over this",
    "server CPU, % of a core",
    "client CPU, % of a core",
    "datagrams per system call, server",
    "UDP payload, bytes",
];

/// Runs the study.
///
/// # Errors
/// Nothing can be measured at all.
pub fn run(context: &mut Context<'_>) -> io::Result<Study> {
    let began = cpu::clock_seconds();
    let plan = DataPathsPlan {
        bytes: context.scaled(2_000_000_000, 500_000_000),
        cores: context.cores,
        ..DataPathsPlan::new(context.program.clone())
    };
    let site = Site::veth(1).map_err(io::Error::other)?;
    let stop = context.stop;
    let found = datapaths::run(&plan, &site, stop, &mut |line| (context.progress)(line))?;
    drop(site);
    let mut problem = found.was_interrupted.then(|| "interrupted".to_owned());
    let mut ceiling = Ceiling::default();
    while problem.is_none() && ceiling.trials().len() < plan.trials {
        let measured = ceiling.measure(context, plan.packet_size, plan.bytes as f64 / 1e9);
        problem = measured.err().map(|error| format!("roofline: {error}"));
    }
    let mut study = Study {
        id: "e1".to_owned(),
        title: "Kernel UDP against AF_XDP".to_owned(),
        question: "How much more does one core serve when packets pass by the kernel's network stack, and which way through the \
                   kernel is it that AF_XDP beats?"
            .to_owned(),
        method: method(&found),
        findings: findings(&found),
        blocks: [
            Block::Table(table(&found, &ceiling)),
            Block::Plot(rates(&found)),
            Block::Plot(costs(&found)),
            Block::Plot(course(&found)),
        ]
        .into_iter()
        .chain(courses::blocks(&contestants(&found)))
        .collect(),
        notes: notes(&found),
        problem,
        seconds: 0.0,
        raw: serde_json::json!({ "datapaths": found, "roofline": ceiling }),
    };
    profiles::add(context, plan.packet_size, &mut study);
    study.seconds = cpu::clock_seconds() - began;
    Ok(study)
}

fn method(found: &DataPaths) -> Vec<String> {
    let DataPaths { plan, link, cipher, congestion, .. } = found;
    vec![
        format!(
            "One client downloads {:.1} GB over HTTP/3 on one connection; the body is generated in memory. {} trials of each path in turns, \
             after one that is not counted.",
            plan.bytes as f64 / 1e9,
            plan.trials
        ),
        format!(
            "Server and client are processes on a core each, joined by {link}. The client always uses GSO and GRO; only the server's path \
             changes. Datagrams of {} bytes of UDP payload, {cipher}, {congestion}.",
            plan.packet_size
        ),
        "CPU time is what the scheduler counted for the server's threads; work that the kernel does on its own account is in no \
         process's time. Server CPU over is what a core at full load would give more; other programs disturb it less than goodput."
            .to_owned(),
        ceiling::method("as often, after all"),
        "Published: LiteSpeed's study of LSQUIC, on another machine.".to_owned(),
    ]
}

fn notes(found: &DataPaths) -> Vec<String> {
    let failed = found.rows.iter().filter_map(|row| {
        let problem = row.problem.as_ref()?;
        Some(format!("{} was left out after {} trials: {problem}", row.method, row.trials.len()))
    });
    found.notes.iter().cloned().chain(failed).collect()
}

fn measured(found: &DataPaths) -> impl Iterator<Item = &datapaths::Row> {
    found.rows.iter().filter(|row| !row.trials.is_empty())
}

fn megabytes(summary: &Summary) -> Summary {
    Summary::of(summary.values.iter().map(|bytes| bytes / 1e6))
}

fn table(found: &DataPaths, ceiling: &Ceiling) -> Table {
    let first = found.rows.first().map(|row| row.method);
    let over =
        |row: &datapaths::Row, ratio: Option<Ratio>| ratio.filter(|_| Some(row.method) != first).into();
    let mut rows: Vec<Row> = measured(found)
        .map(|row| {
            let trials = |digits, figure: fn(&Trial) -> f64| {
                Cell::Trials(Summary::of(row.trials.iter().map(figure)), digits)
            };
            let goodput = megabytes(&row.goodput);
            let share = ceiling.share(goodput.values.iter().copied());
            Row {
                name: row.method.name().to_owned(),
                is_published: false,
                cells: vec![
                    Cell::Trials(goodput, 0),
                    share,
                    over(row, row.gain),
                    Cell::Trials(row.server_cpu_s_per_gb.clone(), 3),
                    over(row, row.cpu_gain),
                    trials(0, |trial| trial.server.share * 100.0),
                    trials(0, |trial| trial.client.share * 100.0),
                    trials(1, |trial| trial.server.datagrams_per_call),
                    trials(0, |trial| trial.payload_mean),
                ],
            }
        })
        .collect();
    rows.extend(ceiling.row(COLUMNS.len(), [0, 1, 3]));
    let published = |name: &str, values: [f64; 3], cells| {
        let goodput = Cell::Trials(megabytes(&Summary::of(values)), 0);
        let mut row = Row { name: format!("{name} (published)"), is_published: true, cells };
        row.cells[0] = goodput;
        row
    };
    let gain = Ratio::of(&PUBLISHED_XDP, &PUBLISHED_UDP);
    rows.push(published("UDP", PUBLISHED_UDP, sparse([(5, Cell::Number(100.0, 0))])));
    rows.push(published("AF_XDP", PUBLISHED_XDP, sparse([(2, gain.into()), (5, Cell::Number(100.0, 0))])));
    Table {
        title: "One download over every data path of the server".to_owned(),
        corner: "server's path".to_owned(),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows,
    }
}

/// A row's cells, all empty but these.
fn sparse<const N: usize>(figures: [(usize, Cell); N]) -> Vec<Cell> {
    let mut cells = vec![Cell::Empty; COLUMNS.len()];
    for (column, cell) in figures {
        cells[column] = cell;
    }
    cells
}

fn bar(place: usize, figures: &Summary) -> Point {
    let interval =
        (figures.values.len() > 1).then_some([figures.mean - figures.sd, figures.mean + figures.sd]);
    Point { x: place as f64, y: figures.mean, interval }
}

fn rates(found: &DataPaths) -> Plot {
    let mut names: Vec<String> = measured(found).map(|row| row.method.name().to_owned()).collect();
    let points =
        measured(found).enumerate().map(|(place, row)| bar(place, &megabytes(&row.goodput))).collect();
    let published = [PUBLISHED_UDP, PUBLISHED_XDP].map(|values| megabytes(&Summary::of(values)));
    let published =
        published.iter().enumerate().map(|(place, figures)| bar(names.len() + place, figures)).collect();
    names.extend(["UDP", "AF_XDP"].map(|name| format!("{name}, published")));
    Plot {
        title: "Goodput over every data path".to_owned(),
        kind: PlotKind::Bars(names),
        x: Axis::default(),
        y: Axis { label: "content, MB/s".to_owned(), ..Axis::default() },
        series: vec![
            Series { name: "measured".to_owned(), points, ..Series::default() },
            Series { name: "published".to_owned(), is_published: true, points: published },
        ],
    }
}

fn costs(found: &DataPaths) -> Plot {
    let names = measured(found).map(|row| row.method.name().to_owned()).collect();
    let points =
        measured(found).enumerate().map(|(place, row)| bar(place, &row.server_cpu_s_per_gb)).collect();
    Plot {
        title: "What each data path costs the server".to_owned(),
        kind: PlotKind::Bars(names),
        x: Axis::default(),
        y: Axis { label: "CPU time of the server, s per GB".to_owned(), ..Axis::default() },
        series: vec![Series { name: "measured".to_owned(), points, ..Series::default() }],
    }
}

/// Every trial in the order in which they were made: a machine that became slower shows in all lines.
fn course(found: &DataPaths) -> Plot {
    let line = |row: &datapaths::Row| Series {
        name: row.method.name().to_owned(),
        is_published: false,
        points: (1_u32..)
            .zip(&megabytes(&row.goodput).values)
            .map(|(round, rate)| Point { x: f64::from(round), y: *rate, interval: None })
            .collect(),
    };
    Plot {
        title: "Goodput in the course of the study".to_owned(),
        kind: PlotKind::Lines,
        x: Axis { label: "round of trials".to_owned(), ..Axis::default() },
        y: Axis { label: "content, MB/s".to_owned(), ..Axis::default() },
        series: measured(found).map(line).collect(),
    }
}

fn contestants(found: &DataPaths) -> Vec<Rounds<'_>> {
    measured(found)
        .map(|row| Rounds {
            name: row.method.name().to_owned(),
            courses: row.trials.iter().map(|trial| &trial.course[..]).collect(),
        })
        .collect()
}

/// AF_XDP in its better mode against each way through the kernel.
fn findings(found: &DataPaths) -> Vec<String> {
    let of = |method: Method| measured(found).find(|row| row.method == method);
    let Some(xdp) = of(Method::XdpDriver).or_else(|| of(Method::XdpGeneric)) else { return Vec::new() };
    let kernel = [Method::Plain, Method::Mmsg, Method::Gso].into_iter().filter_map(of);
    kernel.map(|row| against(xdp, row)).collect()
}

fn against(xdp: &datapaths::Row, kernel: &datapaths::Row) -> String {
    let [fast, slow] = [xdp, kernel].map(|row| row.method.name());
    let pair = |over: &Summary, under: &Summary| Ratio::by_rounds(&over.values, &under.values);
    let Some(goodput) = pair(&xdp.goodput, &kernel.goodput) else {
        return format!("{fast} against {slow}: fewer than two trials of one of them.");
    };
    let verdict = match goodput {
        ratio if ratio.spans_one() => "neither is shown to be faster",
        ratio if ratio.ratio > 1.0 => "AF_XDP is faster",
        _ => "the kernel's path is faster",
    };
    let Ratio { ratio, low, high } = goodput;
    let mut sentence = format!(
        "AF_XDP ({fast}) moved {ratio:.2} times the bytes of {slow} (95 % interval {low:.2} to {high:.2}; published against UDP \
         {PUBLISHED_GAIN}): {verdict}."
    );
    if let Some(Ratio { ratio, low, high }) = pair(&xdp.server_cpu_s_per_gb, &kernel.server_cpu_s_per_gb) {
        sentence.push_str(&format!(
            " Its server used {ratio:.2} times the CPU time per byte ({low:.2} to {high:.2})."
        ));
    }
    sentence
}

#[cfg(test)]
mod tests;
