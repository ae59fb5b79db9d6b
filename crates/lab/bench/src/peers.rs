//! A cross table: each client with each server, tercel's, quinn's and quiche's, one connection and one stream over loopback.
//!
//! A sender that is fast with its own receiver only shows in no table of pairs. So every client downloads from every server,
//! with two sizes of the client's receive buffer: a large one, and the one that a socket has which asks for nothing. The
//! second is what most programs run with, and it holds fewer bytes than a fast sender's window.
//!
//! Each cell is a pair of processes, started anew for each trial, on a core each. All cells are measured once in each round,
//! every other round in the opposite order, and a trial of the roofline goes with each round, so that whatever else the machine
//! does meets all alike. Before the first round each cell runs once uncounted. What was measured before an interruption or a
//! failure is part of the result.

mod findings;
mod implementation;
mod table;

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::environment::Environment;
use crate::folder::Folder;
use crate::process::Usage;
use crate::roofline::{self, Roofline, Work};
use crate::stats::Summary;
pub use findings::Finding;
use implementation::Ground;
pub use implementation::Implementation;
use udp::Variant;

/// What is measured.
#[derive(Clone, Debug, Serialize)]
pub struct PeersPlan {
    /// Content of one transfer in 10^9 bytes.
    pub gigabytes: f64,
    /// Trials of each cell.
    pub trials: usize,
    /// Bytes of UDP payload in full packets.
    pub payload_size: u16,
    /// The cores of server and client.
    pub cores: [usize; 2],
    /// The tercel program. Results do not tell where it lies.
    #[serde(skip)]
    pub tercel: PathBuf,
    /// The quinn-peer program.
    #[serde(skip)]
    pub quinn_peer: PathBuf,
    /// The quiche-peer program; without it quiche is left out.
    #[serde(skip)]
    pub quiche_peer: PathBuf,
}

impl PeersPlan {
    /// Five trials of 2 GB with 1,472 bytes of payload on the first two cores that there are (or on the only one).
    pub fn new(tercel: PathBuf, quinn_peer: PathBuf, quiche_peer: PathBuf) -> PeersPlan {
        let cores = cpu::first_two();
        PeersPlan { gigabytes: 2.0, trials: 5, payload_size: 1_472, cores, tercel, quinn_peer, quiche_peer }
    }

    /// Content bytes of a transfer.
    pub fn bytes(&self) -> u64 {
        (self.gigabytes * 1e9) as u64
    }

    /// The cells of the table, in order.
    fn cells(&self) -> Vec<Cell> {
        let who: Vec<Implementation> =
            Implementation::ALL.into_iter().filter(|who| who.is_there(self)).collect();
        let of_client = |client| {
            let of_buffer = |buffer| who.iter().map(move |&server| Cell { client, buffer, server });
            Buffer::ALL.into_iter().flat_map(of_buffer).collect::<Vec<_>>()
        };
        who.iter().copied().flat_map(of_client).collect()
    }
}

/// The receive buffer of the client's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Buffer {
    /// 4 MiB or more, as each implementation's benchmarks recommend.
    Large,
    /// What the system gives a socket that asks for nothing: 212,992 bytes, of which about half holds packets.
    Default,
}

impl Buffer {
    /// Both, as the table has them.
    pub const ALL: [Buffer; 2] = [Buffer::Large, Buffer::Default];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Buffer::Large => "large",
            Buffer::Default => "default",
        }
    }
}

/// A place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// The receiver.
    pub client: Implementation,
    /// Its buffer.
    pub buffer: Buffer,
    /// The sender.
    pub server: Implementation,
}

/// What one side did in one trial.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Side {
    /// The operating system's account.
    pub usage: Usage,
    /// CPU seconds per 10^9 bytes of content.
    pub cpu_s_per_gb: f64,
}

/// One transfer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Trial {
    /// Content, in 10^9 bits per second, by the client's clock. quinn's client starts its clock after the handshake, the others
    /// before.
    pub goodput_gbit_s: f64,
    /// The sender.
    pub server: Side,
    /// The receiver.
    pub client: Side,
    /// Datagrams that the client received.
    pub datagrams: u64,
    /// Bytes of content in each of them, on average.
    pub content_mean: f64,
}

/// A cell and its trials.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Which.
    #[serde(flatten)]
    pub cell: Cell,
    /// All counted trials, in order.
    pub trials: Vec<Trial>,
    /// Over the trials.
    pub goodput_gbit_s: Summary,
    /// Over the trials.
    pub server_cpu_s_per_gb: Summary,
    /// Over the trials.
    pub client_cpu_s_per_gb: Summary,
    /// Over the trials.
    pub content_mean: Summary,
    /// Goodput over that of the roofline, which has no protocol; none before both were measured.
    pub roofline_share: Option<f64>,
}

