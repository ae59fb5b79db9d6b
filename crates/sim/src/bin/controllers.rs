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
usage: controllers DIRECTORY

Runs congestion controllers over simulated links and writes DIRECTORY/README.md, results.json and plots.
Takes some minutes. Example: cargo xtask controllers, which is
  cargo run --profile quick -p tercel-sim --bin controllers -- docs/controllers";

fn main() -> ExitCode {
    let directory = match std::env::args().nth(1) {
        Some(directory) if !directory.starts_with('-') => directory,
        _ => {
            println!("{HELP}");
            return ExitCode::FAILURE;
        }
    };
    match make(Path::new(&directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("controllers: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn make(directory: &Path) -> Result<(), String> {
    let items = items();
    let outcomes = run_all(&items)?;
    let records: Vec<Record> =
        items.iter().zip(outcomes).map(|(item, outcome)| Record::new(item, outcome)).collect();
    let (study, plots) = study(&records);
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

/// All heats, the heaviest first, on all cores; the outcomes in the order of the items.
fn run_all(items: &[Item]) -> Result<Vec<Outcome>, String> {
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
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}
