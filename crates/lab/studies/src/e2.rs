//! E2: what larger packets are worth, and how soon they are found (DPLPMTUD, RFC 8899).
//!
//! Five connections of one client each download a file at a round-trip time of 2 ms, without the search for the packet size,
//! with its usual ceiling, with one of 4,096 bytes, and with none but that of the loopback interface; `trial` runs one of
//! these. The time that a search takes, and what a path does that begins to eat large packets, come from the simulator (`search`).
//!
//! The delay is made by the two ends themselves, which hold each datagram that they receive for 1 ms: an emulated link needs a core
//! of its own at these rates, and a machine of two cores has none to spare.

mod search;
mod trial;

use std::io;

use bench::estimate::Estimate;
use bench::method::Method;
use bench::pair::ProgramPair;
use bench::process::is_interruption;
use bench::site::Site;
use report::model::{Axis, Block, Cell, Plot, PlotKind, Point, Row, Series, Study, Table};
use report::stats::{Ratio, Summary};
use serde_json::json;
use trial::{CONNECTIONS, HOLD, Scenario, Trial};

use crate::ceiling::{self, Ceiling};
use crate::context::Context;
use crate::courses::{self, Rounds};
use crate::downloads::DownloadSeries;
use crate::profiles::{self, Look};

/// Counted trials of each scenario.
const TRIALS: usize = 3;

/// How the server sends, in the order of the tables: as the published one did, and as ours does unless it is told otherwise.
const SENDING: [(Method, &str); 2] =
    [(Method::Plain, "a system call for each packet"), (Method::Gso, "trains (GSO)")];

/// In the order of the table; the first is what the others are compared with.
const SCENARIOS: [Scenario; 4] = [
    Scenario { name: "off", flags: &["--mtu-search", "off"], payload: 1_252, published: Some(19.9) },
    Scenario {
        name: "usual ceiling, 1472",
        flags: &["--mtu-ceiling", "1472"],
        payload: 1_472,
        published: Some(17.7),
    },
    Scenario {
        name: "ceiling 4096",
        flags: &["--mtu-ceiling", "4096"],
        payload: 4_096,
        published: Some(13.0),
    },
    Scenario { name: "no ceiling, 65507", flags: &[], payload: 65_507, published: None },
];

/// The column of the share of the roofline.
const SHARE: usize = 4;

/// Runs the study.
///
/// # Errors
/// Nothing can be measured at all.
pub fn run(context: &mut Context<'_>) -> io::Result<Study> {
    let began = cpu::clock_seconds();
    let bytes = context.scaled(1_000_000_000, 100_000_000);
    let (mut trials, mut failures) = (Vec::new(), Vec::new());
    let mut ceilings = SCENARIOS.map(|_| Ceiling::default());
    let mut study = Study { method: method(bytes), ..about() };
    let measured = measure(context, bytes, (&mut trials, &mut failures)).and_then(|()| {
        SCENARIOS.iter().zip(&mut ceilings).try_for_each(|(scenario, ceiling)| {
            let work = (scenario.payload, bytes as f64 / 1e9);
            (0..TRIALS).try_for_each(|_| ceiling.try_measure(context, work, &mut study.notes))
        })
    });
    study.notes.extend(failures.into_iter().map(|Failure { how, scenario, why }| {
        format!("Server with {how}, {scenario}: left out from the trial on that failed: {why}")
    }));
    for (method, how) in SENDING {
        let by_it: Vec<&Trial> = trials.iter().filter(|trial| trial.method == method).collect();
        add_trials(&mut study, how, (&by_it, &ceilings), bytes);
    }
    let mut raw = json!({ "trials": trials, "rooflines": ceilings });
    let stop = context.stop;
    let searched = measured.and_then(|()| {
        context.tell("e2: searches, in the simulator");
        search::run(&|| stop.load(std::sync::atomic::Ordering::Relaxed))
    });
    match searched {
        Ok(outcome) => {
            study.blocks.extend(outcome.blocks);
            study.findings.extend(outcome.findings);
            raw["searches"] = outcome.raw;
        }
        Err(error) if is_interruption(&error, context.stop) => study.problem = Some("interrupted".to_owned()),
        Err(error) => study.problem = Some(error.to_string()),
    }
    study.raw = raw;
    let looks = SCENARIOS.map(|scenario| {
        let flags = [&["--hold-received", HOLD], scenario.flags].concat();
        Look::at_download(DownloadSeries::new(scenario.name, Method::Gso, &flags), || Ok(Site::Loopback))
    });
    profiles::add(context, looks.into(), &mut study);
    study.seconds = cpu::clock_seconds() - began;
    Ok(study)
}

/// A scenario that is measured no further.
struct Failure {
    how: &'static str,
    scenario: &'static str,
    why: String,
}

