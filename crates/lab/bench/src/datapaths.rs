//! One transfer over every path of the server: the table of issue E1, and beside it the published figures.
//!
//! In a lab of two namespaces that veth joins, MTU 1500. Server and client are processes of ours on a core each; the client
//! always uses GSO and GRO, as in the study, so that only the server changes. Trials alternate: a round has one of each path.
//! The first round is not counted. Every path sends datagrams of the same size, which the server's counters must confirm.
//!
//! CPU time is what the scheduler counted for the server's threads between the client's start and its end. Work that the
//! kernel does on its own account (ksoftirqd) is in no process's time, so the share of the whole core is told as well: it
//! holds whatever else ran there.

pub mod table;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::course::{CourseWatch, Interval};
use crate::environment::Environment;
use crate::estimate::Estimate;
use crate::method::Method;
use crate::pair::{ProgramPair, number};
use crate::process::is_interruption;
use crate::site::{End, Site, Trains};
use crate::stats::{Ratio, Summary};

/// Study E1: bytes per second of three downloads of 2 GB over kernel UDP.
pub const PUBLISHED_UDP: [f64; 3] = [111_036_768.0, 98_336_240.0, 96_860_121.0];
/// The same over AF_XDP.
pub const PUBLISHED_XDP: [f64; 3] = [152_644_777.0, 147_426_653.0, 138_277_563.0];
/// How much faster AF_XDP was in the study.
pub const PUBLISHED_GAIN: f64 = 1.43;
/// From this share of a core on, the server is said to be at full load.
const FULL_LOAD: f64 = 0.95;
/// This much of a core taken by others makes a measurement doubtful.
const OTHERS: f64 = 0.1;
/// How far the mean datagram may be from the size asked for: handshake, the search for the MTU, the last packet.
const PAYLOAD_SLACK: f64 = 0.02;

/// What is measured.
#[derive(Clone, Debug, Serialize)]
pub struct DataPathsPlan {
    /// The tercel program. Its place is left out of the results.
    #[serde(skip)]
    pub program: PathBuf,
    /// Content of one transfer in bytes.
    pub bytes: u64,
    /// Counted trials of each path.
    pub trials: usize,
    /// Bytes of UDP payload in full packets.
    pub packet_size: u16,
    /// The cores of server and client.
    pub cores: [usize; 2],
    /// The server's paths.
    pub methods: Vec<Method>,
}

impl DataPathsPlan {
    /// Three trials of 2 GB over every path with datagrams of 1,472 bytes.
    pub fn new(program: PathBuf) -> DataPathsPlan {
        DataPathsPlan {
            program,
            bytes: 2_000_000_000,
            trials: 3,
            packet_size: 1_472,
            cores: cpu::first_two(),
            methods: Method::ALL.to_vec(),
        }
    }
}

/// What one end used in one transfer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Side {
    /// CPU seconds of the process.
    pub cpu_s: f64,
    /// The same per 10^9 bytes of content.
    pub cpu_s_per_gb: f64,
    /// The process's share of its core.
    pub share: f64,
    /// The share of the core that anything used.
    pub core_share: f64,
    /// Datagrams per system call in the direction of the content.
    pub datagrams_per_call: f64,
}

/// One transfer.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// Content bytes per second, the client's clock.
    pub goodput: f64,
    /// The sender.
    pub server: Side,
    /// The receiver.
    pub client: Side,
    /// Bytes of UDP payload in the server's datagrams, on average.
    pub payload_mean: f64,
    /// Datagrams that the server sent.
    pub datagrams: u64,
    /// The path that the server says it used, with its mode.
    pub path_in_use: String,
    /// What the server did meanwhile.
    pub course: Vec<Interval>,
}

/// A path and its trials.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Which.
    pub method: Method,
    /// All counted trials in order.
    pub trials: Vec<Trial>,
    /// Bytes per second over the trials.
    pub goodput: Summary,
    /// Over the trials.
    pub server_cpu_s_per_gb: Summary,
    /// Over the trials.
    pub client_cpu_s_per_gb: Summary,
    /// Goodput over that of the first row.
    pub gain: Option<Ratio>,
    /// The first row's server CPU per GB over this one's: what a core that is at full load would give more. Others on the machine
    /// disturb it less than goodput.
    pub cpu_gain: Option<Ratio>,
    /// Whether the server had nothing left to give in every trial.
    pub is_server_at_full_load: bool,
    /// Why trials are missing.
    pub problem: Option<String>,
}

