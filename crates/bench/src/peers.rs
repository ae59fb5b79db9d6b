//! tercel beside quinn: one connection, one stream, a server on one core and a client on another, over loopback.
//!
//! Every contestant is a pair of processes that are started anew for each trial. Trials alternate, and a trial of the
//! roofline goes with each round, so that whatever else the machine does meets all alike. Before the first round each
//! pair runs once uncounted. What was measured before an interruption or a failure is part of the result.

mod contestant;
mod table;

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::cpu;
use crate::environment::Environment;
use crate::folder::Folder;
use crate::process::Usage;
use crate::roofline::{self, Roofline, Work};
use crate::stats::{Ratio, Summary};
use contestant::Contestant;
use udp::Variant;

/// What is measured.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Content of one transfer in 10^9 bytes.
    pub gigabytes: f64,
    /// Trials of each contestant.
    pub trials: usize,
    /// Bytes of UDP payload in full packets.
    pub payload_size: u16,
    /// The cores of server and client.
    pub cores: [usize; 2],
    /// The tercel program. Where it lies is nobody's business who reads the results.
    #[serde(skip)]
    pub tercel: PathBuf,
    /// The quinn-peer program.
    #[serde(skip)]
    pub quinn_peer: PathBuf,
}

impl Plan {
    /// Five trials of 4 GB with 1,472 bytes of payload on the first two cores that there are (or on the only one).
    pub fn new(tercel: PathBuf, quinn_peer: PathBuf) -> Plan {
        let allowed = cpu::allowed();
        let first = allowed.first().copied().unwrap_or(0);
        let cores = [first, allowed.get(1).copied().unwrap_or(first)];
        Plan { gigabytes: 4.0, trials: 5, payload_size: 1_472, cores, tercel, quinn_peer }
    }

    /// Content bytes of a transfer.
    pub fn bytes(&self) -> u64 {
        (self.gigabytes * 1e9) as u64
    }
}

/// What one side did in one trial.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Side {
    /// The operating system's account.
    pub usage: Usage,
    /// CPU seconds per 10^9 bytes of content.
    pub cpu_s_per_gb: f64,
    /// Datagrams per system call in the direction of the content; none when the implementation does not say.
    pub datagrams_per_call: Option<f64>,
}

/// One transfer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Trial {
    /// Content, in 10^9 bits per second. tercel's clock starts before the handshake, quinn's after it.
    pub goodput_gbit_s: f64,
    /// The sender.
    pub server: Side,
    /// The receiver.
    pub client: Side,
    /// Datagrams that the server sent.
    pub datagrams: u64,
    /// Bytes of UDP payload in them, on average, as counted by the server.
    pub payload_mean: f64,
}

/// A contestant and its trials.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Who.
    pub name: &'static str,
    /// What it speaks and which settings it ran with.
    pub settings: String,
    /// All counted trials, in order.
    pub trials: Vec<Trial>,
    /// Over the trials.
    pub goodput_gbit_s: Summary,
    /// Over the trials.
    pub server_cpu_s_per_gb: Summary,
    /// Over the trials.
    pub client_cpu_s_per_gb: Summary,
    /// Over the trials.
    pub payload_mean: Summary,
    /// Over the trials: tercel's share of the roofline is roofline's CPU divided by its own.
    pub roofline_share: Option<Share>,
}

/// How much of a row is unavoidable: the roofline's figure divided by the row's; of goodput the other way around.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Share {
    /// Of goodput.
    pub goodput: f64,
    /// Of the server's CPU time.
    pub server_cpu: f64,
    /// Of the client's CPU time.
    pub client_cpu: f64,
}

/// One figure of the first contestant over that of the second.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Which figure.
    pub of: &'static str,
    /// tercel divided by quinn; none with fewer than two trials.
    pub ratio: Option<Ratio>,
    /// The better one; none while the interval spans 1.
    pub better: Option<&'static str>,
}

/// The result, or as much of it as there is.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What was to be measured.
    pub plan: Plan,
    /// Where.
    pub environment: Environment,
    /// The cipher suite of all.
    pub cipher: &'static str,
    /// The congestion controller of both implementations.
    pub congestion: &'static str,
    /// tercel, quinn.
    pub rows: Vec<Row>,
    /// Tercel over quinn.
    pub findings: Vec<Finding>,
    /// One trial for each round.
    pub roofline: Vec<Roofline>,
    /// What a reader must know to judge the figures.
    pub notes: Vec<String>,
    /// Why it ended before the plan was fulfilled.
    pub problem: Option<String>,
}

