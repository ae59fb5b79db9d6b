//! What the public library costs: an axum application beside the native handler, one async stream beside the sans-IO transport,
//! and both beside the same program on quinn.
//!
//! *hello*: one generator asks three servers for a few bytes over HTTP/3: `tercel serve` with a file, an axum application on our
//! server, the same application on quinn and h3. *stream*: a client asks a server for this many bytes on one stream, by `tercel perf`,
//! by the crate `quic` with two of its drivers, by quinn.
//!
//! Each trial has a server process and a client process, started anew, on a core each. All subjects are measured once in each
//! round, every other round in the opposite order, so that what else the machine does meets all alike. The first round is not
//! counted. What was measured before an interruption or a failure is part of the result.

mod child;
mod contestant;
mod table;

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use crate::environment::Environment;
use crate::stats::{Ratio, Summary};
pub use child::child;
use contestant::Ground;

/// What is asked of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Requests for a few bytes over HTTP/3.
    Hello,
    /// One stream without HTTP.
    Stream,
}

impl Part {
    /// Both.
    pub const ALL: [Part; 2] = [Part::Hello, Part::Stream];
}

/// A program that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// `tercel serve` with a file: the low-level handler.
    Native,
    /// axum on our server: the example `axum_hello`.
    Axum,
    /// axum on quinn and h3: `peers/quinn-axum-peer`.
    QuinnAxum,
    /// `tercel perf`: the transport, driven by its worker.
    SansIo,
    /// The crate `quic`, its endpoint on a thread of its own.
    Thread,
    /// The crate `quic`, its endpoint a task of the program's runtime.
    Current,
    /// quinn: `peers/quinn-peer`.
    Quinn,
}

impl Subject {
    /// All, as the table has them.
    pub const ALL: [Subject; 7] = [
        Subject::Native,
        Subject::Axum,
        Subject::QuinnAxum,
        Subject::SansIo,
        Subject::Thread,
        Subject::Current,
        Subject::Quinn,
    ];

    /// As it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Subject::Native => "native handler",
            Subject::Axum => "axum",
            Subject::QuinnAxum => "quinn + h3 + axum",
            Subject::SansIo => "sans-IO",
            Subject::Thread => "quic, a thread",
            Subject::Current => "quic, a task",
            Subject::Quinn => "quinn",
        }
    }

    /// What it is asked for.
    pub const fn part(self) -> Part {
        match self {
            Subject::Native | Subject::Axum | Subject::QuinnAxum => Part::Hello,
            Subject::SansIo | Subject::Thread | Subject::Current | Subject::Quinn => Part::Stream,
        }
    }
}

/// How many times the rate of the second the first shall have.
pub const AIMS: [(Subject, Subject, f64); 6] = [
    (Subject::Axum, Subject::Native, 0.5),
    (Subject::Axum, Subject::QuinnAxum, 3.0),
    (Subject::Thread, Subject::SansIo, 0.9),
    (Subject::Current, Subject::SansIo, 0.9),
    (Subject::Thread, Subject::Quinn, 1.5),
    (Subject::Current, Subject::Quinn, 1.5),
];

/// What is measured.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Which parts.
    pub parts: Vec<Part>,
    /// Counted trials of each subject.
    pub trials: usize,
    /// Seconds of requests, after half a second of warm-up.
    pub seconds: f64,
    /// Connections of the generator.
    pub connections: usize,
    /// Requests at a time on each.
    pub streams: usize,
    /// Content of a stream in 10^9 bytes.
    pub gigabytes: f64,
    /// Bytes of UDP payload in full packets.
    pub payload_size: u16,
    /// The cores of server and client.
    pub cores: [usize; 2],
    /// The tercel program. Results do not tell where it lies.
    #[serde(skip)]
    pub tercel: PathBuf,
    /// The program axum_hello; without it axum is left out.
    #[serde(skip)]
    pub axum_hello: PathBuf,
    /// The quinn-peer program; without it quinn is left out.
    #[serde(skip)]
    pub quinn_peer: PathBuf,
    /// The quinn-axum-peer program; without it quinn + h3 + axum is left out.
    #[serde(skip)]
    pub quinn_axum_peer: PathBuf,
}

impl Settings {
    /// Five trials of 4 s with 100 connections and 10 requests at a time, and of 2 GB on a stream, on the first two cores that
    /// there are (or on the only one). axum_hello is where Cargo puts the examples that it compiles as `tercel`.
    pub fn new(tercel: PathBuf, quinn_peer: PathBuf, quinn_axum_peer: PathBuf) -> Settings {
        Settings {
            parts: Part::ALL.to_vec(),
            trials: 5,
            seconds: 4.0,
            connections: 100,
            streams: 10,
            gigabytes: 2.0,
            payload_size: 1_472,
            cores: cpu::first_two(),
            axum_hello: tercel.with_file_name("examples/axum_hello"),
            tercel,
            quinn_peer,
            quinn_axum_peer,
        }
    }