/// The result, or as much of it as there is.
#[derive(Clone, Debug, Serialize)]
pub struct DataPaths {
    /// What was to be measured.
    pub plan: DataPathsPlan,
    /// Where.
    pub environment: Environment,
    /// The link between the two.
    pub link: &'static str,
    /// The cipher suite.
    pub cipher: &'static str,
    /// The congestion controller.
    pub congestion: &'static str,
    /// Published bytes per second: UDP, AF_XDP.
    pub published: [[f64; 3]; 2],
    /// One for each path.
    pub rows: Vec<Row>,
    /// What a reader must know to judge the figures.
    pub notes: Vec<String>,
    /// Whether it ended early because it was told to.
    pub was_interrupted: bool,
}

/// Measures until the plan is fulfilled or `stop` is set. A path that fails is a row with a problem. `progress` hears a line
/// for each trial.
///
/// # Errors
/// Nothing can be measured at all.
pub fn run(
    plan: &DataPathsPlan,
    site: &Site,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> io::Result<DataPaths> {
    let environment = Environment::here();
    let pair = ProgramPair::new(&plan.program, site, stop)?;
    let mut kept: Vec<(Method, Vec<Trial>, Option<String>)> =
        plan.methods.iter().map(|&method| (method, Vec::new(), None)).collect();
    let mut was_interrupted = false;
    let mut estimate = Estimate::of_rounds(plan.methods.len(), plan.trials + 1);
    'rounds: for round in 0..=plan.trials {
        for (method, trials, problem) in kept.iter_mut().filter(|(.., problem)| problem.is_none()) {
            match trial(plan, &pair, *method) {
                Ok(trial) => {
                    let counted =
                        if round == 0 { "warm-up".to_owned() } else { format!("{round}/{}", plan.trials) };
                    let left = estimate.step(1.0);
                    progress(&format!("{method:12} {counted:8} {}{left}", table::trial_line(&trial)));
                    trials.extend((round > 0).then_some(trial));
                }
                Err(error) if is_interruption(&error, stop) => {
                    was_interrupted = true;
                    break 'rounds;
                }
                Err(error) => {
                    progress(&format!("{method:12} {error}"));
                    *problem = Some(error.to_string());
                }
            }
        }
    }
    let base: Vec<Trial> = kept.first().map(|(_, trials, _)| trials.clone()).unwrap_or_default();
    let rows: Vec<Row> =
        kept.into_iter().map(|(method, trials, problem)| row(method, trials, problem, &base)).collect();
    Ok(DataPaths {
        plan: plan.clone(),
        environment,
        link: "veth between two network namespaces, MTU 1500",
        cipher: "TLS13_AES_128_GCM_SHA256",
        congestion: "cubic",
        published: [PUBLISHED_UDP, PUBLISHED_XDP],
        notes: notes(plan, &rows),
        rows,
        was_interrupted,
    })
}

fn goodputs(trials: &[Trial]) -> Vec<f64> {
    trials.iter().map(|trial| trial.goodput).collect()
}

fn server_costs(trials: &[Trial]) -> Vec<f64> {
    trials.iter().map(|trial| trial.server.cpu_s_per_gb).collect()
}

fn row(method: Method, trials: Vec<Trial>, problem: Option<String>, base: &[Trial]) -> Row {
    let goodput = Summary::of(goodputs(&trials));
    Row {
        method,
        gain: Ratio::by_rounds(&goodput.values, &goodputs(base)),
        cpu_gain: Ratio::by_rounds(&server_costs(base), &server_costs(&trials)),
        goodput,
        server_cpu_s_per_gb: Summary::of(server_costs(&trials)),
        client_cpu_s_per_gb: Summary::of(trials.iter().map(|trial| trial.client.cpu_s_per_gb)),
        is_server_at_full_load: trials.iter().all(|trial| trial.server.share >= FULL_LOAD),
        trials,
        problem,
    }
}

/// Reads the clocks of both cores.
fn busy(plan: &DataPathsPlan) -> [f64; 2] {
    plan.cores.map(cpu::busy_seconds)
}

