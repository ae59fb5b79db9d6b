//! Study E4: many small requests over HTTP/3, tercel beside other servers.
//!
//! The study is of servers, so the client is the same for all; where its core is the busier one, the row says that the generator
//! limits, and the server's CPU time for each request is the figure to compare.

use std::io;

use report::model::{Axis, Block, Cell, Plot, PlotKind, Row, Series, Study, Table};

use crate::contestants::client::{Client, Work};
use crate::contestants::race::{EntryResult, Race, RaceEntry, contestants};
use crate::contestants::{Contestant, Http, SMALL, TestSite, look, words};
use crate::context::Context;
use crate::courses;
use crate::profiles;

/// Seconds for a million requests, their deviation where it was published, and CPU of the server in percent.
const PUBLISHED: [(&str, f64, f64, f64); 4] = [
    ("LiteSpeed", 12.829, 0.079, 100.0),
    ("proto-quic", 42.462, 2.187, 100.0),
    ("quic-go", 60.421, 0.407, 295.0),
    ("Caddy", 67.706, 0.380, 335.0),
];
/// Requests of the published study.
const MILLION: u64 = 1_000_000;

const COLUMNS: [&str; 8] = [
    "client's time, s",
    "requests/s",
    "time over tercel's",
    "server CPU, µs/request",
    "server CPU, % of a core",
    "client CPU, % of a core",
    "UDP payload, bytes",
    "who limits",
];

/// Runs the study.
///
/// # Errors
/// Nothing can be measured at all.
pub fn run(context: &mut Context<'_>) -> io::Result<Study> {
    let began = cpu::clock_seconds();
    let ground = TestSite::prepare()?;
    let field = look(&context.program, &[Http::Three]);
    let requests = context.scaled(MILLION, 200_000);
    let race = Race {
        ground: &ground,
        work: Work { file: SMALL, connections: 100, streams: 10, requests },
        trials: context.scaled(5, 3),
    };
    let entry = |server: &_| RaceEntry {
        server: Clone::clone(server),
        http: Http::Three,
        client: Client::Load,
        program: context.program.clone(),
        files: 1,
    };
    let mut lanes: Vec<EntryResult> = field.installed.iter().map(entry).map(EntryResult::new).collect();
    let problem = race.run(&mut lanes, context, &mut |_| Ok(())).err();
    let mut notes = words::notes(&field, &ground, &lanes, context.cores);
    if requests != MILLION {
        notes.push(format!("The published times are for a million requests; here there were {requests}."));
    }
    let mut study = Study {
        id: "e4".to_owned(),
        title: "Many small requests over HTTP/3".to_owned(),
        question:
            "How many requests for a small file does a server answer on one core, and what does each cost it?"
                .to_owned(),
        method: method(&race, &lanes),
        findings: findings(&lanes),
        blocks: vec![
            Block::Table(table(&lanes)),
            Block::Plot(cost(&lanes)),
            Block::Plot(times(&lanes, requests)),
        ],
        notes,
        problem: problem.map(words::problem),
        seconds: 0.0,
        raw: serde_json::to_value(&lanes)?,
    };
    study.blocks.extend(courses::blocks(&contestants(&lanes, |lane| lane.who.name().to_owned())));
    profiles::add(context, race.looks(&lanes, |lane| lane.who.name().to_owned()), &mut study);
    study.seconds = cpu::clock_seconds() - began;
    Ok(study)
}

fn method(race: &Race<'_>, lanes: &[EntryResult]) -> Vec<String> {
    let Work { file, connections, streams, requests } = &race.work;
    vec![
        format!(
            "{connections} connections, {streams} requests at a time on each, {requests} requests in all for a file of {} bytes over \
             HTTP/3; {} trials of each server in alternating order, after one that is not counted.",
            file.1, race.trials
        ),
        format!(
            "Server and client are processes on a core each, both started anew for each trial, at the two ends of: {}. CPU times are \
             the operating system's.",
            race.ground.site().name()
        ),
        format!(
            "All: TLS_AES_128_GCM_SHA256, CUBIC, full packets of {} bytes of UDP payload, socket buffers of 4 MB or more.",
            race.ground.payload_size
        ),
        "The client's time is that of its whole process, connections included; requests/s is counted from when all connections \
         stand. Published: LiteSpeed's study, on other machines; requests/s there is a million over the time."
            .to_owned(),
        words::CLIENT.to_owned(),
        format!("Versions: {}.", words::versions(lanes)),
    ]
}

