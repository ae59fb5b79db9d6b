//! The table of controllers and links, made anew: `cargo xtask controllers`.
//!
//! Writes README.md, results.json and the plots into the directory that it is given. The heats are shared out among the
//! machine's cores, the heaviest first; what comes out depends on none of that. How much is done is said in packets, which is
//! what time goes by.

use sim::contest::{Item, Outcome, Record, items, markdown, run, study, unpack};
use sim::revision;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const HELP: &str = "\
usage: controllers DIRECTORY [--again | --add]

Runs congestion controllers over simulated links and writes DIRECTORY/README.md, results.json and plots.
Takes some minutes and says how many are left. Example: cargo xtask controllers, which is
  cargo run --release -p tercel-sim --bin controllers -- docs/controllers
With --again nothing is run: page and plots are made anew from DIRECTORY/results.json.
With --add only what DIRECTORY/results.json lacks is run; the page names both revisions.";

/// What the figures depend on, for the question whether they are the revision's.
const SOURCES: [&str; 15] = [
    "Cargo.lock",
    "crates/protocol/base",
    "crates/protocol/crypto",
    "crates/network/datapath",
    "crates/http/http3",
    "crates/http/qpack",
    "crates/protocol/recovery",
    "crates/lab/link",
    "crates/lab/report",
    "crates/lab/sim",
    "crates/protocol/transport",
    "crates/protocol/wire",
    "crates/network/worker",
    ":(exclude,glob)crates/**/tests.rs",
    ":(exclude,glob)crates/**/tests/**",
];
/// Progress is said this often.
const NEWS: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let directory = match std::env::args().nth(1) {
        Some(directory) if !directory.starts_with('-') => directory,
        _ => {
            println!("{HELP}");
            return ExitCode::FAILURE;
        }
    };
    let again = std::env::args().any(|argument| argument == "--again");
    let directory = Path::new(&directory);
    let adds = std::env::args().any(|argument| argument == "--add");
    let made = if again {
        read(directory)
    } else if adds {
        read(directory).and_then(|before| add(before, &items()))
    } else {
        // Before the run: it takes minutes, in which a commit may be made.
        let revision = revision(&SOURCES);
        run_all(&items()).map(|records| (revision, records))
    };
    match made.and_then(|(revision, records)| write(directory, &revision, &records)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("controllers: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The revision and the records of an earlier run.
fn read(directory: &Path) -> Result<(String, Vec<Record>), String> {
    let path = directory.join("results.json");
    let problem = |text: String| format!("{}: {text}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| problem(error.to_string()))?;
    let study: report::model::Study =
        serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
    unpack(&study.raw)
        .ok_or_else(|| problem("not what this program writes: run it without --again".to_owned()))
}

/// What an earlier run has left out, beside what it has of the items.
fn add((before, mut known): (String, Vec<Record>), items: &[Item]) -> Result<(String, Vec<Record>), String> {
    let revision = format!("{before}, and {} for what it lacked", revision(&SOURCES));
    let missing: Vec<Item> =
        items.iter().filter(|item| !known.iter().any(|record| record.is_for(item))).cloned().collect();
    known.extend(run_all(&missing)?);
    let find = |item: &Item| known.iter().find(|record| record.is_for(item)).cloned();
    Ok((revision, items.iter().filter_map(find).collect()))
}

/// Page, plots and results.
fn write(directory: &Path, revision: &str, records: &[Record]) -> Result<(), String> {
    let (study, plots) = study(revision, records);
    let write = |name: &str, text: String| {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    for (name, plot) in &plots {
        write(&format!("{name}.svg"), report::plot::svg(plot))?;
    }
    let names: Vec<&str> = plots.iter().map(|(name, _)| *name).collect();
    write("README.md", markdown(&study, revision, &names))?;
    let json = serde_json::to_string_pretty(&study).map_err(|error| error.to_string())?;
    write("results.json", json + "\n")
}

/// All heats, the heaviest first, on all cores; the records in the order of the items.
fn run_all(items: &[Item]) -> Result<Vec<Record>, String> {
    let mut order: Vec<(usize, &Item)> = items.iter().enumerate().collect();
    order.sort_by_key(|(_, item)| core::cmp::Reverse(item.weight()));
    let next = AtomicUsize::new(0);
    let progress = Mutex::new(Progress::of(items));
    let work = || {
        let mut outcomes: Vec<(usize, Result<Outcome, String>)> = Vec::new();
        while let Some((index, item)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run(&item.heat).map_err(|problem| format!("{:?}: {problem}", item.heat));
            outcomes.push((*index, outcome));
            progress.lock().unwrap_or_else(PoisonError::into_inner).on_done(item);
        }
        outcomes
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let outcomes: Result<Vec<_>, _> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join()).collect()
    });
    let mut outcomes: Vec<_> =
        outcomes.map_err(|_| "a heat has panicked".to_owned())?.into_iter().flatten().collect();
    outcomes.sort_by_key(|(index, _)| *index);
    let records = items.iter().zip(outcomes).map(|(item, (_, outcome))| Ok(Record::new(item, outcome?)));
    records.collect()
}

/// How much is done, in heats and in their weights.
struct Progress {
    done: [u64; 2],
    all: [u64; 2],
    began: Instant,
    said_at: Instant,
}

#[expect(
    clippy::disallowed_methods,
    reason = "people want to know how long it will take; no figure depends on it"
)]
impl Progress {
    fn of(items: &[Item]) -> Progress {
        let all = [items.len() as u64, items.iter().map(Item::weight).sum()];
        let now = Instant::now();
        Progress { done: [0; 2], all, began: now, said_at: now }
    }

    fn on_done(&mut self, item: &Item) {
        self.done[0] += 1;
        self.done[1] += item.weight();
        let now = Instant::now();
        if now - self.said_at < NEWS && self.done != self.all {
            return;
        }
        self.said_at = now;
        let share = self.done[1] as f64 / self.all[1].max(1) as f64;
        let left = (now - self.began).as_secs_f64() * (1.0 / share.max(1e-6) - 1.0);
        let [done, all] = [self.done[0], self.all[0]];
        eprintln!("{done} of {all} contests, {:.0} % of the packets, {} left", share * 100.0, minutes(left));
    }
}

/// So many seconds as people say them.
fn minutes(seconds: f64) -> String {
    let seconds = seconds.round().max(0.0) as u64;
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {:02} s", seconds / 60, seconds % 60) }
}
