//! What a second worker is worth: request rates of a server with one worker and with two.
//!
//! A server process with this many workers, a generator process with two threads, both on this machine. For each kind of
//! request the trials alternate between one worker and two, so that whatever else the machine does meets both alike.
//!
//! Where client and server share too few cores, neither rate is the server's own. What the server used for a request is
//! measured all the same, and from it follows the rate that its workers could serve if each had a core to itself. That
//! figure is derived, and every place that shows it says so.

mod table;
mod trial;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use crate::environment::Environment;
use crate::folder::Folder;
use crate::stats::{Ratio, Summary};
pub use trial::Trial;

/// The numbers of workers that are compared.
pub const WORKERS: [usize; 2] = [1, 2];

/// How many times the rate of one worker two shall have, where the client is not the limit.
pub const AIM: f64 = 1.8;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// A file of 630 bytes.
    SmallFile,
    /// 512 bytes to the server, 8 KiB back.
    Exchange,
}

impl Work {
    /// All of them.
    pub const ALL: [Work; 2] = [Work::SmallFile, Work::Exchange];

    /// As it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Work::SmallFile => "630-byte file",
            Work::Exchange => "512 B to 8 KiB",
        }
    }
}

/// What is measured.
#[derive(Clone, Debug, Serialize)]
pub struct WorkersPlan {
    /// The tercel program. Its place is left out of the results.
    #[serde(skip)]
    pub program: PathBuf,
    /// Trials of each kind of request with each number of workers.
    pub trials: usize,
    /// How long each is measured, after a second of warm-up.
    pub seconds: f64,
    /// Connections of the generator.
    pub connections: usize,
    /// Requests at a time on each.
    pub streams: usize,
    /// Threads of the generator.
    pub threads: usize,
    /// The server's cores.
    pub server_cores: Vec<usize>,
    /// The generator's cores.
    pub client_cores: Vec<usize>,
}

impl WorkersPlan {
    /// Five trials of 4 s each, 100 connections with 10 requests at a time. Client and server get cores of their own where
    /// there are four or more, and share all of them where there are fewer.
    pub fn new(program: PathBuf) -> WorkersPlan {
        let cores = cpu::allowed();
        let (server_cores, client_cores) = match cores.as_slice() {
            [a, b, rest @ ..] if rest.len() >= 2 => (vec![*a, *b], rest.to_vec()),
            all => (all.to_vec(), all.to_vec()),
        };
        let (trials, seconds, connections, streams, threads) = (5, 4.0, 100, 10, 2);
        WorkersPlan { program, trials, seconds, connections, streams, threads, server_cores, client_cores }
    }

    /// Whether client and server compete for cores.
    pub fn shares_cores(&self) -> bool {
        self.server_cores.iter().any(|core| self.client_cores.contains(core))
    }
}

/// One kind of request with one number of workers.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was asked.
    pub work: Work,
    /// Of the server.
    pub workers: usize,
    /// All counted trials, in order.
    pub trials: Vec<Trial>,
    /// Requests a second, as measured.
    pub rate: Summary,
    /// The server's CPU time for each request, in microseconds.
    pub server_us: Summary,
    /// The generator's.
    pub client_us: Summary,
    /// Requests a second that the workers could serve with a core each: workers / `server_us`. Derived, not measured.
    pub derived_rate: Summary,
}

/// Two workers over one.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was asked.
    pub work: Work,
    /// Of the measured rates.
    pub measured: Option<Ratio>,
    /// Of the derived rates.
    pub derived: Option<Ratio>,
}

/// The result, or as much of it as there is.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What was to be measured.
    pub plan: WorkersPlan,
    /// Where.
    pub environment: Environment,
    /// One for each kind of request and number of workers.
    pub rows: Vec<Row>,
    /// One for each kind of request.
    pub findings: Vec<Finding>,
    /// Why it ended before the plan was fulfilled.
    pub problem: Option<String>,
}

