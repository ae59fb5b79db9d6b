//! The table of controllers and links, made anew: `cargo xtask controllers`.
//!
//! Writes README.md, results.json and the plots into the directory that it is given. The heats are shared out among the
//! machine's cores; what comes out depends on none of that.

use sim::contest::{Item, Outcome, Record, items, markdown, run, study};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

const HELP: &str = "\
usage: controllers DIRECTORY [--again]

Runs congestion controllers over simulated links and writes DIRECTORY/README.md, results.json and plots.
Takes some minutes. Example: cargo xtask controllers, which is
  cargo run --profile quick -p tercel-sim --bin controllers -- docs/controllers
With --again nothing is run: page and plots are made anew from DIRECTORY/results.json.";

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
    let records = if again { read(directory) } else { run_all(&items()) };
    match records.and_then(|records| write(directory, &records)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("controllers: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The records of an earlier run.
fn read(directory: &Path) -> Result<Vec<Record>, String> {
    let path = directory.join("results.json");
    let problem = |text: String| format!("{}: {text}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| problem(error.to_string()))?;
    let study: report::model::Study =
        serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
    let records: Option<Vec<Record>> =
        study.raw.as_array().and_then(|raw| raw.iter().map(Record::from_json).collect());
    records.ok_or_else(|| problem("not what this program writes".to_owned()))
}

/// Page, plots and results.
fn write(directory: &Path, records: &[Record]) -> Result<(), String> {
    let (study, plots) = study(records);
    let write = |name: &str, text: String| {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    for (name, plot) in &plots {
        write(&format!("{name}.svg"), report::plot::svg(plot))?;
    }
    let names: Vec<&str> = plots.iter().map(|(name, _)| *name).collect();
    write("README.md", markdown(&study, &names))?;
    let json = serde_json::to_string_pretty(&study).map_err(|error| error.to_string())?;
    write("results.json", json + "\n")
}

/// All heats, the heaviest first, on all cores; the records in the order of the items.
fn run_all(items: &[Item]) -> Result<Vec<Record>, String> {
    let mut order: Vec<(usize, &Item)> = items.iter().enumerate().collect();
    order.sort_by_key(|(_, item)| core::cmp::Reverse(item.weight()));
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<(usize, Result<Outcome, String>)>> = Mutex::new(Vec::new());
    let work = || {
        while let Some((index, item)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run(&item.heat).map_err(|problem| format!("{:?}: {problem}", item.heat));
            let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            outcomes.push((*index, outcome));
            if outcomes.len().is_multiple_of(50) {
                eprintln!("{} of {} heats", outcomes.len(), items.len());
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(index, _)| *index);
    let records = items.iter().zip(outcomes).map(|(item, (_, outcome))| Ok(Record::new(item, outcome?)));
    records.collect()
}
