//! What acknowledgements cost: a download whose receiver acknowledges as the sender asks (draft-ietf-quic-ack-frequency),
//! every tenth packet once the path is steady, or every second one as RFC 9000 proposes.
//!
//! A receiver that takes in many packets at once acknowledges them at once, whatever it is told; so there is also one that
//! takes them in one by one, as many do. On loopback, where a round trip is short and the CPU is all that limits; the same with a server of one system call for
//! each datagram, where each acknowledgement that comes costs one; and over a round trip of 20 ms, which both ends make by
//! holding what they receive.

use std::io;

use bench::method::Method;
use bench::pair::ProgramPair;
use bench::site::Site;
use report::model::{Axis, Block, Cell, Plot, PlotKind, Point, Row, Series, Study, Table};

use crate::ceiling::{self, Ceiling};
use crate::context::Context;
use crate::courses;
use crate::downloads::{DownloadRun, DownloadSeries, Trial, saving};
use crate::profiles::{self, Look};

/// UDP payload of full packets, the same for all: an Ethernet frame over IPv6.
const PAYLOAD: u16 = 1_452;
/// The same as flags.
const SIZE: [&str; 4] = ["--packet-size", "1452", "--mtu-search", "off"];
/// How long each end holds what it receives, in microseconds.
const HOLD: [&str; 2] = ["--hold-received", "10000"];
/// The saving of the sender's CPU time that is aimed at where acknowledgements are what costs.
const AIM: &str = "The aim is 25 % where acknowledgements are what costs";

/// How the receiver acknowledges.
const WAYS: [(&str, &[&str]); 3] = [
    ("as the sender asks", &["--ack-frequency", "on"]),
    ("every 10th packet", &["--ack-frequency", "off", "--ack-every", "10"]),
    ("every 2nd packet", &["--ack-frequency", "off", "--ack-every", "2"]),
];

/// A client that takes in packets one by one, and so acknowledges as strictly as it is told.
const ONE_BY_ONE: [&str; 2] = ["--without", "gro,receive-batches"];

/// Where it is measured.
struct MeasuredPath {
    name: &'static str,
    /// The server's data path.
    method: Method,
    /// Flags of both ends.
    both: &'static [&'static str],
    /// Flags of the client besides.
    client: &'static [&'static str],
}

const PLACES: [MeasuredPath; 4] = [
    MeasuredPath { name: "loopback", method: Method::Gso, both: &[], client: &[] },
    MeasuredPath {
        name: "loopback, packets taken in one by one",
        method: Method::Gso,
        both: &[],
        client: &ONE_BY_ONE,
    },
    MeasuredPath {
        name: "loopback, one by one, plain server",
        method: Method::Plain,
        both: &[],
        client: &ONE_BY_ONE,
    },
    MeasuredPath { name: "20 ms", method: Method::Gso, both: &HOLD, client: &[] },
];

const COLUMNS: [&str; 8] = [
    "server CPU, s/GB",
    "over every 2nd packet",
    "client CPU, s/GB",
    "content, MB/s",
    "share of roofline, %",
    "datagrams from the receiver",
    "for 1,000 to it",
    "server CPU, % of a core",
];