/// Measures until the plan is fulfilled, something fails, or `stop` is set. `launch` starts this program again as for
/// [`roofline::run`]; `progress` hears a line for each trial.
///
/// # Errors
/// When nothing can be measured at all: a program is missing, or no folder can be made for temporary files.
pub fn run(
    plan: &Plan,
    launch: &dyn Fn(&str) -> io::Result<Command>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> io::Result<Comparison> {
    contestant::check(plan)?;
    let folder = Folder::make()?;
    // Before we are the load ourselves.
    let environment = Environment::here();
    let mut measured = Measured::default();
    let problem = measured.rounds(plan, launch, (&folder, stop), progress).err();
    Ok(measured.conclude(plan, environment, problem.map(|error| error.to_string())))
}

#[derive(Debug, Default)]
struct Measured {
    trials: [Vec<Trial>; 2],
    settings: [String; 2],
    roofline: Vec<Roofline>,
}

impl Measured {
    fn rounds(
        &mut self,
        plan: &Plan,
        launch: &dyn Fn(&str) -> io::Result<Command>,
        (folder, stop): (&Folder, &AtomicBool),
        progress: &mut dyn FnMut(&str),
    ) -> io::Result<()> {
        for round in 0..=plan.trials {
            for (index, who) in Contestant::ALL.into_iter().enumerate() {
                let (trial, settings) = who.measure(plan, folder, stop)?;
                let counted =
                    if round == 0 { "warm-up".to_owned() } else { format!("{round}/{}", plan.trials) };
                progress(&format!("{:8} {counted:8} {}", who.name(), table::trial_line(&trial)));
                if round > 0 {
                    self.trials[index].push(trial);
                    self.settings[index] = settings;
                }
            }
            if round > 0 {
                let ceiling = roofline::run(&self.ceiling(plan), launch);
                // A child that died by the signal that is meant for us is no failure of its own.
                if stop.load(Ordering::Relaxed) {
                    return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
                }
                self.roofline.push(ceiling?);
            }
        }
        Ok(())
    }

    fn ceiling(&self, plan: &Plan) -> roofline::Plan {
        let size = usize::from(plan.payload_size);
        let mut ceiling = roofline::Plan::new(size, plan.gigabytes, Work::Whole, Variant::Gso);
        ceiling.trials = 1;
        ceiling.cores = plan.cores;
        ceiling
    }

    fn conclude(self, plan: &Plan, environment: Environment, problem: Option<String>) -> Comparison {
        let Measured { trials, settings, roofline } = self;
        let rows: Vec<Row> = Contestant::ALL
            .into_iter()
            .zip(trials.into_iter().zip(settings))
            .map(|(who, (trials, settings))| row(who.name(), settings, trials, &roofline))
            .collect();
        let notes = notes(plan, &rows);
        Comparison {
            plan: plan.clone(),
            environment,
            cipher: "TLS13_AES_128_GCM_SHA256",
            congestion: "cubic",
            findings: findings(&rows),
            rows,
            roofline,
            notes,
            problem,
        }
    }
}

fn row(name: &'static str, settings: String, trials: Vec<Trial>, roofline: &[Roofline]) -> Row {
    let over = |figure: &dyn Fn(&Trial) -> f64| Summary::of(trials.iter().map(figure));
    let goodput = over(&|trial| trial.goodput_gbit_s);
    let server = over(&|trial| trial.server.cpu_s_per_gb);
    let client = over(&|trial| trial.client.cpu_s_per_gb);
    let payload = over(&|trial| trial.payload_mean);
    let ceiling = |figure: &dyn Fn(&Roofline) -> f64| Summary::of(roofline.iter().map(figure)).mean;
    let share = (!trials.is_empty() && !roofline.is_empty()).then(|| Share {
        goodput: goodput.mean / ceiling(&|run| run.gbit_per_second),
        server_cpu: ceiling(&|run| run.sender.cpu_seconds_per_gb) / server.mean,
        client_cpu: ceiling(&|run| run.receiver.cpu_seconds_per_gb) / client.mean,
    });
    Row {
        name,
        settings,
        trials,
        goodput_gbit_s: goodput,
        server_cpu_s_per_gb: server,
        client_cpu_s_per_gb: client,
        payload_mean: payload,
        roofline_share: share,
    }
}

fn findings(rows: &[Row]) -> Vec<Finding> {
    let [tercel, quinn] = rows else { return Vec::new() };
    let finding = |of, figure: fn(&Row) -> &Summary, more_is_better: Better| {
        let ratio = Ratio::of(&figure(tercel).values, &figure(quinn).values);
        let better = ratio.filter(|ratio| !ratio.spans_one()).map(|ratio| match more_is_better {
            Better::More if ratio.ratio > 1.0 => tercel.name,
            Better::Less if ratio.ratio < 1.0 => tercel.name,
            Better::More | Better::Less => quinn.name,
        });
        Finding { of, ratio, better }
    };
    vec![
        finding("goodput", |row| &row.goodput_gbit_s, Better::More),
        finding("server CPU per GB", |row| &row.server_cpu_s_per_gb, Better::Less),
        finding("client CPU per GB", |row| &row.client_cpu_s_per_gb, Better::Less),
    ]
}

#[derive(Clone, Copy)]
enum Better {
    More,
    Less,
}

/// How far the average datagram may be below the size that was asked for: the handshake, the search for the path's MTU and the
/// last packet are smaller.
const PAYLOAD_SLACK: f64 = 0.02;

fn notes(plan: &Plan, rows: &[Row]) -> Vec<String> {
    let mut notes = vec![
        "quinn's pair sends raw QUIC streams and its clock starts after the handshake; tercel's carries one HTTP/3 response \
         and its clock starts before the handshake. Both are to tercel's disadvantage."
            .to_owned(),
        "Both send a pattern that stays in the cache, and discard what they receive. The roofline copies out of a source \
         of 64 MiB and copies what it receives, so a share of it can exceed 100 %."
            .to_owned(),
        "The CPU time is that of whole processes, start and handshake included. A roofline share of CPU is the roofline's \
         time divided by the row's."
            .to_owned(),
    ];
    for row in rows.iter().filter(|row| !row.trials.is_empty()) {
        let asked = f64::from(plan.payload_size);
        if row.payload_mean.values.iter().any(|reached| (reached / asked - 1.0).abs() > PAYLOAD_SLACK) {
            let reached = row.payload_mean.mean;
            notes.push(format!(
                "NOT COMPARABLE: {} sent datagrams of {reached:.0} bytes on average instead of {asked}.",
                row.name
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