/// The result, or as much of it as there is.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What was to be measured.
    pub plan: PeersPlan,
    /// Where.
    pub environment: Environment,
    /// The cipher suite of all.
    pub cipher: &'static str,
    /// The congestion controller of all.
    pub congestion: &'static str,
    /// The versions of all implementations.
    pub versions: Vec<String>,
    /// The table.
    pub rows: Vec<Row>,
    /// tercel's server beside the others, for the same client; and what a default buffer leaves of the goodput.
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
    plan: &PeersPlan,
    launch: &dyn Fn(&str) -> io::Result<Command>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> io::Result<Comparison> {
    implementation::check(plan)?;
    let ground = Ground::prepare(Folder::make()?)?;
    // Before we are the load ourselves.
    let environment = Environment::here();
    let mut measured = Measured::new(plan.cells());
    let problem = measured.rounds(plan, launch, (&ground, stop), progress).err();
    Ok(measured.conclude(plan, environment, problem.map(|error| error.to_string())))
}

#[derive(Debug)]
struct Measured {
    cells: Vec<(Cell, Vec<Trial>)>,
    roofline: Vec<Roofline>,
    /// Of all servers that ran, each once.
    versions: Vec<String>,
}

impl Measured {
    fn new(cells: Vec<Cell>) -> Measured {
        let cells = cells.into_iter().map(|cell| (cell, Vec::new())).collect();
        Measured { cells, roofline: Vec::new(), versions: Vec::new() }
    }

    fn rounds(
        &mut self,
        plan: &PeersPlan,
        launch: &dyn Fn(&str) -> io::Result<Command>,
        (ground, stop): (&Ground, &AtomicBool),
        progress: &mut dyn FnMut(&str),
    ) -> io::Result<()> {
        for round in 0..=plan.trials {
            for place in 0..self.cells.len() {
                let place = if round % 2 == 0 { place } else { self.cells.len() - 1 - place };
                let Some((cell, trials)) = self.cells.get_mut(place) else { continue };
                let (trial, version) = implementation::measure(*cell, plan, ground, stop)?;
                if !self.versions.contains(&version) {
                    self.versions.push(version);
                }
                let counted =
                    if round == 0 { "warm-up".to_owned() } else { format!("{round}/{}", plan.trials) };
                progress(&table::trial_line(*cell, &counted, &trial));
                if round > 0 {
                    trials.push(trial);
                }
            }
            if round > 0 {
                let ceiling = roofline::run(&ceiling(plan), launch);
                // A child that died by the signal that is meant for us is no failure of its own.
                if stop.load(Ordering::Relaxed) {
                    return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
                }
                self.roofline.push(ceiling?);
            }
        }
        Ok(())
    }

    fn conclude(self, plan: &PeersPlan, environment: Environment, problem: Option<String>) -> Comparison {
        let Measured { cells, roofline, versions } = self;
        let rows: Vec<Row> = cells.into_iter().map(|(cell, trials)| row(cell, trials, &roofline)).collect();
        let notes = notes(plan, &rows);
        Comparison {
            plan: plan.clone(),
            environment,
            cipher: "TLS13_AES_128_GCM_SHA256",
            congestion: "cubic",
            versions,
            findings: findings::of(&rows),
            rows,
            roofline,
            notes,
            problem,
        }
    }
}

fn ceiling(plan: &PeersPlan) -> roofline::RooflinePlan {
    let size = usize::from(plan.payload_size);
    let mut ceiling = roofline::RooflinePlan::new(size, plan.gigabytes, Work::Whole, Variant::Gso);
    ceiling.trials = 1;
    ceiling.cores = plan.cores;
    ceiling
}

fn row(cell: Cell, trials: Vec<Trial>, roofline: &[Roofline]) -> Row {
    let over = |figure: &dyn Fn(&Trial) -> f64| Summary::of(trials.iter().map(figure));
    let goodput = over(&|trial| trial.goodput_gbit_s);
    let ceiling = Summary::of(roofline.iter().map(|run| run.gbit_per_second)).mean;
    Row {
        cell,
        server_cpu_s_per_gb: over(&|trial| trial.server.cpu_s_per_gb),
        client_cpu_s_per_gb: over(&|trial| trial.client.cpu_s_per_gb),
        content_mean: over(&|trial| trial.content_mean),
        roofline_share: (!trials.is_empty() && ceiling > 0.0).then(|| goodput.mean / ceiling),
        goodput_gbit_s: goodput,
        trials,
    }
}

/// The part of a datagram that is content at least: header, tag and frames take less than the rest.
const LEAST_CONTENT: f64 = 0.95;

fn notes(plan: &PeersPlan, rows: &[Row]) -> Vec<String> {
    let mut notes = vec![
        "Each client asks for /bytes/N over HTTP/3 and discards it. quinn's client starts its clock after the handshake, the \
         others before."
            .to_owned(),
        "The CPU time is that of whole processes, start and handshake included. The roofline encrypts and sends datagrams without \
         a protocol, with large buffers."
            .to_owned(),
    ];
    if !Implementation::Quiche.is_there(plan) {
        notes.push("quiche is left out: its program is not there; peers/build makes it.".to_owned());
    }
    for row in rows.iter().filter(|row| !row.trials.is_empty()) {
        let least = f64::from(plan.payload_size) * LEAST_CONTENT;
        if row.content_mean.values.iter().any(|mean| *mean < least) {
            notes.push(format!(
                "NOT COMPARABLE: the {} server sent {:.0} bytes of content in each datagram to {}'s client, of {} that a datagram holds.",
                row.cell.server.name(),
                row.content_mean.mean,
                row.cell.client.name(),
                plan.payload_size,
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