fn trial(plan: &DataPathsPlan, pair: &ProgramPair<'_>, method: Method) -> io::Result<Trial> {
    let trains = if method == Method::XdpGeneric { Trains::Cut } else { Trains::Whole };
    pair.site.let_trains_through(trains)?;
    let size = plan.packet_size.to_string();
    let quic = ["--cipher", "aes128", "--congestion", "cubic", "--packet-size", &size, "--mtu-search", "off"];
    let server = pair.serve(method, pair.site.ipv4(End::Server), &plan.cores[..1], &quic)?;
    let gone = || io::Error::other("the server has gone");
    let (cpu_before, busy_before) = (cpu::seconds_of(server.id()).ok_or_else(gone)?, busy(plan));
    let url = server.url(&format!("bytes/{}", plan.bytes));
    let arguments = [&[url.as_str(), "--discard"][..], &quic].concat();
    let patience = Duration::from_secs_f64(30.0 + plan.bytes as f64 / 20e6);
    let watch = CourseWatch::start(server.id(), pair.site.interface(End::Server));
    let (client, lines) = pair.fetch(Method::Gso, &plan.cores[1..], &arguments, patience)?;
    let course = watch.finish();
    let (cpu_after, busy_after) = (cpu::seconds_of(server.id()).ok_or_else(gone)?, busy(plan));
    let (_, summary) = server.finish(pair.stop)?;
    let line = lines.first().ok_or_else(|| io::Error::other("the client printed no figures"))?;
    let (bytes, seconds) = (number(line, "bytes")?, number(line, "seconds")?);
    let per_call = |from: &Value, datagrams: &str, calls: &str| -> io::Result<f64> {
        Ok(number(from, datagrams)? / number(from, calls)?.max(1.0))
    };
    let side = |cpu_s: f64, core: usize, datagrams_per_call| Side {
        cpu_s,
        cpu_s_per_gb: cpu_s * 1e9 / bytes,
        share: cpu_s / seconds,
        core_share: (busy_after[core] - busy_before[core]) / seconds,
        datagrams_per_call,
    };
    let datagrams = number(&summary, "sent_datagrams")?;
    Ok(Trial {
        goodput: bytes / seconds,
        server: side(cpu_after - cpu_before, 0, per_call(&summary, "sent_datagrams", "send_calls")?),
        client: side(client.usage.total_s(), 1, per_call(line, "received_datagrams", "receive_calls")?),
        payload_mean: number(&summary, "sent_bytes")? / datagrams.max(1.0),
        datagrams: datagrams as u64,
        path_in_use: path_in_use(&summary),
        course,
    })
}

/// The server's own words.
pub(crate) fn path_in_use(summary: &Value) -> String {
    let path = summary["datapath"].as_str().unwrap_or("unknown");
    match summary["xdp"]["mode"].as_str().or(summary["xdp_mode"].as_str()) {
        Some(mode) if !path.contains(mode) => format!("{path} {mode}"),
        _ => path.to_owned(),
    }
}

fn notes(plan: &DataPathsPlan, rows: &[Row]) -> Vec<String> {
    let mut notes = Vec::new();
    for row in rows {
        let asked = f64::from(plan.packet_size);
        let wrong = row.trials.iter().find(|trial| (trial.payload_mean / asked - 1.0).abs() > PAYLOAD_SLACK);
        if let Some(trial) = wrong {
            notes.push(format!(
                "NOT COMPARABLE: {} sent datagrams of {:.0} bytes on average instead of {asked}.",
                row.method, trial.payload_mean
            ));
        }
        if !row.trials.is_empty() && !row.is_server_at_full_load {
            let share = Summary::of(row.trials.iter().map(|trial| trial.server.share)).median;
            let client = Summary::of(row.trials.iter().map(|trial| trial.client.share)).median;
            let others = Summary::of(row.trials.iter().map(|trial| trial.server.core_share)).median - share;
            let limit = match others {
                others if others > OTHERS => {
                    "other programs or the kernel's own threads took the rest".to_owned()
                }
                _ if client > share => "the client is what limits".to_owned(),
                _ => "neither end limits alone".to_owned(),
            };
            notes.push(format!(
                "{}: the server is not at full load ({:.0} % of its core, the client {:.0} %): {limit}.",
                row.method,
                share * 100.0,
                client * 100.0
            ));
        }
    }
    if plan.cores[0] == plan.cores[1] {
        notes.push("Server and client shared one core.".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests;