fn table(lanes: &[EntryResult]) -> Table {
    let measured = lanes.iter().map(|lane| Row {
        name: lane.who.name().to_owned(),
        is_published: false,
        cells: vec![
            lane.cell(3, |trial| trial.run.seconds),
            lane.cell(0, |trial| trial.run.rate),
            words::time_over_ours(lanes, lane),
            lane.cell(2, |trial| trial.server_cpu_s * 1e6 / trial.run.succeeded as f64),
            lane.cell(0, |trial| trial.server_share * 100.0),
            lane.cell(0, |trial| trial.run.client_share * 100.0),
            words::payload(lane),
            lane.limit().into(),
        ],
    });
    let published = PUBLISHED.iter().map(|(name, seconds, sd, cpu)| {
        let mut row = words::published(name, COLUMNS.len(), *seconds, Some(*sd));
        for (column, cell) in [(1, Cell::Number(MILLION as f64 / seconds, 0)), (4, Cell::Number(*cpu, 0))] {
            row.cells[column] = cell;
        }
        row
    });
    Table {
        title: "Requests for a file of 630 bytes over HTTP/3".to_owned(),
        corner: "server".to_owned(),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows: measured.chain(published).collect(),
    }
}

fn measured(lanes: &[EntryResult]) -> Vec<&EntryResult> {
    lanes.iter().filter(|lane| !lane.trials.is_empty()).collect()
}

fn cost(lanes: &[EntryResult]) -> Plot {
    let lanes = measured(lanes);
    let points = lanes.iter().enumerate().map(|(place, lane)| {
        words::bar(place, &lane.summary(|trial| trial.server_cpu_s * 1e6 / trial.run.succeeded as f64))
    });
    Plot {
        title: "What a small request costs the server".to_owned(),
        kind: PlotKind::Bars(lanes.iter().map(|lane| lane.who.name().to_owned()).collect()),
        x: Axis::default(),
        y: Axis { label: "CPU time of the server, µs per request".to_owned(), ..Axis::default() },
        series: vec![Series { name: "measured".to_owned(), points: points.collect(), ..Series::default() }],
    }
}

/// Times for a million requests, so that published ones may stand beside.
fn times(lanes: &[EntryResult], requests: u64) -> Plot {
    let lanes = measured(lanes);
    let scale = MILLION as f64 / requests as f64;
    let names = lanes.iter().map(|lane| lane.who.name()).chain(PUBLISHED.iter().map(|(name, ..)| *name));
    let points = lanes
        .iter()
        .enumerate()
        .map(|(place, lane)| words::bar(place, &lane.summary(|trial| trial.run.seconds * scale)));
    let published = PUBLISHED.iter().enumerate().map(|(place, (_, mean, sd, _))| report::model::Point {
        x: (lanes.len() + place) as f64,
        y: *mean,
        interval: Some([mean - sd, mean + sd]),
    });
    Plot {
        title: "Time for a million small requests".to_owned(),
        kind: PlotKind::Bars(names.map(str::to_owned).collect()),
        x: Axis::default(),
        y: Axis { label: "client's time, s per million requests".to_owned(), ..Axis::default() },
        series: vec![
            Series { name: "measured".to_owned(), points: points.collect(), ..Series::default() },
            Series { name: "published".to_owned(), is_published: true, points: published.collect() },
        ],
    }
}

fn findings(lanes: &[EntryResult]) -> Vec<String> {
    let Some(ours) = lanes.iter().find(|lane| lane.who == Contestant::Tercel && !lane.trials.is_empty())
    else {
        return Vec::new();
    };
    let rate = ours.summary(|trial| trial.run.rate).mean;
    let cost =
        |lane: &EntryResult| lane.summary(|trial| trial.server_cpu_s * 1e6 / trial.run.succeeded as f64);
    let mut findings = vec![format!(
        "tercel answered {rate:.0} requests a second at {:.2} µs of CPU time each; what limited: {}.",
        cost(ours).mean,
        ours.limit()
    )];
    for lane in measured(lanes).into_iter().filter(|lane| lane.who != Contestant::Tercel) {
        let mut sentence = words::verdict(lane.who.name(), "tercel", lane.time_over(ours));
        if let Some(ratio) = bench::stats::Ratio::by_rounds(&cost(lane).values, &cost(ours).values) {
            let bench::stats::Ratio { ratio, low, high } = ratio;
            sentence.push_str(&format!(
                " Its server used {ratio:.2} times the CPU time ({low:.2} to {high:.2})."
            ));
        }
        findings.push(sentence);
    }
    findings
}

#[cfg(test)]
mod tests;