    /// Content bytes of a stream.
    pub fn bytes(&self) -> u64 {
        (self.gigabytes * 1e9) as u64
    }

    fn subjects(&self) -> impl Iterator<Item = Subject> {
        Subject::ALL
            .into_iter()
            .filter(|subject| self.parts.contains(&subject.part()) && subject.is_there(self))
    }
}

/// What was measured in one trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Trial {
    /// Requests a second, or 10^9 bits of content a second.
    pub rate: f64,
    /// CPU time of the server: microseconds for a request, or seconds for 10^9 bytes of content.
    pub server_cpu: f64,
    /// The client's.
    pub client_cpu: f64,
    /// The share of its core that the server had.
    pub server_busy: f64,
}

/// A subject and its trials.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Which.
    pub subject: Subject,
    /// All counted trials, in order.
    pub trials: Vec<Trial>,
    /// Over the trials.
    pub rate: Summary,
    /// Over the trials.
    pub server_cpu: Summary,
    /// Over the trials.
    pub client_cpu: Summary,
    /// Over the trials.
    pub server_busy: Summary,
}

/// Whether an aim is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval is at or above the aim.
    Reached,
    /// The whole interval is below the aim.
    Missed,
    /// The interval holds the aim, or there are too few trials.
    Open,
}

impl Verdict {
    fn of(ratio: Option<Ratio>, aim: f64) -> Verdict {
        match ratio {
            Some(ratio) if ratio.low >= aim => Verdict::Reached,
            Some(ratio) if ratio.high < aim => Verdict::Missed,
            _ => Verdict::Open,
        }
    }
}

/// One subject over another.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The first.
    pub over: Subject,
    /// The second.
    pub under: Subject,
    /// Of the rates; none with fewer than two trials of either.
    pub rate: Option<Ratio>,
    /// Of the server's CPU time for a request or a byte: less is better.
    pub server_cpu: Option<Ratio>,
    /// What the ratio of the rates shall be at least.
    pub aim: f64,
    /// Whether it is.
    pub verdict: Verdict,
}

/// The result, or as much of it as there is.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What was to be measured.
    pub plan: Settings,
    /// Where.
    pub environment: Environment,
    /// One for each subject.
    pub rows: Vec<Row>,
    /// One for each aim of which both subjects were measured.
    pub findings: Vec<Finding>,
    /// What a reader must know to judge the figures.
    pub notes: Vec<String>,
    /// Why it ended before the plan was fulfilled.
    pub problem: Option<String>,
}