/// The scenarios in turn, in changing order, after one that does not count. One that fails is left out from then on.
fn measure(
    context: &mut Context<'_>,
    bytes: u64,
    (trials, failures): (&mut Vec<Trial>, &mut Vec<Failure>),
) -> io::Result<()> {
    let site = Site::Loopback;
    let (program, cores, stop) = (context.program.clone(), context.cores, context.stop);
    let pair = ProgramPair::new(&program, &site, stop)?;
    let mut estimate = Estimate::of_rounds(SENDING.len() * SCENARIOS.len(), TRIALS);
    context.tell("e2: warm-up");
    trial::run(&pair, &SCENARIOS[0], (Method::Gso, cores), bytes)?;
    for round in 0..TRIALS {
        for place in 0..SENDING.len() * SCENARIOS.len() {
            let (method, how) = SENDING[place / SCENARIOS.len()];
            let scenario = &SCENARIOS[(place + round) % SCENARIOS.len()];
            let has_failed = |failure: &Failure| (failure.how, failure.scenario) == (how, scenario.name);
            if failures.iter().any(has_failed) {
                continue;
            }
            let trial = match trial::run(&pair, scenario, (method, cores), bytes) {
                Ok(trial) => trial,
                Err(error) if is_interruption(&error, stop) => return Err(error),
                Err(error) => {
                    context.tell(&format!("e2: {method}, {}: {error}", scenario.name));
                    failures.push(Failure { how, scenario: scenario.name, why: error.to_string() });
                    continue;
                }
            };
            context.tell(&format!(
                "e2: {method}, {}: {:.2} s, {:.0} bytes of payload, server {:.0} % of its core{}",
                scenario.name,
                trial.seconds,
                trial.mean_payload,
                trial.core_shares[0] * 100.0,
                estimate.step(1.0)
            ));
            trials.push(trial);
        }
    }
    Ok(())
}

fn about() -> Study {
    Study {
        id: "e2".to_owned(),
        title: "Larger packets: DPLPMTUD".to_owned(),
        question: "How much sooner do five downloads end when packets are as large as the path carries, and how long does it \
                   take to find out how large that is?"
            .to_owned(),
        ..Study::default()
    }
}

fn method(bytes: u64) -> Vec<String> {
    let size = bytes as f64 / 1e9;
    vec![
        format!(
            "Five connections of one client process each download {size} GB over HTTP/3 from one server process, over loopback; \
             the time is that until the last has everything. Median of {TRIALS} trials in changing order, one more to warm up."
        ),
        "Server and client have a core each; the server's content is generated, the client's is counted and forgotten.".into(),
        "2 ms of round-trip time: each end holds every datagram that it receives for 1 ms (--hold-received, a middleware of the \
         data path, one copy). Not an emulated link: it would need a core of its own."
            .into(),
        "Kernel UDP. The server sends with a system call for each packet, as the published one did, and in trains (GSO); the \
         client always receives with GRO. The same settings of the search at both ends."
            .into(),
        ceiling::method("after all, for each size of packets"),
        "Payloads are those on the wire, from the server's counters: bytes by datagrams, handshakes and acknowledgements included.".into(),
        "Published: LSQUIC, another machine; by them a server at full load. The searches and the paths that change are simulated: \
         100 Mbit/s, 20 ms, exact and the same in every run."
            .into(),
    ]
}

