//! Study E6: can HTTP/3 be as cheap as HTTP/1.1 and HTTP/2? What each technique is worth, by leaving it out, and the same
//! transfer over all three.
//!
//! One large download over one connection. The table of techniques is in [`techniques`]: a name, what was claimed for it, and the
//! flags that leave it out. All rows and the one with everything take turns, so that a machine that becomes slower does so for all.

mod techniques;
#[cfg(test)]
mod tests;

use std::io;

use bench::method::Method;
use bench::pair::Pair;
use bench::site::Site;
use bench::stats::Ratio;
use report::model::{Axis, Block, Cell, Plot, PlotKind, Point, Row, Series, Study, Table};

use self::techniques::{ELSEWHERE, SIZE, TECHNIQUES, Technique};
use crate::context::Context;
use crate::downloads::{Asker, Course, Lane, saving};

const COLUMNS: [&str; 7] = [
    "server CPU with, s/GB",
    "without, s/GB",
    "without over with",
    "client CPU without, s/GB",
    "client, without over with",
    "without, MB/s",
    "published",
];
/// HTTP versions, oldest first: a name and how `tercel load --http` is told.
const VERSIONS: [(&str, &str); 3] = [("HTTP/1.1", "1"), ("HTTP/2", "2"), ("HTTP/3", "3")];
/// What was published of HTTP/3's CPU time over that of HTTPS/1.1.
const PUBLISHED: [(&str, f64); 3] =
    [("Google's QUIC at first", 3.5), ("Google's QUIC in 2017", 2.0), ("asked for in 2020", 1.0)];

/// Runs the study.
///
/// # Errors
/// Nothing can be measured at all.
pub fn run(context: &mut Context<'_>) -> io::Result<Study> {
    let began = bench::cpu::clock_seconds();
    let (site, lacking) = match Site::veth(1) {
        Ok(site) => (site, None),
        Err(error) => (Site::Loopback, Some(error.to_string())),
    };
    let (program, cores) = (context.program.clone(), context.cores);
    let pair = Pair::new(&program, &site, context.stop)?;
    let bytes = context.scaled(2_000_000_000, 200_000_000);
    let trials = context.scaled(7, 3);
    let course = Course { pair: &pair, cores, bytes, trials, place: site.name() };
    let mut ablation = vec![Lane::new("everything", Method::Gso, &SIZE)];
    ablation.extend(TECHNIQUES.iter().map(Technique::lane));
    let mut versions: Vec<Lane> = VERSIONS.iter().map(|(name, flag)| version(name, flag)).collect();
    let done = course.run(&mut ablation, context).and_then(|()| course.run(&mut versions, context));
    let mut notes: Vec<String> = ELSEWHERE.iter().map(|note| (*note).to_owned()).collect();
    notes.extend(lacking.map(|why| {
        format!("Measured on loopback, where TCP's segments are as large as 64 KB, because no two namespaces can be made: {why}")
    }));
    let told = |lane: &Lane| Some(format!("{}: {}", lane.name, lane.problem.as_ref()?));
    notes.extend(ablation.iter().chain(&versions).filter_map(told));
    Ok(Study {
        id: "e6".to_owned(),
        title: "Can HTTP/3 be as cheap as HTTP/2 and HTTP/1.1?".to_owned(),
        question: "What is each technique worth, in CPU time of the server for the same transfer, and what is left between HTTP/3 and \
                   the versions over TCP?"
            .to_owned(),
        method: method(bytes, trials, &site),
        findings: findings(&ablation, &versions),
        blocks: vec![
            Block::Table(ablation_table(&ablation)),
            Block::Plot(plot(&ablation)),
            Block::Table(version_table(&versions)),
        ],
        notes,
        problem: done.err().map(|error| error.to_string()),
        seconds: bench::cpu::clock_seconds() - began,
        raw: serde_json::json!({ "ablation": ablation, "versions": versions }),
    })
}

fn method(bytes: u64, trials: usize, site: &Site) -> Vec<String> {
    vec![
        format!(
            "One connection downloads {} MB of generated content; {trials} trials of each row in alternating order, after one that is \
             not counted.",
            bytes / 1_000_000
        ),
        format!(
            "Server and client are processes on a core each at the two ends of: {}; both are started anew for each trial. CPU \
             times are the operating system's, handshake included: the server's without start and end of its process, the client's \
             with them.",
            site.name()
        ),
        format!(
            "HTTP/3 in packets of {} bytes, AES-128-GCM, CUBIC; TCP is the kernel's, with {}. Each technique is left out by flags of tercel that users have, too: \
             see tercel serve --help, heading Laboratory.",
            SIZE[1],
            site.tcp_congestion()
        ),
        "The three versions of HTTP are asked by tercel load, one request on one connection; in the other rows the client is tercel \
         get."
            .to_owned(),
    ]
}

fn version(name: &str, flag: &'static str) -> Lane {
    let mut lane = match flag {
        "3" => Lane::new(name, Method::Gso, &SIZE),
        _ => Lane::apart(name, Method::Gso, &SIZE, &["--cipher", "aes128"]),
    };
    lane.asker = Asker::Load(flag);
    lane
}

/// The client's CPU time for the same content over that of another lane.
fn client_over(lane: &Lane, other: &Lane) -> Option<Ratio> {
    let cost = |lane: &Lane| lane.values(|trial| trial.client_cpu_s_per_gb);
    Ratio::of(&cost(lane), &cost(other))
}