/// Runs the study.
///
/// # Errors
/// Nothing can be measured at all.
pub fn run(context: &mut Context<'_>) -> io::Result<Study> {
    let began = cpu::clock_seconds();
    let (program, site) = (context.program.clone(), Site::Loopback);
    let (stop, cores) = (context.stop, context.cores);
    let pair = ProgramPair::new(&program, &site, stop)?;
    let bytes = context.scaled(2_000_000_000, 200_000_000);
    let trials = context.scaled(7, 3);
    let mut measured: Vec<(&'static str, Vec<DownloadSeries>)> = Vec::new();
    let mut problem = None;
    let mut notes = Vec::new();
    let mut ceiling = Ceiling::default();
    for MeasuredPath { name: place, method, both, client } in PLACES {
        if let Err(error) = ceiling.try_measure(context, (PAYLOAD, bytes as f64 / 1e9), &mut notes) {
            problem = Some(error.to_string());
            break;
        }
        let lane = |(name, flags): (&str, &[&str])| {
            let server = [&SIZE, flags, both].concat();
            DownloadSeries::apart(name, method, &server, &[&server, client].concat())
        };
        let mut lanes: Vec<DownloadSeries> = WAYS.into_iter().map(lane).collect();
        let done = DownloadRun { pair: &pair, cores, bytes, trials, place }.run(&mut lanes, context);
        measured.push((place, lanes));
        if let Err(error) = done {
            problem = Some(error.to_string());
            break;
        }
    }
    notes.push(
        "A round trip of 20 ms is made by both ends, which hold what they receive for 10 ms; that costs CPU time too, the same in \
         each row."
            .to_owned(),
    );
    notes.extend(measured.iter().flat_map(|(place, lanes)| problems(place, lanes)));
    let mut study = Study {
        id: "acks".to_owned(),
        title: "What acknowledgements cost".to_owned(),
        question: "How much CPU time does the sender of a large download save when its receiver acknowledges less often, and what \
                   does that do to the receiver and to the rate?"
            .to_owned(),
        method: vec![
            format!(
                "One connection downloads {} MB of generated content over HTTP/3 in packets of {} bytes; {trials} trials of each row \
                 in alternating order, after one that is not counted.",
                bytes / 1_000_000,
                SIZE[1]
            ),
            "Server and client are processes on a core each, started anew for each trial; CPU times are the operating system's. \
             Congestion control is CUBIC, paced but on round trips below a millisecond."
                .to_owned(),
            "As the sender asks: it asks for four acknowledgements a window (sixteen in slow start), for one in 64 packets at \
             least. Every 10th packet: on a steady path, and every second one after a loss."
                .to_owned(),
            ceiling::method("before each table's trials"),
        ],
        findings: measured.iter().filter_map(|(place, lanes)| finding(place, lanes)).collect(),
        blocks: blocks(&measured, &ceiling),
        notes,
        problem,
        seconds: 0.0,
        raw: serde_json::json!({ "places": measured, "roofline": ceiling }),
    };
    look_closer(context, &measured, &mut study);
    study.seconds = cpu::clock_seconds() - began;
    Ok(study)
}

/// Adds what the sender did in the course of trials, and profiles of it.
fn look_closer(
    context: &mut Context<'_>,
    measured: &[(&'static str, Vec<DownloadSeries>)],
    study: &mut Study,
) {
    let rounds: Vec<_> = measured
        .iter()
        .flat_map(|(place, lanes)| {
            lanes.iter().map(move |lane| lane.rounds(format!("{place}: {}", lane.name)))
        })
        .collect();
    study.blocks.extend(courses::blocks(&rounds));
    // Where acknowledgements are what costs.
    let looks = WAYS.map(|(name, flags)| {
        let flags = [&SIZE, flags].concat();
        let series = DownloadSeries::apart(name, Method::Plain, &flags, &[&flags[..], &ONE_BY_ONE].concat());
        Look::at_download(series, || Ok(Site::Loopback))
    });
    profiles::add(context, looks.into(), study);
}

fn problems(place: &str, lanes: &[DownloadSeries]) -> Vec<String> {
    let told = |lane: &DownloadSeries| Some(format!("{place}, {}: {}", lane.name, lane.problem.as_ref()?));
    lanes.iter().filter_map(told).collect()
}

/// What fewer acknowledgements save, beside the aim.
fn finding(place: &str, lanes: &[DownloadSeries]) -> Option<String> {
    let [asked, tenth, second] = lanes else { return None };
    let (by_asking, by_tenth) = (asked.cost_over(second)?, tenth.cost_over(second)?);
    let sum = |lane: &DownloadSeries, of: fn(&Trial) -> f64| lane.trials.iter().map(of).sum::<f64>();
    let answers = |lane: &DownloadSeries| {
        sum(lane, |trial| trial.client_datagrams) / sum(lane, |trial| trial.server_datagrams).max(1.0) * 1e3
    };
    Some(format!(
        "{place}: the sender's CPU time for the same content, beside that with an acknowledgement for every second packet: {} if \
         the receiver acknowledges as the sender asks, {} if every tenth packet. For 1,000 packets {:.0} datagrams came back, {:.0}, \
         and {:.0} with every second. {AIM}.",
        saving(&by_asking),
        saving(&by_tenth),
        answers(asked),
        answers(tenth),
        answers(second)
    ))
}

fn blocks(measured: &[(&'static str, Vec<DownloadSeries>)], ceiling: &Ceiling) -> Vec<Block> {
    let mut blocks: Vec<Block> =
        measured.iter().map(|(place, lanes)| Block::Table(table(place, lanes, ceiling))).collect();
    blocks.push(Block::Plot(plot(measured)));
    blocks
}

fn table(place: &str, lanes: &[DownloadSeries], ceiling: &Ceiling) -> Table {
    let second = lanes.last();
    let row = |lane: &DownloadSeries| Row {
        name: lane.name.clone(),
        is_published: false,
        cells: vec![
            lane.cell(3, |trial| trial.server_cpu_s_per_gb),
            second
                .filter(|second| second.name != lane.name)
                .map_or(Cell::Empty, |second| lane.cost_over(second).into()),
            lane.cell(3, |trial| trial.client_cpu_s_per_gb),
            lane.cell(0, |trial| trial.megabytes_per_second),
            ceiling.share(lane.values(|trial| trial.megabytes_per_second)),
            lane.cell(0, |trial| trial.client_datagrams),
            lane.cell(0, |trial| trial.client_datagrams / trial.server_datagrams.max(1.0) * 1e3),
            lane.cell(0, |trial| trial.server_share * 100.0),
        ],
    };
    Table {
        title: format!("A download whose receiver acknowledges more or less often: {place}"),
        corner: "acknowledged".to_owned(),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows: lanes.iter().map(row).chain(ceiling.row(COLUMNS.len(), [3, 4, 0])).collect(),
    }
}

fn plot(measured: &[(&'static str, Vec<DownloadSeries>)]) -> Plot {
    let series = WAYS.iter().enumerate().map(|(way, (name, _))| Series {
        name: (*name).to_owned(),
        is_published: false,
        points: measured
            .iter()
            .enumerate()
            .filter_map(|(place, (_, lanes))| {
                let costs = lanes.get(way)?.values(|trial| trial.server_cpu_s_per_gb);
                let y = bench::stats::Summary::of(costs.iter().copied()).mean;
                (!costs.is_empty()).then_some(Point { x: place as f64, y, interval: None })
            })
            .collect(),
    });
    Plot {
        title: "CPU time of the sender".to_owned(),
        kind: PlotKind::Bars(measured.iter().map(|(place, _)| (*place).to_owned()).collect()),
        x: Axis { label: "where".to_owned(), ..Axis::default() },
        y: Axis { label: "CPU seconds for 10^9 bytes".to_owned(), ..Axis::default() },
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(costs: [f64; 3]) -> Vec<DownloadSeries> {
        let lane = |((name, flags), cost): ((&str, &[&str]), f64)| {
            let trial = |noise: f64| Trial {
                server_cpu_s_per_gb: cost + noise,
                client_datagrams: cost * 1_000.0,
                server_datagrams: 100_000.0,
                ..Trial::default()
            };
            DownloadSeries {
                trials: [0.0, 0.01, -0.01].map(trial).to_vec(),
                ..DownloadSeries::new(name, Method::Gso, flags)
            }
        };
        WAYS.into_iter().zip(costs).map(lane).collect()
    }

    /// Deleted, the finding could compare the wrong rows.
    #[test]
    fn savings_are_counted_from_every_second_packet() {
        let lanes = lanes([0.6, 0.8, 1.0]);
        let said = finding("loopback", &lanes).unwrap();
        assert!(said.contains(": 40 % less") && said.contains("asks, 20 % less"), "{said}");
        assert!(said.contains("6 datagrams came back, 8, and 10 with") && said.contains("25 %"), "{said}");
        let table = table("loopback", &lanes, &Ceiling::default());
        assert!(matches!(table.rows[0].cells[1], Cell::Ratio(ratio) if ratio.ratio < 0.61));
        assert_eq!(table.rows[2].cells[1], Cell::Empty);
        assert!(table.rows.iter().all(|row| row.cells.len() == COLUMNS.len()));
    }

    #[test]
    fn without_trials_nothing_is_claimed() {
        let mut lanes = lanes([1.0, 1.0, 1.0]);
        lanes[0].trials.clear();
        assert_eq!(finding("loopback", &lanes), None);
        assert_eq!(plot(&[("loopback", lanes)]).series[0].points, []);
    }
}