/// Measures until the plan is fulfilled, something fails, or `stop` is set. `progress` hears a line for each trial.
///
/// # Errors
/// When nothing can be measured at all.
pub fn run(plan: &WorkersPlan, stop: &AtomicBool, progress: &mut dyn FnMut(&str)) -> io::Result<Comparison> {
    let environment = Environment::here();
    let folder = Folder::make()?;
    trial::write_small_file(folder.path())?;
    let mut trials: Vec<(Work, usize, Trial)> = Vec::new();
    let problem = rounds(plan, &folder, stop, progress, &mut trials).err().map(|error| error.to_string());
    let rows: Vec<Row> = Work::ALL
        .into_iter()
        .flat_map(|work| WORKERS.map(|workers| (work, workers)))
        .map(|(work, workers)| {
            let of_row = |(kind, count, _): &&(Work, usize, Trial)| (*kind, *count) == (work, workers);
            row(work, workers, trials.iter().filter(of_row).map(|(.., trial)| trial.clone()).collect())
        })
        .collect();
    let findings = rows.chunks_exact(2).filter_map(finding).collect();
    Ok(Comparison { plan: plan.clone(), environment, rows, findings, problem })
}

fn rounds(
    plan: &WorkersPlan,
    folder: &Folder,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
    trials: &mut Vec<(Work, usize, Trial)>,
) -> io::Result<()> {
    for work in Work::ALL {
        for round in 1..=plan.trials {
            for workers in WORKERS {
                let trial = trial::measure(plan, folder, (work, workers), stop)?;
                progress(&format!("{:15} {workers} worker(s) {round}/{} {trial}", work.name(), plan.trials));
                trials.push((work, workers, trial));
            }
        }
    }
    Ok(())
}

fn row(work: Work, workers: usize, trials: Vec<Trial>) -> Row {
    let over = |figure: &dyn Fn(&Trial) -> f64| Summary::of(trials.iter().map(figure));
    Row {
        rate: over(&|trial| trial.rate),
        server_us: over(&|trial| trial.server_us),
        client_us: over(&|trial| trial.client_us),
        derived_rate: over(&|trial| workers as f64 * 1e6 / trial.server_us),
        work,
        workers,
        trials,
    }
}

/// The first row has one worker, the second two.
fn finding(rows: &[Row]) -> Option<Finding> {
    let [one, two] = rows else { return None };
    let ratio = |figure: fn(&Row) -> &Summary| Ratio::by_rounds(&figure(two).values, &figure(one).values);
    Some(Finding {
        work: one.work,
        measured: ratio(|row| &row.rate),
        derived: ratio(|row| &row.derived_rate),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, the derived rate could be taken from the wrong side, or forget the number of workers.
    #[test]
    fn the_derived_rate_is_that_of_the_servers_own_cpu() {
        let trial = |rate, server_us| Trial { rate, server_us, client_us: 9.0, ..Trial::default() };
        let one = row(Work::SmallFile, 1, vec![trial(100_000.0, 4.0), trial(110_000.0, 5.0)]);
        let two = row(Work::SmallFile, 2, vec![trial(120_000.0, 4.0), trial(120_000.0, 5.0)]);
        assert_eq!(one.derived_rate.values, [250_000.0, 200_000.0]);
        assert_eq!(two.derived_rate.values, [500_000.0, 400_000.0]);
        let found = finding(&[one, two]).unwrap();
        assert!((found.derived.unwrap().ratio - 2.0).abs() < 1e-9);
        let of_rounds = [120.0 / 100.0, 120.0 / 110.0_f64];
        assert!((found.measured.unwrap().ratio - (of_rounds[0] * of_rounds[1]).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn cores_are_shared_only_where_there_are_few() {
        let plan = WorkersPlan::new("tercel".into());
        assert!(!plan.server_cores.is_empty() && !plan.client_cores.is_empty());
        assert_eq!(plan.shares_cores(), cpu::allowed().len() < 4);
    }
}