fn ablation_table(lanes: &[Lane]) -> Table {
    let everything = lanes.first();
    let row = |(lane, technique): (&Lane, &Technique)| Row {
        name: lane.name.clone(),
        is_published: false,
        cells: vec![
            everything.map_or(Cell::Empty, |lane| lane.cell(3, |trial| trial.server_cpu_s_per_gb)),
            lane.cell(3, |trial| trial.server_cpu_s_per_gb),
            everything.and_then(|everything| lane.cost_over(everything)).into(),
            lane.cell(3, |trial| trial.client_cpu_s_per_gb),
            everything.and_then(|everything| client_over(lane, everything)).into(),
            lane.cell(0, |trial| trial.megabytes_per_second),
            technique.published.map_or(Cell::Empty, Cell::from),
        ],
    };
    Table {
        title: "HTTP/3 with everything, and without one technique at a time".to_owned(),
        corner: "left out".to_owned(),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows: lanes.iter().skip(1).zip(&TECHNIQUES).map(row).collect(),
    }
}

fn version_table(lanes: &[Lane]) -> Table {
    let oldest = lanes.first();
    let measured = lanes.iter().map(|lane| Row {
        name: lane.name.clone(),
        is_published: false,
        cells: vec![
            lane.cell(3, |trial| trial.server_cpu_s_per_gb),
            oldest.filter(|oldest| oldest.name != lane.name).and_then(|oldest| lane.cost_over(oldest)).into(),
            lane.cell(3, |trial| trial.client_cpu_s_per_gb),
            lane.cell(0, |trial| trial.megabytes_per_second),
            lane.cell(0, |trial| trial.server_share * 100.0),
        ],
    });
    let published = PUBLISHED.iter().map(|(name, times)| Row {
        name: (*name).to_owned(),
        is_published: true,
        cells: vec![Cell::Empty, Cell::Number(*times, 1), Cell::Empty, Cell::Empty, Cell::Empty],
    });
    Table {
        title: "The same download from the same server over three versions of HTTP".to_owned(),
        corner: "version".to_owned(),
        columns: [
            "server CPU, s/GB",
            "over HTTP/1.1",
            "client CPU, s/GB",
            "content, MB/s",
            "server CPU, % of a core",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: measured.chain(published).collect(),
    }
}

/// What leaving a technique out costs, as a ratio with its interval.
fn plot(lanes: &[Lane]) -> Plot {
    let everything = lanes.first();
    let ratio = |lane: &Lane| everything.and_then(|everything| lane.cost_over(everything));
    let measured: Vec<(&Lane, Ratio)> =
        lanes.iter().skip(1).filter_map(|lane| Some((lane, ratio(lane)?))).collect();
    let point = |(place, (_, ratio)): (usize, &(&Lane, Ratio))| Point {
        x: place as f64,
        y: ratio.ratio,
        interval: Some([ratio.low, ratio.high]),
    };
    Plot {
        title: "The server's CPU time without a technique, over that with everything".to_owned(),
        kind: PlotKind::Bars(measured.iter().map(|(lane, _)| lane.name.clone()).collect()),
        x: Axis { label: "left out".to_owned(), ..Axis::default() },
        y: Axis { label: "times".to_owned(), ..Axis::default() },
        series: vec![Series {
            name: "without over with".to_owned(),
            is_published: false,
            points: measured.iter().enumerate().map(point).collect(),
        }],
    }
}

fn findings(ablation: &[Lane], versions: &[Lane]) -> Vec<String> {
    let mut findings = Vec::new();
    if let Some(everything) = ablation.first() {
        let ratios = |cost: fn(&Lane, &Lane) -> Option<Ratio>| -> Vec<(String, Ratio)> {
            let ratio = |lane: &Lane| Some((lane.name.clone(), cost(lane, everything)?));
            ablation.iter().skip(1).filter_map(ratio).collect()
        };
        findings.extend(worth("server", &ratios(Lane::cost_over)));
        findings.extend(worth("client", &ratios(client_over)));
    }
    if let [oldest, second, newest] = versions
        && let (Some(one), Some(two)) = (newest.cost_over(oldest), newest.cost_over(second))
    {
        findings.push(format!(
            "The server's CPU time over HTTP/3 was {:.2} times that over HTTP/1.1 (95 % interval: {:.2} to {:.2}) and {:.2} times \
             that over HTTP/2 ({:.2} to {:.2}).",
            one.ratio, one.low, one.high, two.ratio, two.low, two.high
        ));
    }
    findings
}

/// One sentence on what is worth something at this end, dearest first, and one on what is not.
fn worth(end: &str, ratios: &[(String, Ratio)]) -> Vec<String> {
    let mut clear: Vec<&(String, Ratio)> = ratios.iter().filter(|(_, ratio)| !ratio.spans_one()).collect();
    clear.sort_by(|(_, a), (_, b)| b.ratio.total_cmp(&a.ratio));
    let open: Vec<&str> =
        ratios.iter().filter(|(_, ratio)| ratio.spans_one()).map(|(name, _)| name.as_str()).collect();
    let mut sentences: Vec<String> = clear
        .into_iter()
        .map(|(name, ratio)| format!("{name}: the {end}'s CPU time was {}.", saving(ratio)))
        .collect();
    if !open.is_empty() {
        sentences.push(format!("No measurable difference to the {end}: {}.", open.join("; ")));
    }
    sentences
}