/// Measures until the plan is fulfilled, something fails, or `stop` is set. `launch` starts this program again as [`child`];
/// `progress` hears a line for each trial.
///
/// # Errors
/// When nothing can be measured at all.
pub fn run(
    plan: &Settings,
    launch: &dyn Fn(&str) -> io::Result<Command>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> io::Result<Comparison> {
    let ground = Ground::prepare(launch)?;
    // Before we are the load ourselves.
    let environment = Environment::here();
    let mut measured: Vec<(Subject, Vec<Trial>)> =
        plan.subjects().map(|subject| (subject, Vec::new())).collect();
    let problem = rounds(plan, &ground, stop, progress, &mut measured).err().map(|error| error.to_string());
    let rows: Vec<Row> = measured.into_iter().map(|(subject, trials)| row(subject, trials)).collect();
    let findings = AIMS.into_iter().filter_map(|aim| finding(&rows, aim)).collect();
    let notes = notes(plan, &rows);
    Ok(Comparison { plan: plan.clone(), environment, rows, findings, notes, problem })
}

fn rounds(
    plan: &Settings,
    ground: &Ground<'_>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
    measured: &mut [(Subject, Vec<Trial>)],
) -> io::Result<()> {
    for round in 0..=plan.trials {
        for (subject, trials) in measured.iter_mut() {
            let trial = contestant::measure(*subject, plan, ground, stop)?;
            progress(&table::trial_line(*subject, (round, plan.trials), &trial));
            if round > 0 {
                trials.push(trial);
            }
        }
        measured.reverse();
    }
    measured.sort_by_key(|(subject, _)| Subject::ALL.iter().position(|one| one == subject));
    Ok(())
}

fn row(subject: Subject, trials: Vec<Trial>) -> Row {
    let over = |figure: fn(&Trial) -> f64| Summary::of(trials.iter().map(figure));
    Row {
        subject,
        rate: over(|trial| trial.rate),
        server_cpu: over(|trial| trial.server_cpu),
        client_cpu: over(|trial| trial.client_cpu),
        server_busy: over(|trial| trial.server_busy),
        trials,
    }
}

fn finding(rows: &[Row], (over, under, aim): (Subject, Subject, f64)) -> Option<Finding> {
    let find = |subject: Subject| rows.iter().find(|row| row.subject == subject);
    let (first, second) = (find(over)?, find(under)?);
    let ratio =
        |figure: fn(&Row) -> &Summary| Ratio::by_rounds(&figure(first).values, &figure(second).values);
    let rate = ratio(|row| &row.rate);
    let verdict = Verdict::of(rate, aim);
    Some(Finding { over, under, rate, server_cpu: ratio(|row| &row.server_cpu), aim, verdict })
}

/// Below this share of its core the server was not the limit of the rate.
const BUSY: f64 = 0.9;

fn notes(plan: &Settings, rows: &[Row]) -> Vec<String> {
    let mut notes = vec![
        "hello: the CPU time is the server's over the counted seconds. stream: that of whole processes, handshake included; the \
         clock runs from the request to the last byte."
            .to_owned(),
    ];
    let absent = Subject::ALL.into_iter().filter(|subject| plan.parts.contains(&subject.part()));
    for subject in absent.filter(|subject| !subject.is_there(plan)) {
        notes.push(format!("{} is left out: its program is not there; {}", subject.name(), subject.remedy()));
    }
    for row in rows.iter().filter(|row| row.subject.part() == Part::Hello && !row.trials.is_empty()) {
        if row.server_busy.mean < BUSY {
            notes.push(format!(
                "{}: the server used {:.0} % of its core only, so the generator limits this rate. The ratio of CPU times says more.",
                row.subject.name(),
                row.server_busy.mean * 100.0
            ));
        }
    }
    if plan.cores[0] == plan.cores[1] {
        notes.push("Server and client shared one core.".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rates: &[(Subject, [f64; 3])]) -> Vec<Row> {
        let trials =
            |rates: [f64; 3]| rates.map(|rate| Trial { rate, server_cpu: 1e6 / rate, ..Trial::default() });
        rates.iter().map(|&(subject, rates)| row(subject, trials(rates).to_vec())).collect()
    }

    /// Deleted, an aim could be called reached by the mean alone, or the ratio be taken the wrong way round.
    #[test]
    fn an_aim_is_reached_or_missed_by_the_whole_interval_only() {
        let rows = rows(&[
            (Subject::Native, [100.0, 101.0, 102.0]),
            (Subject::Axum, [60.0, 61.0, 62.0]),
            (Subject::QuinnAxum, [30.0, 31.0, 32.0]),
            (Subject::SansIo, [10.0, 11.0, 12.0]),
            (Subject::Thread, [9.0, 10.0, 11.5]),
        ]);
        let found: Vec<(Subject, Subject, Verdict)> = AIMS
            .into_iter()
            .filter_map(|aim| finding(&rows, aim))
            .map(|finding| (finding.over, finding.under, finding.verdict))
            .collect();
        assert_eq!(
            found,
            [
                (Subject::Axum, Subject::Native, Verdict::Reached),
                (Subject::Axum, Subject::QuinnAxum, Verdict::Missed),
                (Subject::Thread, Subject::SansIo, Verdict::Open),
            ]
        );
        let first = finding(&rows, AIMS[0]).unwrap();
        assert!((first.rate.unwrap().ratio - 61.0 / 101.0).abs() < 1e-3);
        assert!(first.server_cpu.unwrap().ratio > 1.6);
    }

    #[test]
    fn subjects_whose_program_is_absent_are_left_out_with_the_command_that_builds_it() {
        let mut plan = Settings::new("tercel".into(), "/no/quinn-peer".into(), "/no/quinn-axum-peer".into());
        let there: Vec<Subject> = plan.subjects().collect();
        assert_eq!(there, [Subject::Native, Subject::SansIo, Subject::Thread, Subject::Current]);
        let told = notes(&plan, &[]).join("\n");
        for remedy in ["axum_hello", "peers/build", "tests/setup"] {
            assert!(told.contains(remedy), "{told}");
        }
        plan.parts = vec![Part::Hello];
        assert_eq!(plan.subjects().count(), 1);
        assert!(!notes(&plan, &[]).join("\n").contains("tests/setup"));
    }
}