/// The trials of a way of sending as a table, a picture and findings.
fn add_trials(study: &mut Study, how: &str, (trials, ceilings): (&[&Trial], &[Ceiling]), bytes: u64) {
    let of = |scenario: &Scenario| {
        trials.iter().copied().filter(|trial| trial.scenario == scenario.name).collect::<Vec<_>>()
    };
    let seconds = |scenario: &Scenario| of(scenario).iter().map(|trial| trial.seconds).collect::<Vec<f64>>();
    let base = seconds(&SCENARIOS[0]);
    let mut rows = Vec::new();
    let mut medians = Vec::new();
    for (scenario, ceiling) in SCENARIOS.iter().zip(ceilings) {
        let trials = of(scenario);
        if trials.is_empty() {
            continue;
        }
        let summary = Summary::of(seconds(scenario));
        let less = less_time(summary.median, Summary::of(base.iter().copied()).median);
        medians.push((scenario, summary.median, less));
        let content = CONNECTIONS as f64 * bytes as f64 / 1e6;
        let share = ceiling.share(trials.iter().map(|trial| content / trial.seconds));
        let mut row = row(scenario, &trials, (summary, less), &base);
        row.cells.insert(SHARE, share);
        rows.push(row);
        study.notes.extend(trials.iter().filter_map(|trial| trial.doubt(scenario)));
    }
    rows.extend(SCENARIOS.iter().filter_map(published));
    for (scenario, median, less) in medians.iter().skip(1) {
        let published = scenario.published.map_or(String::new(), |seconds| {
            format!(" (published: {:.0} %)", less_time(seconds, SCENARIOS[0].published.unwrap_or(seconds)))
        });
        study.findings.push(format!(
            "Server with {how}, {}: {median:.2} s, {less:.0} % less time than without{published}.",
            scenario.name
        ));
    }
    let idle = trials.iter().filter(|trial| trial.core_shares[0] < 0.9).count();
    if idle > 0 {
        study.notes.push(format!(
            "Server with {how}: in {idle} of {} trials it used less than 90 % of its core: there the client, or what is under way, is the limit.",
            trials.len()
        ));
    }
    let columns = [
        "s, all trials",
        "median, s",
        "less time than off, %",
        "time by that of off",
        "share of roofline, %",
        "payload on the wire, mean, bytes",
        "packet size at the end, bytes",
        "search, ms",
        "server's core, %",
        "client's core, %",
        "datagrams lost for want of room",
    ];
    study.blocks.push(Block::Table(Table {
        title: format!("Until all {CONNECTIONS} downloads have ended; server with {how}"),
        corner: "scenario".into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }));
    study.blocks.push(Block::Plot(plot(how, &medians)));
    let rounds = SCENARIOS.map(|scenario| Rounds {
        name: format!("{how}: {}", scenario.name),
        courses: of(&scenario).into_iter().map(|trial| &trial.course[..]).collect(),
    });
    study.blocks.extend(courses::blocks(&rounds));
}

/// By how many percent `seconds` is less than `base`.
fn less_time(seconds: f64, base: f64) -> f64 {
    (1.0 - seconds / base) * 100.0
}

fn row(scenario: &Scenario, trials: &[&Trial], (summary, less): (Summary, f64), base: &[f64]) -> Row {
    let mean = |value: fn(&Trial) -> f64| Summary::of(trials.iter().map(|trial| value(trial))).mean;
    let searches: Vec<f64> = trials.iter().filter_map(|trial| trial.search_ms).collect();
    let is_base = scenario.name == SCENARIOS[0].name;
    let median = summary.median;
    Row {
        name: scenario.name.to_owned(),
        is_published: false,
        cells: vec![
            Cell::Trials(summary.clone(), 2),
            Cell::Number(median, 2),
            if is_base { Cell::Empty } else { Cell::Number(less, 0) },
            if is_base { Cell::Empty } else { Ratio::by_rounds(&summary.values, base).into() },
            Cell::Number(mean(|trial| trial.mean_payload), 0),
            Cell::Number(mean(|trial| trial.packet_sizes[0]), 0),
            if searches.is_empty() { Cell::Empty } else { Cell::Trials(Summary::of(searches), 1) },
            Cell::Number(mean(|trial| trial.core_shares[0]) * 100.0, 0),
            Cell::Number(mean(|trial| trial.core_shares[1]) * 100.0, 0),
            Cell::Number(mean(|trial| trial.overflowed), 0),
        ],
    }
}

fn published(scenario: &Scenario) -> Option<Row> {
    let seconds = scenario.published?;
    let base = SCENARIOS[0].published?;
    let less = if seconds < base { Cell::Number(less_time(seconds, base), 0) } else { Cell::Empty };
    let mut cells = vec![Cell::Empty, Cell::Number(seconds, 1), less];
    cells.resize(11, Cell::Empty);
    Some(Row { name: format!("{}, LSQUIC as published", scenario.name), is_published: true, cells })
}

fn plot(how: &str, medians: &[(&Scenario, f64, f64)]) -> Plot {
    let points = |value: &dyn Fn(&Scenario, f64) -> Option<f64>| {
        let bars =
            (0..).zip(medians).filter_map(|(x, (scenario, median, _))| Some((x, value(scenario, *median)?)));
        bars.map(|(x, y)| Point { x: f64::from(x), y, interval: None }).collect()
    };
    Plot {
        title: format!(
            "Until all {CONNECTIONS} downloads have ended, median, as a share of the time without search; server with {how}"
        ),
        kind: PlotKind::Bars(medians.iter().map(|(scenario, ..)| scenario.name.to_owned()).collect()),
        x: Axis { label: "packet size".into(), ..Axis::default() },
        y: Axis { label: "% of the time without search".into(), ..Axis::default() },
        series: vec![
            Series {
                name: "tercel".into(),
                is_published: false,
                points: points(&|_, median| Some(median / medians.first()?.1 * 100.0)),
            },
            Series {
                name: "LSQUIC, published".into(),
                is_published: true,
                points: points(&|scenario, _| Some(scenario.published? / SCENARIOS[0].published? * 100.0)),
            },
        ],
    }
}
